"""A member of a party that shares a set, with Kazoo's SetPartitioner.

    partition.py CONNECT PATH IDENTIFIER QUIET_SECONDS ITEM...

It says "session ID" first, "got ITEM..." when it has a share and "drop" before it
gives that up, and waits for an answer each time. "leave" makes it leave the party.
"""

import os
import queue
import sys
import threading

from kazoo.client import KazooClient

answers = queue.Queue()
leaving = threading.Event()


def listen():
    for line in sys.stdin:
        if line.strip() == "leave":
            leaving.set()
        else:
            answers.put(line)
    os._exit(0)  # the test is over


def tell(*words):
    print(*words, flush=True)
    answers.get()


def main(connect, path, identifier, quiet, *items):
    threading.Thread(target=listen, daemon=True).start()
    zk = KazooClient(connect, timeout=20)
    zk.start(timeout=120)
    tell("session", zk.client_id[0])
    party = zk.SetPartitioner(path, set=items, identifier=identifier, time_boundary=float(quiet))
    has = False
    while not leaving.is_set():
        if party.failed:
            sys.exit("the partitioner has failed")
        elif party.release:
            if has:
                tell("drop")
            has = False
            party.release_set()
        elif party.acquired:
            if not has:
                tell("got", *party)
            has = True
            leaving.wait(0.02)
        else:
            party.wait_for_acquire(0.1)
    if has:
        tell("drop")
    party.finish()
    zk.stop()
    zk.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
