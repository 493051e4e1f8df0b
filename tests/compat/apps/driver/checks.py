"""One run of an application: its servers, its processes, its checks."""

import collections
import contextlib
import itertools
import logging
import pathlib
import re
import subprocess
import time
import traceback

from kazoo.client import KazooClient

import install
from ensemble import Ensemble
from process import Process

logging.getLogger("kazoo").setLevel(logging.CRITICAL)

# What the JVM hides from libraries of Hadoop's age, and what they need nevertheless.
OPENS = [
    *(f"--add-opens=java.base/{p}=ALL-UNNAMED" for p in ("java.lang", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util", "java.util.concurrent", "sun.nio.ch")),
    *(f"--add-{w}=java.base/jdk.internal.{p}=ALL-UNNAMED" for w in ("opens", "exports") for p in ("misc", "ref")),
]
LOG4J = """log4j.rootLogger={level}, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p [%c{{1}}] %m%n
"""


class Stop(Exception):
    """A check failed that all further checks need."""


class Client:
    """Kazoo's client, but each request ends in time also when no server replies."""

    def __init__(self, hosts, seconds):
        self._zk = KazooClient(hosts=hosts, timeout=10)
        self._zk.start(seconds)

    def __getattr__(self, name):
        request = getattr(self._zk, name + "_async")
        return lambda *arguments: request(*arguments).get(timeout=20)

    def close(self):
        with contextlib.suppress(Exception):
            self._zk.stop()
            self._zk.close()


class Run:
    """What an application's check function gets."""

    def __init__(self, name, servers, zkgo, directory, slow, short, fault):
        self.name, self.servers, self.zkgo, self.dir = name, servers, zkgo, directory
        self.slow, self.short, self.fault = slow, short, fault
        self.ensemble = None
        self.passed, self.failures = 0, []
        self.processes, self.closing = [], contextlib.ExitStack()
        self.began = time.monotonic()

    # Servers and processes.

    def start_ensemble(self, **options):
        """Starts three servers, and waits until all of them serve."""
        self.ensemble = Ensemble(self.dir, self.servers, self.zkgo, fault=self.fault, **options)
        for i in self.ensemble.address:
            self.ensemble.start(i)
        self.wait(lambda: all(self.ensemble.serves(i) for i in self.ensemble.address), 60, "three servers serve")
        return self.ensemble

    def client(self, chroot=""):
        """Returns a connected client for what the checks read from the servers."""
        client = Client(self.ensemble.direct_hosts + chroot, 30 * self.slow)
        self.closing.callback(client.close)
        return client

    def process(self, argv, log, **options):
        """Starts a process of the application; log is a file name in the scratch folder."""
        p = Process(argv, self.dir / log, **options)
        self.processes.append(p)
        return p

    def java(self, class_path, main, *arguments, heap=256, log4j="INFO", options=()):
        """Returns the command line of a Java program."""
        config = self.dir / f"log4j-{log4j}.properties"
        config.write_text(LOG4J.format(level=log4j))
        temp = self.dir / "tmp"
        temp.mkdir(exist_ok=True)
        flags = [f"-Djava.io.tmpdir={temp}", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Dlog4j.configuration=file:{config}", "-Dorg.slf4j.simpleLogger.showDateTime=true"]
        return ["java", f"-Xmx{heap}m", *flags, *OPENS, *options, "-cp", class_path, main, *map(str, arguments)]

    def output(self, argv, seconds=120, **options):
        """Runs a command to its end and returns its output; raises if it fails."""
        r = subprocess.run(
            [str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=seconds * self.slow, text=True, errors="replace", **options
        )
        if r.returncode:
            raise RuntimeError(f"{pathlib.Path(str(argv[0])).name} exits {r.returncode}: {r.stdout[-1200:]}")
        return r.stdout

    def result(self, argv, **options):
        """Runs a program to its end and returns the line that it prints after "RESULT "."""
        out = self.output(argv, **options)
        for line in out.splitlines():
            if line.startswith("RESULT "):
                return line[7:]
        raise RuntimeError(f"no line with a result: {out[-1200:]}")

    # Checks.

    def wait(self, condition, seconds, what, every=0.25):
        """Waits until condition returns something true, and returns that."""
        until, last = time.monotonic() + seconds * self.slow, None
        while time.monotonic() < until:
            try:
                last = condition()
            except Exception as e:  # the application may not answer yet
                last = f"{type(e).__name__}: {e}"
            else:
                if last:
                    return last
            time.sleep(every)
        raise TimeoutError(f"{what}: not in {seconds * self.slow:.0f} s; last: {str(last)[-300:]}")

    def check(self, name, attempt, vital=False):
        """A check passes if attempt returns something true, which is its evidence."""
        try:
            evidence = attempt()
            good = bool(evidence)
        except Exception as e:  # each failure of an application is a failed check
            evidence, good = f"{type(e).__name__}: {e}", False
        self._note(name, good, evidence)
        if vital and not good:
            raise Stop(name)
        return good

    def eventually(self, name, condition, seconds=60, vital=False, every=0.25):
        """A check that passes as soon as condition returns something true."""
        began = time.monotonic()
        return self.check(name, lambda: f"{self.wait(condition, seconds, name, every)} after {time.monotonic() - began:.1f} s", vital)

    def _note(self, name, good, evidence=""):
        text = " ".join(str(evidence).split())
        print(f"  [{time.monotonic() - self.began:6.1f} s] {'pass' if good else 'FAIL'}  {name}: {text[:160] if good else text[-900:]}", flush=True)
        if good:
            self.passed += 1
        else:
            self.failures.append(name)
        if self.fault == "freeze" and self.passed == 1:
            self.fault = "frozen"
            self.ensemble.freeze()

    def kill_leaders(self, during, owners, rounds=2, away=9, kept="the application keeps its sessions", moves=None):
        """Kills the leader of the servers and starts it again, in rounds.

        during(round) returns a name and a condition that should hold while the server is down.
        owners() returns the sessions of the application, or what else may not change.
        moves() returns a session that should move: the first round kills its server, leader or not.
        """
        for r in range(1, rounds + 1):
            before, victim = owners(), self.ensemble.leader()
            which = "the leader of the servers"
            if r == 1 and moves:
                session = moves()
                victim = self.wait(lambda session=session: self.ensemble.server_of(session), 20, f"a server has session {session:#x}")
                which = "the session's server"
            down = time.monotonic()
            self.ensemble.kill(victim)
            name, condition = during(r)
            self.eventually(f"{name}, while {which} is down (round {r})", condition)
            # A session that was not moved expires by then.
            time.sleep(max(0.0, away - (time.monotonic() - down)))
            self.eventually(f"{kept} (round {r})", lambda: (now := owners()) == before and now, 5)
            self.ensemble.start(victim)
            self.wait(lambda: self.ensemble.serves(victim), 60, "the killed server serves again")

    # The end.

    def fail(self, error):
        """Notes an exception between two checks. Stop follows a check that failed already."""
        if not isinstance(error, Stop):
            traceback.print_exception(error)
            self._note("the checks end without an error", False, f"{type(error).__name__}: {error}")

    def finish(self):
        """Stops the application, and returns the result of this run."""
        used = (0.0, 0, 0)
        if self.ensemble:
            ended = self.ensemble.ended()
            self.check("no server ended by itself", lambda: not ended or _fail(f"servers {ended} ended"))
            used = self.ensemble.used()
        self.closing.close()
        for p in self.processes:
            p.kill()
        for exception, count in self._exceptions().most_common(6):
            print(f"  in the application's logs: {exception} {count} times")
        if self.ensemble:
            self.ensemble.close()
            for line in itertools.islice(self.ensemble.problems(), 8):
                print("  " + line[:240])
        return {
            "servers": self.servers,
            "passed": self.passed,
            "failed": len(self.failures),
            "failures": self.failures,
            "seconds": round(time.monotonic() - self.began),
            "cpu_s": used[0],
            "memory_mib": used[1],
            "peak_mib": used[2],
        }

    def _exceptions(self):
        """Counts ZooKeeper's exceptions in the logs of the application."""
        kinds = collections.Counter()
        for p in self.processes:
            for found in re.finditer(r"KeeperErrorCode = (\w+)|KeeperException\$(\w+)|kazoo\.exceptions\.(\w+)", p.text()):
                kinds[next(filter(None, found.groups()))] += 1
        return kinds


def _fail(why):
    raise AssertionError(why)
