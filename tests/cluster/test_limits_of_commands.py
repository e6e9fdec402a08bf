"""No command keeps everybody waiting: the costs of the entries of each kind of command, counted in steps."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import partialmethod
from typing import Any

import pytest

from sockpqd.core import Operation
from tests.cluster.helpers import limits_of_commands
from tests.cluster.helpers.forked import forked
from tests.cluster.helpers.limits_of_commands import CASES, World, entries, steps

STEPS_MAX = 1_200_000           # of one entry; on a quiet machine some 40 ms without the counting


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """One world for all: it takes a few seconds to make. Its millions of objects live on: garbage collection is a
    waste. Each case changes a copy of it in a child, so that none depends on those before it.
    """
    gc.disable()
    world = World()
    gc.freeze()
    gc.enable()
    yield world
    gc.unfreeze()
    vars(world).clear()         # pytest itself still holds it
    gc.collect()
    gc.freeze()                 # what was frozen before: see tests/conftest.py


@pytest.mark.parametrize("name", CASES)
def test_no_entry_takes_too_many_steps(world: World, name: str) -> None:
    def counted() -> list[int]:
        world.settle()
        return list(entries(world, CASES[name](world), steps))
    counts = forked(counted)
    assert counts
    assert max(counts) < STEPS_MAX, counts


def test_a_case_leaves_the_world_to_the_others_as_it_was(world: World) -> None:
    index, fresh = world.machine.index, world.name()
    test_no_entry_takes_too_many_steps(world, "PUT GROUP")
    assert (world.machine.index, world.name()) == (index, f"fresh{int(fresh.removeprefix('fresh')) + 1}")


def few(world: World, made: Callable[..., Any], count: int, *others: Any, **options: Any) -> Any:
    """Make at most 50 of what would be more."""
    return made(world, min(count, 50), *others, **options)


def test_there_is_a_case_for_every_kind_of_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    for size, small in {"QUEUES": 100, "JOBS": 1000, "COPIES": 5, "MANY": 50, "NAMES": 50}.items():
        assert getattr(limits_of_commands, size) > small
        monkeypatch.setattr(limits_of_commands, size, small)    # what kinds there are does not depend on it
    monkeypatch.setattr(World, "queue_of", partialmethod(few, World.queue_of))
    monkeypatch.setattr(World, "taken", partialmethod(few, World.taken))
    world = World()
    seen: set[type[Operation]] = set()
    for case in CASES.values():
        operations = case(world)
        seen.update(map(type, operations))
        world.apply(*operations)        # so that a cluster that was taken offline is online for the next
    assert seen == {*Operation.__args__}
