"""No command keeps everybody waiting: what the entries of each kind of command cost, counted in steps."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from sockpqd.core import CloneEnd, Operation
from tests.cluster.helpers.limits_of_commands import CASES, World, entries, steps

STEPS_MAX = 1_200_000           # of one entry; on a quiet machine some 40 ms without the counting


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """One for all: it takes a few seconds to make. Its millions of objects live on: looking for garbage is a waste."""
    gc.disable()
    world = World()
    gc.freeze()
    gc.enable()
    yield world
    gc.unfreeze()
    vars(world).clear()         # pytest itself still holds it
    gc.collect()
    gc.freeze()                 # what was frozen before: see tests/conftest.py


@pytest.fixture(scope="module")
def seen() -> dict[str, set[type[Operation]]]:
    """The kinds of operations of each case that has been made."""
    return {}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", CASES)
def test_no_entry_takes_too_many_steps(world: World, seen: dict[str, set[type[Operation]]], name: str) -> None:
    world.settle()
    operations = CASES[name](world)
    seen[name] = set(map(type, operations))
    counts = list(entries(world, operations, steps))
    assert counts
    assert max(counts) < STEPS_MAX, counts


@pytest.mark.timeout(300)
def test_there_is_a_case_for_every_kind_of_operation(world: World, seen: dict[str, set[type[Operation]]]) -> None:
    for name, case in CASES.items():
        if name not in seen:        # when this test runs alone
            seen[name] = set(map(type, case(world)))
    # The end of a CLONE replaces everything. It is an administrator's, and an entry of its own.
    assert set().union(*seen.values()) == {*Operation.__args__} - {CloneEnd}
