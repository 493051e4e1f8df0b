"""A member of a round of a double barrier, with Kazoo's DoubleBarrier.

    barrier.py CONNECT PATH MEMBERS

Each line on the standard input, "enter" or "leave", is answered when that is done.
"""

import sys

from kazoo.client import KazooClient


def main(connect, path, members):
    zk = KazooClient(connect, timeout=20)
    zk.start(timeout=120)
    barrier = zk.DoubleBarrier(path, int(members), identifier="kazoo")
    for line in sys.stdin:
        if line.strip() == "enter":
            barrier.enter()
            print("entered", flush=True)
        else:
            barrier.leave()
            print("left", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
