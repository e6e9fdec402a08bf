"""A large operation in fragments: executed when all of it is there, and only then."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Accepted,
    Fragment,
    FragmentsMissing,
    Get,
    Handed,
    Machine,
    Operation,
    Put,
    Stored,
    encode_operation,
)
from tests.core.helpers.logs import ask, data_of, lead, restored, run, snapshot_of

PUT = Put("q", 0, b"a job of some size", "i")
BYTES = encode_operation(PUT)


def fragments_of(operation: Operation, number: int = 1, size: int = 10) -> list[Operation]:
    """Return the operation in fragments of this size."""
    data = encode_operation(operation)
    starts = range(0, len(data), size)
    return [
        Fragment(number, start, data[start : start + size], last=start + size >= len(data))
        for start in starts
    ]


@pytest.fixture
def machine() -> Machine:
    """Return a machine with a leader, and without jobs."""
    machine = Machine()
    run(machine, lead(), now_ms=1000)
    return machine


def test_the_last_one_executes_the_operation_and_has_its_reply(machine: Machine) -> None:
    *earlier, last = fragments_of(PUT)
    for fragment in earlier:
        assert ask(machine, fragment, Put("other", 0, b"")) == [Accepted(), Stored()]
        assert machine.ready("q") == 0
    assert ask(machine, last) == [Stored()]
    (handed,) = ask(machine, Get(("q",)))
    assert isinstance(handed, Handed)
    assert handed.data == PUT.data


def test_one_may_be_the_first_as_well_as_the_last(machine: Machine) -> None:
    assert ask(machine, Fragment(1, 0, BYTES, last=True)) == [Stored()]


@pytest.mark.parametrize("missing", range(len(fragments_of(PUT)) - 1))
def test_nothing_is_executed_when_one_is_missing(machine: Machine, missing: int) -> None:
    parts = fragments_of(PUT)
    assert len(parts) > 2
    del parts[missing]
    replies = ask(machine, *parts)
    assert replies[-1] == FragmentsMissing()
    assert machine.total(None).jobs == 0
    assert ask(machine, *fragments_of(PUT, 2))[-1] == Stored()


def test_those_of_two_operations_are_never_put_together(machine: Machine) -> None:
    one, other = fragments_of(PUT, 1), fragments_of(Put("q", 0, b"A JOB OF SOME SIZE", "i"), 2)
    assert ask(machine, *one[:2], *other[2:])[-1] == FragmentsMissing()
    assert machine.total(None).jobs == 0


def test_a_new_leader_begins_anew(machine: Machine) -> None:
    parts = fragments_of(PUT)
    ask(machine, *parts[:-1])
    run(machine, lead(), now_ms=2000)
    assert ask(machine, parts[-1]) == [FragmentsMissing()]


def test_what_was_collected_is_in_a_snapshot(machine: Machine) -> None:
    parts = fragments_of(Put("q", 0, bytes(3 << 20)), size=1 << 20)
    ask(machine, *parts[:-1])
    other = restored(snapshot_of(machine))
    assert snapshot_of(other) == snapshot_of(machine)
    assert ask(other, parts[-1]) == ask(machine, parts[-1]) == [Stored()]
    assert data_of(ask(other, Get(("q",)))) == [bytes(3 << 20)]
    assert machine.total(None).jobs == 1
