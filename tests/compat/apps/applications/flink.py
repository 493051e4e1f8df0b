"""Flink with high availability: two JobManagers, two TaskManagers; each of them and servers die."""

import json
import os
import urllib.request

import install as packages
from ensemble import free_ports

TITLE = "Flink HA"
VERSION = "1.20.5"
EXERCISED = "Curator's leader latch, job graphs, checkpoint pointers, failover of the JobManager"
SETTINGS = "`high-availability.zookeeper.client.tolerate-suspended-connections: true`, or a job restarts when its server dies"

JOB_MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
CONFIG = """high-availability.type: zookeeper
high-availability.zookeeper.quorum: {hosts}
high-availability.zookeeper.path.root: /flink
high-availability.cluster-id: /demo
high-availability.storageDir: file://{root}/ha
high-availability.jobmanager.port: {port}
high-availability.zookeeper.client.session-timeout: 8 s
high-availability.zookeeper.client.connection-timeout: 30 s
high-availability.zookeeper.client.tolerate-suspended-connections: true
jobmanager.rpc.address: 127.0.0.1
rest.address: 127.0.0.1
rest.port: {rest}
rest.bind-port: {rest}
heartbeat.timeout: 20 s
restart-strategy.type: fixed-delay
restart-strategy.fixed-delay.attempts: 1000
restart-strategy.fixed-delay.delay: 1 s
execution.target: remote
execution.checkpointing.interval: 1 s
state.checkpoints.dir: file://{root}/checkpoints
taskmanager.host: 127.0.0.1
taskmanager.numberOfTaskSlots: 2
taskmanager.cpu.cores: 1
taskmanager.memory.task.heap.size: 64m
taskmanager.memory.task.off-heap.size: 0m
taskmanager.memory.managed.size: 16m
taskmanager.memory.network.min: 16m
taskmanager.memory.network.max: 16m
taskmanager.memory.framework.heap.size: 64m
taskmanager.memory.framework.off-heap.size: 64m
taskmanager.memory.jvm-metaspace.size: 96m
taskmanager.memory.jvm-overhead.min: 64m
taskmanager.memory.jvm-overhead.max: 64m
io.tmp.dirs: {root}/tmp
parallelism.default: 2
"""


def install():
    """Returns the class path, with the program that submits a job."""
    names = ("flink-runtime", "flink-clients", "flink-streaming-java")
    return packages.classes("FlinkCheck", packages.maven("flink", [*(f"org.apache.flink:{n}:{VERSION}" for n in names), "org.slf4j:slf4j-reload4j:1.7.36"]))


class Flink:
    """JobManagers 1 and 2, TaskManagers 1 and 2."""

    def __init__(self, run, zk):
        self.run, self.zk, self.class_path = run, zk, install()
        ports = free_ports(6)
        self.port = {1: ports[0], 2: ports[1], 0: 0}
        self.rest = {1: ports[2], 2: ports[3], 0: ports[4]}
        self.managers, self.workers = {}, {}

    def conf(self, i):
        """Writes the configuration of a JobManager, or with 0 that of all others, and returns its folder."""
        home = self.run.dir / f"conf{i}"
        home.mkdir(exist_ok=True)
        (home / "flink-conf.yaml").write_text(CONFIG.format(hosts=self.run.ensemble.hosts, root=self.run.dir, port=self.port[i], rest=self.rest[i]))
        return home

    def start_manager(self, i):
        argv = self.run.java(self.class_path, JOB_MANAGER, "--configDir", self.conf(i), heap=320)
        self.managers[i] = self.run.process(argv, f"manager{i}.log")

    def start_worker(self, i):
        options = [f"-Dlog.file={self.run.dir}/worker{i}.log"]
        argv = self.run.java(self.class_path, TASK_MANAGER, "--configDir", self.conf(0), heap=320, options=options)
        self.workers[i] = self.run.process(argv, f"worker{i}.log")

    def submit(self):
        return self.run.result(self.run.java(self.class_path, "FlinkCheck", log4j="WARN"), env={**os.environ, "FLINK_CONF_DIR": str(self.conf(0))})

    def ask(self, path, method="GET"):
        """Asks a JobManager that runs. One that doesn't lead forwards the question."""
        i = next(i for i, m in self.managers.items() if m.alive())
        request = urllib.request.Request(f"http://127.0.0.1:{self.rest[i]}{path}", method=method)
        with urllib.request.urlopen(request, timeout=20) as r:
            return json.load(r)

    def leader(self):
        """Returns the JobManager that ZooKeeper names as the leader, or 0."""
        data = self.zk.get("/flink/demo/leader/dispatcher/connection_info")[0]
        return next((i for i in (1, 2) if f":{self.port[i]}/".encode() in data), 0)

    def latch(self):
        """Returns the session of each JobManager."""
        root = "/flink/demo/leader/latch"
        return sorted(self.zk.exists(f"{root}/{n}").ephemeralOwner for n in self.zk.get_children(root))

    def running(self, job):
        return self.ask(f"/jobs/{job}")["state"] == "RUNNING" and all(v["status"] == "RUNNING" for v in self.ask(f"/jobs/{job}")["vertices"])

    def checkpoint(self, job):
        """Returns the number of the newest complete checkpoint."""
        latest = self.ask(f"/jobs/{job}/checkpoints")["latest"]["completed"]
        return latest["id"] if latest else 0


