"""Takes out of the product what holds groups to their limits, rates, pauses and order."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from sockpqd.core import Later, Return
from sockpqd.core.fair.gates import GroupGates
from sockpqd.core.fair.group_order import GroupOrder
from sockpqd.core.fair.group_settings import GroupTable
from sockpqd.core.fair.open_groups import OpenGroups
from sockpqd.core.fair.queue_groups import QueueGroups
from sockpqd.core.fair.rates import SLOTS, RateWindow
from sockpqd.core.handlers.dispatch import EXECUTE
from tests.sim.cures.cure import TABLE, Cure


def let_too_many_run(patch: pytest.MonkeyPatch) -> None:
    """Do not count the RUNNING jobs of the group in the queue."""
    patch.setattr(QueueGroups, "running_of", lambda self, group: 0)


def let_too_many_run_in_all_queues(patch: pytest.MonkeyPatch) -> None:
    """Ignore LIMIT of a group."""
    real = GroupTable.of
    patch.setattr(GroupGates, "shut", lambda self, group: self.table.of(group).paused)
    patch.setattr(GroupTable, "of", lambda self, group: replace(real(self, group), limit=0))


def forget_too_early(patch: pytest.MonkeyPatch) -> None:
    """Count a hand-out for half as long as it should be counted."""
    def trim(self: RateWindow, now_ms: int) -> None:
        self.slots = [one for one in self.slots if one[0] >= now_ms // self.slot_ms - SLOTS // 2]
    patch.setattr(RateWindow, "trim", trim)


def forget_hand_outs(patch: pytest.MonkeyPatch) -> None:
    """Let rates count no hand-out."""
    patch.setattr(RateWindow, "add", lambda self, now_ms: None)


def ignore_pauses(patch: pytest.MonkeyPatch) -> None:
    """Treat a paused group as open."""
    real = GroupTable.set
    patch.setattr(GroupTable, "set", lambda self, group, settings: real(self, group, replace(settings, paused=False)))


def sleep_not_at_all(patch: pytest.MonkeyPatch) -> None:
    """Let SLEEP of a job have no effect on its group."""
    patch.setattr(OpenGroups, "sleep", lambda self, queue, group, until_ms, now_ms: None)


def overtake(patch: pytest.MonkeyPatch) -> None:
    """Let RUNNING jobs hold back nothing."""
    patch.setattr(GroupOrder, "holds", lambda self, group, job: False)


def return_to_the_end(patch: pytest.MonkeyPatch) -> None:
    """Take its place from a job whose hand-out could not be delivered."""
    later = EXECUTE[Later]
    patch.setitem(TABLE, Return, lambda state, operation, seed: later(state, Later(operation.id), seed))


GROUPED: dict[str, Any] = {
    "nodes": 3, "spares": 0, "grouped": True, "trouble_s": 6.0, "operations": 1000, "think_s": 0.05,
    "pipeline": (3, 8), "clients": 5,
}

# With the words by which the laws of groups say what is wrong (oracles/groups.py).
SAID: tuple[tuple[Cure, str], ...] = (
    (Cure(let_too_many_run, GROUPED, red=0), r"in queue \w+ has more than \d RUNNING"),
    (Cure(let_too_many_run_in_all_queues, GROUPED, red=0), r"group \w+ has more than \d RUNNING"),
    (Cure(forget_hand_outs, GROUPED, red=2), "more than . hand-outs"),
    (Cure(forget_too_early, GROUPED, red=2), "more than . hand-outs"),
    (Cure(ignore_pauses, GROUPED, red=0), "is paused and was given"),
    (Cure(sleep_not_at_all, GROUPED, red=0), "sleeps and was given"),
    (Cure(overtake, GROUPED, red=0), "was given while .* is RUNNING"),
    (Cure(return_to_the_end, GROUPED, red=173), "was given before"),
)
