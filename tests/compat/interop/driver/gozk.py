"""go-zookeeper's own tests: every server they start is one of the target."""

import re
import subprocess

import install
from base import FAIL, PASS, SHIM, SKIP, CannotRun, Check, run

NAME = "gozk"
ALONE = True
NEEDS = "go, java"
RESULT = re.compile(r"^--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)
OUTCOME = {"PASS": PASS, "FAIL": FAIL, "SKIP": SKIP}


def checks(env, only=None):
    """Runs the tests, all or those named."""
    home = install.gozk(env)
    wanted = only or _listed(home)
    found = _run(env, home, only)
    # A test that panics takes those after it along: they get a run of their own.
    for _ in range(5):
        missing = [name for name in wanted if name not in found]
        if not missing or only:
            break
        found.update(_run(env, home, missing))
    return [found.get(name, Check(name, FAIL, "the test did not finish")) for name in wanted]


def _listed(home):
    command = [home / "gozk.test", "-test.list", "."]
    result = subprocess.run(command, capture_output=True, text=True, cwd=home / "src", stdin=subprocess.DEVNULL)
    names = [line for line in result.stdout.split() if line.startswith("Test")]
    if not names:
        raise CannotRun(f"go-zookeeper's test binary lists no tests: {result.stderr}")
    return names


def _run(env, home, only):
    log = env.logs / f"gozk-{len(list(env.logs.glob('gozk-*.log')))}.log"
    pattern = "^(" + "|".join(only) + ")$" if only else "."
    command = [home / "gozk.test", "-test.v", "-test.timeout", "15m", "-test.run", pattern]
    # Its reconfig tests ask for the version of the server in ZK_VERSION.
    environ = env.environ(ZOOKEEPER_BIN_PATH=SHIM, ZK_VERSION="3.9.5", TMPDIR=env.work)
    run(command, log, 1000, env=environ, cwd=home / "src")
    text = log.read_text(errors="replace")
    found = {}
    for match in RESULT.finditer(text):
        name = match.group(2)
        outcome = OUTCOME[match.group(1)]
        start = text.rfind(f"=== RUN   {name}\n", 0, match.start())
        after = RESULT.search(text, match.end())
        end = after.start() if after else len(text)
        found[name] = Check(name, outcome, "" if outcome == PASS else text[max(start, 0) : end][-20000:])
    return found
