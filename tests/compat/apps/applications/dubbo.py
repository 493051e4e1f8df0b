"""Dubbo: providers and a consumer that find each other in ZooKeeper; providers and servers die."""

import install as packages
from ensemble import free_ports

TITLE = "Dubbo"
VERSION = "3.3.5"
EXERCISED = "registry, discovery, providers that come, go and die"
SETTINGS = "`session` in the registry's parameters"

SERVICE = "/dubbo/DubboCheck%24Greeter"


def install():
    """Returns the class path, with the program that provides and consumes."""
    artifacts = [f"org.apache.dubbo:{n}:{VERSION}" for n in ("dubbo", "dubbo-registry-zookeeper")]
    return packages.classes("DubboCheck", packages.maven("dubbo", [*artifacts, "org.slf4j:slf4j-simple:2.0.13"]))


class Dubbo:
    """Providers, with the names one, two and three, and a consumer."""

    def __init__(self, run, zk):
        self.run, self.zk, self.class_path = run, zk, install()
        self.port = dict(zip(("one", "two", "three"), free_ports(3), strict=True))
        self.providers = {}
        self.consumer = None

    def java(self, *arguments, log):
        options = [f"-Duser.home={self.run.dir}/{log}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        argv = self.run.java(self.class_path, "DubboCheck", self.run.ensemble.hosts, *arguments, options=options)
        return self.run.process(argv, f"{log}.log", cwd=self.run.dir)

    def start(self, *names):
        for name in names:
            self.providers[name] = self.java("provide", name, self.port[name], log=name)

    def consume(self):
        self.consumer = self.java("consume", log="consumer")

    def registered(self):
        """Returns the session of each provider."""
        names = {f"%3A{port}%2F": name for name, port in self.port.items()}
        found = {names[part]: node for node in self.zk.get_children(f"{SERVICE}/providers") for part in names if part in node}
        return {name: self.zk.exists(f"{SERVICE}/providers/{node}").ephemeralOwner for name, node in sorted(found.items())}

    def sees(self, *names):
        """Whether the consumer's newest 20 calls reached these providers, and no others."""
        lines = [line for line in self.consumer.text().splitlines() if line.startswith("SEES ")]
        return lines and lines[-1][5:].split() == sorted(names) and lines[-1]


def check(run):
    run.start_ensemble()
    zk = run.client()
    dubbo = Dubbo(run, zk)
    dubbo.start("one", "two")
    run.eventually("two providers are registered", lambda: sorted(dubbo.registered()) == ["one", "two"], 120, vital=True)
    dubbo.consume()
    run.eventually("the consumer calls both", lambda: dubbo.sees("one", "two"), 120, vital=True)
    run.check("the consumer is registered", lambda: len(zk.get_children(f"{SERVICE}/consumers")) == 1)
    run.check("the service is mapped to its application", lambda: zk.get("/dubbo/mapping/DubboCheck$Greeter")[0] == b"greeter")
    run.check("the application's instances are registered", lambda: len(zk.get_children("/services/greeter")) == 2)
    dubbo.start("three")
    run.eventually("the consumer finds a new provider", lambda: dubbo.sees("one", "three", "two"))
    dubbo.providers["three"].popen.terminate()
    run.eventually("after a clean stop it is not registered", lambda: sorted(dubbo.registered()) == ["one", "two"])
    run.eventually("the consumer calls the others", lambda: dubbo.sees("one", "two"))
    dubbo.providers["two"].kill()
    run.eventually("a killed provider's session ends", lambda: list(dubbo.registered()) == ["one"])
    run.eventually("the consumer calls the one that is left", lambda: dubbo.sees("one"))
    dubbo.start("two")
    run.eventually("it returns", lambda: dubbo.sees("one", "two"))
    run.kill_leaders(lambda r: ("the consumer calls both", lambda: dubbo.sees("one", "two")), dubbo.registered)
    dubbo.start("three")
    run.eventually("after that, the consumer finds a new provider", lambda: dubbo.sees("one", "three", "two"))
