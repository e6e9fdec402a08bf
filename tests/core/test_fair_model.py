"""Random histories in which groups use much time: machine and reference model share it out alike (spec/fair 3, 4).

The histories of the laws (laws/test_time_laws.py) have groups too, among everything else that can be asked for. These
are about little else: long runs, levels, pauses and limits, slices that end with YIELD, transactions that abort.
"""

from __future__ import annotations

from random import Random

import pytest

from sockpqd.core import (
    Batch,
    Change,
    Configure,
    ConfigureGroup,
    ConfigureQueue,
    DeleteGroup,
    Done,
    End,
    FairChange,
    Feedback,
    Get,
    GetWith,
    Handed,
    HandedMany,
    How,
    Kick,
    Later,
    Machine,
    Move,
    Operation,
    Order,
    PauseQueue,
    Policy,
    Put,
    PutWith,
    QueueChange,
    Return,
    Sched,
    Selector,
    Tick,
    Touch,
)
from sockpqd.core.fair import first_jobs
from sockpqd.core.store.items import item as items
from tests.core.helpers.agreement import assert_equal_to_model
from tests.core.helpers.logs import LogEntry, restored, snapshot_of
from tests.core.helpers.rankings import RANKING_NAMES, RANKINGS
from tests.core.model.model import Model

QUEUES = ("q", "r", "s")
GROUPS = ("a", "b", "c", "d", "q")      # the last one is also that of a queue
ASKED = (None, None, ("q",), ("r", "s"))
LEVELS = ((0, 1, 10, 60, 300), (0, 1), (0, 5, 9), (0, 1, 2, 3, 4, 5))
PER_MS = (100, 333, 1600, 20_000)
RAN_MS = (0, 5, 900, 1000, 7000, 700_000)


def operation(random: Random, ids: list[int]) -> Operation:
    """One that has to do with groups."""
    queue, group, number = random.choice(QUEUES), random.choice(GROUPS), random.choice(ids or [0])
    ran_ms, item = random.choice(RAN_MS), random.choice([None, None, "x"])
    put = Put(queue, random.choice([0, 0, 1]), b"", item)
    grouped = PutWith(put, group=group)
    get = Get(random.choice(ASKED), random.choice([None, None, 5000]), item=random.choice([None, None, None, "x"]))
    slice_ends = End(number, How.LATER, first=random.random() < 0.3, yielded=True, ran_ms=ran_ms)
    sleeps: list[Operation] = [
        End(number, how, feedback=Feedback.SLEEP, sleep_ms=random.choice([0, 300, 50_000]))
        for how in (How.DONE, How.LATER)
    ]
    kinds: list[tuple[int, list[Operation]]] = [
        (30, [grouped, grouped, put]),
        (30, [GetWith(get, random.choice([None, None, 3]), random.choice([Policy.FAIR] * 4 + [None, Policy.RANDOM]))]),
        (10, [End(number, How.DONE, ran_ms=ran_ms), Done(number)]),
        (10, [slice_ends, End(number, How.LATER, ran_ms=ran_ms), Later(number)]),
        (5, [Touch(number), Touch(number, ran_ms=ran_ms), Change(Selector(number), priority=random.choice([0, 2]))]),
        (3, [End(number, How.LATER, first=True), End(number, How.LATER, first=True, priority=1)]),
        (3, [Return(number), End(number, How.BURY), Move(number, queue), Kick(queue, 2)]),
        (3, [PauseQueue(queue, False, True)]),
        (4, [PauseQueue(queue, False, False)]),
        (4, [
            ConfigureQueue(queue, QueueChange(limit=random.choice([0, 1, 2]), item_limit=random.choice([0, 1]))),
            ConfigureQueue(queue, QueueChange(batch=random.choice([0, 1]), sched=random.choice(list(Sched)))),
            ConfigureQueue(queue, QueueChange(tries=random.choice([0, 2]))),
        ]),
        (2, [
            ConfigureQueue(queue, QueueChange(sched=random.choice([Sched.FAIR, Sched.GROUPS]), group_order=True)),
            ConfigureQueue(queue, QueueChange(sched=Sched.FIFO, group_order=False)),
            ConfigureQueue(queue, QueueChange(order=random.choice(list(Order)))),
        ]),
        (2, [
            Configure(
                fair=FairChange(multiplier=random.choice([1, 2, 3, 7, 100]), keep_ms=random.choice([0, 1000, 600_000])),
            ),
            Configure(fair=FairChange(random.choice(LEVELS), random.choice([1000, 30_000]))),
            Configure(policy=random.choice([Policy.FAIR, Policy.RANDOM])),
        ]),
        (4, [
            ConfigureGroup(group, weight=random.choice([1, 3, 7, 1000])), DeleteGroup(group),
            ConfigureGroup(group, paused=False),
            ConfigureGroup(group, limit=random.choice([0, 1, 2])),
            ConfigureGroup(group, paused=True, pause_ms=random.choice([None, 700, 9000])),
            ConfigureGroup(group, rate=random.choice([0, 1, 2, 5]), per_ms=random.choice(PER_MS)),
            ConfigureQueue(queue, QueueChange(group_rate=random.choice([0, 2, 3]), group_per_ms=random.choice(PER_MS))),
            ConfigureQueue(queue, QueueChange(group_limit=random.choice([0, 1, 2]))),
        ]),
        (4, sleeps),
        (3, [
            Batch((PutWith(put, group="new"), End(number, How.DONE, ran_ms=9000), slice_ends, last), atomic=True)
            for last in (Done(0), Touch(number))
        ]),
        (2, [Batch((sleep, grouped, last), atomic=True) for last in (Done(0), put) for sleep in sleeps]),
        (3, [Tick()]),
    ]
    return random.choice(random.choices([few for _, few in kinds], [weight for weight, _ in kinds])[0])


