"""The listener of one real node: users and their rights, networks, job sizes, TLS, drain mode, the end of the node."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sockpq import Client

from devcluster.authority import Authority
from devcluster.ports import HOST, free_ports
from tests.beanstalk.helpers.client import BeanstalkClient
from tests.gateway.helpers.program import PATIENCE_S, SOCKPQD, write_config
from tests.waiting import eventually, until

USERS = """
[users.op]
rights = ["admin"]
key = "{op}"
[users.app]
rights = ["put:app*", "put:seen*", "get:app*", "queue:app*"]
key = "{app}"
"""
KEYS = {"op": b"secret-of-the-operator".hex(), "app": b"secret-of-the-application".hex()}

Start = Callable[..., "Node"]


class Node:
    """A single node, with a listener."""

    def __init__(self, folder: Path, more: str, environment: dict[str, str]) -> None:
        self.client, peer, port = free_ports(3)
        self.address = f"{HOST}:{port}"
        config = write_config(folder, more, client=self.client, peer=peer)
        with (folder / "log").open("w") as log:
            self.process = subprocess.Popen(
                [SOCKPQD, "--config", config], cwd=folder, stderr=log,
                env={**os.environ, "SOCKPQD_LISTEN_BEANSTALKD": self.address, **environment})

    def reachable(self) -> bool:
        """Return whether a client can connect to it, and put a job."""
        try:
            with BeanstalkClient(self.address) as client:
                client.put("x")
                return client("kick 0") == "KICKED 0"
        except (OSError, EOFError, AssertionError):
            return False

    def stop(self) -> int:
        """End it in order; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    nodes: list[Node] = []

    def start(more: str = "", **environment: str) -> Node:
        nodes.append(Node(tmp_path, more, environment))
        return nodes[-1]

    yield start
    for node in nodes:
        node.process.kill()
        node.process.wait(PATIENCE_S)


def write_users(folder: Path) -> Path:
    path = folder / "users.toml"
    path.write_text(USERS.format(**KEYS))
    path.chmod(0o600)
    return path


def test_clients_may_do_what_their_user_may(start: Start, tmp_path: Path) -> None:
    node = start(f'[auth]\nusers_file = "{write_users(tmp_path)}"\n[beanstalkd]\nuser = "app"\njob_bytes_max = 100\n')

    def answers() -> bool:
        try:
            with BeanstalkClient(node.address, "app") as client:
                client.put()
                return True
        except (OSError, EOFError, AssertionError):
            return False

    until(answers)
    with BeanstalkClient(node.address, "app1") as client:
        number = client.put("mine")
        assert client(f"put 0 0 1 101\r\n{'x' * 101}") == "JOB_TOO_BIG"
        assert client.stats("stats")["max-job-size"] == "100"
        assert client.take() == number
        assert client(f"bury {number} 0") == "BURIED"
        assert client("kick 1") == "KICKED 1"
        assert client(f"delete {number}") == "DELETED"
        client("use other")
        assert client("put 0 0 1 1\r\nx") == "INTERNAL_ERROR"
        for command in ("kick 1", "peek-ready", "pause-tube other 1", "stats-tube other"):
            assert client(command) == "INTERNAL_ERROR", command
        client("use seen")
        seen = client.put("put only")
        for command in ("peek", "delete", "stats-job", "reserve-job", "kick-job"):
            assert client(f"{command} {seen}") == "NOT_FOUND", "as if there were no such job"
        client("watch seen")
        assert client("reserve-with-timeout 0") == "INTERNAL_ERROR"
        assert client.names("list-tubes") == ["default", "app1", "seen", "app"]


def test_other_networks_are_not_served(start: Start) -> None:
    node = start('[beanstalkd]\nnetworks = ["10.0.0.0/8"]\n')

    def refused() -> bool:
        try:
            with socket.create_connection((HOST, int(node.address.rpartition(":")[2])), PATIENCE_S) as connection:
                return connection.recv(1) == b""
        except ConnectionResetError:
            return True
        except OSError:
            return False

    until(refused)


def test_a_listener_with_tls(start: Start, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    files = authority.node("n1")
    text = "".join(f'{key} = "{value}"\n' for key, value in files.items())
    node = start(f"[beanstalkd]\ntls = true\n[tls]\n{text}")
    context = ssl.create_default_context(cafile=authority.ca)

    def answers() -> bool:
        try:
            plain = socket.create_connection((HOST, int(node.address.rpartition(":")[2])), PATIENCE_S)
            with context.wrap_socket(plain, server_hostname=HOST) as connection:
                connection.sendall(b"list-tube-used\r\n")
                return connection.recv(100) == b"USING default\r\n"
        except OSError:
            return False

    until(answers)


def test_the_jobs_are_back_when_the_node_ends_in_order(start: Start) -> None:
    node = start()
    until(node.reachable)
    with BeanstalkClient(node.address, "t") as client, Client(f"{HOST}:{node.client}") as native:
        for _ in range(3):
            client.put()
            client.take()
        assert native.queue_stat("t")["running"] == 3
        assert node.stop() == 0
    assert "\"level\": \"ERROR\"" not in (Path(node.process.args[2]).parent / "log").read_text()     # type: ignore[index]


def test_drain_mode_is_the_node_switched_offline(start: Start) -> None:
    node = start()
    until(node.reachable)
    with BeanstalkClient(node.address) as client, Client(f"{HOST}:{node.client}") as native:
        native.offline(f"{HOST}:{node.client}")
        assert client("put 0 0 60 1\r\nx") == "DRAINING"
        native.online(f"{HOST}:{node.client}")
        assert eventually(lambda: client("put 0 0 60 1\r\nx").startswith("INSERTED"))


def test_a_pause_of_an_unknown_tube_is_refused_and_leaves_a_line(start: Start, tmp_path: Path) -> None:
    node = start()
    until(node.reachable, "the node does not listen")
    with BeanstalkClient(node.address) as client:
        assert client("pause-tube nowhere 5") == "NOT_FOUND"
        assert client("stats-tube nowhere") == "NOT_FOUND"
    line = "action=pause-tube object='tube=nowhere seconds=5' outcome='NOT_FOUND'"
    until(lambda: line in (tmp_path / "log").read_text())
