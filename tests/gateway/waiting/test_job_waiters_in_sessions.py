"""A client that waits with a number gets its job like any other, and the same one on all connections that wait for it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sockpqd.core import Put, Request
from sockpqd.core.sessions.session import HandedOut
from sockpqd.gateway.server.hub import Hub
from tests.gateway.helpers.fake_cluster import returned
from tests.gateway.helpers.memory import MemoryClient, MemoryGateway
from tests.gateway.helpers.waiting_model import (
    CLIENTS,
    QUEUES,
    STEPS,
    WORK,
    Comparison,
    assert_nobody_is_forgotten,
    line,
)


class NumberedClient(MemoryClient):
    """Numbers all its commands, in a session of its own."""

    def __init__(self, hub: Hub, name: str) -> None:
        super().__init__(hub, name)
        self._number = 0
        self._greeted = False
        super().send(b"SESSION\r\n")

    def send(self, data: bytes) -> None:
        self._number += 1
        super().send(b"REQ %d " % self._number + data)

    def take(self) -> bytes:
        answer = super().take()
        if answer and not self._greeted:
            self._greeted = True
            return answer.partition(b"\r\n")[2]
        return answer


class NumberedComparison(Comparison):
    """A comparison in which all clients number their commands."""

    def connect(self, number: int) -> MemoryClient:
        client = NumberedClient(self.gateway.hub, str(number))
        self.gateway.clients.append(client)
        return client


@given(steps=st.lists(STEPS, max_size=40))
@settings(max_examples=200, deadline=None)
def test_jobs_go_to_those_the_model_says_also_with_numbers(steps: list[tuple]) -> None:     # type: ignore[type-arg]
    async def run() -> None:
        comparison = NumberedComparison(Path("unused"))
        await comparison.run(steps)
        assert returned(comparison.gateway.cluster) == []
    asyncio.run(run())


SESSIONS = 3
SIDS = [f"{number + 1}_{0x9f3c5a7e11d0c2b4 + number:016x}".encode() for number in range(SESSIONS)]
# What each number stands for, in all sessions: so that every repetition is a proper one.
REQUESTS = [
    b"GETB a|b", b"GETB", b"GETBE b|c", b"GETBE", b"GET a", f"PUT {WORK} 0 0 IS x WAIT a".encode(),
    f"PUT {WORK} 0 0 IS y WAIT b".encode(), f"PUT {WORK} 0 0 NEW WAIT c".encode(), b"GETB b|c BOUND",
    b"GETB c EXPIRE 5",
]
JOBS = st.tuples(st.sampled_from(QUEUES), st.sampled_from([None, "x", "y", "i1", "i2"]))
SESSION_STEPS = st.one_of(
    *[st.tuples(st.just("req"), st.integers(0, CLIENTS - 1), st.integers(1, len(REQUESTS)))] * 4,
    *[st.tuples(st.just("put"), st.integers(0, CLIENTS - 1), JOBS)] * 3,
    STEPS,
    st.tuples(st.just("commit"), st.integers(0, 6), st.none()),
    st.tuples(st.just("commit"), st.integers(0, 6), st.none()),
    st.tuples(st.just("time"), st.just(0), st.none()),
    st.tuples(st.just("close"), st.integers(0, SESSIONS - 1), st.booleans()),
)


@given(steps=st.lists(SESSION_STEPS, max_size=60))
@settings(max_examples=300, deadline=None)
def test_nobody_is_forgotten_when_requests_wait_on_several_connections(
    steps: list[tuple],     # type: ignore[type-arg]
) -> None:
    async def run() -> None:
        gateway = MemoryGateway(Path("unused"), automatic=True)
        for _ in range(SESSIONS):
            await gateway.talk(b"SESSION\r\n")
        clients = [await member(gateway, number) for number in range(CLIENTS)]
        gateway.cluster.automatic = False
        for kind, client, detail in steps:
            match kind:
                case "commit":
                    gateway.cluster.commit(client)
                case "time":
                    gateway.cluster.pass_time(6)
                case "leave":
                    clients[client].vanish()
                    clients[client] = gateway.connect(str(client))
                    clients[client].send(b"SESSION %s\r\n" % SIDS[client % SESSIONS])
                case "close":
                    end = b"SESSION CLOSE RELEASE\r\n" if detail else b"SESSION CLOSE\r\n"
                    gateway.connect().send(b"SESSION %s\r\n" % SIDS[client] + end)
                case "req":
                    clients[client].send(b"REQ %d %s\r\n" % (detail, REQUESTS[detail - 1]))
                case _:
                    clients[client].send(line(kind, detail))
            await gateway.settle()
        while gateway.cluster.in_flight:
            gateway.cluster.commit()
            await gateway.settle()
        assert_nobody_is_forgotten(gateway)
        assert_no_request_waits_for_what_it_has(gateway)
        await gateway.close()
    asyncio.run(run())


async def member(gateway: MemoryGateway, number: int) -> MemoryClient:
    """Return a client in one of the sessions."""
    client = gateway.connect(str(number))
    client.send(b"SESSION %s\r\n" % SIDS[number % SESSIONS])
    await gateway.settle()
    assert client.take().startswith(b"200 OK SESSION")
    return client


def assert_no_request_waits_for_what_it_has(gateway: MemoryGateway) -> None:
    """Assert that nobody waits whose request has been answered, and whose job still runs."""
    state = gateway.cluster.machine._state
    for waiter in gateway.hub.job_waiters._queued.values():
        request = waiter.wants.request
        if request is None or (session := state.sessions.get(request.session)) is None:
            continue
        answered = session.requests.get(request.number)
        answer = None if answered is None else answered.answer(request.part)
        assert not (isinstance(answer, HandedOut) and answer.id in state.running), request


def test_a_hand_off_to_a_request_costs_one_commit() -> None:
    async def run() -> None:
        gateway = MemoryGateway(Path("unused"))
        await gateway.talk(b"SESSION\r\n")
        worker, producer = [await member(gateway, 0) for _ in range(2)]
        gateway.cluster.automatic = False
        worker.send(b"REQ 1 GETB q\r\n")
        gateway.cluster.commit()
        producer.send(b"REQ 2 PUT q 0 1\r\nx")
        put, get = gateway.cluster.in_flight
        assert isinstance(put, Request)
        assert isinstance(get, Request)
        assert put.operation == Put("q", 0, b"x")
        assert get.number == 1
        gateway.cluster.commit()
        assert worker.take() == b"200 OK q 1 0 1\r\nx"
        assert gateway.cluster.in_flight == []
        await gateway.close()
    asyncio.run(run())


@pytest.mark.parametrize(("first", "answer"), [(1, b"409 Request Mismatch\r\n"), (65, b"409 Request Too Old\r\n")])
def test_a_number_that_a_command_in_flight_may_use_is_asked_about_at_once(first: int, answer: bytes) -> None:
    async def run() -> None:
        gateway = MemoryGateway(Path("unused"))
        await gateway.talk(b"SESSION\r\n")
        client = await member(gateway, 0)
        client.send(b"REQ %d PUT other 0 1\r\nxREQ 1 GETB q\r\n" % first)
        await gateway.settle()
        assert client.take() == b"200 OK\r\n" + answer
        await gateway.close()
    asyncio.run(run())


def test_a_number_that_no_command_in_flight_can_use_waits_without_an_operation() -> None:
    async def run() -> None:
        gateway = MemoryGateway(Path("unused"))
        await gateway.talk(b"SESSION\r\n")
        client = await member(gateway, 0)
        gateway.cluster.automatic = False
        client.send(b"REQ 64 PUT other 0 1\r\nxREQ 2 DONE 5\r\nPUT other 0 1\r\nxREQ 1 GETB q\r\n")
        assert len(gateway.cluster.in_flight) == 3
        await gateway.close()
    asyncio.run(run())
