"""Applications that one program runs. It prints "CHECK ok NAME" or "CHECK failed NAME".

After its first part it prints "WAITS", and continues when the file that we name exists. In
between, the checks kill servers.
"""

import time


def follow(run, argv, rounds=2, seconds=400, away=10, cwd=None, owners=None, env=None):
    """Runs the program, and notes its checks as those of the run.

    owners() returns the sessions that should not change while servers are killed.
    """
    go_on = run.dir / "go-on"
    program = run.process([*argv, go_on], "program.log", cwd=cwd or run.dir, env=env)
    run.eventually("the first part ends", lambda: "WAITS\n" in program.text() or not program.alive(), seconds)
    for r in range(1, rounds + 1 if program.alive() else 0):
        before, victim = owners and owners(), run.ensemble.leader()
        run.ensemble.kill(victim)
        time.sleep(away)
        if owners:
            run.eventually(f"sessions stay while the leader of the servers is down (round {r})", lambda before=before: (now := owners()) == before and now, 5)
        run.ensemble.start(victim)
        run.wait(lambda victim=victim: run.ensemble.serves(victim), 60, "the killed server serves again")
    go_on.write_text("")
    run.eventually("the program ends", lambda: not program.alive() and "ended", seconds)
    for line in program.text().splitlines():
        if line.startswith("CHECK "):
            _, verdict, name = line.split(" ", 2)
            run.check(name, lambda verdict=verdict: verdict == "ok")
    run.check("the program exits with 0", lambda: program.popen.returncode == 0 or tail(program))


def tail(program):
    """Fails with the end of what the program prints."""
    raise RuntimeError(f"exits {program.popen.poll()}: {program.text()[-800:]}")
