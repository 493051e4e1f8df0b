"""Starts servers of a target for the suites that bring no harness of their own."""

import contextlib
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from base import SHIM, CannotRun, end_group, free_ports

SUPER = "DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU="  # super:test

STANDALONE = f"""tickTime=500
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=*
extendedTypesEnabled=true
reconfigEnabled=true
enforceQuota=true
{SUPER}
"""


class Server:
    """One server process with a directory and a client port of its own."""

    def __init__(self, env, target, directory, port, config, properties=()):
        self.env, self.target, self.directory, self.port = env, target, pathlib.Path(directory), port
        self.properties = properties
        self.process = None
        self.directory.mkdir(parents=True, exist_ok=True)
        self.config = self.directory / "zoo.cfg"
        self.config.write_text(
            f"dataDir={self.directory}/data\nclientPort={port}\nclientPortAddress=127.0.0.1\n{config}"
        )
        (self.directory / "data").mkdir(exist_ok=True)

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    @property
    def log(self):
        return self.env.logs / f"server-{self.target}-{self.directory.name}-{self.port}.log"

    def start(self):
        """Starts the process; serving() says when it serves."""
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen(
                [str(SHIM / "server.sh"), str(self.config), *self.properties],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=self.env.environ(self.target),
                start_new_session=True,
            )
        return self

    def serving(self, seconds=90):
        """Waits until the server answers srvr with its mode."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.process.poll() is not None:
                return False
            if b"Mode: " in four_letters(self.port, b"srvr"):
                return True
            time.sleep(0.05)
        return False

    def kill(self):
        """kill -9, the process and whatever it started."""
        end_group(self.process)

    def stop(self, seconds=30):
        """SIGTERM and wait; kill -9 for one that does not end."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        self.kill()


def four_letters(port, word):
    """The answer to a four-letter word; empty when there is none."""
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as s:
            s.sendall(word)
            answer = b""
            while chunk := s.recv(65536):
                answer += chunk
            return answer
    except OSError:
        return b""


@contextlib.contextmanager
def standalone(env, target, more=""):
    """A standalone server that serves; other ports are tried when one was taken meanwhile."""
    for _ in range(3):
        directory = pathlib.Path(tempfile.mkdtemp(prefix=f"{target}-", dir=env.work))
        server = Server(env, target, directory, free_ports(1)[0], STANDALONE + more).start()
        try:
            if server.serving():
                yield server
                return
        finally:
            server.stop()
            shutil.rmtree(directory, ignore_errors=True)
    raise CannotRun(f"a {target} server did not start three times; see {server.log}: {tail(server.log)}")


@contextlib.contextmanager
def ensemble(env, target, size=3, more="", properties=()):
    """An ensemble of which every server serves; properties are Java's, -Dname=value."""
    for _ in range(3):
        directory = pathlib.Path(tempfile.mkdtemp(prefix=f"{target}-", dir=env.work))
        ports = free_ports(3 * size)
        members = "".join(
            f"server.{i + 1}=127.0.0.1:{ports[3 * i + 1]}:{ports[3 * i + 2]}:participant;127.0.0.1:{ports[3 * i]}\n"
            for i in range(size)
        )
        config = STANDALONE + "initLimit=20\nsyncLimit=10\nstandaloneEnabled=false\n" + members + more
        servers = [Server(env, target, directory / f"s{i + 1}", ports[3 * i], config, properties) for i in range(size)]
        for i, server in enumerate(servers):
            # In a dynamic configuration the client's address stands in the members' lines.
            text = server.config.read_text()
            server.config.write_text("".join(l for l in text.splitlines(True) if not l.startswith("clientPort")))
            (server.directory / "data" / "myid").write_text(f"{i + 1}\n")
            server.start()
        try:
            if all(server.serving() for server in servers):
                yield servers
                return
        finally:
            for server in servers:
                server.stop()
            shutil.rmtree(directory, ignore_errors=True)
    raise CannotRun(f"an ensemble of {target} did not start three times; see {servers[0].log}: {tail(servers[0].log)}")


def tail(path, lines=5):
    """The last lines of a log, for a message."""
    with contextlib.suppress(OSError):
        return " | ".join(pathlib.Path(path).read_text(errors="replace").splitlines()[-lines:])
    return ""
