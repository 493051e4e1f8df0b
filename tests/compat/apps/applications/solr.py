"""SolrCloud: three nodes; collections, the overseer, configuration in ZooKeeper; nodes and servers die."""

import json
import urllib.error
import urllib.parse
import urllib.request

import install as packages
from ensemble import free_ports

TITLE = "Solr (SolrCloud)"
VERSION = "9.10.1"
EXERCISED = "collections, overseer, per-replica states, schema API, shard split, `solr zk`"
SETTINGS = "`zkClientTimeout`; `4lw.commands.whitelist` for the status page"

SCHEMA = """<schema name="tiny" version="1.6"><uniqueKey>id</uniqueKey>
<fieldType name="string" class="solr.StrField"/><fieldType name="long" class="solr.LongPointField" docValues="true"/>
<field name="id" type="string" required="true" indexed="true" stored="true"/>
<field name="_version_" type="long" indexed="false" stored="false"/>
<dynamicField name="*_s" type="string" indexed="true" stored="true"/></schema>"""
CONFIG = """<config><luceneMatchVersion>9.10</luceneMatchVersion><schemaFactory class="ManagedIndexSchemaFactory"/>
<updateHandler class="solr.DirectUpdateHandler2"><updateLog/><autoSoftCommit><maxTime>500</maxTime></autoSoftCommit>
<autoCommit><maxTime>2000</maxTime><openSearcher>false</openSearcher></autoCommit></updateHandler>
<requestHandler name="/select" class="solr.SearchHandler"/></config>"""
NODE = """<solr><solrcloud><str name="host">127.0.0.1</str><int name="hostPort">{port}</int><str name="hostContext">solr</str>
<str name="zkHost">{zookeeper}</str><int name="zkClientTimeout">8000</int></solrcloud></solr>"""


def install():
    """Returns the class path, with the program that runs a node."""
    names = ("solr-core", "solr-test-framework", "solr-solrj-zookeeper")
    return packages.classes("SolrNode", packages.maven("solr", [f"org.apache.solr:{name}:{VERSION}" for name in names]))


class Solr:
    """Three nodes below the chroot /solr."""

    def __init__(self, run):
        self.run, self.class_path = run, install()
        self.zookeeper = run.ensemble.hosts + "/solr"
        self.port = dict(enumerate(free_ports(3), 1))
        self.nodes = {}

    def start(self, i):
        home = self.run.dir / f"node{i}"
        home.mkdir(exist_ok=True)
        (home / "solr.xml").write_text(NODE.format(port=self.port[i], zookeeper=self.zookeeper))
        options = ["-Dsolr.disableConfigSetsCreateAuthChecks=true", f"-DhostPort={self.port[i]}", f"-Djetty.port={self.port[i]}"]
        argv = self.run.java(self.class_path, "SolrNode", home, self.port[i], heap=384, options=options)
        self.nodes[i] = self.run.process(argv, f"node{i}.log", cwd=home)

    def ask(self, i, path, body=None, /, **parameters):
        url = f"http://127.0.0.1:{self.port[i]}/solr{path}?" + urllib.parse.urlencode({"wt": "json", **parameters})
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=180 * self.run.slow) as r:
                return json.load(r)
        except urllib.error.HTTPError as e:
            raise RuntimeError(f"{e.code}: {e.read().decode(errors='replace')[:600]}") from e

    def alive(self):
        return next(i for i, n in self.nodes.items() if n.alive())

    def admin(self, action, **parameters):
        return self.ask(self.alive(), "/admin/collections", action=action, **parameters)

    def create(self, name, **parameters):
        config = {"collection.configName": "tiny"}
        return self.admin("CREATE", name=name, numShards=2, replicationFactor=2, **config, **parameters)["responseHeader"]["status"] == 0

    def active(self, name, replicas):
        """Whether each active shard has a leader, and that many replicas are active."""
        shards = self.admin("CLUSTERSTATUS", collection=name)["cluster"]["collections"][name]["shards"].values()
        copies = [r for s in shards for r in s["replicas"].values()]
        led = all(any(r.get("leader") == "true" for r in s["replicas"].values()) for s in shards if s["state"] == "active")
        return led and sum(r["state"] == "active" for r in copies) >= replicas

    def count(self, name):
        return self.ask(self.alive(), f"/{name}/select", q="*:*", rows=0)["response"]["numFound"]

    def add(self, name, first, last):
        self.ask(self.alive(), f"/{name}/update", [{"id": str(i), "x_s": f"v{i}"} for i in range(first, last)], commit="true")
        return True

    def overseer(self):
        name = self.admin("OVERSEERSTATUS")["leader"]
        return next(i for i, p in self.port.items() if f":{p}_" in name)

    def cli(self, *words):
        argv = self.run.java(self.class_path, "org.apache.solr.cli.SolrCLI", *words, heap=128, options=[f"-Dsolr.install.dir={self.run.dir}"])
        return self.run.output(argv) or "done"


