"""Vitess: its own suite for topology servers, and its client while servers die."""

import os

import install as packages
import program

TITLE = "Vitess (zk2topo)"
VERSION = "0.24.4"
EXERCISED = "its suite for topology servers, election"
SETTINGS = "`--topo-zk-base-timeout`"


def install():
    """Returns the program with the tests in vitess."""
    return packages.go_tests("vitess")


def check(run):
    tests = install()
    run.start_ensemble()
    hosts = {"ZK_HOSTS": run.ensemble.hosts}

    def suite():
        """Runs Vitess's suite."""
        out = run.output([tests, "-test.v", "-test.run", "^TestSuite$"], env={**os.environ, **hosts})
        return "--- PASS: TestSuite" in out and f"{out.count('=== check') - out.count('=== ignoring')} parts"

    # Its checks of locks fail when a server takes more than 10 ms for a few requests.
    run.eventually("Vitess's suite passes", suite, 120)
    program.follow(run, [tests, "-test.run", "^TestFailover$", "-test.timeout", f"{600 * run.slow:.0f}s"], env=hosts)
