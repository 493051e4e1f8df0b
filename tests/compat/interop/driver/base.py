"""What every suite shares: where things are, how a command is run, what a check is."""

import contextlib
import dataclasses
import fcntl
import os
import pathlib
import socket
import subprocess
import time

INTEROP = pathlib.Path(__file__).resolve().parent.parent
ROOT = INTEROP.parent.parent.parent
SHIM = INTEROP / "shim"

PASS, FAIL, SKIP = "pass", "fail", "skip"


class CannotRun(Exception):
    """A suite could not be run at all: something it needs is not there."""


@dataclasses.dataclass
class Check:
    """One test of a suite: what it is called, how it ended, what it printed."""

    name: str
    outcome: str
    text: str = ""


@dataclasses.dataclass
class Env:
    """One run of the driver: the target, the directories, the tools found."""

    target: str  # zkgo or zookeeper
    cache: pathlib.Path  # installed once, shared by all runs on this machine
    work: pathlib.Path  # this run's own, deleted at its end
    logs: pathlib.Path
    binary: str = ""  # the zkgo binary
    jars: str = ""  # the directory of the real server's jars
    java: str = ""

    def environ(self, target=None, **more):
        """The environment in which the shims find their target."""
        env = dict(os.environ)
        env.update(
            ZKGO_INTEROP_TARGET=target or self.target,
            ZKGO_INTEROP_BINARY=self.binary,
            ZKGO_INTEROP_JARS=self.jars,
            ZKGO_INTEROP_JAVA=self.java,
        )
        env.update({key: str(value) for key, value in more.items()})
        return env

    @property
    def classpath(self):
        """The jars of the real client and server, without jline: the shell
        must read its standard input line by line, without echoing it."""
        jars = sorted(p for p in pathlib.Path(self.jars).glob("*.jar") if "jline" not in p.name)
        return os.pathsep.join([self.jars] + [str(p) for p in jars])


def say(*words):
    """Prints a line at once, also into a pipe."""
    print(*words, flush=True)


def run(argv, log, timeout, env=None, cwd=None, stdin=None):
    """Runs a command in a process group of its own and returns its exit code;
    124 when it took too long. Everything it started is ended with it."""
    with open(log, "ab") as out:
        process = subprocess.Popen(
            [str(word) for word in argv],
            stdin=stdin or subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            return 124
        finally:
            end_group(process)


def end_group(process):
    """Kills whatever is left of the process group that a process led."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, 9)
    process.wait()


def retry(what, attempt, tries=3):
    """Calls attempt until it returns True; for steps that use the network."""
    for n in range(tries):
        if attempt():
            return
        time.sleep(2 * n)
    raise CannotRun(f"{what} failed {tries} times")


@contextlib.contextmanager
def locked(path):
    """Keeps two runs on one machine from installing the same thing at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def free_ports(count):
    """Ports that nobody listened on a moment ago, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]
    finally:
        for s in sockets:
            s.close()


def free_range(count, low=17000, high=31000):
    """The first port of a run of free ports below the range that the kernel
    hands out for outgoing connections, for harnesses that count upwards."""
    start = low + (os.getpid() * 97 + time.monotonic_ns() // 1000) % (high - low - count)
    for first in [*range(start, high - count, count), *range(low, start, count)]:
        if all(_is_free(port) for port in range(first, first + count)):
            return first
    raise CannotRun(f"no {count} free ports in a row between {low} and {high}")


def _is_free(port):
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", port))
            return True
        except OSError:
            return False
