"""Processes with their output in a file. All of them end with the driver.

Applications start processes of their own, e.g. Patroni starts PostgreSQL in a session of its
own. The driver's first process is a "child subreaper" of Linux: it becomes the parent of each
descendant that loses its own, so that we find and end all of them.
"""

import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import time

PR_SET_CHILD_SUBREAPER = 36


def supervise():
    """Forks: the child returns and does the work, the parent waits for it and ends what it left.

    The parent reaps processes that lost their own parent. Without that, an application would
    believe that e.g. a killed PostgreSQL still runs.
    """
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    worker = os.fork()
    if worker == 0:
        return
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda n, _: os.kill(worker, n))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the worker too
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == worker:
            break
    code = os.waitstatus_to_exitcode(status)
    _end(os.getpid(), {os.getpid()})
    os._exit(code if code >= 0 else 128 - code)


class Process:
    """A program that runs, with a log."""

    def __init__(self, argv, log, env=None, **options):
        self.log = pathlib.Path(log)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log, "ab") as out:
            self.popen = subprocess.Popen(
                [str(a) for a in argv], stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}, start_new_session=True, **options
            )
        self.pid = self.popen.pid

    def alive(self):
        return self.popen.poll() is None

    def kill(self):
        """kill -9 for the process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self.popen.wait()

    def stop(self, seconds=30):
        """SIGTERM, and kill -9 for a process that ignores it. Returns whether it ended in time."""
        if self.alive():
            self.popen.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(seconds)
        in_time = not self.alive()
        self.kill()
        return in_time

    def text(self):
        return self.log.read_text(errors="replace")


def usage(pid):
    """Returns the CPU seconds, and the memory and its peak in MiB, of a process."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    memory = {}
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("VmRSS", "VmHWM"):
            memory[name] = int(value.split()[0]) / 1024
    return cpu, memory.get("VmRSS", 0), memory.get("VmHWM", 0)


def end_all():
    """Kills every process of this run except the driver's own two."""
    _end(os.getppid(), {os.getpid(), os.getppid()})


def _end(root, keep):
    until = time.monotonic() + 20
    while (left := {pid for pid in _descendants(root) - keep if _state(pid) not in "Z"}) and time.monotonic() < until:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def _state(pid):
    """Returns a process's state: R, S, …; Z if it ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


def _descendants(root):
    """Returns the ids of all processes that a process started, directly or not."""
    parents = {}
    for path in pathlib.Path("/proc").iterdir():
        if path.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                parents[int(path.name)] = int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
    found, new = set(), {root}
    while new:
        new = {pid for pid, parent in parents.items() if parent in new} - found
        found |= new
    return found
