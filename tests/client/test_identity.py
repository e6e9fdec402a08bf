"""A client speaks with one cluster: the first one it used."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO

import pytest
import sockpq
from sockpq import BadArguments, Client, ForeignCluster, Job, OutcomeUnknown

from tests.client.conftest import MakeClient
from tests.client.faults import Fault
from tests.client.memory_cluster import MemoryCluster
from tests.client.scripted_server import ScriptedServer
from tests.waiting import until

TIMES = {"timeout": 5, "server_timeout": 0.3, "connect_timeout": 0.5}


@pytest.fixture
def other() -> Iterator[MemoryCluster]:
    with MemoryCluster() as cluster:
        yield cluster


@pytest.fixture(params=[True, False], ids=["sessions", "no-sessions"])
def sessions(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def replaced(cluster: MemoryCluster) -> MemoryCluster:
    """Another cluster on the same ports."""
    for server in cluster.servers:
        server.stop()
    return MemoryCluster(ports=[server.port for server in cluster.servers])


def said(cluster: MemoryCluster) -> set[str]:
    """Return what the servers of a cluster were sent, except questions."""
    questions = "INTERCONNECT", "CLUSTER LEADER", "CLUSTER STATUS", "PING"
    return {line for server in cluster.servers for line in server.received if line not in questions}


def names_both(error: Exception, mine: MemoryCluster, other: MemoryCluster) -> bool:
    text = str(error)
    return all(str(part) in text for part in (mine.id, other.id, other.servers[0].address))


# two clusters in one list

def test_after_the_death_of_its_cluster_nothing_goes_to_another(
    cluster: MemoryCluster, other: MemoryCluster, make_client: MakeClient, sessions: bool
) -> None:
    other.lead(None)
    client = make_client([other.addresses[0], cluster.addresses[0]], sessions=sessions, **{**TIMES, "timeout": 60})
    client.put("q", b"1")
    assert cluster.bodies("q") == [b"1"]
    other.lead(other.servers[0])
    client.put("q", b"2")
    for server in cluster.servers:
        server.stop()
    with pytest.raises(ForeignCluster) as caught:
        client.put("q", b"3", timeout=2)
    assert names_both(caught.value, cluster, other)
    assert cluster.addresses[0] in str(caught.value)
    assert said(other) == set()


def test_the_servers_of_another_cluster_are_not_learned(
    cluster: MemoryCluster, other: MemoryCluster, make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    other.lead(None)
    for server in other.servers:        # the newest term by far
        server.show_status([f"1 n1 127.0.0.1 {one.port} FOLLOWER ONLINE 99 1 0" for one in other.servers])
    client = make_client([other.addresses[0], cluster.addresses[0]], **TIMES)
    with caplog.at_level(logging.WARNING, "sockpq"):
        client.put("q", b"1")
        cluster.lead(cluster.servers[2])
        client.put("q", b"2")
        cluster.lead(cluster.servers[1])
        client.put("q", b"3")
    assert cluster.bodies("q") == [b"1", b"2", b"3"]
    assert [server.accepted for server in other.servers[1:]] == [0, 0]
    warnings = [record.getMessage() for record in caplog.records if str(other.id) in record.getMessage()]
    assert len(warnings) <= len(other.servers)
    assert str(cluster.id) in warnings[0]


def test_a_silent_leader_is_not_left_for_that_of_another_cluster(
    cluster: MemoryCluster, other: MemoryCluster, make_client: MakeClient
) -> None:
    other.lead(None)
    client = make_client([other.addresses[0], cluster.addresses[0]], **{**TIMES, "server_timeout": 1.5})
    client.put("q", b"1")
    other.lead(other.servers[0])
    assert cluster.leader
    cluster.leader.script.delay_s = 0.8
    time.sleep(0.05)            # or the next command would count as one that came with the one before
    client.put("q", b"2")
    assert (cluster.bodies("q"), other.bodies("q")) == ([b"1", b"2"], [])
    assert cluster.leader.received.count("PUT q 0 1") == 2


def test_a_named_server_of_another_cluster_is_refused(
    cluster: MemoryCluster, other: MemoryCluster, make_client: MakeClient
) -> None:
    client = make_client(cluster.addresses, **TIMES)
    client.put("q", b"1")
    for ask in client.ping, client.caps, client.shutdown, client.offline:
        with pytest.raises(ForeignCluster):
            ask(other.addresses[0])
    assert said(other) <= {"CAPS"}          # which changes nothing


def test_what_operators_do_goes_to_no_other_leader(
    cluster: MemoryCluster, other: MemoryCluster, make_client: MakeClient
) -> None:
    client = make_client([other.addresses[0], cluster.addresses[0]], **{**TIMES, "timeout": 60})
    other.lead(None)
    client.put("q", b"1")
    other.lead(other.servers[0])
    client.cluster_transfer("n2")
    assert cluster.leader is cluster.servers[1]
    assert said(other) == set()


def test_the_status_is_that_of_its_own_cluster(
    cluster: MemoryCluster, other: MemoryCluster, make_client: MakeClient
) -> None:
    other.lead(None)
    client = make_client([other.addresses[0], cluster.addresses[0]], **TIMES)
    client.put("q", b"1")
    other.lead(other.servers[0])
    for _ in range(3):
        assert {node.client for node in client.cluster_status()} == set(cluster.addresses)


# another cluster on the same ports

def test_a_worker_whose_cluster_was_replaced_ends_no_job_there(
    cluster: MemoryCluster, make_client: MakeClient, sessions: bool
) -> None:
    """Its DONE would be obeyed: ids begin at 1 in every cluster."""
    client = make_client(cluster.addresses, sessions=sessions, **TIMES)
    client.put("q", b"1")
    job: Job | None = client.get("q", expire=60)
    assert job
    with replaced(cluster) as new:
        stranger = make_client(new.addresses, **TIMES)
        stranger.put("q", b"of somebody else")
        theirs = stranger.get("q", expire=60)
        assert theirs
        assert theirs.id == job.id
        before = said(new)
        with pytest.raises(ForeignCluster) as caught:
            job.done()
        assert names_both(caught.value, cluster, new)
        with pytest.raises(ForeignCluster):
            client.put_many("q", [b"1", b"2"])
        with pytest.raises(ForeignCluster):
            client.get("q", block=True, expire=60)
        assert said(new) == before
        assert job.id in new.running


def test_no_session_travels_to_the_only_server(make_client: MakeClient) -> None:
    """The only server is not asked who leads before it is used."""
    with MemoryCluster(1) as cluster:
        client = make_client(cluster.addresses, **TIMES)
        client.put("q", b"1")
    with MemoryCluster(1, ports=[cluster.servers[0].port]) as new:
        with pytest.raises(ForeignCluster):
            client.put("q", b"2")
        with pytest.raises(ForeignCluster):
            client.ping()
        assert said(new) == set()
        assert new.sessions == 0


def test_a_command_in_doubt_is_not_repeated_in_another_cluster(cluster: MemoryCluster, make_client: MakeClient) -> None:
    client = make_client(cluster.addresses, **TIMES)
    client.put("q", b"1")
    assert cluster.leader
    cluster.leader.fail("PUT", Fault.STALL)
    outcome: list[Exception] = []

    def put() -> None:
        try:
            client.put("q", b"2")
        except OutcomeUnknown as error:
            outcome.append(error)

    putting = threading.Thread(target=put)
    putting.start()
    until(lambda: cluster.leader is not None and cluster.leader.received.count("PUT q 0 1") == 2)
    with replaced(cluster) as new:
        putting.join(60)
        assert isinstance(outcome[0].__cause__, ForeignCluster)
        assert names_both(outcome[0], cluster, new)
        assert said(new) == set()


def test_when_its_cluster_is_back_the_client_goes_on(cluster: MemoryCluster, make_client: MakeClient) -> None:
    client = make_client(cluster.addresses, **TIMES)
    client.put("q", b"1")
    with replaced(cluster) as new:
        with pytest.raises(ForeignCluster):
            client.put("q", b"2")
        for server in new.servers:
            server.stop()
    with MemoryCluster(ports=[server.port for server in cluster.servers]) as back:
        back.say_id(cluster.id)
        client.put("q", b"2")
        assert back.bodies("q") == [b"2"]


def test_a_new_client_uses_the_new_cluster(cluster: MemoryCluster, make_client: MakeClient) -> None:
    make_client(cluster.addresses, **TIMES).put("q", b"1")
    with replaced(cluster) as new:
        make_client(cluster.addresses, **TIMES).put("q", b"2")
        assert new.bodies("q") == [b"2"]


def test_a_client_may_be_for_one_cluster(
    cluster: MemoryCluster, other: MemoryCluster, make_client: MakeClient
) -> None:
    client = make_client([other.addresses[0], cluster.addresses[0]], cluster=cluster.id, **TIMES)
    client.put("q", b"1")
    assert (cluster.bodies("q"), said(other)) == ([b"1"], set())
    with pytest.raises(ForeignCluster, match=f"but this client is for {cluster.id}"):
        make_client(other.addresses, cluster=cluster.id, **TIMES).put("q", b"2")
    with sockpq.Client(cluster.addresses) as free:
        assert free.cluster is None
        free.ping()
        assert free.cluster == cluster.id


@pytest.mark.parametrize("wrong", ["", "A" * 16, "a" * 15, "a" * 17])
def test_what_is_no_id_is_refused(make_client: MakeClient, wrong: str) -> None:
    with pytest.raises(BadArguments):
        make_client("127.0.0.1:1", cluster=wrong)


# servers that do not say it, or not yet

def test_servers_that_are_too_old_are_taken_as_they_are(cluster: MemoryCluster, make_client: MakeClient) -> None:
    cluster.say_id(None)
    client = make_client(cluster.addresses, **TIMES)
    client.put("q", b"1")
    cluster.lead(cluster.servers[1])
    client.put("q", b"2")
    cluster.say_id("00000000000000aa")         # they are upgraded
    cluster.lead(cluster.servers[2])
    client.put("q", b"3")
    cluster.say_id(None)                       # and some are not
    cluster.lead(cluster.servers[0])
    client.put("q", b"4")
    assert cluster.bodies("q") == [b"1", b"2", b"3", b"4"]


def test_a_server_that_has_heard_no_leader_is_asked_again(cluster: MemoryCluster, make_client: MakeClient) -> None:
    """It would execute later commands as a server of an unknown cluster."""
    client = make_client(cluster.addresses, sessions=False, **TIMES)
    client.put("q", b"1")
    cluster.say_id("-")
    for server in cluster.servers:
        server.stop()
    with MemoryCluster(ports=[server.port for server in cluster.servers]) as new:
        new.say_id("-")
        asked = sum(server.script.asked_id for server in new.servers)
        putting = threading.Thread(target=lambda: client.put("q", b"2"))
        putting.start()
        until(lambda: sum(server.script.asked_id for server in new.servers) > asked + 5)
        assert said(new) == set()
        new.say_id(cluster.id)
        putting.join(60)
        assert new.bodies("q") == [b"2"]


def test_such_a_server_may_be_asked_and_ended_by_name(cluster: MemoryCluster, make_client: MakeClient) -> None:
    cluster.say_id("-")
    client = make_client(cluster.addresses, **TIMES)
    assert client.cluster_id(cluster.addresses[0]) == (None, None)
    client.shutdown(cluster.addresses[1])
    assert "SHUTDOWN" in cluster.servers[1].received


def test_a_client_can_ask(cluster: MemoryCluster, make_client: MakeClient) -> None:
    assert make_client(cluster.addresses, **TIMES).cluster_id() == (cluster.id, None)


# what it costs

def test_it_is_asked_once_on_each_connection(cluster: MemoryCluster, make_client: MakeClient) -> None:
    client = make_client(cluster.addresses, **TIMES)
    for number in range(20):
        client.put("q", b"%d" % number)
    assert [server.script.asked_id for server in cluster.servers] == [server.accepted for server in cluster.servers]
    assert sum(server.accepted for server in cluster.servers) <= 5


def test_a_session_is_opened_without_waiting_for_the_answer(make_client: MakeClient) -> None:
    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        if line == "CLUSTER ID":
            assert stream.readline().startswith(b"SESSION TTL")
            connection.sendall(b"200 OK 00000000000000aa -\r\n200 OK SESSION 1_ab TTL 900\r\n")
        else:
            connection.sendall(b"200 OK\r\n")

    with ScriptedServer(answer, identified=True) as server:
        make_client(server.address, timeout=2).put("q", b"")


@pytest.mark.parametrize("change", [
    lambda client: client.put("q", b""), lambda client: client.put_many("q", [b"", b""]),
    lambda client: client.get("q", block=True), lambda client: client.done(1),
], ids=["put", "put_many", "getb", "done"])
def test_without_a_session_what_changes_something_waits_for_it(
    make_client: MakeClient, change: Callable[[Client], object]
) -> None:
    lines: list[str] = []
    clusters = iter(["a" * 16, "b" * 16, "b" * 16])

    def answer(connection: socket.socket, stream: BinaryIO, line: str) -> None:
        lines.append(line)
        if line == "CLUSTER ID":
            time.sleep(0.05)
            connection.sendall(f"200 OK {next(clusters)} -\r\n".encode())
        elif line == "TOTAL":
            connection.sendall(b"200 OK 0 0 0 0\r\n")
            connection.shutdown(socket.SHUT_WR)

    with ScriptedServer(answer, identified=True) as server:
        client = make_client(server.address, timeout=2, sessions=False)
        client.total()
        time.sleep(0.05)            # until the end of that connection has come
        with pytest.raises(ForeignCluster):
            change(client)
    assert set(lines) <= {"CLUSTER ID", "TOTAL", "INTERCONNECT", "CLUSTER LEADER"}
