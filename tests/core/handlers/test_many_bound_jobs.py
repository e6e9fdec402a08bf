"""A session that ends with thousands of jobs: they come back in portions, and nobody sees that some are missing."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Accepted,
    Batch,
    CloseSession,
    Delete,
    Done,
    Finished,
    Get,
    GetWith,
    Handed,
    HandedMany,
    JobState,
    Kick,
    Machine,
    NotFound,
    Number,
    OpenSession,
    Operation,
    Put,
    PutWith,
    Removed,
    Reply,
    StoredNumber,
    Tick,
    TouchSession,
)
from sockpqd.core.limits import DUE_MAX
from tests.core.helpers.logs import restored, snapshot_of

START_MS = 1_700_000_000_000
JOBS = 3 * DUE_MAX + 10


class Node:
    """A node whose client has many jobs."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.do(OpenSession(7, 10_000))
        replies = self.do(*(PutWith(Put("q", -(n % 7), b"%d" % n), number=True) for n in range(JOBS)))
        self.numbers = [reply.number for reply in replies if isinstance(reply, StoredNumber)]
        self.in_order = [n for _, n in sorted((n % 7, n) for n in range(JOBS))]
        for _ in range(4):
            self.do(GetWith(Get(("q",), session=1), DUE_MAX))
        assert len(self.machine.taken(1)) == JOBS

    def do(self, *operations: Operation, after_ms: int = 0) -> list[Reply]:
        return self.machine.apply(
            self.machine.index + 1, max(START_MS, self.machine.clock_ms) + after_ms, 1, list(operations)).replies


@pytest.fixture(scope="module")
def full() -> bytes:
    return snapshot_of(Node().machine)


@pytest.fixture
def node(full: bytes) -> Node:
    node = Node.__new__(Node)
    node.machine = restored(full)
    node.in_order = [n for _, n in sorted((n % 7, n) for n in range(JOBS))]
    node.numbers = [0] * JOBS
    for job in node.machine.running():
        node.numbers[int(job.data)] = job.seq
    return node


def test_whoever_takes_jobs_meanwhile_gets_them_in_their_order(node: Node) -> None:
    assert node.do(CloseSession(1, release=True)) == [Accepted()]
    assert len(node.machine.running()) == JOBS - DUE_MAX
    taken = []
    for _ in range(4):
        (reply,) = node.do(GetWith(Get(("q",)), 10))
        assert isinstance(reply, HandedMany)
        taken += [int(job.data) for job in reply.jobs]
    for _ in range(4):
        node.do(Tick(), after_ms=16)
    assert taken == node.in_order[:40]
    assert len(node.machine.running()) == 40


def test_by_number_they_are_back_at_once(node: Node) -> None:
    node.do(CloseSession(1, release=True))
    last, other, third = (node.numbers[node.in_order[-at]] for at in (1, 2, 3))
    for number in last, other, third:
        job = node.machine.peek(Number(number))
        assert job is not None
        assert (job.state, job.id, job.deadline_ms) == (JobState.READY, None, None)
    first, *others = node.do(
        GetWith(Get(None), number=last), Delete(Number(other)), Kick(
            "", 1, selector=Number(third),
        ), GetWith(Get(None), number=other),
    )
    assert isinstance(first, Handed)
    assert others == [Finished(False, False), NotFound(), NotFound()]


def test_in_the_same_entry_too(node: Node) -> None:
    number = node.numbers[node.in_order[-1]]
    assert isinstance(node.do(CloseSession(1, release=True), GetWith(Get(None), number=number))[1], Handed)


def test_a_snapshot_on_the_way_goes_on_as_the_others(node: Node) -> None:
    node.do(CloseSession(1, release=True))
    other = restored(snapshot_of(node.machine))
    for machine in node.machine, other:
        for _ in range(2):
            machine.apply(machine.index + 1, machine.clock_ms + 16, 1, [Tick(), Get(("q",))])
    assert snapshot_of(other) == snapshot_of(node.machine)


def test_one_operation_keeps_many_sessions() -> None:
    machine = Machine()
    machine.apply(1, START_MS, 1, [OpenSession(7, 10_000) for _ in range(100)])
    for at in range(1, 10):
        machine.apply(1 + at, START_MS + at * 3_000, 1, [TouchSession(tuple(range(1, 100)))])
    assert [session.number for session in machine.sessions()] == list(range(1, 100))
    assert machine.apply(99, START_MS, 1, [TouchSession((100, 5, 999)), TouchSession(100)]).replies[0] == Accepted()


def test_a_batch_that_fails_costs_the_same_however_many_jobs_are_bound(node: Node) -> None:
    """It does not look at the others, and what comes back is in its place when somebody asks."""
    machine = node.machine
    taken = machine.taken(1)
    batch = Batch((Done(taken[5]), Done(taken[0]), Done(10**9)), atomic=True)
    node.do(batch)
    assert machine._own.spent < 100
    assert machine._own.sessions.by_number[1].disordered        # it is put in order when somebody asks
    assert machine.taken(1) == taken
    assert snapshot_of(restored(snapshot_of(machine))) == snapshot_of(machine)
    again = restored(snapshot_of(machine))
    for one in (machine, again):
        one.apply(one.index + 1, one.clock_ms, 1, [CloseSession(1, False)])
    assert [job.id for job in machine.running() if job.session is None] == taken


@pytest.mark.parametrize("close", [CloseSession(1, False), CloseSession(1, True, first=True)])
def test_jobs_that_an_undone_batch_brought_back_are_the_first_to_be_released(
    node: Node, close: CloseSession, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sockpqd.core.limits.UNBOUND_MAX", 10)
    monkeypatch.setattr("sockpqd.core.limits.DUE_MAX", 10)
    taken = node.machine.taken(1)
    node.do(Batch((Done(taken[5]), Done(taken[0]), Done(10**9)), atomic=True))
    assert node.do(close) == [Removed(10, more=True)]
    assert node.machine.taken(1) == taken[10:]
