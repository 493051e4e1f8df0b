"""Kafka's migration from ZooKeeper to KRaft, up to dual writes."""

from applications import kafka_common as common
from ensemble import free_ports

TITLE = "Kafka, migration to KRaft"
VERSION = common.VERSION
EXERCISED = "migration of the metadata, takeover of the controller, dual writes"
SETTINGS = "`zookeeper.metadata.migration.enable`"
install = common.install

CONTROLLER = 3000
KRAFT = """process.roles=controller
node.id={node}
controller.quorum.voters={voters}
controller.listener.names=CONTROLLER
listeners=CONTROLLER://127.0.0.1:{port}
{protocols}log.dirs={home}/logs
zookeeper.metadata.migration.enable=true
zookeeper.connect={zookeeper}
zookeeper.connection.timeout.ms=60000
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""
BROKER = """zookeeper.metadata.migration.enable=true
inter.broker.protocol.version=3.9
controller.quorum.voters={voters}
controller.listener.names=CONTROLLER
"""


def check(run):
    servers = run.start_ensemble()
    kafka = common.Kafka(run)
    kafka.start_all()
    run.check("create a topic", lambda: "Created topic work" in kafka.create("work", 6), vital=True)
    load = common.Load(kafka.bootstrap, "work")
    run.eventually("messages are acknowledged", lambda: len(load.acked) > 100, vital=True)

    home, [port] = run.dir / "controller", free_ports(1)
    home.mkdir()
    voters = f"{CONTROLLER}@127.0.0.1:{port}"
    (home / "server.properties").write_text(KRAFT.format(node=CONTROLLER, voters=voters, port=port, protocols=common.PROTOCOLS, home=home, zookeeper=kafka.zookeeper))
    cluster = kafka.json("/cluster/id")["id"]
    run.check("format the KRaft controller", lambda: "Formatting" in kafka.tool("kafka.tools.StorageTool", "format", "-t", cluster, "-c", home / "server.properties"), vital=True)
    kafka.start_program(CONTROLLER, home)
    for i in kafka.port:
        before = kafka.owners()[str(i)]
        kafka.brokers[i].stop(90)
        kafka.start(i, BROKER.format(voters=voters) + common.PROTOCOLS)
        run.wait(lambda i=i, before=before: kafka.owners().get(str(i), before) != before, 90, "the broker returns")
    run.eventually("the metadata migrates to KRaft", lambda: "Completed migration of metadata from ZooKeeper to KRaft" in kafka.brokers[CONTROLLER].text(), 150, vital=True)
    run.eventually("the KRaft controller owns /controller", lambda: kafka.controller() == CONTROLLER, 30)
    run.check("/migration names it", lambda: kafka.json("/migration")["kraft_controller_id"] == CONTROLLER)

    victim = servers.leader()
    servers.kill(victim)
    run.check("create a topic by KRaft, while the leader of the servers is down", lambda: "Created topic dual" in kafka.create("dual"))
    run.eventually("ZooKeeper gets it too", lambda: len(kafka.states("dual")) == 3)
    servers.start(victim)

    def alter(kind, name, setting):
        return kafka.admin(common.CONFIGS, "--entity-type", kind, "--entity-name", name, "--alter", "--add-config", setting)

    run.check("change a topic's configuration by KRaft", lambda: alter("topics", "dual", "retention.ms=1234567"))
    run.eventually("ZooKeeper gets it too", lambda: "1234567" in kafka.get("/config/topics/dual"), 30)
    run.check("add a SCRAM user by KRaft", lambda: alter("users", "bob", "SCRAM-SHA-512=[password=pw]"))
    run.eventually("ZooKeeper gets the user too", lambda: "SCRAM-SHA-512" in kafka.get("/config/users/bob"), 30)
    run.eventually("Kafka acknowledges messages", load.flows)
    common.all_read(run, load)
