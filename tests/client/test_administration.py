"""Operators' questions about the whole cluster reach the leader once, or the error says why not."""

from __future__ import annotations

import threading
import time

import pytest
from sockpq import Client, ClientClosed, Leader, OutcomeUnknown, Refused, Unavailable

from tests.client.faults import Fault
from tests.client.memory_cluster import MemoryCluster
from tests.waiting import at_most


def test_every_command_reaches_the_leader_wherever_it_is_in_the_list(cluster: MemoryCluster, client: Client) -> None:
    cluster.lead(cluster.servers[2])
    client.cluster_remove("n1")
    client.cluster_offline()
    client.cluster_online()
    assert client.cluster_transfer("n2") == Leader(cluster.servers[1].id, cluster.servers[1].address)
    assert client.cluster_transfer() == Leader(cluster.servers[2].id, cluster.servers[2].address)
    assert client.cluster_add("n4", "10.0.0.4:11362", "[::1]:11361") > 3
    assert cluster.executed == [
        "CLUSTER REMOVE n1", "CLUSTER OFFLINE", "CLUSTER ONLINE", "CLUSTER TRANSFER n2", "CLUSTER TRANSFER",
        "CLUSTER ADD n4 10.0.0.4 11362 ::1 11361",
    ]


def test_a_service_that_is_switched_offline_can_be_switched_online(cluster: MemoryCluster, client: Client) -> None:
    client.cluster_offline()
    with pytest.raises(Unavailable):
        client.put("mail", b"x", timeout=0.2)
    client.cluster_online()
    client.put("mail", b"x")


def test_a_refusal_has_the_servers_words(cluster: MemoryCluster, client: Client) -> None:
    for call, line in [
        (lambda: client.cluster_add("n2", "a:1", "a:2"), "409 Node Exists"),
        (lambda: client.cluster_remove("n9"), "404 Node Not Found"),
        (lambda: client.cluster_transfer("n9"), "409 Not Possible unknown"),
    ]:
        with pytest.raises(Refused) as refused:
            call()
        assert str(refused.value) == line
    assert cluster.executed == []


def test_servers_that_are_down_are_passed_over(cluster: MemoryCluster, client: Client) -> None:
    cluster.servers[0].stop()
    cluster.lead(cluster.servers[2])
    client.cluster_remove("n1")
    assert cluster.executed == ["CLUSTER REMOVE n1"]


def test_an_election_is_waited_for(cluster: MemoryCluster, client: Client) -> None:
    cluster.lead(None)
    timer = threading.Timer(0.2, cluster.lead, [cluster.servers[1]])
    timer.start()
    client.cluster_remove("n1")
    timer.join()
    assert cluster.executed == ["CLUSTER REMOVE n1"]


def test_without_a_leader_it_is_given_up_in_time(cluster: MemoryCluster, client: Client) -> None:
    cluster.lead(None)
    cluster.servers[0].stop()
    begun = time.monotonic()
    with at_most(30), pytest.raises(Unavailable) as none:
        client.cluster_remove("n1", timeout=2)
    assert time.monotonic() - begun > 1.9
    assert "500 Offline Mode" in str(none.value)
    assert cluster.servers[0].address in str(none.value)


def test_what_got_no_answer_is_not_repeated(cluster: MemoryCluster, client: Client) -> None:
    for fault, executed in [(Fault.EXECUTE_AND_CLOSE, 1), (Fault.HALF_ANSWER, 2), (Fault.CLOSE, 2)]:
        cluster.servers[0].fail("CLUSTER", fault)
        with pytest.raises(OutcomeUnknown):
            client.cluster_online()
        assert len(cluster.executed) == executed


def test_the_server_may_take_its_time(cluster: MemoryCluster, client: Client) -> None:
    cluster.servers[0].script.delay_s = 0.7            # more than twice what a server has for a usual answer
    client.cluster_remove("n2")
    client.offline(cluster.servers[0].address)
    assert client.cluster_snapshot(cluster.servers[0].address) > 0
    with pytest.raises(OutcomeUnknown):
        client.cluster_remove("n2", timeout=0.3)


def test_a_snapshot_is_written_by_the_server_that_is_named(cluster: MemoryCluster, client: Client) -> None:
    assert client.cluster_snapshot(cluster.servers[1].address) > 0
    assert cluster.servers[1].received[-1] == "CLUSTER SNAPSHOT"
    assert cluster.executed == ["CLUSTER SNAPSHOT"]


def test_a_closed_client_ends_the_search(cluster: MemoryCluster, client: Client) -> None:
    """The client pauses at that moment, or waits for the answer to an attempt."""
    cluster.lead(None)
    timer = threading.Timer(0.1, client.close)
    timer.start()
    with pytest.raises((ClientClosed, OutcomeUnknown)):
        client.cluster_remove("n1")
    timer.join()