def check(run):
    run.start_ensemble()
    zk = run.client()
    flink = Flink(run, zk)
    flink.start_manager(1)
    run.eventually("a JobManager leads", lambda: flink.leader() == 1, 120, vital=True)
    flink.start_manager(2)
    run.eventually("a second one waits for the latch", lambda: len(flink.latch()) == 2, 120)
    flink.start_worker(1)
    flink.start_worker(2)
    run.eventually("two TaskManagers find the leader", lambda: len(flink.ask("/taskmanagers")["taskmanagers"]) == 2, 120, vital=True)
    jobs = []
    run.check("submit a job to the leader that ZooKeeper names", lambda: jobs.append(flink.submit()) or jobs[0], vital=True)
    job = jobs[0]
    run.eventually("the job runs", lambda: flink.running(job), 90, vital=True)
    run.eventually("checkpoints complete", lambda: flink.checkpoint(job) >= 2, 60)
    pointers = lambda: zk.get_children(f"/flink/demo/jobs/{job}/checkpoints")
    run.eventually("ZooKeeper has the pointer to a checkpoint", pointers, 10)

    victim, newest = flink.leader(), flink.checkpoint(job)
    flink.managers[victim].kill()
    run.eventually("the other JobManager leads after kill -9", lambda: flink.leader() == 3 - victim, 90)
    run.eventually("the job runs again", lambda: flink.running(job), 120)
    run.eventually("it continues from a checkpoint", lambda: flink.ask(f"/jobs/{job}/checkpoints")["latest"]["restored"]["id"] >= newest, 30)
    flink.start_manager(victim)
    run.eventually("the killed JobManager waits for the latch", lambda: len(flink.latch()) == 2, 120)
    run.eventually("checkpoints complete under the new leader", lambda: flink.checkpoint(job) > newest, 60)

    flink.workers[1].kill()
    flink.start_worker(1)
    run.eventually("the job recovers after kill -9 of a TaskManager", lambda: len(flink.ask("/taskmanagers")["taskmanagers"]) >= 2 and flink.running(job), 120)

    before = {}

    def advances(r):
        before.setdefault(r, flink.checkpoint(job))
        return flink.checkpoint(job) > before[r] + 1

    run.kill_leaders(lambda r: ("checkpoints complete", lambda: advances(r)), lambda: (flink.leader(), flink.latch()), away=11)
    run.check("cancel the job", lambda: flink.ask(f"/jobs/{job}?mode=cancel", "PATCH") == {})
    run.eventually("its znodes are gone", lambda: not zk.exists(f"/flink/demo/jobs/{job}") and "gone", 60)
    for m in flink.managers.values():
        m.popen.terminate()
    run.eventually("after a clean stop the latch is free", lambda: not flink.latch() and "free", 60)
