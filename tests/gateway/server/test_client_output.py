"""Events that many clients have not read: held once, charged once, and sent in their order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from sockpqd.gateway.limits import KIB, MIB
from sockpqd.gateway.server.client_output import SLICE_BYTES, SLICES_PER_TURN, ClientOutput, SharedOutput
from tests.gateway.helpers.memory import MemoryClient, MemoryGateway

BIG = bytes(range(256)) * (4 * KIB)


def test_a_piece_is_charged_to_one_of_those_that_hold_it() -> None:
    shared = SharedOutput()
    recharged: list[int] = []
    outputs = [ClientOutput(shared, lambda number=number: recharged.append(number)) for number in range(3)]
    for output in outputs:
        output.share(BIG)
        output.share(BIG)
        output.add(b"x")
    assert [output.charged_bytes for output in outputs] == [len(BIG) + 1, 1, 1]
    assert [output.unsent_bytes for output in outputs] == [2 * len(BIG) + 1] * 3
    outputs[1].clear()
    assert recharged == []
    outputs[0].clear()
    assert recharged == [2]
    assert [output.charged_bytes for output in outputs] == [0, 0, len(BIG) + 1]
    taken = b""
    while outputs[2]:
        taken += outputs[2].next()
    assert taken == BIG + BIG + b"x"
    assert (outputs[2].charged_bytes, outputs[2].unsent_bytes, len(shared)) == (0, 0, 0)


def with_gateway(test: Callable[[MemoryGateway], Awaitable[None]]) -> None:
    async def run() -> None:
        gateway = MemoryGateway(Path("unused"))
        try:
            await test(gateway)
        finally:
            await gateway.close()
            assert gateway.hub.account.held_bytes == 0
            assert not len(gateway.hub.shared_output)
    asyncio.run(run())


async def hearers(gateway: MemoryGateway, count: int) -> list[MemoryClient]:
    clients = [gateway.connect() for _ in range(count)]
    for client in clients:
        client.send(b"SUBSCRIBE MSG news\r\n")
    await gateway.settle()
    assert all(client.take().startswith(b"200 OK") for client in clients)
    for client in clients:
        client.transport.stuck = True
        client.transport.set_write_buffer_limits(1)
    return clients


def notify(data: bytes) -> bytes:
    return b"NOTIFY news %d\r\n%b" % (len(data), data)


def test_a_message_for_many_that_do_not_read_is_held_once() -> None:
    async def test(gateway: MemoryGateway) -> None:
        clients = await hearers(gateway, 100)
        await gateway.talk(notify(bytes(MIB)))
        assert gateway.hub.account.held_bytes <= MIB + 200 + 100 * (SLICE_BYTES + KIB)
        clients[0].vanish()
        await gateway.settle()
        assert gateway.hub.account.held_bytes >= MIB, "another one has it still"
    with_gateway(test)


def test_who_subscribed_just_now_and_who_did_before_hear_the_same_line() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await hearers(gateway, 3)
        await gateway.talk(b"QUEUE CREATE q\r\n")
        await hearers(gateway, 3)
        await gateway.talk(notify(bytes(MIB)))
        assert len(gateway.hub.shared_output) == 1
    with_gateway(test)


def test_everything_arrives_in_its_order() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client, other = await hearers(gateway, 2)
        await gateway.talk(notify(BIG))
        client.send(b"PING\r\n")
        await gateway.settle()
        got = b""
        for _ in range(100):
            got += client.take()
            await gateway.settle()
        line, _, rest = got.partition(b"\r\n")
        assert line.startswith(b"250 ")
        assert rest == BIG + b"200 OK\r\n"
        other.vanish()
    with_gateway(test)


def test_all_clients_together_are_sent_so_much_in_one_iteration_of_the_loop() -> None:
    async def test(gateway: MemoryGateway) -> None:
        clients = await hearers(gateway, 50)
        for client in clients:
            client.transport.stuck = False          # they would take everything
        gateway.hub.notice("news", bytes(MIB))
        most = turns = 0
        before = 0
        while before < 50 * MIB:
            await asyncio.sleep(0)
            now = sum(len(client.transport._written) for client in clients)
            most, before, turns = max(most, now - before), now, turns + 1
            assert turns < 1000
        assert most <= (SLICES_PER_TURN + 1) * SLICE_BYTES
    with_gateway(test)


def test_a_client_that_reads_late_goes_on_with_its_commands() -> None:
    async def test(gateway: MemoryGateway) -> None:
        (client,) = await hearers(gateway, 1)
        await gateway.talk(notify(BIG))
        client.transport.stuck = False
        for _ in range(3):
            client.take()
            await gateway.settle()
            client.send(b"PING\r\n")
            await gateway.settle()
        assert client.take().endswith(b"200 OK\r\n")
    with_gateway(test)


def test_what_is_unsent_is_sent_before_the_connection_ends() -> None:
    async def test(gateway: MemoryGateway) -> None:
        (client,) = await hearers(gateway, 1)
        await gateway.talk(notify(BIG))
        client.send(b"QUIT\r\n")
        await gateway.settle()
        assert not client.closed
        got = b""
        for _ in range(100):
            got += client.take()
            await gateway.settle()
        assert got.endswith(b"221 Goodbye\r\n")
        assert BIG in got
        assert client.closed
    with_gateway(test)
