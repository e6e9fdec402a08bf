"""What the client does when servers refuse, die, stall or send rubbish."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sockpq import (
    Busy,
    Client,
    JobNotFound,
    NoOutput,
    NotServing,
    OutcomeUnknown,
    Unavailable,
)

from tests.client.fake_server import FakeCluster, Fault

LOST = [Fault.EXECUTE_AND_CLOSE, Fault.HALF_ANSWER, Fault.EXECUTE_AND_STALL]
NEVER_EXECUTED = [Fault.CLOSE, Fault.STALL, Fault.RUBBISH, Fault.ENDLESS]


def puts(cluster: FakeCluster) -> int:
    return sum(line.startswith("PUT") for line in cluster.executed)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """A generous limit: the point is that it is no hang."""
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < seconds


def test_the_server_with_the_smallest_id_is_used(cluster: FakeCluster, client: Client) -> None:
    cluster.lead(cluster.servers[2])
    client.put("q", b"x")
    assert "PUT q 0 1" in cluster.servers[2].received
    assert cluster.servers[0].id == 4


def test_a_500_leads_to_the_new_leader(cluster: FakeCluster, client: Client) -> None:
    client.put("q", b"1")
    cluster.lead(cluster.servers[1])
    client.put("q", b"2")
    assert cluster.servers[0].received[-1] == "INTERCONNECT"
    assert cluster.servers[0].received[-2] == "PUT q 0 1"       # refused, then sent to the other
    assert cluster.bodies("q") == [b"1", b"2"]


def test_a_500_without_a_new_leader_is_repeated_until_there_is_one(cluster: FakeCluster, client: Client) -> None:
    cluster.lead(None)
    timer = threading.Timer(0.3, cluster.lead, [cluster.servers[1]])
    timer.start()
    client.put("q", b"x")
    timer.join()
    assert cluster.bodies("q") == [b"x"]


def test_a_dead_leader_is_left_for_the_next(cluster: FakeCluster, client: Client) -> None:
    client.put("q", b"1")
    cluster.servers[0].stop()
    cluster.lead(cluster.servers[1])
    client.put("q", b"2")       # the idle connection is seen to be closed: nothing is unknown
    assert cluster.bodies("q") == [b"1", b"2"]


def test_without_any_server_the_call_ends_at_its_deadline(cluster: FakeCluster, client: Client) -> None:
    for server in cluster.servers:
        server.stop()
    with at_most(3), pytest.raises(Unavailable):
        client.put("q", b"x", timeout=0.5)
    with at_most(3), pytest.raises(Unavailable):
        client.get("q", block=True, expire=30, timeout=0.5)


def test_a_server_that_accepts_and_says_nothing_does_not_hold_up_the_search(cluster: FakeCluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        servers = [f"127.0.0.1:{mute.getsockname()[1]}", *cluster.addresses]
        with at_most(3), Client(servers, server_timeout=0.3, connect_timeout=20) as client:
            client.put("q", b"x")
    assert cluster.bodies("q") == [b"x"]


def test_idle_connections_to_a_former_leader_are_closed(cluster: FakeCluster, client: Client) -> None:
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
    until = time.monotonic() + 10
    while cluster.servers[0].connections > 1:       # the one that carried the 500 may stay
        assert time.monotonic() < until
        time.sleep(0.01)


def test_busy_is_repeated_on_the_same_server(cluster: FakeCluster, client: Client) -> None:
    cluster.servers[0].fail("PUT", Fault.BUSY, Fault.BUSY)
    client.put("q", b"x")
    assert cluster.bodies("q") == [b"x"]
    cluster.servers[0].fail("PUT", *[Fault.BUSY] * 1000)
    with pytest.raises(Busy):
        client.put("q", b"x", timeout=0.2)


@pytest.mark.parametrize("fault", LOST + NEVER_EXECUTED)
def test_a_put_whose_answer_is_lost_is_unknown(cluster: FakeCluster, client: Client, fault: Fault) -> None:
    cluster.servers[0].fail("PUT", fault)
    with at_most(3), pytest.raises(OutcomeUnknown):
        client.put("q", b"x")
    assert cluster.servers[0].received.count("PUT q 0 1") == 1
    client.put("q", b"next")
    assert cluster.bodies("q")[-1] == b"next"


@pytest.mark.parametrize("fault", LOST + NEVER_EXECUTED)
def test_at_least_once_repeats_a_lost_put(cluster: FakeCluster, client: Client, fault: Fault) -> None:
    cluster.servers[0].fail("PUT", fault)
    with at_most(3):
        client.put("q", b"x", retry_unknown=True)
    assert cluster.bodies("q") == [b"x"] * (2 if fault in LOST else 1)


@pytest.mark.parametrize("fault", LOST + NEVER_EXECUTED)
def test_a_get_with_a_lease_is_repeated(cluster: FakeCluster, client: Client, fault: Fault) -> None:
    client.put_many("q", [b"1", b"2"])
    cluster.servers[0].fail("GET", fault)
    with at_most(4):
        job = client.get("q", expire=30)
    assert job is not None
    assert job.data == (b"2" if fault in LOST else b"1")      # the lost one returns when its lease ends


def test_an_answer_that_trickles_in_ends_with_the_deadline(cluster: FakeCluster, client: Client) -> None:
    cluster.servers[0].fail("GET", Fault.TRICKLE)
    with at_most(3), pytest.raises(OutcomeUnknown):
        client.get("q", expire=30, timeout=0.6)


@pytest.mark.parametrize("fault", LOST + NEVER_EXECUTED)
def test_a_get_without_a_lease_is_unknown(cluster: FakeCluster, client: Client, fault: Fault) -> None:
    client.put("q", b"1")
    cluster.servers[0].fail("GET", fault)
    with at_most(3), pytest.raises(OutcomeUnknown):
        client.get("q")


def test_a_second_answer_is_never_taken_for_another_commands(cluster: FakeCluster, client: Client) -> None:
    client.put_many("q", [b"1", b"2"])
    cluster.servers[0].fail("GET", Fault.TWICE)
    first, second = client.get("q", expire=30), client.get("q", expire=30)
    assert first is not None
    assert second is not None
    assert (first.data, second.data) == (b"1", b"2")
    assert first.id != second.id


def test_an_unasked_answer_on_an_idle_connection_is_never_used(cluster: FakeCluster, client: Client) -> None:
    client.put_many("q", [b"1"])
    cluster.servers[0].fail("PING", Fault.TWICE)
    client.ping()
    time.sleep(0.1)
    job = client.get("q", expire=30)
    assert job is not None
    assert job.data == b"1"


def test_a_done_whose_answer_is_lost_cannot_be_told_from_an_ended_lease(cluster: FakeCluster, client: Client) -> None:
    client.put_many("q", [b"1", b"2", b"3"])
    jobs = [client.get("q", expire=30) for _ in range(3)]
    assert jobs[0]
    assert jobs[1]
    assert jobs[2]
    cluster.servers[0].fail("DONE", Fault.EXECUTE_AND_CLOSE)
    with pytest.raises(OutcomeUnknown):
        jobs[0].done()
    cluster.servers[0].fail("DONE", Fault.EXECUTE_AND_CLOSE)
    client.done(jobs[1], retry_unknown=True)
    cluster.servers[0].fail("DONE", Fault.CLOSE)
    assert jobs[2].done().queue_done
    with pytest.raises(JobNotFound):
        jobs[2].done()


def test_a_later_whose_answer_is_lost_is_repeated_without_a_word(cluster: FakeCluster, client: Client) -> None:
    client.put("q", b"1")
    job = client.get("q", expire=30)
    assert job is not None
    cluster.servers[0].fail("LATER", Fault.EXECUTE_AND_CLOSE)
    job.later()
    assert cluster.bodies("q") == [b"1"]
    with pytest.raises(JobNotFound):
        job.later()


def test_reading_is_repeated_until_the_deadline(cluster: FakeCluster, client: Client) -> None:
    cluster.servers[0].fail("TOTAL", Fault.CLOSE, Fault.RUBBISH, Fault.HALF_ANSWER, Fault.STALL)
    assert client.total().running == 0
    cluster.servers[0].fail("TOTAL", *[Fault.RUBBISH] * 1000)
    with at_most(3), pytest.raises(Unavailable):
        client.total(timeout=1)


@pytest.mark.parametrize("fault", [Fault.CLOSE, Fault.REFUSE])
def test_a_blocked_get_follows_the_leader(cluster: FakeCluster, client: Client, fault: Fault) -> None:
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


def test_a_blocked_get_leaves_a_server_that_fell_silent(cluster: FakeCluster, client: Client) -> None:
    frozen = cluster.servers[0]
    frozen.fail("GETB", Fault.STALL)
    frozen.fail("PING", Fault.STALL)
    timer = threading.Timer(0.2, client.put, ["q", b"x"])
    timer.start()
    with at_most(4):
        job = client.get("q", block=True, expire=30)
    timer.join()
    assert job is not None


def test_a_silent_leader_is_left_as_soon_as_another_serves(cluster: FakeCluster) -> None:
    with Client(cluster.addresses, timeout=60, server_timeout=30) as patient:
        patient.ping()
        frozen = cluster.servers[0]
        for verb in ("PUT", "INTERCONNECT", "CLUSTER"):
            frozen.fail(verb, *[Fault.STALL] * 20)
        timer = threading.Timer(0.7, cluster.lead, [cluster.servers[1]])
        timer.start()
        with at_most(10):
            patient.put("q", b"x", retry_unknown=True)
        timer.join()
        frozen.fail("PUT", *[None] * 20)
    assert cluster.bodies("q") == [b"x"]


def test_a_silent_leader_is_waited_for_while_no_other_serves(cluster: FakeCluster) -> None:
    cluster.servers[0].delay_s = 0.7
    with Client(cluster.addresses, timeout=60, server_timeout=30, connect_timeout=10) as patient:
        patient.put("q", b"x")
    assert cluster.bodies("q") == [b"x"]


@pytest.mark.parametrize("fault", [Fault.HALF_AND_STALL, Fault.TRICKLE])
def test_the_answer_to_a_blocked_get_must_end_once_it_has_begun(
    cluster: FakeCluster, fault: Fault
) -> None:
    cluster.servers[0].fail("GETB", fault)
    with at_most(5), Client(cluster.addresses[:1], timeout=0.5, server_timeout=0.3) as client:
        client.put("q", b"x" * 100)
        with pytest.raises(OutcomeUnknown):
            client.get("q", block=True)


def test_a_blocked_gets_search_for_a_new_leader_begins_with_the_failure(
    cluster: FakeCluster, client: Client
) -> None:
    """`timeout` limits the time nobody serves, not the time a get is blocked."""
    def fail() -> None:
        time.sleep(0.8)
        cluster.servers[0].stop()
        time.sleep(0.2)
        cluster.lead(cluster.servers[1])
        client.put("q", b"x")

    thread = threading.Thread(target=fail)
    thread.start()
    job = client.get("q", block=True, expire=30, timeout=0.6)
    thread.join()
    assert job is not None


def test_a_call_before_its_206_is_a_put_like_any_other(cluster: FakeCluster, client: Client) -> None:
    cluster.servers[0].fail("PUT", Fault.REFUSE)
    cluster.servers[0].fail("WAIT", Fault.CLOSE)
    with pytest.raises(NoOutput):
        client.call("in", b"x", "out")
    assert puts(cluster) == 1
    cluster.servers[0].fail("PUT", Fault.STALL)
    with at_most(3), pytest.raises(OutcomeUnknown) as unknown:
        client.call("in", b"x", "out")
    assert not isinstance(unknown.value, NoOutput)


def test_a_call_whose_output_is_lost_names_its_item_and_is_not_repeated(cluster: FakeCluster, client: Client) -> None:
    cluster.servers[0].fail("WAIT", Fault.CLOSE)
    with pytest.raises(NoOutput) as lost:
        client.call("in", b"x", "out", retry_unknown=True)
    assert lost.value.item == "i1"
    assert puts(cluster) == 1


def test_a_call_whose_server_ceases_to_lead_is_told_so(cluster: FakeCluster, client: Client) -> None:
    timer = threading.Timer(0.2, cluster.lead, [cluster.servers[1]])
    timer.start()
    with pytest.raises(NoOutput):
        client.call("in", b"x", "out", item="mine")
    timer.join()
    client.put("q", b"x")
    assert cluster.bodies("q") == [b"x"]


def test_a_call_waits_as_long_as_it_was_told(cluster: FakeCluster, client: Client) -> None:
    with at_most(3), pytest.raises(NoOutput):
        client.call("in", b"x", "out", wait=0.2)
    assert cluster.bodies("in") == [b"x"]


def test_a_named_server_is_not_left(cluster: FakeCluster, client: Client) -> None:
    cluster.servers[1].fail("TOTAL", Fault.REFUSE)
    with pytest.raises(NotServing):
        client.total(server=cluster.servers[1].address)
    cluster.servers[1].fail("TOTAL", Fault.RUBBISH)
    with pytest.raises(Unavailable):
        client.total(server=cluster.servers[1].address)
    cluster.servers[1].fail("SHUTDOWN", Fault.CLOSE)
    with pytest.raises(OutcomeUnknown):
        client.shutdown(cluster.servers[1].address)


def test_a_slow_leader_is_found_behind_quick_followers(cluster: FakeCluster, client: Client) -> None:
    """The first round takes a follower because the leader answers late; later rounds wait longer for it."""
    cluster.servers[0].delay_s = 0.25
    client.put("q", b"x")
    assert cluster.bodies("q") == [b"x"]


def test_half_a_command_is_not_executed_and_not_unknown(cluster: FakeCluster) -> None:
    """The server resets the connection while the body is being sent: the client knows that it cannot have run."""
    with Client(cluster.addresses[:1], timeout=5, server_timeout=0.5) as client:
        body = bytes(50_000_000)
        cluster.servers[0].reset_after_line = True
        with pytest.raises(Unavailable):
            client.put("q", body, timeout=0.5)
        with pytest.raises(Unavailable):
            client.put_many("q", [body], timeout=0.5)
        cluster.servers[0].reset_after_line = False
        client.put("q", body)
    assert len(cluster.bodies("q")) == 1
