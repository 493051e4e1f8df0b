"""ZooKeeper's shell, zkCli.sh: a script of commands, compared with the real server."""

import re
import subprocess

import compare
from base import INTEROP, CannotRun
from servers import standalone

NAME = "zkcli"
ALONE = False
NEEDS = "java"
SCRIPT = INTEROP / "zkcli" / "commands.txt"

# A read of a node that never exists, after every command: its error message
# marks where the output of the command ends.
MARK = "/end-of-command-"
MARKED = re.compile(r"^Node does not exist: /end-of-command-(\d+)\n", re.MULTILINE)
EVENT = re.compile(r"^WatchedEvent [^\n]*")
# Events that the shell prints or not, as its thread for events happens to run: at "quit", and if
# the thread gets to an event only after "printwatches on".
MAYBE = re.compile(r"state:Closed | path:/unprinted ")


def checks(env, only=None):
    """Runs the whole script on the real server and on the target."""
    with standalone(env, "zookeeper") as server:
        reference = session(env, server, "reference")
    with standalone(env, env.target) as server:
        found = session(env, server, "target")
    results = compare.blocks(env.target, reference, found)
    return [check for check in results if not only or check.name in only]


def session(env, server, name):
    """The output per command, and the watch events of the whole session."""
    commands = script(server)
    lines = "".join(f"{command}\nget {MARK}{n}\n" for n, command in enumerate(commands))
    shell = [env.java, "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", env.classpath]
    # A logger at level error: the client logs its addresses at the others.
    shell += ["-Dzookeeper.root.level=OFF", "org.apache.zookeeper.ZooKeeperMain", "-timeout", "30000"]
    shell += ["-server", server.address]
    try:
        done = subprocess.run(
            shell, input=lines + "quit\n", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
        )
    except subprocess.TimeoutExpired as err:
        raise CannotRun(f"the shell did not end on {server.target}: {(err.stdout or b'')[-500:]!r}") from err
    (env.logs / f"zkcli-{name}.log").write_text(done.stdout)
    return parse(commands, done.stdout)


def script(server):
    """The commands of the script; ADDRESS stands for the server's."""
    lines = SCRIPT.read_text().splitlines()
    return [line.replace("ADDRESS", server.address) for line in lines if line.strip() and not line.startswith("#")]


def parse(commands, text):
    """Cuts the output at the marks. Watch events are printed by another thread
    of the shell, in several writes: their lines are taken out and compared as a
    list of their own, and empty lines, which they come with, are not compared."""
    lines = [line for line in text.splitlines() if line.strip() and line != "WATCHER::"]
    events = [line for line in lines if EVENT.match(line) and not MAYBE.search(line)]
    text = compare.normalise("".join(line + "\n" for line in lines if not EVENT.match(line)))
    _, _, text = text.partition("JLine support is disabled\n")
    pieces = MARKED.split(text)
    found = []
    for number, output in zip(pieces[1::2], pieces[0::2]):
        command = compare.normalise(commands[int(number)])
        found.append((f"{int(number) + 1}: {command}", unordered(output.strip())))
    if not pieces[1::2] or int(pieces[-2]) != len(commands) - 1:
        found.append(("the end of the script", "(the shell stopped answering)\n" + pieces[-1][-2000:]))
    return found + [("events", re.sub(r"zxid: \S+", "zxid: Z", "\n".join(events)))]


def unordered(output):
    """Sorts what the real server takes out of a hash table: lists of paths and
    the identities of a session."""
    if output.startswith("Auth scheme: User"):
        return "\n".join(sorted(output.splitlines()))
    if re.fullmatch(r"\[.*\]", output):
        return "[" + ", ".join(sorted(output[1:-1].split(", "))) + "]"
    return output
