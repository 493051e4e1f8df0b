"""HDFS with two name nodes and their failover controllers; each of them and servers die."""

import json
import urllib.request

import install as packages
from ensemble import free_ports

TITLE = "HDFS HA"
VERSION = "3.4.1"
EXERCISED = "`zkfc -formatZK`, elector's lock, fencing, failover, `haadmin -failover`"
SETTINGS = "`ha.zookeeper.session-timeout.ms`"

NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
CONTROLLER = "org.apache.hadoop.hdfs.tools.DFSZKFailoverController"
ADMIN = "org.apache.hadoop.hdfs.tools.DFSHAAdmin"
LOCK = "/hadoop-ha/demo/ActiveStandbyElectorLock"


def install():
    """Returns the class path, with the program that writes and reads files."""
    names = ("hadoop-hdfs", "hadoop-common", "hadoop-client")
    return packages.classes("HdfsCheck", packages.maven("hdfs", [*(f"org.apache.hadoop:{n}:{VERSION}" for n in names), "org.slf4j:slf4j-reload4j:1.7.36"]))


class Hdfs:
    """Name nodes 1 and 2 with a controller each, and a data node."""

    def __init__(self, run, zk):
        self.run, self.zk, self.class_path = run, zk, install()
        ports = free_ports(9)
        self.rpc, self.http, self.zkfc = ({1: ports[n], 2: ports[n + 1]} for n in (0, 2, 4))
        self.data_ports = ports[6:]
        self.nodes, self.controllers = {}, {}

    def settings(self, i):
        """Returns core-site.xml and hdfs-site.xml of a name node, or with 0 those of a client."""
        root = self.run.dir
        core = {
            "fs.defaultFS": "hdfs://demo",
            "ha.zookeeper.quorum": self.run.ensemble.hosts,
            "ha.zookeeper.session-timeout.ms": 8000,
            "ha.health-monitor.rpc-timeout.ms": 120000,  # only a dead name node should lose the lock
            "hadoop.tmp.dir": f"{root}/tmp{i}",
        }
        hdfs = {
            "dfs.nameservices": "demo",
            "dfs.ha.namenodes.demo": "nn1,nn2",
            "dfs.ha.automatic-failover.enabled": "true",
            "dfs.ha.fencing.methods": "shell(/bin/true)",
            "dfs.ha.tail-edits.period": 1,
            "dfs.client.failover.proxy.provider.demo": "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider",
            "dfs.namenode.shared.edits.dir": f"file://{root}/shared",
            "dfs.namenode.name.dir": f"file://{root}/name{i}",
            "dfs.datanode.data.dir": f"file://{root}/data",
            "dfs.replication": 1,
            "dfs.permissions.enabled": "false",
        }
        for key, port in zip(("address", "http.address", "ipc.address"), self.data_ports, strict=True):
            hdfs[f"dfs.datanode.{key}"] = f"127.0.0.1:{port}"
        for n in (1, 2):
            hdfs[f"dfs.namenode.rpc-address.demo.nn{n}"] = f"127.0.0.1:{self.rpc[n]}"
            hdfs[f"dfs.namenode.http-address.demo.nn{n}"] = f"127.0.0.1:{self.http[n]}"
            hdfs[f"dfs.ha.zkfc.port.demo.nn{n}"] = self.zkfc[n]
        if i:
            hdfs["dfs.ha.namenode.id"] = f"nn{i}"
        return {"core": core, "hdfs": hdfs}

    def java(self, i, main, *arguments, level="INFO"):
        home = self.run.dir / f"conf{i}"
        for page in ("hdfs", "datanode"):  # Maven's artifacts lack the web pages
            folder = home / "webapps" / page / "WEB-INF"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "web.xml").write_text("<web-app/>")
        for name, properties in self.settings(i).items():
            (home / f"{name}-site.xml").write_text(packages.hadoop_xml(properties))
        return self.run.java(f"{home}:{self.class_path}", main, *arguments, log4j=level)

    def command(self, i, main, *arguments):
        """Runs a command of HDFS to its end."""
        self.run.output(self.java(i, main, *arguments, level="WARN"))
        return "done"

    def start_node(self, i):
        self.nodes[i] = self.run.process(self.java(i, NAME_NODE), f"namenode{i}.log")

    def start_controller(self, i):
        self.controllers[i] = self.run.process(self.java(i, CONTROLLER), f"zkfc{i}.log")

    def state(self, i):
        """Returns what a name node says of itself: active or standby."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http[i]}/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus", timeout=20) as r:
            return json.load(r)["beans"][0]["State"]

    def elected(self):
        """Returns the name node that has the lock, or 0."""
        if not self.zk.exists(LOCK):
            return 0
        return 1 if b"nn1" in self.zk.get(LOCK)[0] else 2

    def active(self, i):
        """Whether that name node has the lock and is active."""
        return self.elected() == i and self.state(i) == "active" and f"nn{i}"

    def write(self, name):
        """Writes a file, reads it and all earlier ones."""
        return self.run.result(self.java(0, "HdfsCheck", name, level="WARN"))


def check(run):
    run.start_ensemble()
    zk = run.client()
    hdfs = Hdfs(run, zk)
    run.check("format a name node", lambda: hdfs.command(1, NAME_NODE, "-format", "-nonInteractive"), vital=True)
    run.check("zkfc -formatZK", lambda: hdfs.command(1, CONTROLLER, "-formatZK", "-nonInteractive") and zk.get_children("/hadoop-ha"), vital=True)
    hdfs.start_node(1)
    run.wait(lambda: hdfs.state(1) == "standby", 120, "the first name node runs")
    run.check("bootstrap the standby", lambda: hdfs.command(2, NAME_NODE, "-bootstrapStandby", "-nonInteractive"), vital=True)
    hdfs.start_node(2)
    hdfs.start_controller(1)
    run.process(hdfs.java(1, DATA_NODE), "datanode.log")
    run.eventually("the name node with a controller is elected", lambda: hdfs.active(1), 120, vital=True)
    hdfs.start_controller(2)
    run.eventually("the other one is standby", lambda: hdfs.state(2) == "standby", 120, vital=True)
    run.eventually("write and read a file", lambda: hdfs.write("one"), 120)

    hdfs.nodes[1].kill()
    run.eventually("the other name node is active after kill -9", lambda: hdfs.active(2), 90, vital=True)
    run.eventually("write and read files after the failover", lambda: hdfs.write("two"), 90)
    hdfs.start_node(1)
    run.eventually("the killed name node returns as standby", lambda: hdfs.state(1) == "standby" and hdfs.active(2), 90)
    session = zk.exists(LOCK).ephemeralOwner
    hdfs.controllers[2].kill()
    run.eventually("the lock moves when the session of the active's controller ends", lambda: hdfs.active(1) and zk.exists(LOCK).ephemeralOwner != session, 90)
    run.eventually("the fenced name node is standby", lambda: hdfs.state(2) == "standby", 60)
    hdfs.start_controller(2)
    run.eventually("write and read files after that", lambda: hdfs.write("three"), 90)

    owner = lambda: (hdfs.elected(), zk.exists(LOCK).ephemeralOwner, hdfs.state(1), hdfs.state(2))
    run.kill_leaders(lambda r: ("write and read files", lambda: hdfs.write(f"round{r}")), owner, kept="the same name node is active with the same session")
    run.check("haadmin -failover", lambda: hdfs.command(0, ADMIN, "-failover", "nn1", "nn2"))
    run.eventually("the other name node is active", lambda: hdfs.active(2) and hdfs.state(1) == "standby", 60)
    run.eventually("write and read files at the end", lambda: hdfs.write("last"), 90)
    for c in hdfs.controllers.values():
        c.popen.terminate()
    run.eventually("after a clean stop the lock is free", lambda: not hdfs.elected() and "free", 60)
