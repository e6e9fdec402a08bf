"""pqctl shows which cluster it speaks with, and refuses to choose one of two."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.output.exit_codes import DONE, USAGE_ERROR
from tests.client.memory_cluster import MemoryCluster
from tests.pqctl.running import Terminal, ask, run
from tests.replaced import replace


@pytest.fixture
def other() -> Iterator[MemoryCluster]:
    with MemoryCluster() as cluster:
        yield cluster


def test_the_status_has_the_id(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = ask(capsys, cluster.addresses, "cluster", "status")
    assert (code, told["cluster"]) == (DONE, cluster.id)
    _, out, _ = run(capsys, "--servers", ",".join(cluster.addresses), "cluster", "status")
    assert f"cluster {cluster.id}" in out.splitlines()


@pytest.mark.parametrize("id_", [None, "-"])
def test_a_server_that_cannot_say_it_does_no_harm(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str], id_: str | None
) -> None:
    cluster.say_id(id_)
    code, told = ask(capsys, cluster.addresses, "cluster", "status")
    assert (code, told["cluster"], told["serving"]) == (DONE, None, True)


def test_two_clusters_in_one_list_are_named(
    cluster: MemoryCluster, other: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = ",".join([*cluster.addresses, other.addresses[0]])
    _, out, _ = run(capsys, "--servers", servers, "cluster", "status")
    assert f"{other.addresses[0]} belongs to another cluster ({other.id}: " in " ".join(out.split())
    _, out, _ = run(capsys, "--servers", servers, "doctor")
    assert f"{other.addresses[0]} belongs to another cluster: {other.id}, not {cluster.id}" in " ".join(out.split())


def test_nothing_is_done_to_one_of_two(
    cluster: MemoryCluster, other: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = ",".join([*cluster.addresses, other.addresses[0]])
    for command in ("job", "put", "mail", "hello"), ("queue", "purge", "mail", "all", "--yes"), ("queue", "list"):
        code, _, error = run(capsys, "--servers", servers, *command)
        assert code == USAGE_ERROR
        assert all(str(part) in error for part in (cluster.id, other.id, other.addresses[0]))
    assert cluster.executed == other.executed == []
    assert not cluster.bodies("mail")


def test_two_clusters_with_the_same_members_are_two(
    cluster: MemoryCluster, other: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """This is so when one node of three was founded again by itself: it has the others in its list as well."""
    for server in other.servers:
        server.show_status(cluster.status_lines())
    servers = ",".join([*cluster.addresses, other.addresses[0]])
    code, _, error = run(capsys, "--servers", servers, "job", "put", "mail", "hello")
    assert code == USAGE_ERROR
    assert other.addresses[0] in error


def test_a_shell_does_not_follow_to_another_cluster() -> None:
    with LocalCluster(1) as cluster:
        (name,) = cluster.names
        shell = Terminal(cluster.servers, "shell")
        shell.wait_for(f"{cluster.servers[0]}>")
        shell.type("SESSION\r")
        shell.wait_for("200 OK SESSION")
        replace(cluster)
        shell.type('PUT mail 0 "x"\r')
        shell.wait_for("this shell began with")
        shell.wait_for("not connected>")
        time.sleep(1.0)                 # until it reads again: before, Ctrl-D is the terminal's
        shell.type("\x04")
        assert shell.end() == DONE
        assert cluster.say(name, "TOTAL", 60.0) == "200 OK 0 0 0 0"
        assert "SESSION" not in (cluster.say(name, "SESSION LIST", 60.0) or "")
