"""The memory that a node holds for its clients: counted, bounded, and freed by those who hold most."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from sockpqd.connections import HELD_BYTES_MIN, HELD_HIGH_S, HELD_SHARE_PERCENT, Holder, held_bytes_max
from sockpqd.core import CloneChunk
from sockpqd.gateway.limits import (
    AHEAD_BYTES_MAX,
    FEW_QUEUES,
    KIB,
    MIB,
    WAITER_QUEUE_BYTES,
    Limits,
)
from tests.gateway.helpers.memory import MemoryClient, MemoryGateway

LIMIT = MIB


def with_gateway(test: Callable[[MemoryGateway], Awaitable[None]]) -> None:
    """Run a test with a node that may hold LIMIT."""
    async def run() -> None:
        gateway = MemoryGateway(Path("unused"), Limits())
        gateway.hub.account.limit_bytes = LIMIT
        try:
            await test(gateway)
        finally:
            await gateway.close()
            assert gateway.hub.account.held_bytes == 0
    asyncio.run(run())


def body(gateway: MemoryGateway, declared: int, sent: int, piece: int = 10 * KIB) -> MemoryClient:
    """Send a body that has not arrived as a whole."""
    client = gateway.connect()
    client.send(b"PUT q 0 %d\r\n" % declared)
    for start in range(0, sent, piece):
        client.send(bytes(min(piece, sent - start)))
    return client


def nearly_full(gateway: MemoryGateway) -> MemoryClient:
    """Let a client hold so much that there is little room left."""
    client = body(gateway, 2 * LIMIT, LIMIT * 9 // 10)
    assert gateway.hub.account.high
    return client


def test_the_limit_follows_from_the_mark_of_memory() -> None:
    assert held_bytes_max(0) == HELD_BYTES_MIN
    assert held_bytes_max(4 << 30) == (4 << 30) * HELD_SHARE_PERCENT // 100


def test_a_body_counts_as_far_as_it_has_come_and_until_it_is_complete() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = body(gateway, 500_000, 300_000)
        assert 300_000 <= gateway.hub.account.held_bytes < 300_000 + 32 * KIB
        client.send(bytes(200_000))
        assert gateway.hub.account.held_bytes == 0
        await gateway.settle()
        assert client.take() == b"200 OK\r\n"
        declared = gateway.connect()
        declared.send(b"PUTS 10\r\nq 0 1000000\r\n")
        assert gateway.hub.account.held_bytes < KIB
        declared.send(bytes(100_000))
        assert 100_000 <= gateway.hub.account.held_bytes < 132 * KIB
        declared.vanish()
        await gateway.settle()
    with_gateway(test)


@pytest.mark.parametrize("command", [b"PUT q 0 %d\r\n", b"CHANGE 1 DATA %d\r\n", b"PUTS 1\r\nq 0 %d\r\n"])
def test_near_the_limit_a_body_that_is_not_here_is_refused_at_its_head_and_dropped(command: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        nearly_full(gateway)
        before = gateway.hub.account.held_bytes
        client = gateway.connect()
        client.send(command % 200_000)
        for _ in range(20):
            assert gateway.hub.account.held_bytes < before + KIB
            client.send(bytes(10_000))
        await gateway.settle()
        assert client.take() == b"503 Busy\r\n"
        client.send(b"PUT q 0 5\r\nhelloGET q\r\n")         # what is here at once is taken
        await gateway.settle()
        assert client.take() == b"200 OK\r\n200 OK q 1 0 5\r\nhello"
    with_gateway(test)


def test_a_node_that_does_not_serve_says_500_there() -> None:
    async def test(gateway: MemoryGateway) -> None:
        nearly_full(gateway)
        gateway.cluster.follow(None)
        client = gateway.connect()
        client.send(b"PUT q 0 10\r\n")
        client.send(b"0123456789")
        await gateway.settle()
        assert client.take() == b"500 Offline Mode\r\n"
    with_gateway(test)


def test_when_jobs_have_no_room_a_body_is_refused_at_its_head() -> None:
    async def test(gateway: MemoryGateway) -> None:
        gateway.cluster.full = True
        clients = [body(gateway, 900_000, 800_000) for _ in range(10)]
        assert gateway.hub.account.held_bytes < 10 * KIB
        for client in clients:
            client.send(bytes(100_000))
            assert client.take() == b"503 Busy\r\n"
            assert not client.closed
    with_gateway(test)


def test_above_the_limit_those_go_who_hold_most() -> None:
    async def test(gateway: MemoryGateway) -> None:
        small = body(gateway, LIMIT, 50 * KIB)
        large = [body(gateway, 3 * LIMIT, (200 + 10 * number) * KIB) for number in range(3)]
        client = gateway.connect()
        client.send(b"GETB w\r\n" + b"PING\r\n" * (400 * KIB // 6))
        await gateway.settle()
        assert client.transport.aborted
        assert gateway.hub.account.evicted == gateway.cluster.withdrawn == 1
        assert not any(other.transport.aborted for other in (small, *large))
        assert not gateway.hub.account.high
        large[1].send(bytes(600 * KIB))
        await gateway.settle()
        assert [other.transport.aborted for other in (small, *large)] == [False, False, True, False]
    with_gateway(test)


def test_what_a_client_does_not_read_counts() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"PUT q 0 600000\r\n" + bytes(600_000))
        client.transport.stuck = True
        client.send(b"GET q\r\n")
        await gateway.settle()
        assert gateway.hub.account.held_bytes >= 600_000
        client.take()
        assert gateway.hub.account.held_bytes == 0
        client.send(b"LATER 1\r\nGET q\r\nQUIT\r\n")
        await gateway.settle()
        assert gateway.hub.account.held_bytes >= 600_000       # also when only its answers are left
        other = body(gateway, LIMIT, 600_000)
        await gateway.settle()
        assert client.transport.aborted != other.transport.aborted
    with_gateway(test)


def test_near_the_limit_who_is_ahead_is_not_read() -> None:
    async def test(gateway: MemoryGateway) -> None:
        early, late = gateway.connect(), gateway.connect()
        for client in (early, late):
            client.send(b"GETB w\r\n")
        await gateway.settle()
        early.send(b"PING\r\n" * (AHEAD_BYTES_MAX // 3))
        assert early.transport.reading
        nearly_full(gateway)
        late.send(b"PING\r\n" * (AHEAD_BYTES_MAX // 3))
        assert not late.transport.reading
    with_gateway(test)


def test_waiting_for_many_queues_counts_and_for_few_does_not() -> None:
    async def test(gateway: MemoryGateway) -> None:
        clients = [gateway.connect() for _ in range(5)]
        clients[0].send(b"GETB " + b"|".join(b"q%d" % number for number in range(FEW_QUEUES)) + b"\r\n")
        await gateway.settle()
        assert gateway.hub.account.held_bytes == 0
        for number, client in enumerate(clients[1:], start=1):
            client.send(b"GETB " + b"|".join(b"c%dq%d" % (number, queue) for queue in range(2500)) + b"\r\n")
            await gateway.settle()
        assert sum(client.transport.aborted for client in clients) == 2
        assert gateway.hub.account.held_bytes == 2 * 2500 * WAITER_QUEUE_BYTES
        assert len(gateway.hub.job_waiters) == 3
        job = gateway.connect()
        left = next(number for number in range(1, 5) if not clients[number].transport.aborted)
        job.send(b"PUT c%dq77 0 1\r\nx" % left)
        await gateway.settle()
        assert clients[left].take() == b"200 OK c%dq77 1 0 1\r\nx" % left
        assert gateway.hub.account.held_bytes == 2500 * WAITER_QUEUE_BYTES
    with_gateway(test)


def test_the_commands_of_an_open_transaction_count_and_data_are_refused_near_the_limit() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"BEGIN\r\n" + b"CHANGE 1 DATA 100000\r\n" + bytes(100_000))
        await gateway.settle()
        assert 100_000 <= gateway.hub.account.held_bytes < 110_000
        client.send(b"ROLLBACK\r\nBEGIN\r\n")
        await gateway.settle()
        assert gateway.hub.account.held_bytes == 0
        nearly_full(gateway)
        client.take()
        client.send(b"MOVE 1 q DATA 5\r\nhelloCHANGE 1 PRI 5\r\nCOMMIT\r\n")
        await gateway.settle()
        assert client.take() == b"503 Busy\r\n202 Queued\r\n409 Aborted 1 503 Busy\r\n"
    with_gateway(test)


@pytest.mark.parametrize("command", [b"CHANGE 1 DATA 5\r\nhello", b"MOVE 1 q DATA 5\r\nhello"])
def test_other_data_of_a_job_are_refused_when_jobs_have_no_room(command: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        gateway.cluster.full = True
        client.send(command + b"BEGIN\r\n" + command + b"ROLLBACK\r\n")
        await gateway.settle()
        assert client.take() == b"503 Busy\r\n200 OK\r\n503 Busy\r\n200 OK\r\n"
    with_gateway(test)


def test_a_clone_that_ends_too_early_or_finds_no_room_is_forgotten_by_the_cluster() -> None:
    async def test(gateway: MemoryGateway) -> None:
        snapshot = await gateway.talk(b"SNAPSHOT\r\n")
        data = snapshot.split(b"\r\n", 1)[1]
        for end in (MemoryClient.vanish, MemoryClient.end):
            client = gateway.connect()
            client.send(b"CLONE %d\r\n" % (len(data) + 1) + data)
            await gateway.settle()
            end(client)
            await gateway.settle()
        client = gateway.connect()
        client.send(b"CLONE 100000000\r\n" + data)
        await gateway.settle()
        gateway.cluster.full = True
        client.send(bytes(200_000))
        await gateway.settle()
        begun = [chunk for chunk in gateway.cluster.operations(CloneChunk) if chunk.total_bytes is not None]
        ended = [chunk for chunk in gateway.cluster.operations(CloneChunk) if chunk.last]
        assert len(begun) == len(ended) == 3
    with_gateway(test)


def test_those_who_hold_most_go_when_there_is_little_room_for_long() -> None:
    async def test(gateway: MemoryGateway) -> None:
        few, many = body(gateway, 2 * LIMIT, LIMIT // 10), nearly_full_but(gateway, LIMIT // 10)
        ordinary = gateway.connect()
        ordinary.send(b"PUT q 0 5\r\n")
        ordinary.send(b"12345\r\n")
        assert ordinary.take() == b"503 Busy\r\n"
        async with asyncio.timeout(60):
            while gateway.hub.account.high:
                await asyncio.sleep(HELD_HIGH_S / 10)
        assert many.closed
        assert not few.closed
        ordinary.send(b"PUT q 0 5\r\n")
        ordinary.send(b"12345\r\n")
        await gateway.settle()
        assert ordinary.take() == b"200 OK\r\n"
        few.vanish()
        await gateway.settle()
    with_gateway(test)


def test_nobody_goes_when_there_is_little_room_for_a_moment() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = nearly_full(gateway)
        client.vanish()
        few = body(gateway, 2 * LIMIT, LIMIT // 2)
        await asyncio.sleep(1.5 * HELD_HIGH_S)
        assert not few.closed
        assert gateway.hub.account.evicted == 0
        few.vanish()
        await gateway.settle()
    with_gateway(test)


def nearly_full_but(gateway: MemoryGateway, held: int) -> MemoryClient:
    """Let a client hold enough to leave little room."""
    client = body(gateway, 2 * LIMIT, LIMIT * 9 // 10 - held)
    assert gateway.hub.account.high
    return client


LISTED = 3000
LISTS = (b"ITEM LIST\r\n", b"QUEUE LIST\r\n", b"GROUP LIST\r\n", b"RUNLIST\r\n", b"SESSION LIST\r\n", b"TOPIC LIST\r\n",
         b"WORKER LIST\r\n", b"PULSE LIST\r\n", b"PEEK q0 READY COUNT 10000\r\n")


@pytest.mark.parametrize("command", LISTS)
def test_what_a_long_answer_is_made_from_counts_until_it_is_complete(command: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        word, *_ = command.split()
        for number in range(LISTED):
            if command.startswith(b"SESSION"):
                gateway.connect().send(b"SESSION\r\n")
            elif command.startswith((b"TOPIC", b"WORKER", b"PULSE")):
                if not number:
                    client.send(b"SESSION\r\n")
                what = {b"TOPIC": b"TOPIC BIND t%d q", b"WORKER": b"WORKER w%d 1 0",
                        b"PULSE": b"PULSE CREATE p%d RATE 1 PER 1"}[word] % number
                client.send(what + b"\r\n")
            else:
                queue = b"q0" if command.startswith(b"PEEK") else b"q%d" % number
                client.send(b"PUT %b 0 0 IS i%d GROUP g%d\r\n" % (queue, number, number))
                if command.startswith(b"RUN"):
                    client.send(b"GET %b EXPIRE 60\r\n" % queue)
        await gateway.settle()
        client.take()
        held = gateway.hub.account.held_bytes
        counted = []
        hold = gateway.hub.account.hold

        def noting(holder: Holder, held_bytes: int) -> None:
            hold(holder, held_bytes)
            counted.append(gateway.hub.account.held_bytes - held)
        gateway.hub.account.hold = noting       # type: ignore[method-assign]
        client.send(command)
        async with asyncio.timeout(60):
            while gateway.hub.account.held_bytes > held or not counted:
                await asyncio.sleep(0)
        lines = Limits().pulses_max if word == b"PULSE" else LISTED
        assert lines * 8 <= max(counted) <= LISTED * 100
        assert len(client.take().splitlines()) == lines + 1
    with_gateway(test)


def test_lists_that_are_more_than_the_limit_end_their_clients_and_no_other() -> None:
    async def test(gateway: MemoryGateway) -> None:
        ordinary = gateway.connect()
        for number in range(LISTED):
            ordinary.send(b"PUT q 0 0 IS i%d\r\n" % number)
        await gateway.settle()
        ordinary.take()
        listing = [gateway.connect() for _ in range(20)]
        for client in listing:
            client.send(b"ITEM LIST\r\n")
        while not gateway.hub.account.evicted:
            assert gateway.hub.account.held_bytes <= LIMIT
            await asyncio.sleep(0)
        ordinary.send(b"PUT q 0 0\r\n")
        await gateway.settle()
        assert ordinary.take() == b"200 OK\r\n"
        assert 0 < sum(client.closed for client in listing) < len(listing)
        for client in listing:
            client.vanish()
        await gateway.settle()
    with_gateway(test)
