"""Kafka that authenticates to ZooKeeper by SASL and owns its znodes."""

from applications import kafka_common as common

TITLE = "Kafka, SASL to ZooKeeper"
VERSION = common.VERSION
EXERCISED = "DIGEST-MD5, ACLs on znodes, ZkSecurityMigrator"
SETTINGS = "`java.security.auth.login.config` in `zoo.cfg`, `zookeeper.set.acl`"
install = common.install

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule required"
PROVIDER = "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n"
EVERYONE, OWNER = ("world", "anyone", 31), ("sasl", "kafka", 31)


def check(run):
    server, client = run.dir / "server.jaas", run.dir / "client.jaas"
    server.write_text(f'Server {{ {MODULE} user_kafka="secret" user_other="pw"; }};\n')
    client.write_text(f'Client {{ {MODULE} username="kafka" password="secret"; }};\n')
    # ZooKeeper takes the file from a Java property; zkgo from the key of the same name.
    login = f"java.security.auth.login.config={server}"
    run.start_ensemble(config=PROVIDER + (login if run.servers == "zkgo" else ""), jvm=[f"-D{login}"])
    kafka = common.Kafka(run, jvm=[f"-Djava.security.auth.login.config={client}"])
    start = lambda i: kafka.start(i, "zookeeper.set.acl=true\n")
    for i in kafka.port:
        start(i)
    run.eventually("three brokers register", lambda: len(kafka.owners()) == 3, 120, vital=True)
    run.check("create a topic", lambda: "Created topic t" in kafka.create("t"), vital=True)
    acls = lambda path: [(a.id.scheme, a.id.id, a.perms) for a in kafka.zk.get_acls(path)[0]]
    run.check("its znode belongs to the brokers", lambda: OWNER in acls("/brokers/topics/t"))

    def write():
        from kazoo.exceptions import NoAuthError

        try:
            kafka.zk.set("/brokers/topics/t", b"{}")
        except NoAuthError as e:
            return repr(e)
        return ""

    def migrate(mode):
        out = kafka.tool("kafka.admin.ZkSecurityMigrator", f"--zookeeper.acl={mode}", f"--zookeeper.connect={kafka.zookeeper}")
        if "ERROR" in out or "Exception" in out:
            raise RuntimeError(out[-800:])
        return out

    run.check("a stranger may not write it", write)
    run.check("ZkSecurityMigrator removes the ACLs", lambda: migrate("unsecure") and acls("/brokers/topics/t") == [EVERYONE])
    run.check("ZkSecurityMigrator sets them again", lambda: migrate("secure") and OWNER in acls("/brokers/topics/t"))
    run.check("a stranger still may not write", write)
    run.kill_leaders(
        lambda r: ("create a topic (sessions that moved authenticate again)", lambda: (kafka.zk.exists(f"/brokers/topics/u{r}") or kafka.create(f"u{r}")) and OWNER in acls(f"/brokers/topics/u{r}")),
        kafka.owners,
        rounds=1,
    )
    kafka.stop_all()
