"""Three servers, of zkgo or of Apache ZooKeeper, with what they used."""

import contextlib
import os
import signal
import socket
import time

import install
from faults import Proxy
from process import Process, usage

_given = set()  # ports that this process handed out


def free_ports(count):
    """Returns free ports below the range that the kernel uses for outgoing connections."""
    found, port = [], 17000 + (os.getpid() * 137) % 12000
    while len(found) < count:
        port = port + 1 if port < 31000 else 17000
        if port not in _given and _is_free(port):
            found.append(port)
            _given.add(port)
    return found


def _addresses(one_port):
    """Returns three addresses; with one_port, they differ by the host."""
    ports = free_ports(1) * 3 if one_port else free_ports(3)
    return {i: (f"127.0.0.{i}" if one_port else "127.0.0.1", ports[i - 1]) for i in (1, 2, 3)}


def _is_free(port):
    with socket.socket() as s:
        try:
            s.bind(("0.0.0.0", port))
            return True
        except OSError:
            return False


class Ensemble:
    """Servers on 127.0.0.1; with one_port, on 127.0.0.1, .2 and .3 with the same client port."""

    def __init__(self, directory, servers, zkgo, *, config="", jvm=(), one_port=False, fault=None):
        self.servers, self.zkgo, self.jvm = servers, zkgo, list(jvm)
        self.dir = directory / "servers"
        self.processes, self.down = {}, set()
        self.cpu, self.memory, self.peak = 0.0, {}, {}
        self.address, peers = _addresses(one_port), free_ports(6)
        self.proxies = []
        self.client_address = self.address
        if fault in ("watches", "sessions"):
            self.client_address = _addresses(one_port)
            self.proxies = [Proxy(self.client_address[i], self.address[i], fault) for i in self.address]
        members = "".join(f"server.{i}=127.0.0.1:{peers[i - 1]}:{peers[i + 2]}\n" for i in self.address)
        for i, (host, port) in self.address.items():
            home = self.dir / str(i)
            (home / "data").mkdir(parents=True)
            (home / "data/myid").write_text(f"{i}\n")
            (home / "zoo.cfg").write_text(
                f"tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir={home}/data\nclientPort={port}\nclientPortAddress={host}\n"
                f"4lw.commands.whitelist=*\nadmin.enableServer=false\n{members}{config}\n"
            )

    @property
    def hosts(self):
        """The connection string for the application."""
        return _joined(self.client_address)

    @property
    def direct_hosts(self):
        """The connection string for the checks, past the proxies of a fault."""
        return _joined(self.address)

    def start(self, i):
        home = self.dir / str(i)
        if self.servers == "zkgo":
            argv = [self.zkgo, "server", home / "zoo.cfg"]
        else:
            # ZooKeeper's own scripts set this heap.
            argv = ["java", "-Xmx1000m", *self.jvm, "-cp", install.zookeeper(), "org.apache.zookeeper.server.quorum.QuorumPeerMain", home / "zoo.cfg"]
        self.processes[i] = Process(argv, home / "log", cwd=home)
        self.down.discard(i)

    def kill(self, i):
        """kill -9 for one server."""
        self._account(i)
        self.down.add(i)
        self.processes[i].kill()

    def stop(self, i):
        self._account(i)
        self.down.add(i)
        self.processes[i].stop()

    def freeze(self):
        """Stops all servers the way a debugger does: connections stay open and nothing replies."""
        for p in self.processes.values():
            os.kill(p.pid, signal.SIGSTOP)

    def serves(self, i):
        return self.mode(i) != ""

    def mode(self, i):
        """Returns what srvr says: leader, follower, or nothing."""
        for line in four_letters(self.address[i], "srvr").splitlines():
            if line.startswith("Mode: "):
                return line[6:].strip()
        return ""

    def leader(self):
        """Returns the number of the leader, or 0."""
        return next((i for i in self.address if self.mode(i) == "leader"), 0)

    def server_of(self, session):
        """Returns the number of the server that a session is connected to, or 0."""
        return next((i for i, address in self.address.items() if f"sid={session:#x}," in four_letters(address, "cons")), 0)

    def _account(self, i, add=True):
        p = self.processes.get(i)
        if not p or not p.alive():
            return 0.0
        cpu, memory, peak = usage(p.pid)
        self.memory[i], self.peak[i] = memory, max(peak, self.peak.get(i, 0))
        if add:
            self.cpu += cpu
        return cpu

    def used(self):
        """Returns CPU seconds of all servers, and the mean of their memory and of its peak in MiB."""
        running = sum(self._account(i, add=False) for i in self.address)
        mean = lambda values: round(sum(values) / max(1, len(values)))
        return round(self.cpu + running, 1), mean(self.memory.values()), mean(self.peak.values())

    def ended(self):
        """Returns the servers that ended although no check stopped them."""
        return [i for i, p in self.processes.items() if i not in self.down and not p.alive()]

    def problems(self):
        """Returns lines of the servers' logs that report more than news."""
        found = []
        for i in self.address:
            with contextlib.suppress(OSError):
                lines = (self.dir / str(i) / "log").read_text(errors="replace").splitlines()
                found += [f"server {i}: {line}" for line in lines if any(w in line for w in ("level=ERROR", "panic:", " ERROR "))]
        return found

    def close(self):
        for proxy in self.proxies:
            proxy.close()
        for p in self.processes.values():
            p.kill()


def _joined(addresses):
    return ",".join(f"{host}:{port}" for host, port in addresses.values())


def four_letters(address, word):
    """Returns the answer to a four-letter word, or nothing."""
    answer = b""
    until = time.monotonic() + 3
    with contextlib.suppress(OSError), socket.create_connection(address, 2) as s:
        s.settimeout(2)
        s.sendall(word.encode())
        while time.monotonic() < until and (part := s.recv(65536)):
            answer += part
    return answer.decode(errors="replace")
