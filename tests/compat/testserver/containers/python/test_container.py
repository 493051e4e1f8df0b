import urllib.request

import pytest
from kazoo.client import KazooClient
from testcontainers.core.container import DockerContainer
from testcontainers.core.waiting_utils import wait_for_logs


@pytest.fixture(scope="session")
def zkgo():
    command = "testserver --stay --host 0.0.0.0 --port 2181 --control-port 8080"
    with DockerContainer("zkgo/zkgo:0.1.0").with_command(command).with_exposed_ports(2181, 8080) as container:
        wait_for_logs(container, "connectString")
        yield container


def test_kazoo_connects(zkgo):
    client = KazooClient(f"{zkgo.get_container_host_ip()}:{zkgo.get_exposed_port(2181)}")
    client.start()
    client.create("/app")
    control = f"http://{zkgo.get_container_host_ip()}:{zkgo.get_exposed_port(8080)}"
    with urllib.request.urlopen(control + "/v1/exists?path=/app") as answer:
        assert b"true" in answer.read()
    client.stop()
