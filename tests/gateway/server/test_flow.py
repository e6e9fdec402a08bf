"""The amount that is read from clients in one turn of the loop, however much they send."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from sockpqd.gateway.limits import KIB, MIB, READ_BYTES_PER_TURN, READ_COUNTED_BYTES, Limits
from tests.gateway.helpers.memory import MemoryGateway

READ = 256 * KIB        # as the loop reads at once


def with_gateway(test: Callable[[MemoryGateway], Awaitable[None]]) -> None:
    """Run a test with a node that has room for much."""
    async def run() -> None:
        gateway = MemoryGateway(Path("unused"), Limits())
        gateway.hub.account.limit_bytes = 1024 * MIB
        try:
            await test(gateway)
        finally:
            await gateway.close()
    asyncio.run(run())


def test_a_client_that_sends_at_full_speed_is_read_again_in_the_next_turn() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"PUT q 0 %d\r\n" % (8 * MIB))
        await gateway.settle()
        read = 0
        while client.transport.reading:
            client.send(bytes(READ))
            read += READ
            assert read <= READ_BYTES_PER_TURN + READ
        assert read > READ_BYTES_PER_TURN
        await gateway.settle()
        assert client.transport.reading
        client.vanish()
    with_gateway(test)


def test_all_clients_share_what_is_read_in_a_turn() -> None:
    async def test(gateway: MemoryGateway) -> None:
        clients = [gateway.connect() for _ in range(100)]
        for client in clients:
            client.send(b"PUT q 0 %d\r\n" % MIB)
        await gateway.settle()
        for client in clients:              # the loop asks each of them, and goes on as long as it may
            for _ in range(4):
                if client.transport.reading:
                    client.send(bytes(READ))
        unread = [client for client in clients if not client.transport.reading]
        assert len(unread) >= 100 - READ_BYTES_PER_TURN // READ
        await gateway.settle()
        assert all(client.transport.reading for client in clients)
        for client in clients:
            client.vanish()
    with_gateway(test)


def test_clients_are_read_in_turns_while_more_comes_from_them_than_a_turn_takes() -> None:
    async def test(gateway: MemoryGateway) -> None:
        clients = [gateway.connect() for _ in range(4 * READ_BYTES_PER_TURN // READ)]
        for client in clients:
            client.send(b"PUT q 0 %d\r\n" % (8 * MIB))
        await gateway.settle()
        read = dict.fromkeys(clients, 0)
        for _ in range(200):                # rounds of the loop
            before = sum(read.values())
            for client in clients:
                if client.transport.reading and read[client] < 7 * MIB:
                    client.send(bytes(READ))
                    read[client] += READ
            assert sum(read.values()) - before <= 2 * READ_BYTES_PER_TURN or not before
            await asyncio.sleep(0)
        assert max(read.values()) - min(read.values()) <= 2 * READ
        for client in clients:
            client.vanish()
    with_gateway(test)


def test_small_reads_are_not_counted() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        for _ in range(READ_BYTES_PER_TURN // READ_COUNTED_BYTES + 10):
            client.send(b"\r\n" * (READ_COUNTED_BYTES // 2 - 1))
            assert gateway.hub.read_bytes == 0
        client.vanish()
    with_gateway(test)
