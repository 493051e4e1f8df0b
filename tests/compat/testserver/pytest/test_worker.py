import threading

import pytest
from kazoo.client import KazooState
from kazoo.exceptions import ConnectionLoss, NoAuthError, NoNodeError


def test_write_and_read(zk, zookeeper):
    zk.create("/jobs/one", b"resize", makepath=True)
    assert zookeeper.ask("GET", "/node?path=/jobs/one")["data"] == "resize"


def test_each_test_begins_empty(zk):
    with pytest.raises(NoNodeError):
        zk.get("/jobs/one")


def test_the_worker_notices_that_its_session_is_over(zk, zookeeper):
    lost = threading.Event()
    zk.add_listener(lambda state: lost.set() if state == KazooState.LOST else None)
    zk.create("/worker", ephemeral=True)
    zookeeper.ask("POST", f"/sessions/{zk.client_id[0]}/expire")
    assert lost.wait(30)
    assert not zookeeper.ask("GET", "/exists?path=/worker")["exists"]


def test_a_worker_that_hangs_is_gone_in_time(zk, zookeeper):
    zk.create("/worker", ephemeral=True)
    zookeeper.ask("POST", f"/sessions/{zk.client_id[0]}/hang")
    zookeeper.ask("POST", "/advance", duration="1m")  # at once
    assert not zookeeper.ask("GET", "/exists?path=/worker")["exists"]


def test_no_permission(zk, zookeeper):
    zookeeper.ask("POST", "/faults", action="fail", op="getData", path="/config*", code="NoAuth")
    with pytest.raises(NoAuthError):
        zk.get("/config")


def test_the_reply_is_lost_but_the_znode_is_there(zk, zookeeper):
    zookeeper.ask("POST", "/faults", action="loseReply", op="create")
    with pytest.raises(ConnectionLoss):
        zk.create("/job")
    assert zookeeper.ask("GET", "/exists?path=/job")["exists"]


def test_a_change_is_noticed(zk, zookeeper):
    changed = threading.Event()
    zookeeper.ask("PUT", "/node", path="/config", data="v1")
    zk.get("/config", watch=lambda event: changed.set())
    zookeeper.ask("PUT", "/node", path="/config", data="v2")
    assert changed.wait(30)
