"""Writes the table of docs/operate/applications.md from recorded results."""

import json
import re

from install import ROOT

PAGE = ROOT / "docs/operate/applications.md"
BEGIN, END = "<!-- results: make apps-page writes what follows -->\n", "<!-- end of results -->\n"
HEAD = (
    "| application | exercised | settings that matter | checks | CPU, s | memory, MiB |\n"
    "|---|---|---|---|---|---|\n"
)  # fmt: skip


def latest(path):
    """Returns the last result for each application and kind of servers. Broken servers don't count."""
    found = {}
    for line in path.read_text().splitlines():
        result = json.loads(line)
        if "fault" not in result:
            found[result["application"], result["servers"]] = result
    return found


def row(name, module, results):
    """Returns the line of an application, or nothing before it ran on both kinds of servers."""
    zkgo, zookeeper = results.get((name, "zkgo")), results.get((name, "zookeeper"))
    if not zkgo or not zookeeper or zkgo["version"] != module.VERSION:
        return ""
    counts = [f"{r['passed']}/{r['passed'] + r['failed']}" for r in (zkgo, zookeeper)]
    checks = counts[0] if counts[0] == counts[1] else f"{counts[0]} ({counts[1]})"
    numbers = [f"{zkgo[k]} ({zookeeper[k]})" for k in ("cpu_s", "memory_mib")]
    return f"| {module.TITLE} {module.VERSION} | {module.EXERCISED} | {module.SETTINGS} | {checks} | {' | '.join(numbers)} |\n"


def table(results, modules):
    rows = [(m, row(name, m, results)) for name, m in modules.items()]
    loads = [x for r in results.values() for x in r["load"]]
    dates = sorted(r["date"] for r in results.values())
    note = f"\nMeasured {dates[0]} to {dates[-1]}" if dates[0] != dates[-1] else f"\nMeasured {dates[0]}"
    note += f" on {max(r['cpus'] for r in results.values())} cores that other programs shared (load {min(loads):.0f} to {max(loads):.0f}), ZooKeeper directly after zkgo.\n"
    missing = [m.TITLE for m, line in rows if not line]
    return HEAD + "".join(line for _, line in rows) + note, missing


def write(path, modules):
    """Replaces the table in the page and returns the exit code."""
    try:
        results = latest(path)
        text, missing = table(results, modules)
    except (OSError, ValueError, KeyError, IndexError) as e:
        print(f"run.sh --page {path}: not a file that --record wrote: {e!r}")
        return 1
    page = PAGE.read_text()
    found = re.search(re.escape(BEGIN) + ".*" + re.escape(END), page, re.DOTALL)
    if not found:
        print(f"{PAGE}: the marks around the table are missing: {BEGIN.strip()} and {END.strip()}")
        return 1
    PAGE.write_text(page[: found.start()] + BEGIN + "\n" + text + "\n" + END + page[found.end() :])
    if missing:
        print(f"not in the table, because {path} lacks results for both kinds of servers: {', '.join(missing)}")
    return 0
