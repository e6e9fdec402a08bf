"""Items over random histories: what waits for one is decided in the entry that decides it, and a cancelled one ends.

After each entry no job waits for an item to be done that has ended, to end that has but DEAD and BURIED jobs, or to
fail that has one; and a cancelled item hands nothing out, gets no job back, and lasts no longer than its running jobs
and its hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from random import Random

import pytest

from sockpqd.core import (
    CancelItem,
    Due,
    Handed,
    HandedMany,
    Machine,
    Operation,
    Put,
    PutWith,
    Removed,
    Reply,
    Results,
    Until,
    limits,
)
from sockpqd.core.rules import complete
from sockpqd.core.store.items.dependents import Dependents
from sockpqd.core.store.queues import Queues
from tests.core.helpers.logs import LogEntry, restored, snapshot_of
from tests.core.helpers.snapshot_law import assert_some_snapshots_continue
from tests.core.helpers.time_logs import ITEMS, QUEUES, random_time_log


def handed(replies: list[Reply] | tuple[Reply, ...]) -> Iterator[Handed]:
    """Return all jobs that these replies hand out."""
    for reply in replies:
        if isinstance(reply, Handed):
            yield reply
        elif isinstance(reply, HandedMany):
            yield from reply.jobs
        elif isinstance(reply, Results):
            yield from handed(reply.replies)


def cancelled(machine: Machine) -> dict[str, int]:
    """Return the items that are cancelled now, and how many jobs of each do not run."""
    found = [(name, machine.item(name)) for name in machine.item_names() if machine.is_cancelled(name)]
    return {
        name: one.ready + one.delayed + one.dead + one.buried for name, one in found if one is not None
    }


def check(machine: Machine) -> None:
    """Assert that nothing waits for what has happened, and that nothing stays that has ended."""
    state = machine._state
    for (name, until), seqs in state.delays.dependents.waiting.items():
        assert seqs
        item = state.items.by_name.get(name)
        assert item is not None, (name, until, "it has ended")
        assert until is not Until.END or not item.settled, (name, "nothing more comes")
        assert until is not Until.FAILED or not item.lost, (name, "it has failed")
    for name, left in cancelled(machine).items():
        item, figures = state.items.by_name[name], machine.item(name)
        assert figures is not None
        assert left or figures.running or item.hold is not None, (name, "it is over")
        assert not left or (machine.next_due_ms() or 0) <= machine.clock_ms, (name, "nobody removes its jobs")


def obey(log: list[LogEntry]) -> None:
    """Play the log, from a snapshot now and then, and assert the law after each entry."""
    machine = Machine()
    for place, entry in enumerate(log):
        if place % 100 == 50:
            machine = restored(snapshot_of(machine))
        machine.record(["FINI"])
        before = cancelled(machine)
        applied = machine.apply(machine.index + 1, *entry)
        ended = {event.name for event in applied.events}
        known = before.keys() - ended
        for operation, reply in zip(entry.operations, applied.replies, strict=False):
            if isinstance(operation, CancelItem) and isinstance(reply, Removed):
                known |= {operation.item} - ended
            assert not {job.item for job in handed([reply])} & known
        assert all(left <= before.get(name, left) for name, left in cancelled(machine).items() if name not in ended)
        check(machine)


def cancelling_log(seed: int, length: int) -> list[LogEntry]:
    """Return a log in which several items at a time are cancelled, in any order, and jobs of them come back later."""
    random = Random(seed)
    log = random_time_log(seed, length)
    for at in range(10, length, 10):
        names = random.sample(ITEMS, len(ITEMS))
        puts: list[Operation] = [Put(random.choice(QUEUES), 0, b"", name) for name in names * 3]
        late: list[Operation] = [PutWith(Put("a", 0, b"", name), when=Due(9000)) for name in names]
        cancels: list[Operation] = [CancelItem(name) for name in names]
        log[at] = log[at]._replace(operations=[*puts, *late, *cancels])
    return log


@cache
def several_logs() -> tuple[list[LogEntry], ...]:
    """Return logs of which at least one shows any defect of the machine."""
    return tuple(random_time_log(seed, 400) for seed in range(10))


def obey_all(logs: Sequence[list[LogEntry]]) -> None:
    """Assert the law over several logs."""
    for log in logs:
        obey(log)


@pytest.mark.parametrize("seed", range(4))
def test_the_law_of_items(seed: int) -> None:
    obey(random_time_log(seed, 500))


@pytest.mark.parametrize("seed", range(2))
def test_the_law_of_items_with_small_portions(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PORTION_MAX", 2)
    obey(random_time_log(seed, 300))


@pytest.mark.parametrize("seed", range(4))
def test_a_snapshot_keeps_the_order_in_which_jobs_of_cancelled_items_are_removed(
    seed: int, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "PORTION_MAX", 2)
    monkeypatch.setattr(limits, "DUE_MAX", 2)       # with groups all that is due is one portion
    assert_some_snapshots_continue(cancelling_log(seed, 200), every=4)


Cure = Callable[[pytest.MonkeyPatch], None]

CURES: dict[str, Cure] = {
    "the decision": lambda patch: patch.setattr(Dependents, "release", lambda *_: None),
    "the closed queue": lambda patch: patch.setattr(Queues, "withhold", lambda *_: None),
    "the end of the way back": lambda patch: patch.setattr(complete, "end_if_cancelled", lambda *_: None),
}


@pytest.mark.parametrize("cure", CURES)
def test_the_law_is_broken_without(cure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = several_logs()         # of the machine that lacks nothing
    CURES[cure](monkeypatch)
    with pytest.raises(AssertionError):
        obey_all(logs)
