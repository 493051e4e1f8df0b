"""Kazoo through kill -9 of the server: sessions keep locks, ephemerals and watches."""

import re
import signal
import subprocess
import threading

import install
from base import FAIL, INTEROP, PASS, CannotRun, Check, end_group
from servers import standalone

NAME = "reattach"
ALONE = False
NEEDS = "python3-venv"
PROGRAM = INTEROP / "reattach" / "reattach.py"
RESULT = re.compile(r"^(ok|FAIL) ([^\n]*)$")
RESTARTS, CHECKS = 3, 37


def checks(env, only=None):
    """Runs the program; kills and restarts the server whenever it asks for it."""
    python = install.venv(env)
    lines = []
    with standalone(env, env.target, "maxSessionTimeout=120000\n") as server:
        process = subprocess.Popen(
            [str(python), "-B", str(PROGRAM), server.address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        limit = threading.Timer(600, lambda: end_group(process))
        limit.start()
        try:
            for line in process.stdout:
                lines.append(line.rstrip())
                if line == "restart\n":
                    _restart(server)
                    process.stdin.write("back\n")
                    process.stdin.flush()
        finally:
            limit.cancel()
            end_group(process)
    (env.logs / f"reattach-{server.port}.log").write_text("\n".join(lines))
    return _results(lines, process.returncode)


def _restart(server):
    server.process.send_signal(signal.SIGKILL)
    server.kill()
    if not server.start().serving():
        raise CannotRun(f"the {server.target} server did not come back after kill -9; see {server.log}")


def _results(lines, code):
    results = []
    for match in filter(None, map(RESULT.match, lines)):
        name = match.group(2)
        if match.group(1) == "ok":
            results.append(Check(name, PASS))
        else:
            results.append(Check(re.sub(r": [^:]*$", "", name), FAIL, match.group(0)))
    if len(results) != CHECKS or lines.count("restart") != RESTARTS:
        results.append(Check("all checks were made", FAIL, f"{len(results)} of {CHECKS} checks, exit code {code}\n" + "\n".join(lines[-40:])))
    return results
