"""The client's behaviour when servers refuse, die, stall or send rubbish."""

from __future__ import annotations

import socket
import threading
import time

import pytest
from sockpq import (
    Busy,
    Client,
    NoOutput,
    NotServing,
    OutcomeUnknown,
    Unavailable,
)
from sockpq._engine import retry

from tests.client.conftest import MakeClient
from tests.client.faults import Fault
from tests.client.memory_cluster import MemoryCluster
from tests.waiting import at_most, until


def test_the_server_with_the_smallest_id_is_used(cluster: MemoryCluster, client: Client) -> None:
    cluster.lead(cluster.servers[2])
    client.put("q", b"x")
    assert "PUT q 0 1" in cluster.servers[2].received
    assert cluster.servers[0].id == 4


def test_a_500_leads_to_the_new_leader(cluster: MemoryCluster, client: Client) -> None:
    client.put("q", b"1")
    cluster.lead(cluster.servers[1])
    client.put("q", b"2")
    assert cluster.servers[0].received[-4:] == [                # refused, then sent to the other
        "PUT q 0 1", "INTERCONNECT", "CLUSTER LEADER", "CLUSTER STATUS"]
    assert cluster.bodies("q") == [b"1", b"2"]


def test_a_500_without_a_new_leader_is_repeated_until_there_is_one(cluster: MemoryCluster, client: Client) -> None:
    cluster.lead(None)
    timer = threading.Timer(0.3, cluster.lead, [cluster.servers[1]])
    timer.start()
    client.put("q", b"x")
    timer.join()
    assert cluster.bodies("q") == [b"x"]


def test_a_dead_leader_is_left_for_the_next(cluster: MemoryCluster, client: Client) -> None:
    client.put("q", b"1")
    cluster.servers[0].stop()
    cluster.lead(cluster.servers[1])
    client.put("q", b"2")       # the idle connection is seen to be closed: nothing is unknown
    assert cluster.bodies("q") == [b"1", b"2"]


def test_without_any_server_the_call_ends_at_its_deadline(cluster: MemoryCluster, client: Client) -> None:
    for server in cluster.servers:
        server.stop()
    with at_most(3), pytest.raises(Unavailable):
        client.put("q", b"x", timeout=0.5)
    with at_most(3), pytest.raises(Unavailable):
        client.get("q", block=True, expire=30, timeout=0.5)


