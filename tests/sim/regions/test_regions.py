"""A copy in another region while everything fails; and with one cure taken out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from sockpqd.core import Entry, decode_entry, machine
from sockpqd.core.handlers import dispatch
from sockpqd.core.ops.cluster import Fence
from sockpqd.core.ops.replies import ACCEPTED, Reply
from sockpqd.core.state import State
from tests.sim.campaign import rare_collections
from tests.sim.regions.world import Regions
from tests.sim.world.trace import Violation

PORTION = 4                 # of the seeds, in a test: pytest limits the time of each
SEEDS = range(12)
SEARCHED = range(60)        # for a run that is red without a cure


@pytest.mark.parametrize("first", SEEDS[::PORTION])
def test_the_copy_is_the_origin(first: int) -> None:
    seen: Counter[str] = Counter()
    with rare_collections():
        for seed in range(first, first + PORTION):
            regions = Regions(seed)
            try:
                regions.run()
            except Violation as violation:
                raise AssertionError(f"seed {seed}: {violation}") from violation
            seen.update(regions.seen)
    for word in ("compared", "promotions", "offers taken", "lost on the line"):
        assert seen[word] > 0, (word, seen)


def fence_only_until_the_next_start(patch: pytest.MonkeyPatch) -> None:
    """Note the fence, and go on serving."""
    def fence(state: State, operation: Fence, seed: int) -> Reply:
        state.fenced = operation.replica
        return ACCEPTED
    patch.setitem(dispatch.EXECUTE, Fence, fence)


def give_the_mirror_another_time(patch: pytest.MonkeyPatch) -> None:
    """Execute what the origin has executed with the replica's clock."""
    def later(data: bytes) -> Entry:
        entry = decode_entry(data)
        return Entry(entry.format, entry.now_ms + 1, entry.seed, entry.operations)
    patch.setattr(machine, "decode_entry", later)


@pytest.mark.parametrize("cure", [fence_only_until_the_next_start, give_the_mirror_another_time])
def test_without_a_cure_a_run_is_red(
    cure: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch,
) -> None:
    cure(monkeypatch)
    with rare_collections():
        for seed in SEARCHED:
            try:
                Regions(seed).run()
            except Violation:
                return
    pytest.fail("no run is red")
