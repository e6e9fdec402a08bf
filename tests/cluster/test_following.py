"""The delay of a follower's housekeeping while it receives its leader's messages in order all the time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.wire.messages import Info, Message
from sockpqd.core import Put
from tests.cluster.helpers.small_cluster import DELAY_S, SmallCluster, SmallNode

EVERY_S = 0.003                 # between two entries
LATE_S = limits.HOUSEKEEPING_S + limits.FOLLOWING_S + EVERY_S + DELAY_S
SECONDS = 3.0


@pytest.fixture
def world() -> SmallCluster:
    """Return nodes that sleep until something is due, so that a follower has turns for its leader's messages only."""
    world = SmallCluster(3)
    world.put_now()
    world.run_until(world.settled)
    return world


def load(world: SmallCluster, seconds: float = SECONDS) -> Iterator[None]:
    """Propose entries without a pause, a step each."""
    leader = world.leader()
    end = world.now + seconds
    while world.now < end:
        leader.propose(Put("q", 0, b"x"))
        world.turn(leader.name)
        world.run(EVERY_S)
        yield


def longest(times: list[float]) -> float:
    return max(after - before for before, after in pairwise(times))


def housekeepings(node: SmallNode, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record when this node does its housekeeping, from now on."""
    times: list[float] = []
    real = node.up._housekeeping_before_tick

    def noted(now: float) -> None:
        times.append(now)
        real(now)
    monkeypatch.setattr(node.up, "_housekeeping_before_tick", noted)
    return times


def test_it_is_late_by_no_more_than_following_s(world: SmallCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    times = {node.name: housekeepings(node, monkeypatch) for node in world.followers()}
    for _ in load(world):
        pass
    for found in times.values():
        assert found[-1] - found[0] > SECONDS - 2 * LATE_S
        assert longest(found) <= LATE_S
        assert len(found) < SECONDS / limits.HOUSEKEEPING_S / 4, "and it is put off, or this tests nothing"


def test_a_follower_describes_itself_in_time(world: SmallCluster) -> None:
    sent: dict[str, list[float]] = {node.name: [] for node in world.followers()}
    leader = world.leader()

    def note(source: str, target: str, message: Message) -> bool:
        if isinstance(message, Info) and target == leader.name and source in sent:
            sent[source].append(world.now)
        return True
    world.filter = note
    for _ in load(world):
        pass
    for times in sent.values():
        assert longest(times) <= limits.INFO_S + LATE_S


def test_what_is_wanted_at_once_is_not_put_off(world: SmallCluster) -> None:
    follower = world.followers()[0]
    asked: list[tuple[float, frozenset[str]]] = []
    told: list[float] = []

    def note(source: str, target: str, message: Message) -> bool:
        news = isinstance(message, Info) and source == follower.name and len(told) < len(asked)
        if news and frozenset(message.subscribed or ()) == asked[-1][1]:
            told.append(world.now)
        return True
    world.filter = note
    for step, _ in enumerate(load(world)):
        if step % 50 == 20:
            asked.append((world.now, frozenset(("PUT", f"OTHER{step}"))))
            follower.up.subscribed(asked[-1][1])
    assert len(told) == len(asked) > 10
    assert max(at - since for at, (since, _) in zip(told, asked, strict=True)) <= EVERY_S + DELAY_S
