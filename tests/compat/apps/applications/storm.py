"""Storm: nimbus, two supervisors and their workers; each of them and servers die."""

import pathlib
import zipfile

import install as packages
from ensemble import free_ports

TITLE = "Storm"
VERSION = "2.8.2"
EXERCISED = "nimbus, supervisors, topology states, reassignment"
SETTINGS = "`storm.zookeeper.retry.times`: a daemon ends when its retries run out"

CONFIG = """storm.zookeeper.servers: [{hosts}]
storm.zookeeper.port: {port}
storm.zookeeper.session.timeout: 8000
storm.zookeeper.retry.times: 20
storm.local.dir: {home}/local
storm.local.hostname: 127.0.0.1
nimbus.seeds: ["127.0.0.1"]
nimbus.thrift.port: {nimbus}
supervisor.thrift.port: {supervisor}
supervisor.slots.ports: [{slots}]
worker.childopts: "-Xmx128m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
topology.worker.logwriter.childopts: "-Xmx48m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""


def install():
    """Returns the class path of Storm, and that with the program."""
    storm = packages.maven("storm", [f"org.apache.storm:storm-{n}:{VERSION}" for n in ("server", "client")])
    return storm, packages.classes("StormCheck", storm)


class Storm:
    """Nimbus, with the number 0, and supervisors 1 and 2 with two slots each."""

    def __init__(self, run, zk):
        self.run, self.zk = run, zk
        self.class_path, self.with_program = install()
        ports = free_ports(8)
        self.nimbus, self.ports = ports[0], ports[1:]
        self.home = run.dir / "storm"
        self.home.mkdir()
        (self.home / "lib-worker").symlink_to(self.class_path.removesuffix("/*"))
        self.counts = run.dir / "counts"
        self.counts.mkdir()
        self.processes = {}

    def conf(self, i):
        """Writes the configuration of nimbus or of a supervisor, and returns its folder."""
        home = self.run.dir / f"conf{i}"
        home.mkdir(exist_ok=True)
        addresses = [a.rsplit(":", 1) for a in self.run.ensemble.hosts.split(",")]
        text = CONFIG.format(
            hosts=", ".join(f'"{host}"' for host, _ in addresses),
            port=addresses[0][1],
            home=home,
            nimbus=self.nimbus,
            supervisor=self.ports[i],
            slots=f"{self.ports[2 * i + 1]}, {self.ports[2 * i + 2]}" if i else "",
        )
        (home / "storm.yaml").write_text(text)
        return home

    def java(self, i, class_path, main, *arguments, options=()):
        options = [f"-Dstorm.home={self.home}", f"-Dstorm.log.dir={self.run.dir}/logs", "-Dlog4j2.level=INFO", *options]
        return self.run.java(f"{self.conf(i)}:{class_path}", main, *arguments, options=options)

    def start(self, i):
        main = "org.apache.storm.daemon.supervisor.Supervisor" if i else "org.apache.storm.daemon.nimbus.Nimbus"
        env = {"STORM_CONF_DIR": str(self.conf(i))}  # a supervisor's workers read it
        self.processes[i] = self.run.process(self.java(i, self.class_path, main), f"storm{i}.log", cwd=self.run.dir, env=env)

    def ask(self, *arguments):
        """Runs the program, which asks nimbus, and returns its result."""
        classes = pathlib.Path(self.with_program.split(":")[0])
        jar = self.run.dir / "check.jar"
        with zipfile.ZipFile(jar, "w") as z:
            for file in classes.glob("*.class"):
                z.write(file, file.name)
        return self.run.result(self.java(0, self.with_program, "StormCheck", *arguments, options=[f"-Dstorm.jar={jar}"]))

    def acked(self):
        """Returns how many tuples went through the topology, as its spouts count them."""
        return sum(int(file.read_text() or 0) for file in self.counts.iterdir() if file.suffix == ".acked")

    def flows(self):
        """Returns a condition that holds when 200 more tuples went through."""
        before = self.acked()
        return lambda: (now := self.acked()) > before + 200 and now

    def leads(self):
        return len(self.zk.get_children("/storm/leader-lock")) == 1 and len(self.zk.get_children("/storm/nimbuses")) == 1

    def sessions(self, folder):
        return sorted(self.zk.exists(f"/storm/{folder}/{n}").ephemeralOwner for n in self.zk.get_children(f"/storm/{folder}"))


def check(run):
    run.start_ensemble(one_port=True)
    zk = run.client()
    storm = Storm(run, zk)
    for i in (0, 1, 2):
        storm.start(i)
    run.eventually("nimbus leads", storm.leads, 120, vital=True)
    run.eventually("two supervisors report", lambda: len(storm.sessions("supervisors")) == 2, 120, vital=True)
    run.check("submit a topology", lambda: storm.ask("submit", storm.counts), vital=True)
    run.eventually("ZooKeeper has its assignment", lambda: zk.get_children("/storm/assignments"))
    run.eventually("tuples flow", storm.flows(), 120, vital=True)
    run.eventually("nimbus knows two workers on two supervisors", lambda: storm.ask("workers") == "2 workers on 2 supervisors")

    run.check("deactivate the topology", lambda: storm.ask("deactivate") == "INACTIVE")
    still = {}

    def stands():
        last, still["acked"] = still.get("acked"), storm.acked()
        return last == still["acked"]

    run.eventually("tuples stop", stands, 60, every=3)
    run.check("activate the topology", lambda: storm.ask("activate") == "ACTIVE")
    run.eventually("tuples flow again", storm.flows())

    # A supervisor's workers are in its process group and die with it, as if the machine had failed.
    storm.processes[2].kill()
    run.eventually("a supervisor's session ends after kill -9", lambda: len(storm.sessions("supervisors")) == 1)
    run.eventually("nimbus assigns its worker to the other supervisor", lambda: storm.ask("workers") == "2 workers on 1 supervisors", 150)
    run.eventually("tuples flow there", storm.flows())
    storm.start(2)
    run.eventually("the supervisor returns", lambda: len(storm.sessions("supervisors")) == 2)
    storm.processes[0].kill()
    run.eventually("tuples flow without nimbus", storm.flows())
    storm.start(0)
    run.eventually("nimbus leads again", lambda: storm.leads() and storm.ask("workers") == "2 workers on 1 supervisors", 120)

    flows = {}
    run.kill_leaders(
        lambda r: ("tuples flow", lambda: flows.setdefault(r, storm.flows())()),
        lambda: (storm.sessions("supervisors"), storm.sessions("nimbuses")),
        kept="nimbus and supervisors keep their sessions",
    )
    run.check("kill the topology", lambda: storm.ask("kill") == "killed")
    run.eventually("its znodes are gone", lambda: not zk.get_children("/storm/assignments") and not zk.get_children("/storm/storms") and "gone")
