"""Syncs of the journal: their times, the waits of the loop for them, and the messages that leave then."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.syncing import Syncing

PATIENCE_S = 0.5                # a binary fraction: exactly then


class Node:
    """A node whose disk works in the background as long as `slow`; with the calls of its journal and its network."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.slow = False
        self.ended = False              # a sync in the background has, although the next one may be slow
        self.alone = False
        self.journal = SimpleNamespace(
            unsynced=False, unsynced_bytes=0, binds=False, syncing=None, sync_s=0.0, sync=self._sync,
            poll_sync=self._poll_sync, sync_in_background=self._sync_in_background,
        )
        network = SimpleNamespace(**{
            name: lambda name=name: self.asked.append(name) for name in ("hold", "release", "flush", "flush_appends")})
        self.syncing = Syncing(
            cast(Any, self.journal), cast(Any, SimpleNamespace(entries=0, answered=0)), cast(Any, network),
            lambda: 0.0, PATIENCE_S,
        )

    def _sync(self, *, alone: bool) -> None:
        self.asked.append("wait")
        self.journal.syncing, self.alone = None, alone

    def _sync_in_background(self, *, alone: bool, from_bytes: int) -> bool:
        self.asked.append("sync")
        self.journal.syncing, self.alone = "sync" if self.slow else None, alone
        return not self.slow

    def _poll_sync(self) -> bool:
        ended = self.ended or not self.slow
        if ended:
            self.journal.syncing = None
        return ended

    def lead(self, now: float) -> list[str]:
        return self.sync(now, leads=True)

    def follow(self, now: float) -> list[str]:
        return self.sync(now, leads=False)

    def sync(self, now: float, *, leads: bool) -> list[str]:
        self.asked = []
        self.syncing.sync(now, leads=leads)
        return self.asked


def test_everything_leaves_when_everything_is_durable() -> None:
    assert Node().follow(10.0) == ["sync", "flush"]


def test_what_was_queued_before_a_sync_leaves_when_it_has_ended_and_the_rest_after_the_next() -> None:
    node = Node()
    node.slow = True
    assert node.follow(10.0) == ["sync", "hold", "flush_appends"]
    assert node.follow(10.1) == ["flush_appends"]
    node.slow = False
    node.journal.unsynced = True
    assert node.follow(10.2) == ["release", "sync", "flush"]


@pytest.mark.parametrize(("unsynced", "sent"), [(False, "flush"), (True, "release")])
def test_all_messages_leave_with_the_end_of_the_sync_unless_there_is_more_to_sync(
    *, unsynced: bool, sent: str,
) -> None:
    node = Node()
    node.slow = True
    node.follow(10.0)
    node.follow(10.1)                       # messages of this turn were not there when the sync began
    node.asked, node.slow, node.journal.unsynced = [], False, unsynced
    node.syncing.poll()
    node.syncing.poll()
    assert node.asked == [sent]


def test_a_leader_waits_once_its_patience_is_over() -> None:
    node = Node()
    assert node.lead(10.0) == ["wait", "flush"]         # nothing is known to be durable yet
    node.slow = True
    assert node.lead(10.25) == ["sync", "hold", "flush_appends"]
    assert node.lead(10.0 + PATIENCE_S - 0.01) == ["flush_appends"]
    assert node.lead(10.0 + PATIENCE_S) == ["wait", "flush"]


def test_its_patience_begins_anew_with_each_sync_that_ends() -> None:
    node = Node()
    node.lead(10.0)
    node.slow = node.ended = True
    for turn in range(1, 10):
        assert node.lead(10.0 + turn / 4) == ["flush"] * (turn > 1) + ["sync", "hold", "flush_appends"]


def test_a_follower_is_patient() -> None:
    node = Node()
    node.slow = True
    node.follow(10.0)
    assert node.follow(10.0 + 100 * PATIENCE_S) == ["flush_appends"]


def test_a_node_that_has_too_much_to_write_waits() -> None:
    node = Node()
    node.slow = True
    node.follow(10.0)
    node.journal.unsynced_bytes = limits.UNSYNCED_BYTES_MAX
    assert node.follow(10.1) == ["wait", "flush"]


def test_a_term_and_a_vote_are_waited_for() -> None:
    node = Node()
    node.slow = True
    node.journal.binds = True
    assert node.follow(10.0) == ["wait", "flush"]
    assert node.lead(10.1) == ["wait", "flush"]


@pytest.mark.parametrize("beside", [False, True])
def test_slow_syncs_are_measured_wherever_they_are_done(monkeypatch: pytest.MonkeyPatch, *, beside: bool) -> None:
    node = Node()
    node.journal.unsynced, node.journal.sync_s = True, 1.0
    times = iter(range(100))
    monkeypatch.setattr(node.syncing, "_monotonic", (lambda: 0.0) if beside else lambda: next(times))
    for turn in range(10):
        node.slow = beside
        node.follow(10.0 + turn)
        node.slow = False
        node.syncing.poll()
    assert node.syncing.pace.sluggish


@pytest.mark.parametrize("hurry", [False, True])
def test_a_commit_index_waits_for_entries_unless_there_is_a_hurry(*, hurry: bool) -> None:
    node = Node()
    node.follow(0.0)
    assert node.alone                   # never yet
    node.journal.unsynced = True
    node.follow(0.0)
    assert not node.alone
    node.journal.unsynced = False
    if hurry:
        node.syncing.hurry()
    node.follow(limits.COMMIT_INDEX_WAITS_S / 2)
    assert node.alone is hurry
    node.follow(limits.COMMIT_INDEX_WAITS_S)
    assert node.alone


def test_a_leader_that_hands_over_waits_only_for_a_single_sync_that_takes_too_long() -> None:
    node = Node()
    node.lead(9.9)
    node.slow = node.journal.unsynced = True
    node.lead(10.0)
    node.ended = True                       # the first sync; the next one begins
    assert node.lead(10.25)[-2:] == ["hold", "flush_appends"]
    node.ended = False
    for now, waits in ((10.5, False), (10.75, True)):
        node.syncing.hands_over = True
        assert ("wait" in node.lead(now)) is waits


def test_a_disk_lags_when_the_sync_that_goes_on_and_the_one_before_take_long_together() -> None:
    node = Node()
    node.lead(9.9)
    node.slow = True
    share_s, together_s = limits.LAGGING_SYNC_SHARE * PATIENCE_S, limits.LAGGING_SHARE * PATIENCE_S
    node.lead(10.0)
    assert not node.syncing.lags(10.0 + 0.99 * together_s)
    assert node.syncing.lags(10.0 + 1.01 * together_s)
    node.ended, node.journal.sync_s = True, together_s
    node.syncing.poll()
    assert not node.syncing.lags(10.4)
    node.lead(10.4)                         # the next one begins
    assert not node.syncing.lags(10.4 + 0.99 * share_s)
    assert node.syncing.lags(10.4 + 1.01 * share_s)
