"""Jobs of one kind share the record of what few jobs have: put, and loaded from a snapshot."""

from __future__ import annotations

import pytest

from core import Machine, Operation, Put, PutGrouped, PutNumbered, PutWith
from tests.core.helpers.logs import ask, restored

PLAIN = Put("q", 0, b"")
KINDS: tuple[tuple[Operation, Operation], ...] = (
    (PutGrouped(PLAIN, "ann"), PutGrouped(PLAIN, "bob")),
    (PutWith(PLAIN, tries=3), PutWith(PLAIN, tries=4)),
    (PutNumbered(PutWith(PLAIN), True, 5000), PutNumbered(PutWith(PLAIN), True, 6000)),
    (PutNumbered(PutWith(PLAIN), False, 5000), PutNumbered(PutWith(PLAIN), True, 5000)),
)


def records(machine: Machine) -> list[int]:
    """Which record each of the jobs has."""
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
