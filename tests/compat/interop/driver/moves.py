"""Java's client while servers are killed: sessions that move, and read-only mode."""

import concurrent.futures
import os
import re
import subprocess
import threading

import compare
from base import INTEROP, CannotRun, end_group, run
from servers import ensemble

NAME = "moves"
ALONE = False
NEEDS = "java"
SOURCE = INTEROP / "moves"
# ZooKeeper gives a read-only client a session only where sessions may be local.
# Those of this program become global before anything is killed.
SETTINGS = "localSessionsEnabled=true\nlocalSessionsUpgradingEnabled=true\n"
PROPERTIES = ["-Dreadonlymode.enabled=true"]  # ZooKeeper does not read it from zoo.cfg


def checks(env, only=None):
    """Runs the program on the real server and on the target; one check per line that it prints for that."""
    classes = env.work / "moves-classes"
    log = env.logs / "moves-build.log"
    if run(["javac", "-nowarn", "-d", classes, "-cp", env.classpath, *sorted(SOURCE.glob("*.java"))], log, 300) != 0:
        raise CannotRun(f"the program does not compile: {log.read_text()}")
    # Both wait far more than they work.
    with concurrent.futures.ThreadPoolExecutor() as both:
        reference = both.submit(session, env, "zookeeper", classes, "reference")
        found = both.submit(session, env, env.target, classes, "target")
        reference, found = reference.result(), found.result()
    results = compare.blocks(env.target, reference, found)
    return [check for check in results if not only or check.name in only]


def session(env, target, classes, name):
    """What the program prints of one ensemble; kills and starts its servers whenever it asks for it."""
    with ensemble(env, target, more=SETTINGS, properties=PROPERTIES) as servers:
        command = [env.java, "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.extendedTypesEnabled=true"]
        # A logger at level off: the client logs what it does about lost connections.
        command += ["-Dzookeeper.root.level=OFF", "-cp", os.pathsep.join([str(classes), env.classpath]), "Moves"]
        with open(env.logs / f"moves-{name}.err", "wb") as errors:
            process = subprocess.Popen(
                command + [server.address for server in servers],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
            limit = threading.Timer(400, lambda: end_group(process))
            limit.start()
            lines = []
            try:
                for line in process.stdout:
                    lines.append(line.rstrip("\n"))
                    if order := re.match(r"(kill|start) (\d)$", line):
                        server = servers[int(order.group(2))]
                        server.kill() if order.group(1) == "kill" else server.start()
                        process.stdin.write("done\n")
                        process.stdin.flush()
            finally:
                limit.cancel()
                end_group(process)
    text = "\n".join(lines)
    (env.logs / f"moves-{name}.log").write_text(text)
    results = [line[2:].split(": ", 2) for line in lines if line.startswith("= ")]
    if process.returncode != 0:
        wrong = (env.logs / f"moves-{name}.err").read_text()[-2000:]
        if target == "zookeeper":
            raise CannotRun(f"the program ended with {process.returncode} on the real server: {wrong}\n{text[-1500:]}")
        results.append(("the end", "the program ended", wrong))
    return [(f"{where}: {what}", value) for where, what, value in results]
