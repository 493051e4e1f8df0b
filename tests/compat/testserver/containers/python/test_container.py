import urllib.request

import pytest
from kazoo.client import KazooClient
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy


@pytest.fixture(scope="session")
def zkgo():
    command = "testserver --stay --host 0.0.0.0 --port 2181 --control-port 8080"
    container = DockerContainer("zkgo/zkgo:0.1.0").with_command(command).with_exposed_ports(2181, 8080)
    with container.waiting_for(LogMessageWaitStrategy("connectString")):
        yield container


def test_kazoo_connects(zkgo):
    host = zkgo.get_container_host_ip()
    client = KazooClient(f"{host}:{zkgo.get_exposed_port(2181)}")
    client.start()
    client.create("/app")
    control = f"http://{host}:{zkgo.get_exposed_port(8080)}"
    with urllib.request.urlopen(control + "/v1/exists?path=/app") as answer:
        assert b"true" in answer.read()
    client.stop()