def check(run):
    run.start_ensemble()
    zk = run.client()
    solr = Solr(run)
    conf = run.dir / "conf"
    conf.mkdir()
    (conf / "managed-schema.xml").write_text(SCHEMA)
    (conf / "solrconfig.xml").write_text(CONFIG)
    run.check("solr zk mkroot", lambda: solr.cli("zk", "mkroot", "/solr", "-z", run.ensemble.hosts) and zk.exists("/solr"))
    run.check("solr zk upconfig", lambda: solr.cli("zk", "upconfig", "-z", solr.zookeeper, "-n", "tiny", "-d", conf) and len(zk.get_children("/solr/configs/tiny")) == 2, vital=True)
    for i in solr.port:
        solr.start(i)
    live = lambda: {n: zk.exists(f"/solr/live_nodes/{n}").ephemeralOwner for n in zk.get_children("/solr/live_nodes")}
    run.eventually("three nodes are live", lambda: len(live()) == 3, 150, vital=True)
    run.eventually("they answer in cloud mode", lambda: all(solr.ask(i, "/admin/info/system")["mode"] == "solrcloud" for i in solr.port))
    run.check("create a collection with 2 shards and 2 replicas", lambda: solr.create("books"), vital=True)
    run.eventually("its replicas are active", lambda: solr.active("books", 4), vital=True)
    run.check("index documents", lambda: solr.add("books", 0, 500))
    run.eventually("a query finds them", lambda: solr.count("books") == 500)
    collections(run, solr, zk)
    configuration(run, solr)
    tools(run, solr, zk, conf)

    victim = solr.overseer()
    solr.nodes[victim].kill()
    run.eventually("another node is the overseer after kill -9", lambda: solr.overseer() != victim, 90)
    run.eventually("the victim is not live", lambda: len(live()) == 2)
    run.eventually("indexing continues", lambda: solr.add("books", 500, 600) and solr.count("books") == 600)
    solr.start(victim)
    run.eventually("the node returns and its replicas recover", lambda: len(live()) == 3 and solr.active("books", 7), 150)

    run.kill_leaders(
        lambda r: ("create a collection", lambda: (zk.exists(f"/solr/collections/c{r}") or solr.create(f"c{r}")) and solr.active(f"c{r}", 4)),
        lambda: {**live(), "overseer": solr.overseer()},
    )
    run.eventually("index more", lambda: solr.add("books", 600, 800) and solr.count("books") == 800)
    run.check("delete collections", lambda: all(solr.admin("DELETE", name=n)["responseHeader"]["status"] == 0 for n in ("c1", "c2", "prs")))
    run.eventually("they are gone from ZooKeeper", lambda: zk.get_children("/solr/collections") == ["books"])
    for node in solr.nodes.values():
        node.popen.terminate()
    run.eventually("after a clean stop no node is live", lambda: not live() and "none", 60)


def collections(run, solr, zk):
    run.check("create a collection with per-replica states", lambda: solr.create("prs", perReplicaState="true"))
    run.eventually("its replicas are active", lambda: solr.active("prs", 4))
    run.eventually("each replica has a znode", lambda: len(zk.get_children("/solr/collections/prs/state.json")) == 4)
    run.check("create an alias", lambda: solr.admin("CREATEALIAS", name="alias", collections="books")["responseHeader"]["status"] == 0)
    run.eventually("a query by the alias finds the documents", lambda: solr.count("alias") == 500)
    run.check("split a shard", lambda: solr.admin("SPLITSHARD", collection="books", shard="shard1", **{"async": "77"})["responseHeader"]["status"] == 0)
    run.eventually("the split completes", lambda: solr.admin("REQUESTSTATUS", requestid="77")["status"]["state"] == "completed", 120)
    run.check("add a replica", lambda: "success" in solr.admin("ADDREPLICA", collection="books", shard="shard2"))
    run.eventually("seven replicas are active", lambda: solr.active("books", 7), 90)


def configuration(run, solr):
    field = {"add-field": {"name": "title", "type": "string", "stored": True}}
    run.check("the schema API adds a field", lambda: solr.ask(1, "/books/schema", field)["responseHeader"]["status"] == 0)
    run.eventually("each node sees it", lambda: all(solr.ask(i, "/books/schema/fields/title")["field"] for i in solr.port), 30)
    run.check("the config API sets a property", lambda: solr.ask(1, "/books/config", {"set-user-property": {"a": "b"}})["responseHeader"]["status"] == 0)
    run.check("set a cluster property", lambda: solr.admin("CLUSTERPROP", name="urlScheme", val="http")["responseHeader"]["status"] == 0)


def tools(run, solr, zk, conf):
    def status():
        s = solr.ask(1, "/admin/zookeeper/status")["zkStatus"]
        if s["status"] != "green" or s["ensembleSize"] != 3:
            raise RuntimeError(json.dumps(s)[:900])
        return s["status"], s["mode"]

    run.check("the status page of ZooKeeper is green", status)
    run.check("the tree browser lists live nodes", lambda: f":{solr.port[1]}_solr" in json.dumps(solr.ask(1, "/admin/zookeeper", detail="true", path="/live_nodes")))
    run.check("solr zk cp", lambda: solr.cli("zk", "cp", f"file:{conf}/solrconfig.xml", "zk:/some.xml", "-z", solr.zookeeper) and zk.get("/solr/some.xml")[0].decode() == CONFIG)
    run.check("solr zk ls", lambda: "some.xml" in solr.cli("zk", "ls", "/", "-z", solr.zookeeper))
    run.check("solr zk mv", lambda: solr.cli("zk", "mv", "zk:/some.xml", "zk:/other.xml", "-z", solr.zookeeper) and zk.exists("/solr/other.xml") and not zk.exists("/solr/some.xml"))
    run.check("solr zk rm", lambda: solr.cli("zk", "rm", "/other.xml", "-z", solr.zookeeper) and not zk.exists("/solr/other.xml"))
    run.check("solr zk downconfig", lambda: solr.cli("zk", "downconfig", "-z", solr.zookeeper, "-n", "tiny", "-d", run.dir / "down") and len(list((run.dir / "down").rglob("*.xml"))) == 2)
