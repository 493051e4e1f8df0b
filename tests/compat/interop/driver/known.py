"""The list of failures that are known, with the words each fails with.

known.txt holds paragraphs:

    [suite name-of-the-check]
    why: one line
    zookeeper: regular expression that the output on the real server matches
    zkgo: regular expression that the output on zkgo matches
    skip: regular expression that the reason matches for which the suite itself skips the check, on both

A check that fails on a target with other words than the listed ones has failed,
and so has one that is skipped for another reason. A target without a line must
pass.
"""

import dataclasses
import re


@dataclasses.dataclass
class Known:
    why: str = ""
    zookeeper: str = ""
    zkgo: str = ""
    skip: str = ""


def load(path):
    """Reads the list: (suite, check) → Known."""
    entries, current = {}, None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            suite, _, name = line[1:-1].partition(" ")
            current = entries[(suite, name)] = Known()
            continue
        key, colon, value = line.partition(":")
        if current is None or not colon or key not in ("why", "zookeeper", "zkgo", "skip"):
            raise ValueError(f"{path}:{number}: neither [suite check] nor why/zookeeper/zkgo/skip: {line}")
        setattr(current, key, value.strip())
    for (suite, name), known in entries.items():
        if known.zkgo and not known.zookeeper:
            raise ValueError(f"{path}: {suite} {name} is excused on zkgo alone: what passes on ZooKeeper must pass")
    return entries


def explains(known, key, text):
    """Whether an outcome with this text is the one listed under the key: a
    target for a failure, "skip" for a skip."""
    pattern = known and getattr(known, key)
    return bool(pattern) and re.search(pattern, text) is not None
