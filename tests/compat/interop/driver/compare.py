"""Compares what a client printed on the target with what it printed on the real server."""

import difflib
import re

from base import FAIL, PASS, Check

DATE = re.compile(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d (?:[A-Z]{3} )?(\d{4})\b")
ZXID = re.compile(r"\b((?:[cmp]Zxid|zxid)(?: ?[=:] ?))(0x[0-9a-f]+|-?\d+)", re.IGNORECASE)
SESSION = re.compile(r"\b0x1[0-9a-f]{12,15}\b")
ADDRESS = re.compile(r"127\.0\.0\.1:\d+")


def normalise(text):
    """Replaces what may differ between two servers by what may not: zxids by
    their rank among all that were printed, so that order and equality stay;
    sessions by the order in which they appear; dates other than the epoch and
    addresses by their kind."""
    text = DATE.sub(lambda m: "EPOCH" if m.group(1) == "1970" else "DATE", text)
    text = ADDRESS.sub("ADDRESS", text)
    zxids = sorted({int(m.group(2), 0) for m in ZXID.finditer(text)} - {0, -1})
    rank = {zxid: f"zxid#{n}" for n, zxid in enumerate(zxids)}
    text = ZXID.sub(lambda m: m.group(1) + rank.get(int(m.group(2), 0), m.group(2)), text)
    sessions = {}
    return SESSION.sub(lambda m: sessions.setdefault(m.group(), f"session#{len(sessions)}"), text)


def blocks(suite_name, reference, found):
    """One check per command: (label, output) on the real server against the same on the target."""
    checks = []
    for n in range(max(len(reference), len(found))):
        label, want = reference[n] if n < len(reference) else (f"{n} nothing", "")
        other, got = found[n] if n < len(found) else (label, "(the session ended before this command)")
        if label == other and want == got:
            checks.append(Check(label, PASS))
            continue
        lines = difflib.unified_diff(want.splitlines(), got.splitlines(), "zookeeper", suite_name, lineterm="", n=1)
        checks.append(Check(label, FAIL, "\n".join(lines)))
    return checks
