"""The order of work in a turn, what it postpones, and how long turns took."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.limits import COMMIT_INDEX_WAITS_S
from sockpqd.cluster.metrics.loop_turns import MINUTE_S, LoopTurns
from sockpqd.cluster.wire.messages import Ack, Append, Info, Message
from sockpqd.core import Put, SwitchService
from tests.cluster.helpers.small_cluster import SmallCluster, SmallNode


def noting(calls: list[str], what: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def noted(*arguments: Any, **named: Any) -> Any:
        calls.append(what)
        return real(*arguments, **named)
    return noted


def watch(node: SmallNode, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the order of a node's work from now on."""
    calls: list[str] = []
    driver = node.up
    for name in ("sync", "sync_in_background"):
        monkeypatch.setattr(driver.journal, name, noting(calls, "sync", getattr(driver.journal, name)))
    monkeypatch.setattr(driver.replica, "tick", noting(calls, "tick", driver.replica.tick))
    for name in ("flush", "flush_appends", "turn_ended"):
        monkeypatch.setattr(node, name, noting(calls, name, getattr(node, name)))
    return calls


def test_a_leader_sends_entries_then_replies_then_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    world = SmallCluster(3)
    leader = world.leader()
    calls = watch(leader, monkeypatch)
    leader.propose(Put("q", 0, b"x"))
    leader.up.turn()
    assert [call for call in calls if call != "tick"][:3] == ["flush_appends", "turn_ended", "sync"]


def test_a_turn_may_leave_what_is_queued_to_a_later_one() -> None:
    world = SmallCluster(3)
    leader = world.leader()
    outcome = leader.propose(Put("q", 0, b"x"))
    leader.up.turn(propose=False)
    assert leader.up.proposer.queued == 1
    leader.up.turn()
    assert leader.up.proposer.queued == 0
    world.run_until(lambda: outcome.state == "applied")


def test_a_new_commit_index_is_synced_with_the_next_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    world = SmallCluster(3)
    world.put_now()
    world.run(2.0)
    syncs: list[str] = []
    for node in world:
        monkeypatch.setattr(node.disk, "sync", noting(syncs, node.name, node.disk.sync))
    for _ in range(100):                # three of the seconds in which the library wants it written
        world.put_now()
        world.run(0.03)
    assert {node.name: syncs.count(node.name) for node in world} == dict.fromkeys(("n1", "n2", "n3"), 100)


def test_it_is_synced_by_itself_when_there_are_none() -> None:
    world = SmallCluster(3)
    for _ in range(100):
        world.put_now()
        world.run(0.02)
    world.run(1.0 + COMMIT_INDEX_WAITS_S + 0.1)
    last = world.leader().up.journal.last_index
    for node in world:
        world.kill(node.name)
        journal = Journal.open(Path("/journal"), node.disk)
        assert journal.getRaftCommitIndex() == last
        journal.close()


def append_to(world: SmallCluster, follower: SmallNode) -> None:
    """Propose one job; its entry is in the follower's inbox."""
    world.put_now()
    world.run_until(world.settled)
    leader = world.leader()
    kept: list[Message] = []

    def keep(source: str, target: str, message: Message) -> bool:
        if target == follower.name and isinstance(message, Append):
            kept.append(message)
        return target != follower.name
    world.filter = keep
    leader.propose(Put("q", 0, b"x"))
    leader.up.turn()
    follower.up.inbox += [(leader.name, message) for message in kept]


def test_a_follower_answers_before_it_executes(monkeypatch: pytest.MonkeyPatch) -> None:
    world = SmallCluster(3)
    world.leader()
    follower = world.followers()[0]
    append_to(world, follower)
    follower.up._housekeeping_at = 0.0
    calls = watch(follower, monkeypatch)
    follower.up.turn()
    assert calls.index("sync") < calls.index("flush") < calls.index("tick")


def test_an_unusual_message_is_followed_by_chores(monkeypatch: pytest.MonkeyPatch) -> None:
    world = SmallCluster(3)
    world.leader()
    follower = world.followers()[0]
    follower.up._housekeeping_at = world.now + 1
    judged: list[float] = []
    monkeypatch.setattr(follower.up.leadership, "update_serving", judged.append)
    follower.up.turn()
    assert not judged
    info = next(message for _, _, message in reversed(world.sent) if isinstance(message, Info))
    follower.up.inbox.append((world.leader().name, info))
    follower.up.turn()
    assert judged


def test_who_has_become_leader_does_not_wait_for_a_message_to_serve() -> None:
    world = SmallCluster(1)
    driver = world["n1"].up
    world.run_until(lambda: driver.replica.is_leader)
    turns = 0
    while not driver.leadership.serving and driver.busy:
        driver.turn()
        turns += 1
    assert driver.leadership.serving, f"{turns} turns, and nothing more to do"


def test_a_service_that_is_switched_off_serves_nobody_in_the_next_turn() -> None:
    world = SmallCluster(3)
    leader = world.leader()
    switched = leader.propose(SwitchService(online=False))
    world.run_until(lambda: switched.state == "applied")
    while leader.up.proposer.accepting and leader.up.busy:
        leader.up.turn()
    assert leader.propose(Put("q", 0, b"x")).state == "refused"


def test_only_answers_that_commit_something_are_urgent() -> None:
    world = SmallCluster(3)
    world.put_now()
    world.run_until(world.settled)
    world.turn(world.leader().name)         # counts what keeps its lease
    driver = world.leader().up
    committed = driver.replica.commit_index

    def answer(next_index: int, success: bool = True, snapshot: int | None = None) -> Ack:
        return Ack(driver.replica.term, 1, world.now, next_index, not success, success, snapshot)
    assert not driver.urgent(answer(committed + 1))
    driver.journal.add(b"", committed + 1, driver.replica.term)
    assert not driver.urgent(answer(committed + 2)), "not durable here"
    driver.journal.sync()
    assert driver.urgent(answer(committed + 2))
    assert driver.urgent(answer(committed, success=False)), "the follower asks for other entries"
    assert driver.urgent(answer(committed + 1, snapshot=1)), "a transfer has ended"
    assert driver.urgent(None)
    assert driver.urgent(next(message for _, _, message in world.sent if isinstance(message, Append)))


def test_the_end_of_a_sync_gives_work_only_where_something_waits_for_it() -> None:
    world = SmallCluster(3)
    world.put_now()
    world.run_until(world.settled)
    driver = world.leader().up
    driver.inbox = []
    assert not driver.sync_ended()
    # It came while the leader's own copy was not durable, and was not urgent then.
    driver.inbox.append((world.followers()[0].name, Ack(driver.replica.term, 1, world.now, 2, False, True, None)))
    assert driver.sync_ended()
    driver.inbox = []
    driver.journal.add(b"", driver.journal.last_index + 1, driver.replica.term)
    assert driver.sync_ended(), "there is more to sync"


def test_the_longest_turn_is_forgotten_after_two_minutes() -> None:
    turns = LoopTurns()
    now = 1000.0
    turns.observe(now, now + 0.5)
    turns.observe(now + 1, now + 1.1)
    assert turns.longest_s == pytest.approx(0.5)
    now += MINUTE_S + 2
    turns.observe(now, now + 0.2)
    assert turns.longest_s == pytest.approx(0.5)
    now += MINUTE_S + 2
    turns.observe(now, now + 0.001)
    assert turns.longest_s == pytest.approx(0.2)
    now += 3 * MINUTE_S
    turns.observe(now, now + 0.001)
    assert turns.longest_s == pytest.approx(0.001)
    assert sum(turns.seconds.counts) == 5
