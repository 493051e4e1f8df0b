"""Helix: two controllers and four participants with hundreds of partitions; servers die meanwhile."""

import install as packages
import program

TITLE = "Helix"
VERSION = "1.4.3"
EXERCISED = "controller election, live instances, state transitions, rebalancing"
SETTINGS = "`zk.session.timeout`"


def install():
    """Returns the class path, with the program."""
    return packages.classes("HelixCheck", packages.maven("helix", [f"org.apache.helix:helix-core:{VERSION}", "org.slf4j:slf4j-simple:1.7.36"]))


def check(run):
    run.start_ensemble()
    program.follow(run, run.java(install(), "HelixCheck", run.ensemble.hosts, int(90 * run.slow), heap=384, options=["-Dzk.session.timeout=8000"]))
