"""Accumulo: a manager and two tablet servers as processes; a tablet server, the manager and servers die."""

import install as packages
import program

TITLE = "Accumulo"
VERSION = "2.1.4"
EXERCISED = "locks of the manager and tablet servers, properties, permissions, FATE"
SETTINGS = "`instance.zookeeper.timeout`"


def install():
    """Returns the class path, with the program that starts Accumulo's mini cluster."""
    return packages.classes("AccumuloCheck", packages.maven("accumulo", [f"org.apache.accumulo:accumulo-minicluster:{VERSION}", "org.slf4j:slf4j-simple:2.0.13"]))


def check(run):
    run.start_ensemble()
    zk = run.client()
    home = run.dir / "accumulo"
    home.mkdir()

    def locks():
        """Returns the sessions that hold the locks of the manager and of tablet servers."""
        [instance] = [n for n in zk.get_children("/accumulo") if n != "instances"]
        root = f"/accumulo/{instance}"
        paths = [f"{root}/managers/lock", *(f"{root}/tservers/{n}" for n in zk.get_children(f"{root}/tservers"))]
        return sorted((p, zk.exists(f"{p}/{lock}").ephemeralOwner) for p in paths for lock in zk.get_children(p))

    argv = run.java(install(), "AccumuloCheck", home, run.ensemble.hosts, heap=384)
    program.follow(run, argv, owners=locks)
