"""The C client: its shell cli_mt and a program of our own, compared with the real server."""

import itertools
import queue
import re
import subprocess
import threading
import time

import compare
import install
from base import INTEROP, CannotRun, run
from servers import standalone

NAME = "cclient"
ALONE = False
NEEDS = "zookeeper-bin, libzookeeper-mt-dev, gcc"
SHELL = "/usr/lib/zookeeper/bin/cli_mt"
SCRIPT = INTEROP / "cclient" / "commands.txt"
PROGRAM = INTEROP / "cclient" / "session.c"

# How long a command took, whatever the client logs about its connection, and
# the lines that are printed while a command is sent rather than when it ends.
NOISE = re.compile(r"^(time = \d+ msec|\d{4}-\d\d-\d\d .*|Got a new session id: .*|\tname = /end-of-command-\d+)$")
HEX = re.compile(r"\b([cmp]zxid|Zxid) ?= ?([0-9a-f]+)\b")
SESSION = re.compile(r"\bsession Id = [0-9a-f]+")
OWNER = re.compile(r"\b(ephemeralOwner) ?= ?([1-9a-f][0-9a-f]{12,15})\b")


def checks(env, only=None):
    """Runs both on the real server and on the target."""
    install.c_client(env)
    program = env.work / "session"
    build = env.logs / "cclient-build.log"
    if run(["gcc", "-O1", "-Wall", "-DTHREADED", "-o", program, PROGRAM, "-lzookeeper_mt", "-lpthread"], build, 120) != 0:
        raise CannotRun(f"{PROGRAM} does not compile: {build.read_text()}")
    reference, found = (both(env, target, program) for target in ("zookeeper", env.target))
    results = compare.blocks(env.target, reference, found)
    return [check for check in results if not only or check.name in only]


def both(env, target, program):
    """What the shell and the program printed on a fresh server of a target."""
    with standalone(env, target) as server:
        return shell(env, server) + session(env, server, program)


def session(env, server, program):
    """The program prints a line per step, labelled with the step."""
    log = env.logs / f"cclient-session-{server.target}-{server.port}.log"
    code = run([program, server.address], log, 300)
    lines = [line for line in log.read_text(errors="replace").splitlines() if not NOISE.match(line)]
    text = normalise("\n".join(lines + [f"exit: {code}"]))
    return [(f"session {label}", rest) for label, _, rest in (line.partition(": ") for line in text.splitlines())]


def shell(env, server):
    """The output of cli_mt per command, and the watch events of the session."""
    commands = [line for line in SCRIPT.read_text().splitlines() if line.strip() and not line.startswith("#")]
    process = subprocess.Popen(
        # It writes to both outputs: line by line, their order is the one of the answers.
        ["stdbuf", "-oL", "-eL", SHELL, server.address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # where the answers go
        text=True,
        start_new_session=True,
    )
    lines = queue.Queue()
    reader = threading.Thread(target=lambda: [lines.put(line.rstrip("\n")) for line in process.stdout], daemon=True)
    reader.start()
    outputs, events = [], []
    try:
        for number, command in enumerate(commands):
            outputs.append(_answer(process, lines, command, number, events))
        process.stdin.write("quit\n")
        process.stdin.close()
        process.wait(30)
    except (subprocess.TimeoutExpired, BrokenPipeError) as err:
        raise CannotRun(f"cli_mt on {server.target} did not come to its end: {err}") from err
    finally:
        process.kill()
        process.wait()
    labels = [f"cli_mt {number + 1}: {command}" for number, command in enumerate(commands)]
    # One text, so that zxids are ranked over the whole session.
    whole = normalise("\n\0\n".join(unordered(output) for output in outputs))
    return list(zip(labels, whole.split("\n\0\n"))) + [("cli_mt events", "\n".join(events))]


def unordered(output):
    """Sorts the names of children, which the real server takes out of a hash table."""
    is_name = lambda line: line.startswith("\t") and "=" not in line
    lines = []
    for name, group in itertools.groupby(output.splitlines(), is_name):
        lines += sorted(group) if name else group
    return "\n".join(lines)


def _answer(process, lines, command, number, events):
    """Sends a command and then a sync, whose answer marks where the answer to the
    command ends: the client completes requests in order."""
    mark = f"/end-of-command-{number}"
    process.stdin.write(f"{command}\nsync {mark}\n")
    process.stdin.flush()
    answer, until = [], time.monotonic() + 60
    while True:
        try:
            line = lines.get(timeout=max(until - time.monotonic(), 0))
        except queue.Empty:
            return "\n".join(answer + ["(no answer)"])
        if line == f"[{mark}]: rc = 0":
            return "\n".join(answer)
        if line.startswith("Watcher "):
            events.append(line)
        elif not NOISE.match(line):
            answer.append(line)


def normalise(text):
    """The C client prints zxids and owners in hexadecimal, without a mark."""
    text = HEX.sub(lambda m: f"{m.group(1)} = 0x{m.group(2)}", text)
    text = OWNER.sub(lambda m: f"{m.group(1)} = 0x{m.group(2).rjust(16, '0').lstrip('0')}", text)
    return compare.normalise(SESSION.sub("session Id = SESSION", text))
