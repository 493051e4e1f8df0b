"""Kazoo's own tests: its harness starts `java … QuorumPeerMain zoo.cfg`, and the
java that stands first in PATH starts the target instead. Covers TLS, SASL
DIGEST-MD5, local sessions, the read-only mode and reconfig."""

import os
import shutil
import xml.etree.ElementTree

import install
from base import FAIL, PASS, SHIM, SKIP, CannotRun, Check, free_range, run

NAME = "kazoo"
ALONE = True
NEEDS = "python3-venv, java"


def checks(env, only=None):
    """Runs the tests, all or those named (test_module::TestClass::test)."""
    python = install.venv(env)
    number = len(list(env.logs.glob("kazoo-run-*.log")))
    log = env.logs / f"kazoo-run-{number}.log"
    report = env.logs / f"kazoo-run-{number}.xml"
    scratch = env.work / f"kazoo-{number}"
    (scratch / "bin").mkdir(parents=True)
    (scratch / "bin" / "java").symlink_to(SHIM / "java")
    names = [f"kazoo.tests.{name}" for name in only] if only else ["kazoo.tests"]
    command = [python, "-W", "ignore", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "log_cli=false"]
    # Tests are named by their place below rootdir.
    command += [f"--rootdir={next((python.parent.parent / 'lib').glob('python3*/site-packages'))}"]
    # On both targets the same limit: no test of theirs needs a third of it.
    command += ["--timeout", "180", f"--junitxml={report}", "--pyargs", *names]
    environ = env.environ(
        PATH=f"{scratch / 'bin'}{os.pathsep}{os.environ['PATH']}",
        TMPDIR=scratch,
        ZOOKEEPER_PATH="/nonexistent",
        ZOOKEEPER_CLASSPATH="unused",
        ZOOKEEPER_VERSION="3.9.5",
        CI="1",  # then it checks that the servers are of that version
        ZOOKEEPER_PORT_OFFSET=free_range(30),
    )
    try:
        code = run(command, log, 2400, env=environ, cwd=scratch)
        if not report.exists():
            raise CannotRun(f"pytest ended with {code} and without a report; see {log}")
        return [_check(case) for case in xml.etree.ElementTree.parse(report).iter("testcase")]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _check(case):
    # classname is kazoo.tests.test_x.TestClass, or the module alone.
    parts = case.get("classname").removeprefix("kazoo.tests.").split(".")
    name = "::".join([*parts, case.get("name")])
    for tag, outcome in (("failure", FAIL), ("error", FAIL), ("skipped", SKIP)):
        element = case.find(tag)
        if element is not None:
            return Check(name, outcome, f"{element.get('message')}\n{element.text or ''}"[-20000:])
    return Check(name, PASS)
