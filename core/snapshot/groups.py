"""Writes the settings of groups and their rates to a snapshot, and restores them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from msgspec.structs import asdict

from sockpqd.core import limits
from sockpqd.core.fair.group_settings import NO_SETTINGS, GroupSettings, GroupTable
from sockpqd.core.fair.rates import RateWindow, RateWindows
from sockpqd.core.fair.scheduler import FairScheduler
from sockpqd.core.snapshot.frames import GroupRow, GroupRows, RateRow, RateRows, check


def group_frames(table: GroupTable) -> Iterator[GroupRows]:
    """Yield the frames of the settings, none if no group has any."""
    rows = [GroupRow(name, **asdict(settings)) for name, settings in table.by_name.items()]
    for start in range(0, len(rows), limits.FRAME_JOBS_MAX):
        yield GroupRows(rows[start : start + limits.FRAME_JOBS_MAX])


def restored_group(row: GroupRow, table: GroupTable) -> None:
    """Give the group its settings. Raises SnapshotError."""
    values = asdict(row)
    del values["name"]
    settings = GroupSettings(**values)
    check(settings != NO_SETTINGS, "a group has no settings")
    check(not table.by_name or table.by_name.peekitem(-1)[0] < row.name, "settings of groups are not in order")
    check(1 <= row.weight <= limits.GROUP_WEIGHT_MAX, "weight of a group out of range")
    check_rate(row.rate, row.per_ms)
    check(row.paused or not row.pause_ends_ms, "a pause that has no beginning ends")
    table.set(row.name, settings)


def check_rate(rate: int, per_ms: int) -> None:
    """Check the rate of a group. Raises SnapshotError."""
    check(rate <= limits.GROUP_RATE_MAX, "rate of a group out of range")
    check(
        limits.GROUP_PER_MS_MIN <= per_ms <= limits.GROUP_PER_MS_MAX if rate else not per_ms,
        "period of a group out of range",
    )


def rate_frames(scheduler: FairScheduler | None) -> Iterator[RateRows]:
    """Yield the frames of recent hand-outs, none if no rate has counted any."""
    rows = [] if scheduler is None else [
        RateRow(
            queue, group, window.slot_ms, window.slots, window.closed, window.sleep_until_ms, window.due_ms,
        )
        for queue, windows in sorted(scheduler.open.gates.windows.by_queue.items())
        for group, window in sorted(windows.items())
    ]
    for start in range(0, len(rows), limits.FRAME_JOBS_MAX):
        yield RateRows(rows[start : start + limits.FRAME_JOBS_MAX])


def restored_rate(row: RateRow, windows: RateWindows) -> None:
    """Restore the recent hand-outs of a group. Raises SnapshotError."""
    check(row.slot_ms > 0 and row.due_ms > 0, "a rate without time")
    check(all(before < after for (before, _), (after, _) in pairwise(row.slots)), "hand-outs are not in order")
    check(all(count > 0 for _, count in row.slots), "a slot without hand-outs")
    check(windows.find(row.queue, row.group) is None, "the hand-outs of a group come twice")
    windows.set(row.queue, row.group, RateWindow(
        row.slot_ms, list(row.slots), row.closed, row.sleep_until_ms, row.due_ms,
    ))
