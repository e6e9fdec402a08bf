"""A client finds its cluster from any one address, and without any."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sockpq
from sockpq import BadArguments, Client, Unavailable, aio, configuration

from tests.client.conftest import MakeClient
from tests.client.memory_cluster import MemoryCluster
from tests.client.real_server import RealServer

TIMES = {"timeout": 5, "server_timeout": 0.3, "connect_timeout": 0.5}


@pytest.mark.parametrize("number", [0, 1, 2])
def test_one_address_is_enough(cluster: MemoryCluster, make_client: MakeClient, number: int) -> None:
    client = make_client(cluster.addresses[number], **TIMES)
    client.put("q", b"x")
    assert cluster.bodies("q") == [b"x"]


def test_what_the_first_server_told_is_kept_when_it_is_gone(cluster: MemoryCluster, make_client: MakeClient) -> None:
    client = make_client(cluster.addresses[0], **TIMES)
    client.put("q", b"1")
    cluster.lead(cluster.servers[1])
    cluster.servers[0].stop()
    client.put("q", b"2")
    assert cluster.bodies("q") == [b"1", b"2"]


def test_operators_commands_find_the_leader_as_well(cluster: MemoryCluster, make_client: MakeClient) -> None:
    client = make_client(cluster.addresses[2], **TIMES)
    client.cluster_transfer("n2")
    assert cluster.leader is cluster.servers[1]


def test_a_leader_that_cannot_be_reached_is_named(cluster: MemoryCluster, make_client: MakeClient) -> None:
    client = make_client(cluster.addresses[1], **{**TIMES, "timeout": 1.0})
    leader = cluster.servers[0]
    leader.stop()
    cluster.believe(leader)         # the others have not noticed
    with pytest.raises(Unavailable, match=f"{leader.address} leads, which does not answer"):
        client.put("q", b"")


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, list[str]]]:
    """Let these names resolve to these IPv4 addresses."""
    names: dict[str, list[str]] = {}
    true = socket.getaddrinfo

    def getaddrinfo(host: Any, port: Any, *more: Any, **options: Any) -> Any:
        if host not in names:
            return true(host, port, *more, **options)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in names[host]]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return names


def test_a_name_may_have_addresses_that_do_not_answer(
    cluster: MemoryCluster, make_client: MakeClient, resolver: dict[str, list[str]]
) -> None:
    resolver["queue.example"] = ["127.0.0.9", "127.0.0.1"]
    client = make_client(f"queue.example:{cluster.servers[1].port}", **TIMES)
    client.put("q", b"x")
    assert cluster.bodies("q") == [b"x"]


def test_ipv6(make_client: MakeClient) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with RealServer("::1") as server:
        client = make_client(server.address, timeout=30)
        client.put("q", b"x")
        assert client.total("q").jobs == 1


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder in which the configuration is searched; nothing of the machine counts."""
    for variable in ("SOCKPQ_SERVERS", "SOCKPQ_CA", "SOCKPQ_USER", "SOCKPQ_SECRET", "SOCKPQ_SECRET_FILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(configuration, "SYSTEM_FILE", tmp_path / "system.toml")
    (tmp_path / "sockpq").mkdir()
    return tmp_path


def test_without_arguments_the_server_is_on_this_machine(home: Path) -> None:
    for kind in (sockpq.Client, aio.Client):
        assert repr(kind()) == "<Client of 127.0.0.1:11361, leader not known>"


def test_without_arguments_the_configuration_counts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "system.toml").write_text('servers = ["system:1"]')
    assert repr(Client()) == "<Client of system:1, leader not known>"
    (home / "secret").write_text("s" * 16 + "\n")
    (home / "sockpq" / "config.toml").write_text(
        'servers = ["a:1", "b"]\ntls = true\nuser = "ann"\nsecret_file = "../secret"')
    assert configuration.configuration() == (["a:1", "b"], True, "ann", None, str(home / "sockpq" / "../secret"))
    assert "s" * 16 not in repr(configuration.configuration())
    assert repr(Client()) == "<Client of a:1,b:11361, leader not known>"
    monkeypatch.setenv("SOCKPQ_SERVERS", " c:1, d:2 ")
    assert repr(Client()) == "<Client of c:1,d:2, leader not known>"
    assert repr(Client("e:1")) == "<Client of e:1, leader not known>"


@pytest.mark.parametrize("text", ["servers = ", "", "server = ['a:1']", "servers = []", "servers = 'a:1'"])
def test_a_configuration_that_is_not_good_is_refused(home: Path, text: str) -> None:
    file = home / "sockpq" / "config.toml"
    file.write_text(text)
    with pytest.raises(BadArguments, match=str(file)):
        Client()
