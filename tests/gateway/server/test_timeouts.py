"""The time limits of [limits], judged by what was seen at each look."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from sockpqd.connections import SWEEP_S, ClientTimeouts, Expected, sweep_s
from sockpqd.gateway.limits import Limits
from sockpqd.gateway.server.conversation import Conversation
from tests.gateway.helpers.memory import MemoryGateway

LIMITS = Limits(hello_timeout_s=10, idle_timeout_s=20, command_timeout_s=30, answer_timeout_s=40)


@pytest.mark.parametrize(("turn", "limit_s", "why"), [
    (Expected.HELLO, 10, "it has sent no command"), (Expected.NEXT, 20, "it has been idle"),
    (Expected.REST, 30, "its command is incomplete"),
])
def test_what_does_not_come_in_time_ends_the_connection(turn: Expected, limit_s: int, why: str) -> None:
    patience = ClientTimeouts(LIMITS, 100.0)
    assert patience.end(100.0, (turn, 0), 0, 0) is None
    assert patience.end(100.0 + limit_s, (turn, 0), 0, 0) is None
    assert patience.end(100.1 + limit_s, (turn, 1), 0, 0) is None, "it has got on"
    assert patience.end(100.1 + 2 * limit_s, (turn, 1), 0, 0) is None
    assert patience.end(100.2 + 2 * limit_s, (turn, 1), 0, 0) == why


def test_our_turn_has_no_limit_and_zero_is_none() -> None:
    patience = ClientTimeouts(LIMITS, 0.0)
    assert patience.end(1.0, (Expected.OURS, 0), 0, 0) is None
    assert patience.end(1e6, (Expected.OURS, 0), 0, 0) is None
    none = Limits(hello_timeout_s=0, command_timeout_s=0, answer_timeout_s=0, auth_timeout_s=0)
    patience = ClientTimeouts(none, 0.0)
    for turn in Expected:
        assert patience.end(1.0, (turn, 0), 0, 5) is None
        assert patience.end(1e6, (turn, 0), 0, 5, unauthenticated=True) is None
    assert sweep_s(none) == SWEEP_S, "who vanished is looked for all the same"
    assert sweep_s(LIMITS) == 1.0


def test_who_does_not_say_who_it_is_is_cut_whatever_else_it_does() -> None:
    patience = ClientTimeouts(Limits(auth_timeout_s=30), 100.0)
    for second in range(31):
        assert patience.end(100.0 + second, (Expected.NEXT, second), 0, 0, unauthenticated=True) is None
    assert patience.end(131.0, (Expected.NEXT, 31), 0, 0) is None, "it has said it"
    assert patience.end(131.0, (Expected.NEXT, 31), 0, 0, unauthenticated=True) == "it did not authenticate in time"


def test_who_takes_nothing_is_cut_and_who_takes_a_little_is_not() -> None:
    patience = ClientTimeouts(LIMITS, 0.0)
    for look in range(1, 20):
        assert patience.end(look * 30.0, (Expected.OURS, 0), taken_bytes=look, unsent_bytes=10) is None
    assert patience.end(19 * 30.0 + 40, (Expected.OURS, 0), 19, 500) is None
    assert patience.end(19 * 30.0 + 41, (Expected.OURS, 0), 19, 500) == "it does not read its answers"


def with_gateway(test: Callable[[MemoryGateway], Awaitable[None]]) -> None:
    async def run() -> None:
        gateway = MemoryGateway(Path("unused"))
        try:
            await test(gateway)
        finally:
            await gateway.close()
    asyncio.run(run())


def conversation(gateway: MemoryGateway) -> Conversation:
    """Return the conversation of the only connection."""
    (connection,) = gateway.hub.connections
    found = connection._conversation
    assert found is not None
    return found


def test_whose_turn_it_is() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        talk = conversation(gateway)
        assert talk.expected() == (Expected.HELLO, 0)
        client.send(b"PI")
        assert talk.expected() == (Expected.HELLO, 0), "half a line is no command"
        client.send(b"NG\r\nPUT q 0 5\r")
        assert talk.expected() == (Expected.REST, 1)
        client.send(b"\n")
        assert talk.expected() == (Expected.REST, 1), "a line and its data are one command"
        client.send(b"hel")
        assert talk.expected() == (Expected.REST, 1)
        client.send(b"loGETB empty\r\nPI")
        assert talk.expected() == (Expected.OURS, 0), "never while a command is blocked"
    with_gateway(test)


def test_a_clone_may_take_as_long_as_it_gets_on() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        talk = conversation(gateway)
        client.send(b"CLONE 200000\r\n")
        before = talk.expected()
        assert before[0] is Expected.REST
        client.send(bytes(10))
        assert talk.expected() == (Expected.REST, before[1] + 10)
        assert talk.expected() == (Expected.REST, before[1] + 10)
    with_gateway(test)


def test_what_waits_for_the_cluster_is_our_turn_then_the_next_command_is_waited_for() -> None:
    async def test(gateway: MemoryGateway) -> None:
        gateway.cluster.automatic = False
        client = gateway.connect()
        talk = conversation(gateway)
        client.send(b"PUT q 0 1\r\nx")
        assert talk.expected() == (Expected.OURS, 0)
        gateway.cluster.commit()
        await gateway.settle()
        assert talk.expected() == (Expected.NEXT, 1)
    with_gateway(test)
