"""When a journal is synced, and when a leader waits for it: the moments."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.syncing import Syncing

PATIENCE_S = 0.5                # a binary fraction: exactly then


class Node:
    """A leader with a disk that works in the background as long as `slow`; what was asked of its journal."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, bool]] = []
        self.slow = False
        self.journal = SimpleNamespace(unsynced=False, sync=self._sync, sync_in_background=self._background)
        self.syncing = Syncing(
            cast(Any, self.journal), cast(Any, SimpleNamespace(entries=0, answered=0)), lambda: 0.0, PATIENCE_S,
        )
        self.syncing.pipelining = cast(Any, SimpleNamespace(
            background_bytes=lambda now: 1 << 20, synced=lambda lasted_s, now: self.asked.append(("measured", True))))

    def _sync(self, *, alone: bool) -> None:
        self.asked.append(("wait", alone))

    def _background(self, *, alone: bool, from_bytes: int) -> bool:
        self.asked.append(("background", alone))
        return not self.slow

    def lead(self, now: float) -> list[str]:
        self.asked = []
        self.syncing.lead(now)
        return [what for what, _ in self.asked]

    def alone(self, now: float) -> bool:
        """Return whether a new commit index is synced by itself now."""
        self.asked = []
        self.syncing.wait(now)
        return self.asked == [("wait", True)]


def test_a_leader_waits_once_its_patience_is_over() -> None:
    node = Node()
    assert node.lead(10.0) == ["wait"]                  # nothing is known to be durable yet
    node.slow = True
    assert node.lead(10.0 + PATIENCE_S / 2) == ["background"]
    assert node.lead(10.0 + PATIENCE_S) == ["wait"]
    node.slow = False
    assert node.lead(10.0 + 1.5 * PATIENCE_S) == ["background"]
    assert node.lead(10.0 + 2 * PATIENCE_S) == ["background"]
    assert node.lead(10.0 + 3 * PATIENCE_S) == ["wait"]


def test_what_was_written_is_measured() -> None:
    node = Node()
    node.lead(10.0)
    node.journal.unsynced = True
    assert node.lead(10.1) == ["background", "measured"]
    node.slow = True
    assert node.lead(10.2) == ["background"]


@pytest.mark.parametrize("hurry", [False, True])
def test_a_commit_index_waits_for_entries_unless_there_is_a_hurry(*, hurry: bool) -> None:
    node = Node()
    now = 0.0
    assert node.alone(now)              # never yet
    node.journal.unsynced = True
    assert not node.alone(now)
    node.journal.unsynced = False
    if hurry:
        node.syncing.hurry()
    assert node.alone(now + limits.COMMIT_INDEX_WAITS_S / 2) is hurry
    assert node.alone(now + limits.COMMIT_INDEX_WAITS_S)