def test_a_server_that_accepts_and_says_nothing_does_not_hold_up_the_search(
    cluster: MemoryCluster, make_client: MakeClient
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        servers = [f"127.0.0.1:{mute.getsockname()[1]}", *cluster.addresses]
        with at_most(3):
            make_client(servers, server_timeout=0.3, connect_timeout=20).put("q", b"x")
    assert cluster.bodies("q") == [b"x"]


def test_idle_connections_to_a_former_leader_are_closed(cluster: MemoryCluster, client: Client) -> None:
    blocked = [threading.Thread(target=client.get, args=["q"], kwargs={"block": True, "expire": 30}) for _ in range(5)]
    for thread in blocked:
        thread.start()
    while cluster.servers[0].received.count("GETB q EXPIRE 30") < 5:
        time.sleep(0.01)
    client.put_many("q", [b"x"] * 5)
    for thread in blocked:
        thread.join()
    assert cluster.servers[0].connections >= 5
    cluster.lead(cluster.servers[1])
    client.put("q", b"x")
    until(lambda: cluster.servers[0].connections <= 1)       # the one that carried the 500 may stay


def test_a_server_that_closed_an_idle_connection_is_not_taken_for_the_leader(
    cluster: MemoryCluster, client: Client,
) -> None:
    """It may have been killed and be back as a follower, which also answers TOTAL."""
    former, leader = cluster.servers[:2]
    client.total()
    assert former.received[-1] == "TOTAL"
    cluster.lead(leader)
    former.close_connections()
    until(lambda: not former.connections)
    client.total()
    assert former.received.count("TOTAL") == 1
    assert leader.received[-1] == "TOTAL"


def test_busy_is_repeated_on_the_same_server(cluster: MemoryCluster, client: Client) -> None:
    cluster.servers[0].fail("PUT", Fault.BUSY, Fault.BUSY)
    client.put("q", b"x")
    assert cluster.bodies("q") == [b"x"]
    cluster.servers[0].fail("PUT", *[Fault.BUSY] * 1000)
    with pytest.raises(Busy):
        client.put("q", b"x", timeout=0.2)


def test_an_answer_that_trickles_in_ends_with_the_deadline(cluster: MemoryCluster, client: Client) -> None:
    cluster.servers[0].fail("GET", Fault.TRICKLE)
    with at_most(30), pytest.raises(OutcomeUnknown):
        client.get("q", expire=30, timeout=2)


def test_a_second_answer_is_never_taken_for_another_commands(cluster: MemoryCluster, client: Client) -> None:
    client.put_many("q", [b"1", b"2"])
    cluster.servers[0].fail("GET", Fault.TWICE)
    first, second = client.get("q", expire=30), client.get("q", expire=30)
    assert first is not None
    assert second is not None
    assert (first.data, second.data) == (b"1", b"2")
    assert first.id != second.id


def test_an_unasked_answer_on_an_idle_connection_is_never_used(cluster: MemoryCluster, client: Client) -> None:
    client.put_many("q", [b"1"])
    cluster.servers[0].fail("PING", Fault.TWICE)
    client.ping()
    time.sleep(0.1)
    job = client.get("q", expire=30)
    assert job is not None
    assert job.data == b"1"


def test_reading_is_repeated_until_the_deadline(cluster: MemoryCluster, client: Client) -> None:
    cluster.servers[0].fail("TOTAL", Fault.CLOSE, Fault.RUBBISH, Fault.HALF_ANSWER, Fault.STALL)
    assert client.total().running == 0
    cluster.servers[0].fail("TOTAL", *[Fault.RUBBISH] * 1000)
    with at_most(3), pytest.raises(Unavailable):
        client.total(timeout=1)


@pytest.mark.parametrize("fault", [Fault.CLOSE, Fault.REFUSE])
def test_a_blocked_get_follows_the_leader(cluster: MemoryCluster, client: Client, fault: Fault) -> None:
    def fail() -> None:
        time.sleep(0.2)
        if fault is Fault.CLOSE:
            cluster.servers[0].stop()
        cluster.lead(cluster.servers[1])
        client.put("q", b"x")

    thread = threading.Thread(target=fail)
    thread.start()
    job = client.get("q", block=True, expire=30)
    thread.join()
    assert job is not None
    assert job.data == b"x"


def test_a_blocked_get_leaves_a_server_that_fell_silent(cluster: MemoryCluster, client: Client) -> None:
    frozen = cluster.servers[0]
    frozen.fail("GETB", Fault.STALL)
    frozen.fail("PING", Fault.STALL)
    timer = threading.Timer(0.2, client.put, ["q", b"x"])
    timer.start()
    with at_most(4):
        job = client.get("q", block=True, expire=30)
    timer.join()
    assert job is not None


def test_a_silent_leader_is_left_as_soon_as_another_serves(cluster: MemoryCluster, make_client: MakeClient) -> None:
    patient = make_client(cluster.addresses, timeout=60, server_timeout=30)
    patient.ping()
    frozen = cluster.servers[0]
    for verb in ("PUT", "SESSION", "INTERCONNECT", "CLUSTER"):
        frozen.fail(verb, *[Fault.STALL] * 20)
    timer = threading.Timer(0.7, cluster.lead, [cluster.servers[1]])
    timer.start()
    with at_most(10):
        patient.put("q", b"x", retry_unknown=True)
    timer.join()
    frozen.fail("PUT", *[None] * 20)
    assert cluster.bodies("q") == [b"x"]


def test_a_silent_leader_is_waited_for_while_no_other_serves(cluster: MemoryCluster, make_client: MakeClient) -> None:
    cluster.servers[0].script.delay_s = 0.4
    make_client(cluster.addresses, timeout=60, server_timeout=30, connect_timeout=10).put("q", b"x")
    assert cluster.bodies("q") == [b"x"]


@pytest.mark.parametrize("server_timeout", [0.3, 5])
def test_a_blocked_gets_search_for_a_new_leader_begins_with_the_failure(
    cluster: MemoryCluster, make_client: MakeClient, server_timeout: float
) -> None:
    """`timeout` limits the time without a leader, not the time for which a get is blocked."""
    client = make_client(cluster.addresses, timeout=30, server_timeout=server_timeout, connect_timeout=0.5)
    def fail() -> None:
        time.sleep(2.3)         # longer than the limit, which is itself ten times what the election takes
        cluster.servers[0].stop()
        time.sleep(0.2)
        cluster.lead(cluster.servers[1])
        client.put("q", b"x")

    thread = threading.Thread(target=fail)
    thread.start()
    job = client.get("q", block=True, expire=30, timeout=2)
    thread.join()
    assert job is not None


def test_a_call_waits_as_long_as_it_was_told(cluster: MemoryCluster, client: Client) -> None:
    with at_most(3), pytest.raises(NoOutput):
        client.call("in", b"x", "out", wait=0.2)
    assert cluster.bodies("in") == [b"x"]


def test_a_named_server_is_not_left(cluster: MemoryCluster, client: Client) -> None:
    cluster.servers[1].fail("TOTAL", Fault.REFUSE)
    with pytest.raises(NotServing):
        client.total(server=cluster.servers[1].address)
    cluster.servers[1].fail("TOTAL", Fault.RUBBISH)
    with pytest.raises(Unavailable):
        client.total(server=cluster.servers[1].address)
    cluster.servers[1].fail("SHUTDOWN", Fault.CLOSE)
    with pytest.raises(OutcomeUnknown):
        client.shutdown(cluster.servers[1].address)


def test_a_slow_leader_is_found_behind_quick_followers(cluster: MemoryCluster, client: Client) -> None:
    """The first round takes a follower because the leader answers late; later rounds wait longer for it."""
    cluster.servers[0].script.delay_s = 0.25
    client.put("q", b"x")
    assert cluster.bodies("q") == [b"x"]


def test_a_command_that_cannot_be_answered_in_time_is_not_sent(cluster: MemoryCluster, make_client: MakeClient) -> None:
    """It would only turn "not executed" into "unknown"."""
    cluster.servers[0].script.delay_s = 0.05
    with socket.create_server(("127.0.0.1", 0)) as silent:      # makes the search take its time
        servers = [cluster.servers[0].address, f"127.0.0.1:{silent.getsockname()[1]}"]
        with pytest.raises(Unavailable):
            make_client(servers, timeout=0.18, sessions=False).put("q", b"x")
    assert "PUT q 0 1" not in cluster.servers[0].received


def test_the_search_for_a_leader_ends_with_a_refusal(
    cluster: MemoryCluster, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first refusal leaves less than a quarter of the time: too little for another server's answer."""
    monkeypatch.setattr(retry, "ATTEMPT_MIN_S", 60.0)
    cluster.lead(None)
    cluster.servers[0].script.delay_s = 1.6
    for server in cluster.servers[1:]:
        server.script.delay_s = 5.0
    with pytest.raises(Unavailable):
        make_client(cluster.addresses, server_timeout=60).cluster_remove("n3", timeout=2)
    assert [server.received for server in cluster.servers[1:]] == [[], []]
