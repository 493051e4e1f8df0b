"""Patroni with PostgreSQL: three nodes, failover, switchover, and servers that die."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import time
import urllib.request

import install as packages

TITLE = "Patroni"
VERSION = "4.1.5, PostgreSQL 15"
EXERCISED = "leader key, failover, switchover, pause, dynamic configuration, loss of the quorum"
SETTINGS = "`ttl` is the session timeout"

BIN = pathlib.Path("/usr/lib/postgresql/15/bin")
TTL = 12  # seconds
CONFIG = """
scope: demo
namespace: /service
name: n{i}
restapi: {{listen: '127.0.0.1:{rest}', connect_address: '127.0.0.1:{rest}'}}
zookeeper: {{hosts: [{hosts}]}}
bootstrap:
  dcs:
    ttl: {ttl}
    loop_wait: 2
    retry_timeout: 3
    postgresql: {{use_pg_rewind: true, use_slots: true, parameters: {{wal_keep_size: 128MB, shared_buffers: 16MB}}}}
  initdb: [{{encoding: UTF8}}, data-checksums, no-sync]
  pg_hba: ['host replication all 127.0.0.1/32 trust', 'host all all 127.0.0.1/32 trust', 'local all all trust']
postgresql:
  listen: 127.0.0.1:{port}
  connect_address: 127.0.0.1:{port}
  data_dir: {home}/data
  bin_dir: {bin}
  pgpass: {home}/pgpass
  parameters: {{unix_socket_directories: '{home}', fsync: 'off'}}
  authentication:
    replication: {{username: replicator}}
    superuser: {{username: postgres}}
    rewind: {{username: rewinder}}
