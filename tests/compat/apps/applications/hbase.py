"""HBase: two masters, two region servers; each of them and servers die."""

import install as packages
from ensemble import free_ports

TITLE = "HBase"
VERSION = "2.6.2"
EXERCISED = "masters, region servers, splitting a dead server's log, snapshots, balancer"
SETTINGS = "`zookeeper.session.timeout`"

MASTER = "org.apache.hadoop.hbase.master.HMaster"
REGION_SERVER = "org.apache.hadoop.hbase.regionserver.HRegionServer"


def install():
    """Returns the class path, with the client program."""
    return packages.classes("HBaseCheck", packages.maven("hbase", [f"org.apache.hbase:hbase-server:{VERSION}", "org.slf4j:slf4j-reload4j:1.7.36"]))


class HBase:
    """Masters 1 and 2, region servers 1 and 2, on the local file system."""

    def __init__(self, run, zk):
        self.run, self.zk, self.class_path = run, zk, install()
        ports = free_ports(4)
        self.port = {"m1": ports[0], "m2": ports[1], "r1": ports[2], "r2": ports[3]}
        self.processes = {}

    def java(self, name, main, *arguments, heap=256, level="INFO", **settings):
        home = self.run.dir / name
        home.mkdir(exist_ok=True)
        properties = {
            "hbase.rootdir": f"file://{self.run.dir}/root",
            "hbase.tmp.dir": f"{home}/tmp",
            "hbase.cluster.distributed": "true",
            "hbase.wal.provider": "filesystem",
            "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",  # the default adds checksums: a killed server's log may lack its end
            "hbase.unsafe.stream.capability.enforce": "false",  # the local file system can't promise what HDFS does
            "hbase.procedure.store.region.wal.hsync": "false",
            "hbase.zookeeper.quorum": self.run.ensemble.hosts,
            "zookeeper.session.timeout": 8000,
            "hbase.master.hostname": "127.0.0.1",
            "hbase.regionserver.hostname": "127.0.0.1",
            "hbase.master.info.port": -1,
            "hbase.regionserver.info.port": -1,
            **settings,
        }
        (home / "hbase-site.xml").write_text(packages.hadoop_xml(properties))
        return self.run.java(f"{home}:{self.class_path}", main, *arguments, heap=heap, log4j=level)

    def start(self, name):
        """Starts m1, m2, r1 or r2."""
        main, setting = (MASTER, "hbase.master.port") if name[0] == "m" else (REGION_SERVER, "hbase.regionserver.port")
        argv = self.java(name, main, "start", heap=512, **{setting: self.port[name]})
        self.processes[name] = self.run.process(argv, f"{name}.log")

    def step(self, *arguments):
        """Runs one step of the client program and returns its result."""
        return self.run.result(self.java("client", "HBaseCheck", *arguments, level="ERROR"))

    def rows(self, expected):
        return self.step("count") == f"rows {expected}"

    def servers(self):
        """Returns the session of each region server, by its name."""
        return {n: self.zk.exists(f"/hbase/rs/{n}").ephemeralOwner for n in self.zk.get_children("/hbase/rs")}

    def master(self):
        """Returns the session of the active master."""
        return self.zk.exists("/hbase/master").ephemeralOwner

    def backup(self):
        """Returns the session of the only backup master."""
        [name] = self.zk.get_children("/hbase/backup-masters")
        return self.zk.exists(f"/hbase/backup-masters/{name}").ephemeralOwner

    def put(self, first, count):
        return self.step("put", first, first + count) == f"put {count}"


def check(run):
    run.start_ensemble()
    zk = run.client()
    hbase = HBase(run, zk)
    for name in ("m1", "r1", "r2"):
        hbase.start(name)
    run.eventually("a master is elected, and two region servers report", lambda: hbase.master() and len(hbase.servers()) == 2, 120, vital=True)
    hbase.start("m2")
    ports = sorted([hbase.port["r1"], hbase.port["r2"]])
    sees = lambda master, backup: hbase.step("servers") == f"master {hbase.port[master]} servers {ports} backups [{hbase.port[backup]}]"
    run.eventually("the client sees them, with a backup master", lambda: sees("m1", "m2"), 120, vital=True)
    run.check("create a table of three regions", lambda: hbase.step("create") == "regions 3", vital=True)
    run.check("put 900 rows", lambda: hbase.put(0, 900))
    run.check("scan them", lambda: hbase.rows(900))
    # A snapshot flushes. What we put after it is only in the logs when a region server dies.
    run.check("take a snapshot, and put 100 rows", lambda: hbase.step("snapshot") == "snapshots 1" and hbase.put(900, 100))
    run.check("switch the balancer on and run it", lambda: hbase.step("balance") == "balanced")

    victim = hbase.processes["r2"]
    victim.kill()
    run.eventually("a region server's session ends after kill -9", lambda: len(hbase.servers()) == 1, 60)
    run.eventually("the other one serves its regions", lambda: hbase.rows(1000), 120)
    hbase.start("r2")
    run.eventually("it returns", lambda: len(hbase.servers()) == 2, 120)
    waiting = hbase.backup()
    hbase.processes["m1"].kill()
    run.eventually("the backup master takes over after kill -9", lambda: hbase.master() == waiting, 60)
    hbase.start("m1")
    run.eventually("the client sees both masters", lambda: sees("m2", "m1"), 120)
    run.check("put 500 rows", lambda: hbase.put(1000, 500))

    owners = lambda: (hbase.master(), hbase.backup(), hbase.servers())
    run.kill_leaders(lambda r: ("put 100 rows", lambda: hbase.put(1400 + 100 * r, 100)), owners)
    run.eventually("scan all rows", lambda: hbase.rows(1700))
    run.check("drop the table", lambda: hbase.step("drop") == "dropped")
    run.eventually("its znode is gone", lambda: "books" not in zk.get_children("/hbase/table") and "gone")
    for name in ("r1", "r2"):
        hbase.processes[name].popen.terminate()
    run.eventually("after a clean stop no region server is left", lambda: not hbase.servers() and "none", 60)
