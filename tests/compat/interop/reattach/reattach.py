"""Kazoo through kill -9: what a session holds survives the server.

Run with the interpreter that has Kazoo: reattach.py ADDRESS. The program asks for
a kill and restart of the server by a line "restart" on standard output and waits
for a line on standard input that says that it is back. Every check prints
"ok NAME" or "FAIL NAME: why".
"""

import sys
import threading
import time

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import NoNodeError
from kazoo.recipe.watchers import ChildrenWatch, DataWatch

LIMIT = 60
failed = False


def check(name, good, why=""):
    global failed
    failed = failed or not good
    print(f"ok {name}" if good else f"FAIL {name}: {why}", flush=True)


def eventually(condition):
    """Whether it comes true in time; a lost connection only means: not yet."""
    until = time.monotonic() + LIMIT
    while time.monotonic() < until:
        try:
            if condition():
                return True
        except Exception as err:  # noqa: BLE001 - the client raises many kinds while it is not connected
            print(f"    not yet: {err!r}", flush=True)
        time.sleep(0.05)
    return False


def restart():
    print("restart", flush=True)
    sys.stdin.readline()


class Session:
    """A client that notes the states it went through."""

    def __init__(self, address):
        self.client = KazooClient(address, timeout=120)
        self.states = []
        self.client.add_listener(self.states.append)
        self.client.start(timeout=LIMIT)
        self.id = self.client.client_id[0]

    def back(self):
        """Whether the session is connected again, with the id it had."""
        return eventually(lambda: self.client.connected) and self.client.client_id[0] == self.id


def main(address):
    holder, waiter = Session(address), Session(address)
    zk, other = holder.client, waiter.client

    zk.create("/kept", b"before")
    zk.create("/ephemeral", b"mine", ephemeral=True)
    sequence = zk.create("/kept/seq-", b"", sequence=True)
    lock = zk.Lock("/lock", "holder")
    lock.acquire(timeout=LIMIT)
    waiting = other.Lock("/lock", "waiter")
    got = threading.Event()
    thread = threading.Thread(target=lambda: waiting.acquire(timeout=4 * LIMIT) and got.set(), daemon=True)
    thread.start()
    check("a second session waits for the lock", eventually(lambda: len(lock.contenders()) == 2), lock.contenders())

    values, children, raw = [], [], []
    DataWatch(zk, "/kept", lambda data, stat: values.append(data))
    ChildrenWatch(zk, "/kept", lambda names: children.append(sorted(names)))
    zk.get("/kept", watch=raw.append)
    zk.exists("/later", watch=raw.append)

    # Three times: the second and third start from what the one before left behind.
    for n in range(1, 4):
        before = len(holder.states)
        restart()
        check(f"restart {n}: the sessions are the same", holder.back() and waiter.back(), (holder.states, waiter.states))
        check(f"restart {n}: no session was lost", KazooState.LOST not in holder.states + waiter.states, holder.states)
        check(f"restart {n}: the connection was lost", eventually(lambda: KazooState.SUSPENDED in holder.states[before:]))
        check(f"restart {n}: the ephemeral node is there", eventually(lambda: zk.get("/ephemeral")[1].owner_session_id == holder.id))
        check(f"restart {n}: the node is there", eventually(lambda: zk.exists("/kept") is not None))
        check(f"restart {n}: the lock is held by the holder", eventually(lambda: lock.contenders()[0] == "holder"))
        check(f"restart {n}: the lock is not given away", not got.is_set())
        value = b"after-%d" % n
        eventually(lambda: other.set("/kept", value))
        check(f"restart {n}: a data watch fires", eventually(lambda: values[-1:] == [value]), values)
        eventually(lambda: other.create("/kept/child-%d" % n))
        check(f"restart {n}: a child watch fires", eventually(lambda: f"child-{n}" in children[-1]), children)
        following = eventually(lambda: next_sequence(zk) == int(sequence[-10:]) + 2 * n)
        check(f"restart {n}: sequence numbers go on", following)
        # Kazoo takes a children watch for set that it was just setting when the
        # connection was lost, and then waits for ever: the next kill has to wait for it.
        seen = eventually(lambda: children[-1] == sorted(zk.get_children("/kept")))
        check(f"restart {n}: the child watch has caught up", seen, children)

    other.create("/later")
    check("watches of before the first kill fired once each", eventually(lambda: len(raw) == 2), raw)

    lock.release()
    check("the released lock goes to the waiter", got.wait(LIMIT))
    zk.stop()
    check("a closed session takes its ephemeral node along", eventually(lambda: gone(other, "/ephemeral")))
    waiting.release()
    other.stop()
    return 1 if failed else 0


def next_sequence(zk):
    """The number of the next sequence node, whose creation is taken back."""
    path = zk.create("/kept/seq-", sequence=True)
    zk.delete(path)
    return int(path[-10:])


def gone(zk, path):
    try:
        zk.get(path)
        return False
    except NoNodeError:
        return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
