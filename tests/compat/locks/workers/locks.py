"""A process that takes locks with Kazoo: see doc.go for what it does with them.

    locks.py CONNECT REGISTER KIND:PATH:THREADS...
"""

import logging
import os
import socket
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError, SessionExpiredError
from kazoo.recipe.lock import Lock, ReadLock, WriteLock

SESSION = 3.0
# Longer than any hand-over takes; whoever waits for longer waits for himself: a
# place that was taken without an answer, and is his session's.
PATIENCE = 20


class CuratorsLock(Lock):
    """Kazoo's lock in the line of Curator's and ours."""

    _NODE_NAME = "-lock-"

    def __init__(self, client, path):
        super().__init__(client, path, extra_lock_patterns=["-lock-", "lock-"])


class Register:
    """The connection to the registers that the locks protect."""

    def __init__(self, address, line):
        host, port = address.rsplit(":", 1)
        self.file = socket.create_connection((host, int(port))).makefile("rw", newline="\n")
        self.ask("hello", "python", os.getpid(), line)

    def ask(self, *words):
        self.file.write(" ".join(str(w) for w in words) + "\n")
        self.file.flush()
        answer = self.file.readline()
        if not answer:
            os._exit(0)  # the test is over
        return answer.split()


class Thread(threading.Thread):
    def __init__(self, connect, address, kind, path):
        super().__init__(daemon=True)
        self.connect, self.kind, self.path = connect, kind, path
        self.register = Register(address, path)
        self.turns = 0

    def run(self):
        while True:
            zk = KazooClient(self.connect, timeout=SESSION, connection_retry={"max_tries": -1, "delay": 0.05, "max_delay": 0.5})
            try:
                zk.start(timeout=120)
                while self.turn(zk):
                    pass
                return
            except Exception as err:  # whatever it was: a new session has no old znodes
                self.register.ask("fail", repr(err).replace("\n", " "))
            finally:
                try:
                    zk.stop()
                    zk.close()
                except Exception as err:
                    self.register.ask("fail", repr(err).replace("\n", " "))
                time.sleep(0.05)

    def lock(self, zk):
        """The lock of the next turn, and how it will be held."""
        self.turns += 1
        if self.kind == "kazoo-rw":
            if self.turns % 4 == 0:
                return WriteLock(zk, self.path), "write"
            return ReadLock(zk, self.path), "read"
        if self.kind == "kazoo":
            return Lock(zk, self.path), "write"
        return CuratorsLock(zk, self.path), "write"

    def turn(self, zk):
        lock, mode = self.lock(zk)
        if not lock.acquire(timeout=PATIENCE):
            raise RuntimeError("not acquired")
        node = f"{self.path}/{lock.node}"
        try:
            token = zk.retry(zk.get, node)[1].czxid
        except NoNodeError:
            lock.release()
            self.register.ask("fail", "lost before it was used")
            return True
        before = int(zk.retry(zk.get, "/data" + self.path)[0])
        plain, fenced = self.register.ask("enter", mode, token, node)
        if mode == "write":
            self.register.ask("plain", int(plain) + 1)
            self.register.ask("fenced", 0 if fenced == "refused" else int(fenced) + 1)
            self.register.ask("znode", self.guarded(zk, node, before + 1))
        on = self.register.ask("exit", "unaware")[0] == "go"
        lock.release()
        return on

    def guarded(self, zk, node, value):
        """Writes the protected znode, provided that the lock's znode is there."""
        # Whoever was stopped writes in the session that he has now.
        zk.retry(zk.exists, "/data")
        try:
            multi = zk.transaction()
            multi.check(node, -1)
            multi.set_data("/data" + self.path, str(value).encode())
            results = multi.commit()
        except SessionExpiredError:
            return "refused"
        except KazooException:
            return "unknown"
        return "refused" if any(isinstance(r, Exception) for r in results) else "ok"


def main(connect, address, *jobs):
    logging.disable(logging.CRITICAL)
    threads = []
    for job in jobs:
        kind, path, count = job.split(":")
        threads += [Thread(connect, address, kind, path) for _ in range(int(count))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
