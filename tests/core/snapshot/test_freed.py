"""Memory that the restoring of a snapshot needs is freed at its end: a node hardly ever collects old garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from sockpqd.core import CloneChunk, Machine, Put
from sockpqd.core.snapshot.jobs import JobBuilder
from sockpqd.core.state import State
from tests.core.helpers.logs import KNOWN_LEVEL, snapshot_of
from tests.core.helpers.paging import MemoryStore, paged_machine


@pytest.fixture(autouse=True)
def _no_collections() -> Iterator[None]:
    gc.collect()
    gc.freeze()             # what other tests have left is not looked at
    gc.disable()
    yield
    gc.enable()


def left() -> tuple[int, int]:
    """Return how many states there are, and how many are being built."""
    kinds = [type(one) for one in gc.get_objects()]
    return kinds.count(State), kinds.count(JobBuilder)


def filled() -> Machine:
    """Return a machine with jobs."""
    machine = Machine(KNOWN_LEVEL)
    machine.apply(1, 1000, 0, [Put("q", 0, b"%d" % number) for number in range(20)])
    return machine


@pytest.mark.parametrize("paged", [False, True])
def test_an_upload_leaves_nothing_behind(paged: bool) -> None:
    data = b"".join(filled().export())
    machine = paged_machine(MemoryStore()) if paged else Machine(KNOWN_LEVEL)
    states, builders = left()
    given_up = [CloneChunk(1, total_bytes=len(data)), CloneChunk(1, data[:-1]), CloneChunk(1, last=True)]
    for number, operations in enumerate([given_up, [*given_up[:2], CloneChunk(1, b"?")], given_up], 2):
        machine.apply(number, 1001, 0, operations)
        assert left() == (states, builders)
    machine.apply(9, 1001, 0, [CloneChunk(1, total_bytes=len(data)), CloneChunk(1, data), CloneChunk(1, last=True)])
    assert machine.total(None).jobs == 20
    assert left() == (states, builders)


def test_a_restored_snapshot_leaves_nothing_behind() -> None:
    snapshot, machine = snapshot_of(filled()), Machine(KNOWN_LEVEL)
    before = left()
    machine.restore([snapshot])
    assert machine.total(None).jobs == 20
    assert left() == before
