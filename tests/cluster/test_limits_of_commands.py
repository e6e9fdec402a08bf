"""No command keeps everybody waiting: what the entries of each kind of command cost, counted in steps."""

from __future__ import annotations

import pytest

from core import CloneEnd, Operation
from tests.cluster.helpers.limits_of_commands import CASES, World, entries, steps

STEPS_MAX = 1_200_000           # of one entry; on a quiet machine some 40 ms without the counting


@pytest.fixture(scope="module")
def world() -> World:
    """One for all: it takes a few seconds to make."""
    return World()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", CASES)
def test_no_entry_takes_too_many_steps(world: World, name: str) -> None:
    world.settle()
    operations = CASES[name](world)
    counts = list(entries(world, operations, steps))
    assert counts
    assert max(counts) < STEPS_MAX, counts


@pytest.mark.timeout(300)
def test_there_is_a_case_for_every_kind_of_operation(world: World) -> None:
    seen: set[type] = set()
    for case in CASES.values():
        seen |= {type(operation) for operation in case(world)}
    # The end of a CLONE replaces everything. It is an administrator's, and an entry of its own.
    assert seen == {*Operation.__args__} - {CloneEnd}