"""


def install():
    packages.debian("postgresql-15", present=lambda: (BIN / "postgres").exists())


class Cluster:
    """Nodes of Patroni, numbered from 1."""

    def __init__(self, run, size, ports):
        self.run, self.size, self.dir = run, size, run.dir / "nodes"
        self.dir.mkdir()
        self.port = dict(enumerate(ports[:size], 1))
        self.rest = dict(enumerate(ports[size:], 1))
        self.nodes = {}
        # The user postgres may not read the home directory of root.
        self.library = run.dir / "library"
        shutil.copytree(next((packages.python().parent.parent / "lib").glob("python3*/site-packages")), self.library, ignore=shutil.ignore_patterns("pip", "setuptools", "pkg_resources", "confluent_kafka*", "tzdata"))
        self.env = {"PYTHONPATH": str(self.library), "TMPDIR": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"}

    def start(self, i):
        home = self.dir / f"n{i}"
        home.mkdir(exist_ok=True)
        shutil.chown(home, "postgres", "postgres")
        hosts = ", ".join(f"'{h}'" for h in self.run.ensemble.hosts.split(","))
        config = self.dir / f"n{i}.yml"
        config.write_text(CONFIG.format(i=i, rest=self.rest[i], port=self.port[i], hosts=hosts, home=home, bin=BIN, ttl=TTL))
        self.nodes[i] = self.run.process(
            ["/usr/bin/python3", "-m", "patroni", config], f"nodes/n{i}.log", user="postgres", group="postgres", extra_groups=[], cwd="/", env={"HOME": str(home), **self.env}
        )

    def members(self):
        for port in self.rest.values():
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/cluster", timeout=3) as r:
                return json.load(r)["members"]
        return []

    def leader(self):
        """Returns the number of the node with the primary, or 0."""
        return next((int(m["name"][1:]) for m in self.members() if m["role"] == "leader" and m["state"] == "running"), 0)

    def healthy(self):
        """Returns the states if all nodes are good, or nothing."""
        members = self.members()
        good = [m for m in members if m["state"] in ("running", "streaming")]
        leaders = [m for m in members if m["role"] == "leader"]
        return len(good) == self.size and len(leaders) == 1 and ", ".join(f"{m['name']} {m['role']}" for m in members)

    def sql(self, i, query):
        """Runs a query on a node and returns the first column of its first row, if it has one."""
        import psycopg2

        with contextlib.closing(psycopg2.connect(host="127.0.0.1", port=self.port[i], user="postgres", dbname="postgres", connect_timeout=3)) as c:
            c.autocommit = True
            cursor = c.cursor()
            cursor.execute(query)
            return cursor.fetchone()[0] if cursor.description else None

    def ctl(self, *words):
        argv = ["/usr/bin/python3", "-c", "from patroni.ctl import ctl; ctl()", "-c", self.dir / "n1.yml", *words]
        return self.run.output(argv, cwd="/", env={**os.environ, **self.env})

    def kill(self, i):
        """kill -9 for Patroni and its PostgreSQL, as if their machine failed."""
        postmaster = int((self.dir / f"n{i}/data/postmaster.pid").read_text().split()[0])
        self.nodes[i].kill()
        with contextlib.suppress(ProcessLookupError):
            os.kill(postmaster, signal.SIGKILL)  # its children end when they notice


def check(run):
    install()
    from ensemble import free_ports

    servers = run.start_ensemble()
    zk = run.client()
    size = 2 if run.short else 3
    cluster = Cluster(run, size, free_ports(2 * size))
    key = "/service/demo/leader"
    owner = lambda: zk.exists(key).ephemeralOwner
    cluster.start(1)
    run.eventually("a primary bootstraps", lambda: cluster.leader() == 1, 90, vital=True)
    run.eventually("the leader key is ephemeral and names the primary", lambda: zk.get(key)[0] == b"n1" and owner(), 10)
    for i in range(2, size + 1):
        cluster.start(i)
    run.eventually("the replicas stream from it", cluster.healthy, 90, vital=True)
    cluster.sql(1, "create table t(n int primary key)")
    cluster.sql(1, "insert into t select generate_series(1, 1000)")
    if not run.short:
        operator(run, cluster, zk)

    victim = cluster.leader()
    cluster.kill(victim)
    run.eventually("another node takes over after kill -9 of the primary", lambda: cluster.leader() not in (0, victim) and f"n{cluster.leader()}", vital=True)
    run.eventually("it has every row and accepts more", lambda: cluster.sql(cluster.leader(), "insert into t values(1001) returning (select count(*) from t)") == 1000, 20)
    cluster.start(victim)
    run.eventually("the old primary returns as a replica", cluster.healthy, 90)

    primary = cluster.leader()
    run.kill_leaders(
        lambda r: ("the primary accepts a row", lambda: cluster.sql(primary, f"insert into t values({2000 + r}) returning n")),
        lambda: (cluster.leader(), owner()),
        away=TTL + 2,
        moves=owner,
    )
    if not run.short:
        switchover(run, cluster, zk)
        no_quorum(run, cluster, servers)
    rows = lambda i: cluster.sql(i, "select count(*) from t")
    run.eventually("all nodes have the same rows", lambda: {rows(i) for i in cluster.port} == {1003} and rows(1), 20)
    for node in cluster.nodes.values():
        node.popen.terminate()
    run.eventually("after a clean stop the leader key is gone", lambda: not zk.exists(key) and "gone", 30)


def operator(run, cluster, zk):
    """What an operator does with patronictl."""

    def listed():
        text = cluster.ctl("list")
        return all(f"| n{i} " in text for i in cluster.port)

    run.check("patronictl lists all nodes", listed)
    run.check("patronictl edits the configuration", lambda: "Configuration changed" in cluster.ctl("edit-config", "--force", "-s", "maximum_lag_on_failover=77777"))
    run.eventually("ZooKeeper stores it", lambda: b"77777" in zk.get("/service/demo/config")[0], 10)


def switchover(run, cluster, zk):
    primary = cluster.leader()
    target = primary % 3 + 1
    run.check("patronictl switches over", lambda: "Successfully switched over" in cluster.ctl("switchover", "demo", "--leader", f"n{primary}", "--candidate", f"n{target}", "--force"))
    run.eventually("the candidate leads and the others follow", lambda: cluster.leader() == target and cluster.healthy(), 60)
    run.eventually("ZooKeeper stores the history", lambda: f'"n{target}"'.encode() in zk.get("/service/demo/history")[0], 20)
    paused = lambda: b'"pause":true' in zk.get("/service/demo/config")[0]
    run.check("patronictl pauses", lambda: cluster.ctl("pause", "--wait") and paused())
    run.check("patronictl resumes", lambda: cluster.ctl("resume", "--wait") and not paused())


def no_quorum(run, cluster, servers):
    """Two of three servers are down: a primary that can't renew its lock may not go on."""
    primary, leader = cluster.leader(), servers.leader()
    down = [leader, leader % 3 + 1]
    for i in down:
        servers.kill(i)
    run.eventually("without a quorum the primary demotes itself", lambda: cluster.sql(primary, "select pg_is_in_recovery()"))
    for i in down:
        servers.start(i)
    run.eventually("with the quorum there is a primary again", lambda: cluster.leader() and cluster.healthy(), 90)
