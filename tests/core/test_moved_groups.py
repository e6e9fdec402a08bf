"""Groups with jobs in many queues are ranked again in each of them: that work is foreseen, and done in portions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sockpqd.core import (
    Accepted,
    Batch,
    CloseSession,
    ConfigureQueue,
    DeleteQueue,
    Done,
    End,
    Get,
    GetWith,
    Handed,
    HandedMany,
    How,
    Later,
    Machine,
    Move,
    OpenSession,
    Operation,
    Policy,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    Removed,
    Reply,
    Request,
    Sched,
    Tick,
    Touch,
)
from sockpqd.core.fair import first_jobs
from sockpqd.core.handlers.cost import RANKED
from sockpqd.core.limits import LEASE_BITS, PORTION_BYTES_MAX, SPENT_MAX, STEP
from tests.core.handlers.test_work import STEPS_PER_WORK, steps_of, work_of
from tests.core.helpers.logs import restored, snapshot_of

START_MS = 1_700_000_000_000
GROUPS, QUEUES = 40, 100
PLACES = GROUPS * QUEUES
TICK_MS = 1 << LEASE_BITS
EXTRA_MS = 1500         # each hand-out has run for so long that its group moves to another place


def do(machine: Machine, *operations: Operation, after_ms: int = 0) -> list[Reply]:
    """Execute an entry."""
    now_ms = max(START_MS, machine.clock_ms) + after_ms
    return machine.apply(machine.index + 1, now_ms, 1, list(operations)).replies


def hand_out(machine: Machine, get: Operation) -> list[int]:
    """Let jobs be handed out as long as there are some, and time pass; returns their ids."""
    ids: list[int] = []
    while isinstance(reply := do(machine, get)[0], HandedMany):
        ids += [job.id for job in reply.jobs]
    do(machine, Tick(), after_ms=EXTRA_MS)
    return ids


@pytest.fixture(scope="module")
def full() -> bytes:
    """A job of each group in each queue, and one of each running that is bound to session 1 and comes from "own"."""
    machine = Machine()
    do(machine, OpenSession(7, 86_400_000))
    for queue in ["own", *[f"q{number}" for number in range(QUEUES)]]:
        do(machine, *[PutWith(Put(queue, 0, b""), group=f"g{number}") for number in range(GROUPS)])
    assert len(hand_out(machine, GetWith(Get(("own",), session=1), GROUPS, policy=Policy.FAIR))) == GROUPS
    return snapshot_of(machine)


@pytest.fixture
def machine(full: bytes) -> Machine:
    """Return a machine with a job of each group in each queue, and one of each running."""
    return restored(full)


OPERATIONS: dict[str, Callable[[tuple[int, ...]], Operation]] = {
    "TOUCH": Touch,
    "numbered TOUCH": lambda ids: Request(1, 1, b"", 0, keep_waiting=False, operation=Touch(ids)),
    "DONE": lambda ids: End(ids, How.DONE),
    "LATER": lambda ids: End(ids, How.LATER),
    "BURY": lambda ids: End(ids, How.BURY),
    "transaction of DONE": lambda ids: Batch(tuple(map(Done, ids)), atomic=True),
    "transaction of LATER": lambda ids: Batch(tuple(map(Later, ids)), atomic=True),
    "transaction of MOVE": lambda ids: Batch(tuple(Move(number, "to", 0) for number in ids), atomic=True),
    "transaction of TOUCH": lambda ids: Batch(tuple(map(Touch, ids)), atomic=True),
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_what_moves_groups_is_as_much_work_as_they_are_ranked_again(
    machine: Machine, operation: Callable[[tuple[int, ...]], Operation],
) -> None:
    ended = operation(tuple(job.id for job in machine.running()))
    work = work_of(machine, ended)
    steps = steps_of(machine, ended)
    assert PLACES < steps <= STEPS_PER_WORK * work


def test_a_group_that_moves_once_is_foreseen_once(machine: Machine) -> None:
    more = [do(machine, PutWith(Put("own", 0, b""), group="g7"), GetWith(Get(("own",)), 1))[1] for _ in range(9)]
    (first, *_), ids = machine.running(), tuple(one.jobs[0].id for one in more if isinstance(one, HandedMany))
    assert len(ids) == 9
    assert machine.known_work(Touch(ids)) - machine.known_work(Touch((first.id,))) < RANKED * QUEUES


def test_unknown_jobs_move_no_group(machine: Machine) -> None:
    assert machine.known_work(Touch((2**40, 2**40 + 1))) < RANKED * QUEUES


def test_a_queue_that_opens_is_as_much_work_as_it_has_wide_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_jobs, "WIDE", 10)
    machine, queues = Machine(), [f"q{number}" for number in range(60)]
    do(machine, *[ConfigureQueue(name, QueueChange(sched=Sched.FAIR, limit=1), create=True) for name in queues])
    for name in queues:
        do(machine, *[PutWith(Put(name, 0, b""), group=f"g{number}") for number in range(GROUPS)])
    ids = []
    for name in queues:
        (reply,) = do(machine, GetWith(Get((name,)), policy=Policy.FAIR))
        assert isinstance(reply, Handed)
        ids.append(reply.id)
    do(machine, Tick(), after_ms=EXTRA_MS)
    later = End(tuple(ids), How.LATER)
    work = work_of(machine, later)
    assert work > RANKED * len(queues) * GROUPS
    assert steps_of(machine, later) <= STEPS_PER_WORK * work


ENDINGS: dict[str, list[Operation]] = {
    "SESSION CLOSE RELEASE": [CloseSession(1, release=True)],
    "SESSION CLOSE RELEASE FIRST": [CloseSession(1, release=True, first=True)],
    "QUEUE DELETE FORCE": [DeleteQueue("own", force=True)],
    "QUEUE PURGE RUNNING": [PurgeQueue("own", Purged.RUNNING)],
    "the session's end": [Tick()],
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_end_of_many_hand_outs_stops_when_their_groups_have_taken_a_portion(machine: Machine, ending: str) -> None:
    (operation,) = ENDINGS[ending]
    again = restored(snapshot_of(machine))
    portions, replies = 0, []
    while machine.running():
        before = len(machine.running())
        after_ms = 90_000_000 if ending == "the session's end" and not portions else TICK_MS
        replies = do(machine, operation, after_ms=after_ms)
        assert do(again, operation, after_ms=after_ms) == replies
        spent = machine._own.spent
        assert spent == again._own.spent
        assert spent <= 2 * PORTION_BYTES_MAX < SPENT_MAX < STEP * PLACES * 2 + SPENT_MAX
        assert 0 < before - len(machine.running()) < GROUPS / 2
        portions += 1
        if isinstance(operation, CloseSession) and not operation.first:
            assert replies == [Accepted()]
            operation = Tick()                  # the session ends by itself then
        elif machine.running() and not isinstance(operation, Tick):
            assert replies == [Removed(before - len(machine.running()), more=True)]
        again = restored(snapshot_of(machine))
    assert portions > 2
    assert machine.ready("own") == (0 if ending.startswith("QUEUE") else GROUPS)
    if not ending.startswith("QUEUE"):
        do(machine, Tick(), after_ms=TICK_MS)
        assert machine.session_count == 0


def test_jobs_of_a_session_that_ends_in_portions_come_back_in_the_order_of_their_places(machine: Machine) -> None:
    in_order = [job.seq for job in sorted(machine.running(), key=lambda job: job.seq)]
    do(machine, CloseSession(1, release=True))
    assert machine.running()
    left = sorted(job.seq for job in machine.running())
    assert left == in_order[-len(left):]
