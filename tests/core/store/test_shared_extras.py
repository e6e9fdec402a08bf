"""Jobs of one kind share the record of what few jobs have: put, and loaded from a snapshot."""

from __future__ import annotations

import pytest

from sockpqd.core import Get, JobState, Machine, Number, Operation, Put, PutWith, Return
from tests.core.helpers.logs import ask, restored

PLAIN = Put("q", 0, b"")
KINDS: tuple[tuple[Operation, Operation], ...] = (
    (PutWith(PLAIN, group="ann"), PutWith(PLAIN, group="bob")),
    (PutWith(PLAIN, tries=3), PutWith(PLAIN, tries=4)),
    (PutWith(PLAIN, number=True, lease_ms=5000), PutWith(PLAIN, number=True, lease_ms=6000)),
    (PutWith(PLAIN, lease_ms=5000), PutWith(PLAIN, number=True, lease_ms=5000)),
)


def records(machine: Machine) -> list[int]:
    """Return which record each of the jobs has."""
    return [id(job.extras) for job in machine._state.queues.by_name["q"].ready]


@pytest.mark.parametrize("kinds", KINDS)
def test_jobs_of_one_kind_have_one_record(kinds: tuple[Operation, Operation]) -> None:
    machine = Machine()
    one, other = kinds
    ask(machine, PLAIN, one, other, one, other)
    again = restored(b"".join(machine.snapshot()))
    assert b"".join(again.snapshot()) == b"".join(machine.snapshot())
    for found in (records(machine)[1:], records(again)[1:]):
        assert found[0] == found[2] != found[1] == found[3]


def test_numbered_jobs_of_one_kind_have_one_record_while_they_run_for_the_first_time() -> None:
    machine = Machine()
    short, long = (PutWith(PLAIN, number=True, lease_ms=lease_ms) for lease_ms in (5000, 6000))
    keyed = PutWith(PLAIN, key="k", number=True, lease_ms=5000)
    ask(machine, short, long, short, long, keyed, *[Get(("q",))] * 5)
    found = [job.extras for job in machine.running()]
    assert found[0] is found[2]
    assert found[1] is found[3]
    assert len({id(extras) for extras in found}) == 3
    assert [extras.counts.reserves for extras in found if extras and extras.counts] == [1] * 5
    first = machine.running()[0]
    ask(machine, Return(first.id), Get(("q",)))
    again = machine.running()[-1]
    assert (again.seq, again.extras) == (first.seq, first.extras)


def test_a_job_is_known_by_its_number_and_its_key_while_it_is_handed_out() -> None:
    machine = Machine()
    ask(machine, PutWith(PLAIN, key="k", number=True), PutWith(PLAIN, number=True))
    numbers = [job.seq for job in machine._state.queues.by_name["q"].ready]
    ask(machine, Get(("q",)), Get(("q",)))
    for number, running in zip(numbers, machine.running(), strict=True):
        found = machine.peek(Number(number))
        assert found is not None
        assert (found.id, found.state) == (running.id, JobState.RUNNING)
    assert machine._state.queues.by_name["q"].keys == {"k": machine.running()[0]}
