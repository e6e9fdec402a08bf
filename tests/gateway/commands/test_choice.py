"""Whose turn it is among several queues, and when it is certain that there is nothing."""

from __future__ import annotations

import pytest

from core import Get, GetWith, Handed, HandedMany, Operation, Policy, Put
from gateway.limits import ROTATION_QUEUES_MAX
from gateway.waiting.rotation import Rotation
from tests.gateway.helpers.fake_cluster import FakeCluster
from tests.gateway.helpers.memory import MemoryGateway, attached, with_gateway


def test_the_queue_that_was_used_goes_to_the_end() -> None:
    rotation = Rotation()
    assert rotation.order(("b", "a", "c")) == ("b", "a", "c")
    rotation.note(Handed(1, "a", 0, b""))
    assert rotation.order(("b", "a", "c")) == ("b", "c", "a")
    rotation.note(HandedMany((Handed(2, "c", 0, b""), Handed(3, "b", 0, b""))))
    assert rotation.order(("b", "a", "c")) == ("a", "c", "b")
    assert rotation.order(("x", "b")) == ("x", "b")


def test_not_more_queues_are_remembered_than_may_be() -> None:
    rotation = Rotation()
    for number in range(ROTATION_QUEUES_MAX + 1):
        rotation.note(Handed(1, f"q{number}", 0, b""))
    assert rotation._used == {}


@pytest.mark.parametrize(("said", "proposed"), [
    (b"GET a|b\r\n", Get(("a", "b"))),
    (b"GET a|b BY PRIORITY\r\n", GetWith(Get(("a", "b")), policy=Policy.PRIORITY)),
    (b"POLICY PRIORITY\r\nGET a|b\r\n", GetWith(Get(("a", "b")), policy=Policy.PRIORITY)),
    (b"POLICY PRIORITY\r\nGETB a|b WITHIN 0\r\n", GetWith(Get(("a", "b")), policy=Policy.PRIORITY)),
    (b"POLICY PRIORITY\r\nGET a|b BY RANDOM\r\n", GetWith(Get(("a", "b")), policy=Policy.RANDOM)),
    (b"POLICY PRIORITY\r\nGET a|b COUNT 3\r\n", GetWith(Get(("a", "b")), 3, Policy.PRIORITY)),
    (b"POLICY PRIORITY\r\nGET a\r\n", Get(("a",))),
    (b"POLICY PRIORITY\r\nGET\r\n", GetWith(Get(None), policy=Policy.PRIORITY)),
    (b"POLICY RANDOM\r\nGET\r\n", GetWith(Get(None), policy=Policy.RANDOM)),
])
def test_only_who_chooses_among_queues_needs_a_policy(said: bytes, proposed: Operation) -> None:
    async def test(gateway: MemoryGateway) -> None:
        gateway.connect().send(said)
        assert gateway.cluster.in_flight == [proposed]
    with_gateway(test, automatic=False)


def test_without_a_policy_names_are_left_as_they_are() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"PUT a 0 1\r\nxPUT b 0 1\r\ny")
        gateway.cluster.commit()
        client.send(b"GET a|b BY PRIORITY\r\n")         # the connection has an order from now on
        gateway.cluster.commit()
        client.send(b"GET a|b\r\nGET a|b BY PRIORITY\r\n")
        assert gateway.cluster.in_flight == [Get(("a", "b")), GetWith(Get(("b", "a")), policy=Policy.PRIORITY)]
    with_gateway(test, automatic=False)


# ---- FASTEMPTY

async def fast(gateway: MemoryGateway) -> FakeCluster:
    """With the setting on."""
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
