"""BookKeeper: three bookies with autorecovery, then a fourth; the auditor's bookie and servers die."""

import re

import install as packages
from ensemble import free_ports

TITLE = "BookKeeper"
VERSION = "4.17.2"
EXERCISED = "cookies, ledger metadata, fencing, auditor, copies of a dead bookie's ledgers"
SETTINGS = "`zkTimeout`; `readEntryTimeoutSec` on a busy machine"

# By default, a read fails when no bookie replies within 5 s, e.g. because the machine is busy. That has nothing
# to do with the servers: the client knows the bookies already.
CONFIG = """bookiePort={port}
advertisedAddress=127.0.0.1
allowLoopback=true
journalDirectories={home}/journal
ledgerDirectories={home}/ledgers
metadataServiceUri={uri}
zkTimeout=8000
addEntryTimeoutSec=60
readEntryTimeoutSec=60
diskUsageThreshold=0.99
diskUsageWarnThreshold=0.98
autoRecoveryDaemonEnabled=true
lostBookieRecoveryDelay=0
httpServerEnabled=false
statsProviderClass=org.apache.bookkeeper.stats.NullStatsProvider
"""
AVAILABLE = "/ledgers/available"
UNDERREPLICATED = "/ledgers/underreplication/ledgers"
ELECTION = "/ledgers/underreplication/auditorelection"


def install():
    """Returns the class path, with the program that writes and reads ledgers."""
    return packages.classes("BookKeeperCheck", packages.maven("bookkeeper", [f"org.apache.bookkeeper:bookkeeper-server:{VERSION}"]))


class BookKeeper:
    """Bookies, numbered from 1."""

    def __init__(self, run, zk):
        self.run, self.zk, self.class_path = run, zk, install()
        self.uri = f"zk+hierarchical://{run.ensemble.hosts.replace(',', ';')}/ledgers"
        self.port = dict(enumerate(free_ports(4), 1))
        self.bookies = {}

    def java(self, main, *arguments, level="WARN"):
        return self.run.java(self.class_path, main, *arguments, options=["-XX:MaxDirectMemorySize=256m", f"-Dlog4j2.level={level}"])

    def conf(self, i):
        home = self.run.dir / f"bookie{i}"
        home.mkdir(exist_ok=True)
        file = home / "bk.conf"
        file.write_text(CONFIG.format(port=self.port[i], home=home, uri=self.uri))
        return file

    def start(self, i):
        self.bookies[i] = self.run.process(self.java("org.apache.bookkeeper.server.Main", "--conf", self.conf(i), level="INFO"), f"bookie{i}.log")

    def shell(self, *arguments):
        """Runs a command of BookieShell, which answers in its log."""
        return self.run.output(self.java("org.apache.bookkeeper.bookie.BookieShell", "-conf", self.conf(1), *arguments, level="INFO"))

    def ledger(self, *arguments):
        """Runs the program and returns what it prints."""
        return self.run.result(self.java("BookKeeperCheck", self.uri, *arguments))

    def write_and_read(self):
        """Writes a ledger, and reads it with another client."""
        got = self.ledger("write", 300)
        return ": 300 entries on " in got and got

    def available(self):
        """Returns the session of each bookie."""
        names = [n for n in self.zk.get_children(AVAILABLE) if n != "readonly"]
        return sorted((n, self.zk.exists(f"{AVAILABLE}/{n}").ephemeralOwner) for n in names)

    def auditor(self):
        """Returns the number of the bookie that audits: the one with the first vote."""
        first = min(self.zk.get_children(ELECTION), key=lambda n: int(n.rsplit("_", 1)[1]))
        vote = self.zk.get(f"{ELECTION}/{first}")[0]
        return next(i for i, port in self.port.items() if f":{port}".encode() in vote)

    def underreplicated(self, path=UNDERREPLICATED):
        """Returns the znodes of ledgers that wait for a copy."""
        names = self.zk.get_children(path)
        return [path] if not names and "urL" in path else [u for n in names for u in self.underreplicated(f"{path}/{n}")]


def check(run):
    run.start_ensemble()
    zk = run.client()
    bk = BookKeeper(run, zk)
    run.check("initialize the cluster", lambda: bk.shell("initnewcluster") and zk.get_children("/ledgers"), vital=True)
    for i in (1, 2, 3):
        bk.start(i)
    run.eventually("three bookies are available", lambda: len(bk.available()) == 3, 120, vital=True)
    run.check("write a ledger, and read it with another client", bk.write_and_read)
    run.check("opening a ledger fences its writer", lambda: bk.ledger("fence") == "fenced after 10 entries")
    run.eventually("an auditor is elected", lambda: f"bookie {bk.auditor()}")
    run.kill_leaders(lambda r: ("write and read another ledger", bk.write_and_read), lambda: (bk.auditor(), bk.available()))

    bk.start(4)
    run.eventually("a fourth bookie is available", lambda: len(bk.available()) == 4, 120)
    run.check("the shell lists them", lambda: (out := bk.shell("listbookies", "-rw")) and all(f":{p}" in out for p in bk.port.values()))
    victim = bk.auditor()
    dead = f":{bk.port[victim]}"
    ledgers = {}

    def on_victim():
        """Writes a ledger until one has the victim in its ensemble."""
        number = re.match(r"ledger (\d+): 300 entries on (.*)", bk.ledger("write", 300))
        ledgers["number"] = number[1]
        return dead in number[2]

    run.eventually("a ledger is on the auditor's bookie", on_victim)
    bk.bookies[victim].kill()
    run.eventually("its session ends after kill -9", lambda: len(bk.available()) == 3)
    run.eventually("another bookie is the auditor", lambda: (now := bk.auditor()) != victim and f"bookie {now}")
    copied = lambda: (line := bk.ledger("read", ledgers["number"])).startswith("ledger") and dead not in line and line
    run.eventually("the ledger is copied to other bookies", copied, 150)
    run.eventually("no ledger waits for a copy", lambda: not bk.underreplicated() and "none", 90)
    run.check("write and read a ledger on those that remain", bk.write_and_read)
    bk.start(victim)
    run.eventually("the bookie returns with its cookie", lambda: len(bk.available()) == 4, 120)
    for b in bk.bookies.values():
        b.popen.terminate()
    run.eventually("after a clean stop no bookie is available", lambda: not bk.available() and "none", 60)
