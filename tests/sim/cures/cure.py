"""A cure, a part of the product that prevents a fault, and the runs in which its absence shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from sockpqd.core.handlers.dispatch import EXECUTE
from tests.sim.world.world import World

TABLE: dict[Any, Any] = EXECUTE       # for patches: they put other handlers in

SEEDS = range(60)       # tried where the recorded one is not red any more: a run of minutes is too long


@dataclass(frozen=True)
class Cure:
    """A function that takes a cure out, and the runs in which that shows: fields of the plan that are not drawn."""

    remove: Callable[[pytest.MonkeyPatch], None]
    fixed: Mapping[str, Any]
    red: int | None = None          # a seed that went red, as far as is known: the search begins with it

    @property
    def name(self) -> str:
        """Return what is done without it."""
        return self.remove.__name__

    def check(self, is_red: Callable[[int], bool]) -> None:
        """Look for a seed that is red without the cure, from the recorded one on. Raises AssertionError."""
        seed = next((seed for seed in self._seeds() if is_red(seed)), None)
        assert seed is not None, (
            f"{self.name}: neither seed {self.red}, which is recorded, nor one of the first {len(SEEDS)} is red. Search"
            " further, with a greater SEEDS in tests/sim/cures/cure.py, and record what is found")
        if seed != self.red:
            print(f"{self.name}: seed {self.red} is not red any more; record red={seed}, which saves the search")

    def _seeds(self) -> Iterator[int]:
        if self.red is not None:
            yield self.red
        yield from SEEDS


def only(*kinds: str) -> dict[str, float]:
    """Return weights of faults: only these kinds."""
    return dict.fromkeys(kinds, 1.0)


def scripted(settings: Mapping[str, Any], script: Callable[[World], Iterator[float]], **others: Any) -> dict[str, Any]:
    """Return the runs of a scenario."""
    return {**settings, "script": script, **others}
