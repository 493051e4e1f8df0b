"""What the three checks of Kafka share: brokers, tools, a producer that counts."""

import json
import logging
import threading
import time

import install as packages
from ensemble import free_ports

VERSION = "3.9.1"
TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
ACLS = "kafka.admin.AclCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
PROTOCOLS = "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT\n"
BROKER = """broker.id={i}
listeners=PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl}
log.dirs={home}/logs
zookeeper.connect={zookeeper}
zookeeper.session.timeout.ms=6000
zookeeper.connection.timeout.ms=60000
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
super.users=User:ANONYMOUS
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config={scram}
offsets.topic.replication.factor=3
offsets.topic.num.partitions=6
min.insync.replicas=2
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
"""


def install():
    """Returns the class path of Kafka."""
    return packages.maven("kafka", [f"org.apache.kafka:kafka_2.13:{VERSION}", f"org.apache.kafka:kafka-tools:{VERSION}", "org.slf4j:slf4j-reload4j:1.7.36"])


class Kafka:
    """Three brokers below a chroot."""

    chroot = "/kafka/one"

    def __init__(self, run, jvm=()):
        self.run, self.class_path, self.jvm = run, install(), jvm
        self.port = dict(enumerate(free_ports(3), 1))
        self.sasl = dict(enumerate(free_ports(3), 1))
        self.bootstrap = ",".join(f"127.0.0.1:{p}" for p in self.port.values())
        self.zookeeper = run.ensemble.hosts + self.chroot
        root = run.client()
        root.ensure_path(self.chroot)
        self.zk = run.client(self.chroot)
        self.brokers = {}

    def start(self, i, extra=""):
        home = self.run.dir / f"broker{i}"
        home.mkdir(exist_ok=True)
        text = BROKER.format(i=i, port=self.port[i], sasl=self.sasl[i], home=home, zookeeper=self.zookeeper, scram=SCRAM)
        (home / "server.properties").write_text(text + extra)
        self.start_program(i, home)

    def start_program(self, i, home):
        self.brokers[i] = self.run.process(self.run.java(self.class_path, "kafka.Kafka", home / "server.properties", heap=320, options=self.jvm), f"{home.name}.log")

    def start_all(self):
        for i in self.port:
            self.start(i)
        self.run.eventually("three brokers register", lambda: sorted(self.owners()) == ["1", "2", "3"], 120, vital=True)
        self.run.eventually("one of them is the controller", lambda: self.controller() in self.port, 30)

    def stop_all(self):
        for b in self.brokers.values():
            b.popen.terminate()
        self.run.eventually("after a clean stop no broker is registered", lambda: self.zk.get_children("/brokers/ids") == [] and "none", 60)

    def tool(self, main, *words):
        """Runs a tool of Kafka and returns its output, or a word if it printed nothing."""
        return self.run.output(self.run.java(self.class_path, main, *words, heap=128, log4j="WARN", options=self.jvm)) or "done"

    def admin(self, main, *words):
        return self.tool(main, "--bootstrap-server", self.bootstrap, *words)

    def create(self, topic, partitions=3):
        return self.admin(TOPICS, "--create", "--topic", topic, "--partitions", partitions, "--replication-factor", 3)

    # What is in ZooKeeper.

    def get(self, path):
        return self.zk.get(path)[0].decode()

    def json(self, path):
        return json.loads(self.get(path))

    def controller(self):
        return self.json("/controller")["brokerid"]

    def owners(self):
        """Returns the session of each broker."""
        return {i: self.zk.exists(f"/brokers/ids/{i}").ephemeralOwner for i in self.zk.get_children("/brokers/ids")}

    def sessions(self):
        return {**self.owners(), "epoch": self.get("/controller_epoch")}

    def states(self, topic):
        return [self.json(f"/brokers/topics/{topic}/partitions/{p}/state") for p in self.zk.get_children(f"/brokers/topics/{topic}/partitions")]

    def in_sync(self, topic):
        states = self.states(topic)
        return bool(states) and all(len(s["isr"]) == 3 for s in states)


QUIET = logging.getLogger("quiet")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False


class Load:
    """Produces numbered messages until it is stopped, and knows which ones Kafka acknowledged."""

    def __init__(self, bootstrap, topic):
        from confluent_kafka import Producer

        self.bootstrap, self.topic = bootstrap, topic
        self.producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 5, "message.timeout.ms": 300000, "logger": QUIET})
        self.acked, self.failed = set(), []
        self.stopped = False
        self.thread = threading.Thread(target=self._produce, daemon=True)
        self.thread.start()

    def _produce(self):
        n = 0
        while not self.stopped:
            self.producer.produce(self.topic, str(n), key=str(n), callback=self._delivered)
            n += 1
            self.producer.poll(0)
            time.sleep(0.02)
        self.producer.flush(120)

    def _delivered(self, error, message):
        if error:
            self.failed.append(str(error))
        else:
            self.acked.add(int(message.value()))

    def flows(self):
        """Whether Kafka acknowledges messages now."""
        before = len(self.acked)
        time.sleep(1)
        return len(self.acked) > before

    def stop(self):
        self.stopped = True
        self.thread.join(150)

    def missing(self, seconds):
        """Reads the topic from its start, and returns the acknowledged messages that are not in it."""
        from confluent_kafka import Consumer

        c = Consumer({"bootstrap.servers": self.bootstrap, "group.id": f"reader-{time.time()}", "auto.offset.reset": "earliest", "logger": QUIET})
        c.subscribe([self.topic])
        left, until = set(self.acked), time.monotonic() + seconds
        while left and time.monotonic() < until:
            left -= {int(m.value()) for m in c.consume(500, 1.0) if not m.error()}
        c.close()
        return left


def all_read(run, load):
    """The check that Kafka lost no message that it acknowledged."""

    def attempt():
        load.stop()
        missing = load.missing(60 * run.slow)
        if missing or load.failed:
            raise AssertionError(f"{len(missing)} of {len(load.acked)} missing, {len(load.failed)} failed {load.failed[:2]}")
        return len(load.acked) > 100 and f"{len(load.acked)} messages"

    run.check("every acknowledged message is read", attempt)
