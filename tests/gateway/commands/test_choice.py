"""The choice among several queues, and when it is certain that there is nothing."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from sockpqd.core import Get, GetWith, Handed, HandedMany, InTurn, Operation, Policy, Put
from sockpqd.gateway.limits import ROTATION_QUEUE_BYTES, ROTATION_QUEUES_MAX
from sockpqd.gateway.waiting.round_robin import RoundRobin
from tests.gateway.helpers.fake_cluster import FakeCluster
from tests.gateway.helpers.memory import MemoryGateway, attached, with_gateway


def handed(number: int, queue: str, *, turned: bool = True) -> Handed:
    """Return the reply that hands out a job of this queue."""
    return Handed(number, queue, 0, b"", turned=turned or UNSET)


def test_the_queue_that_gave_goes_to_the_end_and_new_names_join_there() -> None:
    round_robin = RoundRobin()
    assert round_robin.order(("b", "a", "c")) == ("b", "a", "c")
    round_robin.note(handed(1, "a"), named=True)
    assert round_robin.order(("b", "a", "c")) == ("b", "c", "a")
    round_robin.note(HandedMany((handed(2, "c"), handed(3, "b"))), named=True)
    assert round_robin.order(("b", "a", "c")) == ("a", "c", "b")
    assert round_robin.order(("x", "b")) == ("b", "x")
    assert round_robin.order(("x", "x", "c")) == ("c", "x")


def test_only_turns_turn() -> None:
    round_robin = RoundRobin()
    round_robin.order(("a", "b"))
    round_robin.note(handed(1, "a", turned=False), named=True)
    assert round_robin.order(("a", "b")) == ("a", "b")
    round_robin.note(handed(2, "a"), named=False)
    assert (round_robin.order(("a", "b")), round_robin.last) == (("a", "b"), "a")


def test_not_more_queues_are_remembered_than_may_be() -> None:
    round_robin = RoundRobin()
    round_robin.order(("b", "a", *[f"q{number}" for number in range(ROTATION_QUEUES_MAX)]))
    round_robin.note(handed(1, "b"), named=True)
    assert round_robin.order(("b", "a", "x")) == ("a", "b", "x")
    assert round_robin.order(("q0", "a")) == ("a", "q0")
    assert len(round_robin._places) == 4


def test_the_names_of_a_cycle_are_charged_to_their_connection_until_it_goes() -> None:
    names = "|".join(f"queue_of_tenant_{number:05}" for number in range(2500))

    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(f"GET {names} BY RR\r\n".encode())
        await gateway.settle()
        assert client.take() == b"404 Queue Empty\r\n"
        assert gateway.hub.account.held_bytes == 2500 * (ROTATION_QUEUE_BYTES + 21)
        client.send(b"PUT other 0 1\r\nxGET few|other BY RR\r\n")         # it begins a new cycle
        await gateway.settle()
        assert client.take() == b"200 OK\r\n200 OK other 1 0 1\r\nx"
        assert gateway.hub.account.held_bytes == 0
        client.send(f"POLICY RR\r\nGETB {names}\r\n".encode())
        await gateway.settle()
        assert gateway.hub.account.held_bytes > 2500 * (ROTATION_QUEUE_BYTES + 21)
        client.vanish()
        await gateway.settle()
        assert gateway.hub.account.held_bytes == 0
    with_gateway(test)


def test_the_charge_for_a_cycle_is_that_of_the_names_in_it() -> None:
    round_robin = RoundRobin()
    names = tuple(f"q{number:04}" for number in range(ROTATION_QUEUES_MAX + 1))
    round_robin.order(names)
    assert round_robin.held_bytes == len(names) * (ROTATION_QUEUE_BYTES + 5)
    round_robin.note(handed(1, "q0007"), named=True)
    assert round_robin.held_bytes == len(names) * (ROTATION_QUEUE_BYTES + 5)
    round_robin.order(names[:20])
    round_robin.note(handed(2, "q0999"), named=True)     # asked for before the others were forgotten
    assert round_robin.held_bytes == 21 * (ROTATION_QUEUE_BYTES + 5)


@pytest.mark.parametrize(("said", "proposed"), [
    (b"GET a|b\r\n", Get(("a", "b"))),
    (b"GET a|b BY PRIORITY\r\n", GetWith(Get(("a", "b")), policy=Policy.PRIORITY, turn=InTurn())),
    (b"POLICY PRIORITY\r\nGET a|b\r\n", GetWith(Get(("a", "b")), policy=Policy.PRIORITY, turn=InTurn())),
    (b"POLICY RR\r\nGETB a|b WITHIN 0\r\n", GetWith(Get(("a", "b")), policy=Policy.RR, turn=InTurn())),
    (b"POLICY RR\r\nGET a|b BY RANDOM\r\n", GetWith(Get(("a", "b")), policy=Policy.RANDOM)),
    (b"POLICY PRIORITY\r\nGET a|b COUNT 3\r\n", GetWith(Get(("a", "b")), 3, Policy.PRIORITY, turn=InTurn())),
    (b"POLICY PRIORITY\r\nGET a\r\n", Get(("a",))),
    (b"POLICY RR\r\nGET a\r\n", GetWith(Get(("a",)), policy=Policy.RR, turn=InTurn())),
    (b"POLICY WEIGHT\r\nGET a\r\n", Get(("a",))),
    (b"POLICY RR\r\nGET\r\n", GetWith(Get(None), policy=Policy.RR, turn=InTurn())),
    (b"POLICY OLDEST\r\nGET\r\n", GetWith(Get(None), policy=Policy.OLDEST)),
    (b"POLICY RANDOM\r\nGET\r\n", GetWith(Get(None), policy=Policy.RANDOM)),
])
def test_only_who_chooses_among_queues_needs_a_policy(said: bytes, proposed: Operation) -> None:
    async def test(gateway: MemoryGateway) -> None:
        gateway.connect().send(said)
        assert gateway.cluster.in_flight == [proposed]
    with_gateway(test, automatic=False)


def test_without_turns_names_are_left_as_they_are() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"PUT a 0 1\r\nxPUT b 0 1\r\ny")
        gateway.cluster.commit()
        client.send(b"GET a|b BY RR\r\n")         # the connection has an order from now on
        gateway.cluster.commit()
        client.send(b"GET a|b\r\nGET a|b BY RR\r\n")
        assert gateway.cluster.in_flight == [Get(("a", "b")), GetWith(Get(("b", "a")), policy=Policy.RR, turn=InTurn())]
    with_gateway(test, automatic=False)


def test_pipelined_commands_take_the_turns_they_would_take_one_by_one() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"PUTS 4\r\na 0 1\r\n1a 0 1\r\n2b 0 1\r\n3c 0 1\r\n4")
        gateway.cluster.commit()
        client.take()
        client.send(b"CONFIG POLICY RR\r\nGET b|a\r\nGET a|b\r\nGET * BY RR\r\nGET *\r\n")
        while gateway.cluster.in_flight:
            gateway.cluster.commit()
            await gateway.settle()
        assert [line.split()[2] for line in client.take().split(b"\r\n") if line.count(b" ") > 3] == [
            b"b", b"a", b"a", b"c",
        ]
    with_gateway(test, automatic=False)


# ---- FASTEMPTY

async def fast(gateway: MemoryGateway) -> FakeCluster:
    """Return a cluster with the setting on."""
    gateway.connect().send(b"CONFIG FASTEMPTY ON\r\n")
    gateway.cluster.commit()
    await gateway.settle()
    return gateway.cluster


@pytest.mark.parametrize("get", [
    b"GET\r\n", b"GET a\r\n", b"GET a|b\r\n", b"GET a COUNT 3\r\n", b"GET a IS x\r\n", b"GET a META\r\n", b"GET *\r\n",
])
def test_what_is_not_there_is_known_without_the_log(get: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        cluster = await fast(gateway)
        client = gateway.connect()
        client.send(get * 2)
        assert cluster.in_flight == []
        await gateway.settle()
        assert client.take() == b"404 Queue Empty\r\n" * 2
    with_gateway(test, automatic=False)


def test_a_leader_whose_lease_may_be_over_asks_the_log() -> None:
    async def test(gateway: MemoryGateway) -> None:
        cluster = await fast(gateway)
        client = gateway.connect()
        cluster.leased = False
        assert cluster.serving
        client.send(b"GET a\r\n")
        assert len(cluster.in_flight) == 1
    with_gateway(test, automatic=False)


@pytest.mark.parametrize("get", [b"GET\r\n", b"GET a\r\n", b"GET b|a\r\n", b"GET a IS x\r\n", b"GET a COUNT 2\r\n"])
def test_what_is_there_is_not_known_to_be_there_still(get: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        cluster = await fast(gateway)
        client = gateway.connect()
        client.send(b"PUT a 0 1 IS x\r\nx")
        cluster.commit()
        client.send(get)
        assert len(cluster.in_flight) == 1
    with_gateway(test, automatic=False)


def test_who_has_something_in_flight_hears_of_its_outcome_first() -> None:
    async def test(gateway: MemoryGateway) -> None:
        cluster = await fast(gateway)
        client = gateway.connect()
        client.send(b"PUT a 0 1\r\nxGET a\r\n")
        assert cluster.in_flight == [Put("a", 0, b"x"), Get(("a",))]
        cluster.commit()
        assert client.take() == b"200 OK\r\n200 OK a 1 0 1\r\nx"
    with_gateway(test, automatic=False)


def test_only_who_serves_knows_it() -> None:
    async def test(gateway: MemoryGateway) -> None:
        cluster = await fast(gateway)
        cluster.follow("n2")
        client = gateway.connect()
        client.send(b"GET a\r\n")
        await gateway.settle()
        assert client.take() == b"500 Offline Mode\r\n"
    with_gateway(test, automatic=False)


@pytest.mark.parametrize("get", [b"REQ 1 GET a\r\n", b"GET a BOUND\r\n", b"GETB a WITHIN 0\r\n", b"GETBE a\r\n"])
def test_who_uses_a_session_or_may_wait_is_answered_by_the_log(get: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        cluster = await fast(gateway)
        client = await attached(gateway)
        client.send(get)
        assert len(cluster.in_flight) == 1
    with_gateway(test, automatic=False)
