"""Curator's recipes against an ensemble: a program whose checks print ok or FAIL."""

import os
import re

import install
from base import FAIL, INTEROP, PASS, CannotRun, Check, run
from servers import ensemble

NAME = "curator"
ALONE = False
NEEDS = "java, maven"
SOURCE = INTEROP / "curator" / "src"
RESULT = re.compile(r"^(ok|FAIL) ([^:\n]+)(.*(?:\n    .*)*)", re.MULTILINE)


def checks(env, only=None):
    """Compiles the program and runs all of it."""
    jars = install.curator(env)
    classes = env.work / "curator-classes"
    log = env.logs / "curator-build.log"
    sources = sorted(SOURCE.glob("*.java"))
    if run(["javac", "-nowarn", "-d", classes, "-cp", f"{jars}/*", *sources], log, 300) != 0:
        raise CannotRun(f"Curator's program does not compile: {log.read_text()}")
    names = [name for source in sources for name in re.findall(r'checks\.check\("([^"]+)"', source.read_text())]
    with ensemble(env, env.target) as servers:
        connect = ",".join(server.address for server in servers)
        output = env.logs / f"curator-{servers[0].port}.log"
        classpath = os.pathsep.join([str(classes), f"{jars}/*"])
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.extendedTypesEnabled=true"]
        run([env.java, *options, "-cp", classpath, "Interop", connect], output, 900)
    text = output.read_text(errors="replace")
    found = {m.group(2): Check(m.group(2), PASS if m.group(1) == "ok" else FAIL, m.group(0)) for m in RESULT.finditer(text)}
    missing = Check("", FAIL, "the program ended before this check: " + text[-1000:])
    results = [found.get(name) or Check(name, FAIL, missing.text) for name in names]
    return [check for check in results if not only or check.name in only]
