"""Runs suites and judges them: see run.sh for the environment."""

import contextlib
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

import cclient
import curator
import gozk
import install
import kazoo_tests
import known
import reattach
import zkcli
from base import FAIL, INTEROP, PASS, SKIP, CannotRun, Env, say

SUITES = {suite.NAME: suite for suite in (gozk, kazoo_tests, zkcli, cclient, curator, reattach)}


def main(arguments):
    """Returns the exit code."""
    if arguments == ["--list"]:
        for suite in SUITES.values():
            say(f"{suite.NAME:10} {suite.NEEDS:24} {suite.__doc__.splitlines()[0]}")
        return 0
    unknown = [name for name in arguments if name not in SUITES]
    target = os.environ.get("ZKGO_INTEROP_TARGET", "zkgo")
    if unknown or target not in ("zkgo", "zookeeper"):
        say(f"run.sh: no such suite or target: {' '.join(unknown) or target}; suites: {' '.join(SUITES)}")
        return 2
    with environment(target) as env:
        return run(env, [SUITES[name] for name in arguments] or list(SUITES.values()))


@contextlib.contextmanager
def environment(target):
    """The directories of this run, removed at its end."""
    cache = pathlib.Path(os.environ.get("ZKGO_INTEROP_DIR") or pathlib.Path.home() / ".cache/zkgo-interop")
    cache.mkdir(parents=True, exist_ok=True)
    work = pathlib.Path(tempfile.mkdtemp(prefix="zkgo-interop-"))
    logs = pathlib.Path(os.environ.get("ZKGO_INTEROP_LOGS") or work / "logs")
    logs.mkdir(parents=True, exist_ok=True)
    try:
        yield Env(target, cache.resolve(), work, logs.resolve())
    finally:
        shutil.rmtree(work, ignore_errors=True)


def run(env, suites):
    """Installs the target, runs the suites one after the other."""
    listed = known.load(INTEROP / "known.txt")
    try:
        install.java(env)
        if env.target == "zkgo":
            install.binary(env)
    except CannotRun as err:
        say(f"interop: cannot run: {err}")
        return 1
    good = True
    for suite in suites:
        begin = time.monotonic()
        try:
            counts, well = judge(env, suite, listed)
            line = "{pass} passed, {fail} failed, {skip} skipped".format(**counts)
        except CannotRun as err:
            line, well = f"0 passed, 1 failed, 0 skipped: could not be run: {err}", False
        good = good and well
        say(f"suite {suite.NAME} on {env.target}: {line} ({time.monotonic() - begin:.0f} s)")
    return 0 if good else 1


def judge(env, suite, listed):
    """Runs a suite and counts. A failure that is not known is run once more
    alone: the peers' suites carry timing assumptions of their own."""
    results = suite.checks(env)
    if not any(check.outcome == PASS for check in results):
        raise CannotRun("nothing passed: " + "; ".join(f"{c.name}: {c.text[-300:]}" for c in results[:2]))
    counts = {PASS: 0, FAIL: 0, SKIP: 0}
    for check in results:
        entry = listed.get((suite.NAME, check.name))
        if check.outcome == FAIL and not known.explains(entry, env.target, check.text):
            check = again(env, suite, check)
        if check.outcome == FAIL and known.explains(entry, env.target, check.text):
            say(f"{suite.NAME} {check.name}: fails as known: {entry.why}")
            check.outcome = SKIP
        elif check.outcome == PASS and entry and getattr(entry, env.target):
            say(f"{suite.NAME} {check.name}: passed, though known.txt lists it")
        elif check.outcome == SKIP and not known.explains(entry, "skip", check.text):
            say(f"{suite.NAME} {check.name}: FAILED: skipped by the suite, and known.txt does not say why\n{indent(check.text)}")
            check.outcome = FAIL
        elif check.outcome == FAIL:
            say(f"{suite.NAME} {check.name}: FAILED\n{indent(check.text)}")
        counts[check.outcome] += 1
    return counts, counts[FAIL] == 0


def again(env, suite, check):
    """The second try of a failed check, alone; always printed."""
    say(f"{suite.NAME} {check.name}: failed, runs once more alone; the first time it said\n{indent(check.text, 12)}")
    second = next((c for c in suite.checks(env, [check.name]) if c.name == check.name), None)
    if second is None:
        return check
    say(f"{suite.NAME} {check.name}: the second time it {'passed' if second.outcome == PASS else 'failed too'}")
    return second


def indent(text, lines=60):
    """The end of an output, set off from the driver's own lines."""
    return "\n".join("    " + line for line in text.strip().splitlines()[-lines:])


if __name__ == "__main__":
    # Ended from outside, the driver still ends the servers that it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(sys.argv[1:]))
