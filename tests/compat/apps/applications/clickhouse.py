"""ClickHouse: two servers with a ReplicatedMergeTree table; servers of both kinds die."""

import pathlib
import time
import urllib.error
import urllib.request

import install as packages
from ensemble import free_ports

TITLE = "ClickHouse"
VERSION = "18.16.1"  # Debian 12's; a client of its own, in C++
EXERCISED = "`ReplicatedMergeTree`, `ON CLUSTER`, deduplication, merges, `ALTER`"
SETTINGS = "`session_timeout_ms` in `<zookeeper>`"

BINARY = pathlib.Path("/usr/sbin/clickhouse-server")
CONFIG = """<yandex><logger><level>debug</level><console>1</console></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port>
<interserver_http_port>{interserver}</interserver_http_port><interserver_http_host>127.0.0.1</interserver_http_host>
<listen_host>127.0.0.1</listen_host><path>{home}/data/</path><tmp_path>{home}/tmp/</tmp_path>
<users_config>users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>5368709</mark_cache_size>
<zookeeper>{nodes}<session_timeout_ms>8000</session_timeout_ms></zookeeper>
<macros><replica>r{i}</replica></macros>
<remote_servers><demo><shard><internal_replication>true</internal_replication>{replicas}</shard></demo></remote_servers>
<distributed_ddl><path>/clickhouse/ddl</path></distributed_ddl></yandex>"""
USERS = """<yandex><profiles><default/></profiles><quotas><default/></quotas><users><default><password></password>
<networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota></default></users></yandex>"""
TABLE = "create table t on cluster demo (d Date, n UInt32, s String) engine = ReplicatedMergeTree('/clickhouse/tables/t', '{replica}', d, n, 8192)"
ROOT = "/clickhouse/tables/t"


def install():
    packages.debian("clickhouse-server", "clickhouse-client", present=BINARY.exists)


class ClickHouse:
    """Two servers, r1 and r2."""

    def __init__(self, run):
        self.run = run
        ports = free_ports(6)
        self.http, self.tcp, self.interserver = ({i: ports[n + i] for i in (1, 2)} for n in (-1, 1, 3))
        self.servers = {}

    def start(self, i):
        home = self.run.dir / f"r{i}"
        home.mkdir(exist_ok=True)
        nodes = ""
        for n, address in enumerate(self.run.ensemble.hosts.split(","), 1):
            host, port = address.split(":")
            nodes += f"<node index='{n}'><host>{host}</host><port>{port}</port></node>"
        replicas = "".join(f"<replica><host>127.0.0.1</host><port>{p}</port></replica>" for p in self.tcp.values())
        (home / "config.xml").write_text(
            CONFIG.format(i=i, home=home, http=self.http[i], tcp=self.tcp[i], interserver=self.interserver[i], nodes=nodes, replicas=replicas)
        )
        (home / "users.xml").write_text(USERS)
        self.servers[i] = self.run.process([BINARY, f"--config-file={home}/config.xml"], f"r{i}.log", cwd=home)

    def query(self, i, sql):
        """Runs a query on one server and returns its answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http[i]}/", sql.encode(), timeout=60 * self.run.slow) as r:
                return r.read().decode().strip()
        except urllib.error.HTTPError as e:
            raise RuntimeError(e.read().decode(errors="replace")[:500]) from e

    def execute(self, i, sql):
        """Runs a statement that answers nothing; returns a word that the check takes as evidence."""
        return self.query(i, sql) or "done"

    def both(self, sql, answer):
        got = [self.query(i, sql) for i in (1, 2)]
        return got == [answer, answer] and answer

    def insert(self, i, first, count):
        return self.execute(i, f"insert into t(d, n, s) select toDate('2026-01-01'), number + {first}, toString(number) from numbers({count})")


def check(run):
    install()
    run.start_ensemble()
    zk = run.client()
    house = ClickHouse(run)
    house.start(1)
    house.start(2)
    run.eventually("two servers answer", lambda: house.both("select 1", "1"), 120, vital=True)
    run.check("create a replicated table on both (distributed DDL)", lambda: house.execute(1, TABLE), vital=True)
    run.check("ZooKeeper has both replicas", lambda: sorted(zk.get_children(f"{ROOT}/replicas")) == ["r1", "r2"])
    run.check("20 inserts on both", lambda: all(house.insert(1 + k % 2, 1000 * k, 1000) for k in range(20)))
    count = "select count() from t"
    run.eventually("both replicas have the rows", lambda: house.both(count, "20000"))
    run.check("insert the first block once more", lambda: house.insert(1, 0, 1000))
    run.eventually("it is not taken twice", lambda: house.both(count, "20000"), 10)
    parts = "select count() from system.parts where table = 't' and active"
    run.check("merge the parts", lambda: house.execute(1, "optimize table t"))
    run.eventually("both replicas merge", lambda: all(int(house.query(i, parts)) < 20 for i in (1, 2)))
    run.check("alter the table", lambda: house.execute(2, "alter table t add column m UInt8 default 7"))
    run.eventually("both replicas have the column", lambda: house.both("select sum(m) from t", "140000"))
    run.check("system.zookeeper shows the log", lambda: int(house.query(1, f"select count() from system.zookeeper where path = '{ROOT}/log'")) > 0)

    def active():
        # This client opens a new session when its connection breaks, so its sessions change.
        return sorted(r for r in ("r1", "r2") if run.wait(lambda: zk.exists(f"{ROOT}/replicas/{r}/is_active"), 30, "active"))

    inserted = set()

    def insert(r):
        if r not in inserted and house.insert(1, 100000 * r, 1000):
            inserted.add(r)
        return house.query(2, f"select count() from t where n >= {100000 * r} and n < {100000 * r + 1000}") == "1000"

    run.kill_leaders(lambda r: ("insert on one replica, read on the other", lambda: insert(r)), active, kept="both replicas are active")
    house.servers[2].kill()
    run.check("insert while a replica is down", lambda: house.insert(1, 900000, 500))
    run.eventually("the replica's is_active is gone", lambda: not zk.exists(f"{ROOT}/replicas/r2/is_active") and "gone")
    house.start(2)
    run.eventually("the replica returns and catches up", lambda: house.query(2, "select count() from t where n >= 900000") == "500", 120)
    run.eventually("both replicas have the same rows", lambda: house.both(count, "22500") and house.query(1, "select sum(n) from t") == house.query(2, "select sum(n) from t"))
    run.check("no replica is read-only", lambda: house.both("select is_readonly, is_session_expired from system.replicas", "0\t0"))
    run.check("drop the table on both", lambda: house.execute(1, "drop table t on cluster demo"))
    run.eventually("its znodes are gone", lambda: not zk.exists(ROOT) and "gone")
