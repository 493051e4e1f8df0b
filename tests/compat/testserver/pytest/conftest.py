import json
import os
import subprocess
import urllib.error
import urllib.request

import pytest
from kazoo.client import KazooClient


class TestServer:
    """A ZooKeeper for tests: zkgo testserver."""

    __test__ = False  # not a class of tests

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [os.environ.get("ZKGO", "zkgo"), "testserver", "--quiet", *arguments],
            stdin=subprocess.PIPE,  # it ends when we do
            stdout=subprocess.PIPE,
        )
        ready = json.loads(self.process.stdout.readline())
        self.hosts, self.control = ready["connectString"], ready["control"]

    def ask(self, method, endpoint, /, **body):
        """Calls an endpoint of docs/guide/testserver.md."""
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(self.control + "/v1" + endpoint, data, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as err:
            raise AssertionError(json.load(err)["error"]) from None

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


@pytest.fixture(scope="session")
def zookeeper():
    server = TestServer()
    yield server
    server.stop()


@pytest.fixture
def zk(zookeeper):
    """A client of a server that is empty again after the test."""
    empty = zookeeper.ask("POST", "/snapshots")["id"]
    client = KazooClient(zookeeper.hosts)
    client.start()
    yield client
    client.stop()
    client.close()
    zookeeper.ask("POST", f"/snapshots/{empty}/reset")
