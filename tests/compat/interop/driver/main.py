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
import moves
import reattach
import zkcli
from base import FAIL, INTEROP, PASS, SKIP, CannotRun, Env, say

SUITES = {suite.NAME: suite for suite in (gozk, kazoo_tests, zkcli, cclient, curator, moves, reattach)}


def main(arguments):
    """Returns the exit code."""
    if arguments == ["--list"]:
        for suite in SUITES.values():
            say(f"{suite.NAME:10} {suite.NEEDS:24} {suite.__doc__.splitlines()[0]}")
        return 0
    if arguments == ["--install"]:
        with environment("zkgo") as env:
            return tools(env)
    unknown = [name for name in arguments if name not in SUITES]
    target = os.environ.get("ZKGO_INTEROP_TARGET", "zkgo")
    if unknown or target not in ("zkgo", "zookeeper"):
        say(f"run.sh: no such suite or target: {' '.join(unknown) or target}; suites: {' '.join(SUITES)}")
        return 2
    with environment(target) as env:
        return run(env, [SUITES[name] for name in arguments] or list(SUITES.values()))


def tools(env):
    """Installs Java, Curator and Kazoo, and says where they are."""
    try:
        install.java(env)
        for name, path in (("java", env.java), ("curator", install.curator(env)), ("python", install.venv(env))):
            say(f"{name}={path}")
    except CannotRun as err:
        say(f"interop: cannot run: {err}")
        return 1
    return 0


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
    excuse = lambda check: known.explains(listed.get((suite.NAME, check.name)), env.target, check.text)
    failed = [check for check in results if check.outcome == FAIL and not excuse(check)]
    second = again(env, suite, failed)
    counts = {PASS: 0, FAIL: 0, SKIP: 0}
    for check in results:
        check = second.get(check.name, check)
        entry = listed.get((suite.NAME, check.name))
        if check.outcome == FAIL and excuse(check):
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


# More failures than this are not timing: a second run would only take long.
MOST_RETRIES = 25


def again(env, suite, failed):
    """The second try of what failed, always printed: each test of a peer's
    suite alone; a session that is compared once more as a whole."""
    if len(failed) > MOST_RETRIES:
        say(f"{suite.NAME}: {len(failed)} failed, too many for a second try")
        return {}
    for check in failed:
        say(f"{suite.NAME} {check.name}: failed and runs once more; it said\n{indent(check.text, 12)}")
    names = [check.name for check in failed]
    second = {}
    for group in [[name] for name in names] if suite.ALONE else [names] if names else []:
        second.update({check.name: check for check in suite.checks(env, group) if check.name in group})
    for name, check in second.items():
        say(f"{suite.NAME} {name}: the second time it {'passed' if check.outcome == PASS else 'failed too'}")
    return second


def indent(text, lines=60):
    """The end of an output, set off from the driver's own lines."""
    return "\n".join("    " + line for line in text.strip().splitlines()[-lines:])


if __name__ == "__main__":
    # Ended from outside, the driver still ends the servers that it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(sys.argv[1:]))
