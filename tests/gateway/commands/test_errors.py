"""ERROR of LATER and BURY where there is no room for it, with REQ, in transactions, and how it arrives."""

from __future__ import annotations

import pytest

from sockpqd.core import ERROR_BYTES_MAX, Selector, bytes_of
from tests.gateway.commands.test_sessions import AGAIN
from tests.gateway.helpers.memory import MemoryClient, MemoryGateway, attached, with_gateway

PUTS = b"PUT q 0 1\r\naPUT q 0 1\r\nb"


async def say(gateway: MemoryGateway, client: MemoryClient, words: bytes) -> bytes:
    """Return the answers to these bytes."""
    client.send(words)
    await gateway.settle()
    return client.take()


async def taken(gateway: MemoryGateway, client: MemoryClient) -> None:
    """Return a client whose two jobs run as 1 and 2."""
    assert (await say(gateway, client, PUTS + b"GET q COUNT 2\r\n")).startswith(b"200 OK\r\n200 OK\r\n200 OK 2\r\n")


def text(gateway: MemoryGateway, number: int) -> bytes | None:
    """Return the text of the running job."""
    found = gateway.cluster.machine.error(Selector(number))
    return None if found is None else bytes_of(found)


@pytest.mark.parametrize("pieces", [1, 7, 1000])
def test_without_room_the_command_is_executed_without_it(pieces: int) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        await taken(gateway, client)
        gateway.cluster.full = True
        words = b"LATER 1 REASON r ERROR 5\r\nwhy..BURY 2 ERROR 3\r\nwhyGET q\r\n"
        answers = b""
        for start in range(0, len(words), pieces):
            answers += await say(gateway, client, words[start:start + pieces])
        assert answers == b"200 OK DROPPED\r\n200 OK DROPPED\r\n200 OK q 3 0 1\r\na"
        assert text(gateway, 3) == b""
        assert await say(gateway, client, b"LATER 3 ERROR 0\r\nLATER 99 ERROR 3\r\nwhy") == (
            b"200 OK\r\n404 Job Not Found\r\n")
        gateway.cluster.full = False
        assert await say(gateway, client, b"GET q\r\nLATER 4 ERROR 3\r\nwhyGET q\r\n") == (
            b"200 OK q 4 0 1\r\na200 OK\r\n200 OK q 5 0 1\r\na")
        assert text(gateway, 5) == b"why"
    with_gateway(test)


def test_a_follower_refuses_it() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        await taken(gateway, client)
        gateway.cluster.full = True
        gateway.cluster.follow("n2")
        assert await say(gateway, client, b"LATER 1 ERROR 3\r\nwhy") == b"500 Offline Mode\r\n"
    with_gateway(test)


def test_a_repeated_request_is_answered_alike_and_compared_as_it_was_sent() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        await taken(gateway, client)
        first, second = b"REQ 1 LATER 1 ERROR 3\r\nwhy", b"REQ 2 BURY 2 ERROR 3\r\nwhy"
        gateway.cluster.full = True
        assert await say(gateway, client, first) == b"200 OK DROPPED\r\n"
        gateway.cluster.full = False
        assert await say(gateway, client, second) == b"200 OK\r\n"
        for full in (False, True):
            gateway.cluster.full = full
            again = gateway.connect()
            assert (await say(gateway, again, AGAIN + first + second)).endswith(b"200 OK DROPPED\r\n200 OK\r\n")
            assert await say(gateway, again, b"REQ 1 LATER 1 ERROR 3\r\nwhoREQ 2 BURY 2\r\n") == (
                b"409 Request Mismatch\r\n" * 2)
    with_gateway(test)


def test_in_a_transaction_the_line_of_the_command_says_so() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await attached(gateway)
        await taken(gateway, client)
        parts = b"BEGIN\r\nLATER 1 ERROR 3\r\nwhyBURY 2 ERROR 3\r\nwhy"
        gateway.cluster.full = True
        answer = await say(gateway, client, parts + b"REQ 1 COMMIT\r\n")
        right = b"200 OK\r\n202 Queued\r\n202 Queued\r\n200 OK 2\r\n200 OK DROPPED\r\n200 OK DROPPED\r\n"
        assert answer == right
        gateway.cluster.full = False
        assert await say(gateway, client, parts + b"REQ 1 COMMIT\r\n") == right
        other = parts.replace(b"why", b"who")
        assert (await say(gateway, client, other + b"REQ 1 COMMIT\r\n")).endswith(b"409 Request Mismatch\r\n")
    with_gateway(test)


def test_it_counts_in_a_transaction() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        await say(gateway, client, b"BEGIN\r\n")
        transaction = client._connection._conversation.pipeline.state.transaction     # type: ignore[union-attr]
        assert transaction is not None
        assert await say(gateway, client, b"LATER 1 ERROR 9000\r\n" + bytes(9000)) == b"202 Queued\r\n"
        assert transaction.held_bytes > 9000
        assert transaction._data_bytes == 9000
    with_gateway(test)


@pytest.mark.parametrize("line", [b"LATER 1 ERROR %d\r\n", b"BURY 1 HERE ERROR %d\r\n"])
def test_a_longer_one_is_refused_and_dropped(line: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        await taken(gateway, client)
        most = line % ERROR_BYTES_MAX + b"x" * ERROR_BYTES_MAX
        more = line % (ERROR_BYTES_MAX + 1) + b"x" * (ERROR_BYTES_MAX + 1)
        assert await say(gateway, client, more + b"PING\r\n") == b"413 Data Too Large\r\n200 OK\r\n"
        assert len(gateway.cluster.machine.running()) == 2
        assert await say(gateway, client, most + b"PING\r\n") == b"200 OK\r\n200 OK\r\n"
    with_gateway(test)
