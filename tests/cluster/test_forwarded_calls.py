"""ForwardedCalls between nodes: they end with an outcome, or without one when the leader or the link is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.forwarding.forwarded_calls import ForwardedCalls
from sockpqd.cluster.wire.messages import CallOutcome, CancelCall, ForwardedCall, Message


class RunningCall:
    """A forwarded call that the leader continues until it is cancelled."""

    def __init__(self, told: Callable[[bytes | None], None]) -> None:
        self.told = told
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Node:
    """A node that sends calls and executes them, in a world of two."""

    def __init__(self, name: str, world: dict[str, Node], leader: list[str | None]) -> None:
        self.name = name
        self.doing: list[tuple[tuple[str | None, str, bytes], RunningCall]] = []
        self.at_once: bytes | None = None
        self.peers: dict[str, Any] = {other: SimpleNamespace(up=True) for other in ("a", "b") if other != name}
        self.sent: list[Message] = []
        self._world = world
        self.unsent = 0
        self.calls = ForwardedCalls(self.peers, lambda: leader[0], self, self._send, self)
        world[name] = self

    def execute_call(
        self, user: str | None, address: str, data: bytes, told: Callable[[bytes | None], None],
    ) -> RunningCall:
        doing = RunningCall(told)
        if self.at_once is not None:
            told(self.at_once)
        self.doing.append(((user, address, data), doing))
        return doing

    def unsent_calls_bytes(self, name: str) -> int:
        return self.unsent

    def _send(self, name: str, message: Message) -> None:
        self.sent.append(message)
        if self.peers[name].up:
            assert isinstance(message, ForwardedCall | CancelCall | CallOutcome)
            self._world[name].calls.received(self.name, message)


@pytest.fixture
def leader() -> list[str | None]:
    return ["b"]


@pytest.fixture
def world(leader: list[str | None]) -> Iterator[dict[str, Node]]:
    loop = asyncio.new_event_loop()

    async def make() -> dict[str, Node]:
        nodes: dict[str, Node] = {}
        for name in ("a", "b"):
            Node(name, nodes, leader)
        return nodes

    nodes = loop.run_until_complete(make())
    nodes["loop"] = loop        # type: ignore[assignment]
    yield nodes
    loop.close()


def send(world: dict[str, Node], told: list[bytes | None]) -> int | None:
    async def sending() -> int | None:
        return world["a"].calls.send("ann", "1.2.3.4:5", b"work", told.append)

    loop: Any = world["loop"]
    number: int | None = loop.run_until_complete(sending())
    return number


def let_pass(world: dict[str, Node], seconds: float) -> None:
    loop: Any = world["loop"]
    loop.run_until_complete(asyncio.sleep(seconds))


def test_the_outcome_comes_back(world: dict[str, Node]) -> None:
    told: list[bytes | None] = []
    assert send(world, told) is not None
    (what, doing), = world["b"].doing
    assert (what, told) == (("ann", "1.2.3.4:5", b"work"), [])
    doing.told(b"done")
    assert told == [b"done"]


def test_a_call_may_be_done_at_once(world: dict[str, Node]) -> None:
    world["b"].at_once = b"done"
    told: list[bytes | None] = []
    send(world, told)
    assert told == [b"done"]
    world["b"].calls.lost("a")
    assert not world["b"].doing[0][1].cancelled


def test_a_call_is_recalled(world: dict[str, Node]) -> None:
    told: list[bytes | None] = []
    number = send(world, told)
    assert number is not None
    world["a"].calls.cancel(number)
    doing = world["b"].doing[0][1]
    assert doing.cancelled
    doing.told(b"late")
    assert told == [b"late"]
    world["a"].calls.cancel(number)


def test_without_another_leader_nothing_is_sent(world: dict[str, Node], leader: list[str | None]) -> None:
    for leader[0] in (None, "a"):
        assert send(world, []) is None
    leader[0] = "b"
    world["a"].peers["b"].up = False
    assert send(world, []) is None
    assert world["a"].sent == []


def test_both_sides_notice_that_the_link_is_down(world: dict[str, Node]) -> None:
    told: list[bytes | None] = []
    send(world, told)
    world["a"].calls.lost("b")
    world["b"].calls.lost("a")
    doing = world["b"].doing[0][1]
    assert told == [None]
    assert doing.cancelled
    world["b"].peers["a"].up = False
    doing.told(b"nobody hears it")
    assert told == [None]


def test_a_call_ends_when_another_node_leads(world: dict[str, Node], leader: list[str | None]) -> None:
    told: list[bytes | None] = []
    send(world, told)
    let_pass(world, 0.25)
    assert told == []
    leader[0] = "c"
    let_pass(world, 0.25)
    assert told == [None]


def test_a_leader_that_was_not_heard_for_a_while_does_not_go_on_with_what_was_given_up(
    world: dict[str, Node], leader: list[str | None],
) -> None:
    told: list[bytes | None] = []
    send(world, told)
    leader[0] = None
    let_pass(world, 0.25)
    assert told == [None]
    leader[0] = "b"
    send(world, told)
    (_, old), (_, new) = world["b"].doing
    assert (old.cancelled, new.cancelled) == (True, False)
    assert [type(message) for message in world["a"].sent] == [ForwardedCall, CancelCall, ForwardedCall]
    old.told(b"nobody waits for it")
    new.told(b"done")
    assert told == [None, b"done"]


def test_outcomes_of_before_a_restart_are_nobodys(world: dict[str, Node], leader: list[str | None]) -> None:
    before: list[bytes | None] = []
    send(world, before)
    world["b"].calls.lost("a")
    Node("a", world, leader)                # it has begun anew
    after: list[bytes | None] = []
    send(world, after)
    (_, old), (_, new) = world["b"].doing
    old.told(b"of another client")
    assert after == []
    new.told(b"done")
    assert after == [b"done"]


def test_at_the_end_of_the_node_all_are_told(world: dict[str, Node]) -> None:
    told: list[bytes | None] = []
    send(world, told)
    world["a"].calls.stop()
    assert told == [None]


def test_nothing_is_sent_or_begun_while_much_is_on_its_way_to_that_node(world: dict[str, Node]) -> None:
    told: list[bytes | None] = []
    world["a"].unsent = limits.CALLS_UNSENT_BYTES_MAX + 1
    assert send(world, told) is None
    world["a"].unsent = 0
    world["b"].unsent = limits.CALLS_UNSENT_BYTES_MAX + 1
    assert send(world, told) is not None
    assert (told, world["b"].doing) == ([None], [])


def test_an_outcome_that_comes_when_much_is_on_its_way_is_not_sent(world: dict[str, Node]) -> None:
    told: list[bytes | None] = []
    send(world, told)
    (_, doing), = world["b"].doing
    world["b"].unsent = limits.CALLS_UNSENT_BYTES_MAX + 1
    doing.told(b"done")
    assert told == [None]


def test_neither_a_call_nor_an_outcome_is_larger_than_its_bound(
    world: dict[str, Node], caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(ValueError, match="a forwarded call of"):
        world["a"].calls.send("ann", "1.2.3.4:5", bytes(limits.CALL_BYTES_MAX + 1), lambda _: None)
    told: list[bytes | None] = []
    send(world, told)
    (_, doing), = world["b"].doing
    doing.told(bytes(limits.CALL_BYTES_MAX + 1))
    assert told == [None]
    assert "was not sent" in caplog.text
