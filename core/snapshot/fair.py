"""Writes the groups and levels of FAIR to a snapshot, and restores them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sockpqd.core import limits
from sockpqd.core.fair.deferred_offers import Task
from sockpqd.core.fair.levels import FairSettings, GroupAccount, Levels, allowed
from sockpqd.core.fair.scheduler import FairScheduler
from sockpqd.core.pages.grouped_ready import GroupedReady
from sockpqd.core.pages.paged_delays import PagedDelays
from sockpqd.core.snapshot.frames import FairRows, FairTable, Frame, check
from sockpqd.core.state import State
from sockpqd.core.store.job import DelayedJob, group_of
from sockpqd.core.store.queues import DelayedJobs, Queue


def fair_frames(scheduler: FairScheduler | None) -> Iterator[Frame]:
    """Yield the frames of the groups, none if FAIR is not in use."""
    if scheduler is None:
        return
    levels, settings = scheduler.levels, scheduler.levels.settings
    yield FairTable(
        settings.thresholds_s, settings.cap_ms, settings.multiplier, settings.keep_ms, scheduler.started_ms,
        scheduler.next_turn,
        [
            (str(time_ns), None if least_ns is None else str(least_ns), selected)
            for time_ns, least_ns, selected in zip(levels.time_ns, levels.least_ns, levels.selected, strict=True)
        ],
        [(task.queue, task.reached) for task in scheduler.offers.tasks],
        len(scheduler.accounts),
        unit_ns=1,
    )
    rows = [
        (name, str(one.used_us), one.level, str(one.priority_ns), one.turn, one.offered, one.idle_ms)
        for name, one in sorted(scheduler.accounts.items())
    ]
    for start in range(0, len(rows), limits.FRAME_JOBS_MAX):
        yield FairRows(rows[start : start + limits.FRAME_JOBS_MAX])


def restored_scheduler(state: State, table: FairTable, clock_ms: int) -> FairScheduler:
    """Return the groups of a state whose jobs are all in place, without their accounts. Raises SnapshotError."""
    check(len(table.levels) == limits.LEVELS_MAX, "levels are missing")
    settings = FairSettings(table.thresholds_s, table.cap_ms, table.multiplier, table.keep_ms)
    check(allowed(settings), "settings of groups are wrong")
    check(table.next_turn > 0, "there is no next turn")
    check(table.unit_ns in (1, 1000), "times are neither nanoseconds nor microseconds")
    check(len({queue for queue, _ in table.tasks}) == len(table.tasks), "groups of a queue are to be offered twice")
    scheduler = FairScheduler(state.queues, table.started_ms, state.groups)
    scheduler.now_ms = clock_ms
    scheduler.next_turn = table.next_turn
    scheduler.levels = Levels(
        settings,
        [_number(time) * table.unit_ns for time, _, _ in table.levels],
        [None if least is None else _number(least) * table.unit_ns for _, least, _ in table.levels],
        [selected for _, _, selected in table.levels],
    )
    scheduler.offers.tasks = [Task(queue, reached) for queue, reached in table.tasks]
    return scheduler


def restored_account(
    row: tuple[str, str, int, str, int, bool, int | None], scheduler: FairScheduler, unit_ns: int,
) -> GroupAccount:
    """Restore the account of one group. `unit_ns`: the unit of its priority, in nanoseconds. Raises SnapshotError."""
    name, used_us, level, priority, turn, offered, idle_ms = row
    check(level < limits.LEVELS_MAX, "a group is beyond the last level")
    check(turn < scheduler.next_turn, "a turn that was not given yet")
    return GroupAccount(name, _number(used_us), level, _number(priority) * unit_ns, turn, offered, idle_ms)


def _number(digits: str) -> int:
    check(digits.isdecimal() and digits.isascii() and len(digits) <= 4000, "a time is no number")
    check(digits == "0" or digits[0] != "0", "a time has leading zeros")
    return int(digits)


def check_accounts(scheduler: FairScheduler) -> None:
    """Check that each account matches the jobs of its group. Raises SnapshotError if not."""
    for account in scheduler.accounts.values():
        idle = scheduler.counts(account.name) == (0, 0)
        check((account.idle_ms is not None) == idle, "a group is idle and has jobs")
        check(not account.offered or scheduler.has_ready(account), "a group is offered and has no job")


def _in_memory(jobs: DelayedJobs | None) -> Iterable[DelayedJob]:
    """Return these jobs, except those in pages."""
    return jobs.near if isinstance(jobs, PagedDelays) else jobs or ()


def split_by_groups(queue: Queue) -> None:
    """List the jobs by groups if there are several. All jobs are in memory."""
    others = [job for job in queue.ready if group_of(job) != queue.name]
    if others:
        GroupedReady.split(queue, others)


def count_jobs(state: State, scheduler: FairScheduler) -> None:
    """Add all jobs that are in queues of other names to their groups.

    RUNNING ones come first: READY jobs are listed by open groups, which are known only when all running jobs are
    counted.
    """
    for job in state.running.values():
        settings = state.queues.by_name[job.queue].settings
        if group_of(job) != job.queue or (settings is not None and settings.group_order):
            scheduler.started(job)
    for queue in state.queues.by_name.values():
        for delayed in _in_memory(queue.delayed):
            if group_of(delayed) != queue.name:
                scheduler.deferred(delayed)
        if isinstance(queue.delayed, PagedDelays):
            for group, jobs in queue.delayed.groups.items():
                scheduler.restore_deferred(queue, group, jobs)
        if queue.seqs is not None:          # the others were listed by groups as they came
            split_by_groups(queue)
        scheduler.restore_ready(queue)