def history(seed: int, length: int) -> list[LogEntry]:
    """A log of this many entries; a machine that plays along tells the ids."""
    random, machine = Random(seed), Machine()
    now_ms, ids = 1_000_000, list[int]()
    log: list[LogEntry] = []
    while len(log) < length:
        now_ms += random.choice([0, 1, 300, 2500, 40_000])
        log.append(LogEntry(now_ms, random.getrandbits(64), [operation(random, ids)]))
        machine.apply(len(log), *log[-1])
        ids = [job.id for job in machine.running()]
    return log


@pytest.mark.parametrize(("few", "wide"), RANKINGS, ids=RANKING_NAMES)
@pytest.mark.parametrize("seed", range(12))
def test_machine_equals_reference_model_over_a_history_of_groups(
    seed: int, few: int, wide: int, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(first_jobs, "FEW", few)
    monkeypatch.setattr(first_jobs, "WIDE", wide)
    monkeypatch.setattr(items, "LOOKED_AT", few)
    assert_equal_to_model(history(seed, 250), Machine(), Model(), every=5)


@pytest.mark.parametrize(("few", "wide"), [*RANKINGS, (2, 1)], ids=[*RANKING_NAMES, "most-wide"])
@pytest.mark.parametrize("seed", range(12, 24))
def test_a_restored_machine_goes_on_like_the_one_of_the_snapshot(
    seed: int, few: int, wide: int, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(first_jobs, "FEW", few)
    monkeypatch.setattr(first_jobs, "WIDE", wide)
    monkeypatch.setattr(items, "LOOKED_AT", few)
    machine, again = Machine(), Machine()
    for number, entry in enumerate(history(seed, 250)):
        assert machine.apply(number + 1, *entry).replies == again.apply(number + 1, *entry).replies
        assert machine._own.spent == again._own.spent      # by which entries end, and portions of them
        if number % 10 == 0:
            before = snapshot_of(machine)
            again = restored(before)
            assert snapshot_of(again) == before


def kept(machine: Machine) -> dict[str, object]:
    """Return how the groups are kept in queues with many: by this the work of commands is counted."""
    scheduler = machine._own.fair
    if scheduler is None:
        return {}
    accounts: dict[str, object] = {name: (one.moves, one.wide) for name, one in scheduler.accounts.items()}
    return accounts | {f"queue {name}": (one.ranking is None, sorted(one.wide), one.shown or not one.wide)
                       for name, one in scheduler.queue_groups.items() if one.ready is not None}


@pytest.mark.parametrize("seed", range(20, 24))
def test_how_groups_are_kept_follows_from_the_jobs_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_jobs, "FEW", 2)
    monkeypatch.setattr(first_jobs, "WIDE", 1)
    machine, ways = Machine(), set[str]()
    for number, entry in enumerate(history(seed, 250)):
        machine.apply(number + 1, *entry)
        if number % 5 == 0:
            assert kept(restored(snapshot_of(machine))) == kept(machine), number
        ways.update(str(one) for name, one in kept(machine).items() if not name.startswith("queue "))
    assert {"(1, False)", "(0, True)"} <= ways


def test_the_histories_have_all_there_is() -> None:
    machine, given = Machine(), 0
    for number, entry in enumerate(history(9, 250)):
        for reply in machine.apply(number + 1, *entry).replies:
            given += len(reply.jobs) if isinstance(reply, HandedMany) else isinstance(reply, Handed)
    assert given > 50
    assert len([level for level in machine.fair_levels() if level.selected]) > 1
