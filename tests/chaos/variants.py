"""Variations of a run in a campaign, drawn by its seed: the same seed draws the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from tests.chaos.scenarios import Scenario

HOT_BYTES = 1               # nothing that only waits is kept in memory
LARGE = 0.05                # of the producers' jobs
TURNS = 40
SHORTEST, LONGEST = 0.3, 3.0    # times the length of the fault


def _load(scenario: Scenario, **other: Any) -> Scenario:
    return replace(scenario, load=replace(scenario.load, **other))


def _paged(scenario: Scenario) -> Scenario:
    """Fewer clients take jobs than put them, so that queues become deep."""
    limits = {**scenario.config.get("limits", {}), "hot_bytes": HOT_BYTES}
    deep = _load(scenario, producers=3, workers=1, waiters=0, handlers=1, consumers=(1,))
    return replace(deep, small_pages=True, config={**scenario.config, "limits": limits})


VARIANTS: Mapping[str, tuple[float, Callable[[Scenario], Scenario]]] = {        # how often, and what changes
    "paged": (0.3, _paged),
    "fragments": (0.3, lambda scenario: _load(scenario, large=LARGE)),
    "sessions": (0.3, lambda scenario: _load(scenario, plain=False)),
    "pulses": (0.3, lambda scenario: _load(scenario, turns=TURNS)),
    "fast empty": (0.5, lambda scenario: replace(scenario, fast_empty=True)),
    "tls": (0.25, lambda scenario: replace(scenario, tls=True)),
    "five": (0.2, lambda scenario: replace(scenario, nodes=5)),
}


def drawn(scenario: Scenario, seed: int) -> Scenario:
    """The scenario as a run with this seed plays it: with another length, and variants if it is to have some."""
    chance = random.Random(f"{scenario.name} {seed}")
    scenario = replace(scenario, lasts_s=scenario.lasts_s * chance.uniform(SHORTEST, LONGEST))
    if not scenario.varied:
        return scenario
    words = [word for word, (share, _) in VARIANTS.items() if chance.random() < share and word not in scenario.without]
    for word in words:
        scenario = VARIANTS[word][1](scenario)
    return replace(scenario, variants=tuple(words))


