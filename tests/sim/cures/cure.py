"""What a cure is: a part of the product that prevents something, and the runs in which its absence shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from sockpqd.core.handlers.dispatch import EXECUTE
from tests.sim.world.world import World

TABLE: dict[Any, Any] = EXECUTE       # for patches: they put other handlers in

SEEDS = range(400)


@dataclass(frozen=True)
class Cure:
    """A way to take a cure out, and the runs in which that shows: fields of the plan that are not drawn."""

    remove: Callable[[pytest.MonkeyPatch], None]
    fixed: Mapping[str, Any]
    red: int | None = None          # a seed that went red, as far as is known: the search begins with it

    @property
    def name(self) -> str:
        """Return what is done without it."""
        return self.remove.__name__

    def seeds(self) -> Iterator[int]:
        """Yield the seeds to try for a red run, the likeliest first."""
        if self.red is not None:
            yield self.red
        yield from SEEDS


def only(*kinds: str) -> dict[str, float]:
    """Weights of the faults: these kinds and no other."""
    return dict.fromkeys(kinds, 1.0)


def scripted(settings: Mapping[str, Any], script: Callable[[World], Iterator[float]], **others: Any) -> dict[str, Any]:
    """The runs of a scenario."""
    return {**settings, "script": script, **others}
