"""Kafka in ZooKeeper mode: three brokers; brokers, the controller and servers die."""

import json
import time

from applications import kafka_common as common

TITLE = "Kafka (ZooKeeper mode)"
VERSION = common.VERSION
EXERCISED = "controller election, SCRAM, ACLs, dynamic configuration, reassignment, deletion, loss of the quorum"
SETTINGS = "`zookeeper.session.timeout.ms`, a chroot in `zookeeper.connect`"
install = common.install


def check(run):
    run.start_ensemble()
    kafka = common.Kafka(run)
    # As Kafka's guide says, the first user exists before the first broker.
    user = ["--entity-type", "users", "--entity-name", "alice", "--alter", "--add-config", "SCRAM-SHA-512=[iterations=4096,password=secret]"]
    run.check("kafka-configs writes a SCRAM user to ZooKeeper", lambda: kafka.tool(common.CONFIGS, "--zookeeper", kafka.zookeeper, *user) and "SCRAM-SHA-512" in kafka.get("/config/users/alice"))
    kafka.start_all()
    run.check("create a topic", lambda: "Created topic work" in kafka.create("work", 6), vital=True)
    run.eventually("its replicas are in sync", lambda: kafka.in_sync("work"))
    load = common.Load(kafka.bootstrap, "work")
    run.eventually("messages are acknowledged", lambda: len(load.acked) > 100, vital=True)
    access(run, kafka)
    configuration(run, kafka)
    partitions(run, kafka)
    controller(run, kafka, load)
    run.kill_leaders(
        lambda r: ("create a topic", lambda: (kafka.zk.exists(f"/brokers/topics/after-{r}") or kafka.create(f"after-{r}")) and kafka.in_sync(f"after-{r}")),
        kafka.sessions,
    )
    rolling_restart(run, kafka)
    no_quorum(run, kafka, load)
    deletion(run, kafka)
    common.all_read(run, load)
    kafka.stop_all()


def access(run, kafka):
    """ACLs reach the brokers by sequential change notifications."""
    from confluent_kafka import Consumer, KafkaException

    def visible(broker, password="secret"):
        """Whether alice may read the topic's metadata at a broker; nothing if she can't log in."""
        c = Consumer({"bootstrap.servers": f"127.0.0.1:{kafka.sasl[broker]}", "group.id": "alice", "security.protocol": "SASL_PLAINTEXT",
                      "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "alice", "sasl.password": password, "logger": common.QUIET})  # fmt: skip
        try:
            return c.list_topics("work", timeout=10).topics["work"].error is None
        except KafkaException:
            return None
        finally:
            c.close()

    allow = ["--allow-principal", "User:alice", "--operation", "All", "--topic", "work"]
    run.eventually("each broker hides the topic from alice", lambda: all(visible(b) is False for b in kafka.port))
    run.check("a broker refuses a wrong password", lambda: visible(1, "wrong") is None)
    run.check("kafka-acls adds an ACL", lambda: "User:alice" in kafka.admin(common.ACLS, "--add", *allow))
    run.eventually("each broker learns of it", lambda: all(visible(b) is True for b in kafka.port))
    direct = ["--authorizer-properties", f"zookeeper.connect={kafka.zookeeper}", "--remove", "--force"]
    run.check("kafka-acls removes it in ZooKeeper itself", lambda: kafka.tool(common.ACLS, *direct, *allow))
    run.eventually("each broker learns that it is gone", lambda: all(visible(b) is False for b in kafka.port))


def configuration(run, kafka):
    def alter(kind, name, setting):
        return kafka.admin(common.CONFIGS, "--entity-type", kind, "--entity-name", name, "--alter", "--add-config", setting)

    run.check("change the configuration of a broker", lambda: alter("brokers", "2", "log.cleaner.threads=2") and "log.cleaner.threads" in kafka.get("/config/brokers/2"))
    run.eventually("the broker applies it", lambda: "log.cleaner.threads = 2" in kafka.brokers[2].text())
    run.check("change the configuration of a topic", lambda: alter("topics", "work", "retention.ms=3600000") and "3600000" in kafka.get("/config/topics/work"))


def partitions(run, kafka):
    run.check("add partitions", lambda: kafka.admin(common.TOPICS, "--alter", "--topic", "work", "--partitions", 9))
    run.eventually("the topic has them", lambda: len(kafka.states("work")) == 9 and kafka.in_sync("work"))
    run.check("create a topic with chosen replicas", lambda: "Created topic moves" in kafka.admin(common.TOPICS, "--create", "--topic", "moves", "--replica-assignment", "1:2,1:2,1:2"))
    plan = run.dir / "moves.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": "moves", "partition": p, "replicas": [3, 2]} for p in range(3)]}))
    run.check("move its replicas", lambda: "Successfully started" in kafka.admin(common.REASSIGN, "--reassignment-json-file", plan, "--execute"))
    run.eventually("the move completes", lambda: all(r == [3, 2] for r in kafka.json("/brokers/topics/moves")["partitions"].values()))
    run.check("kafka-reassign-partitions verifies it", lambda: "is completed" in kafka.admin(common.REASSIGN, "--reassignment-json-file", plan, "--verify"))


def controller(run, kafka, load):
    victim, before = kafka.controller(), kafka.owners()
    epoch = int(kafka.get("/controller_epoch"))
    kafka.brokers[victim].kill()
    run.eventually("another broker is the controller after kill -9", lambda: kafka.controller() != victim and int(kafka.get("/controller_epoch")) > epoch)
    del before[str(victim)]
    run.eventually("the victim's node is gone, the others keep their sessions", lambda: kafka.owners() == before)
    run.eventually("other brokers lead its partitions", lambda: all(s["leader"] not in (victim, -1) for s in kafka.states("work")))
    run.eventually("Kafka acknowledges messages", load.flows)
    kafka.start(victim)
    run.eventually("the broker returns and its replicas are in sync", lambda: kafka.in_sync("work"), 120)
    run.check("elect the preferred leaders", lambda: kafka.admin("org.apache.kafka.tools.LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions"))


def rolling_restart(run, kafka):
    servers, before = run.ensemble, kafka.sessions()
    for i in servers.address:
        servers.stop(i)
        servers.start(i)
        run.wait(lambda i=i: servers.serves(i), 60, "the server serves again")
    run.eventually("a restart of each server costs no session", lambda: (now := kafka.sessions()) == before and now, 10)


def no_quorum(run, kafka, load):
    servers, before = run.ensemble, kafka.owners()
    leader = servers.leader()
    down = [leader, leader % 3 + 1]
    for i in down:
        servers.kill(i)
    time.sleep(15)  # much longer than the session timeout
    run.eventually("Kafka acknowledges messages without a quorum of servers", load.flows, 10)
    for i in down:
        servers.start(i)
    run.eventually("with the quorum, create a topic", lambda: (kafka.zk.exists("/brokers/topics/late") or kafka.create("late")) and kafka.in_sync("late"))
    # The new leader gives each session a whole timeout, as ZooKeeper does.
    time.sleep(8)
    run.eventually("the sessions survived", lambda: (now := kafka.owners()) == before and now, 5)


def deletion(run, kafka):
    names = ["late", "after-1", "after-2", "moves"]
    run.check("delete topics", lambda: all(kafka.admin(common.TOPICS, "--delete", "--topic", name) for name in names))
    gone = lambda: not kafka.zk.get_children("/admin/delete_topics") and not set(names) & set(kafka.zk.get_children("/brokers/topics"))
    run.eventually("they are gone from ZooKeeper", gone)
