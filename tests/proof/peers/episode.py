"""One episode with another system: three machines, clients, faults, and what became of the jobs."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

from msgspec import Struct, field

from tests.proof.peers import faults
from tests.proof.peers.ledger import CONFIRMED, REFUSED, UNKNOWN, Ledger
from tests.proof.peers.load import Load
from tests.proof.peers.machines import Machines, NotReady
from tests.proof.peers.system import System

WARM_S = 3.0
FLIP_SHARE = 0.5            # of the episodes that end with a bit that flips
DRAIN_S = 180.0


class Episode(Struct):
    """The record of one cluster. Jobs of which something is wrong are named; all else is counted."""

    number: int
    seed: int
    void: str = ""                          # why it proves nothing
    confirmed: int = 0
    refused: int = 0
    unknown: int = 0
    deliveries: int = 0
    lost: list[str] = field(default_factory=list)
    invented: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    gap_s: float = 0.0                      # the longest time without a confirmed put and without a delivery
    strikes: list[faults.Strike] = field(default_factory=list)


def play(system: System, number: int, seed: int, lasts_s: float, folder: Path, keep: Path) -> Episode:
    """Play an episode. `lasts_s`: of faults; `folder`: an empty one; `keep`: where logs are left of a void one."""
    episode, chance, ledger = Episode(number, seed), random.Random(f"peers {seed}"), Ledger()
    try:
        with Machines(system, folder) as machines:
            servers = [machines.server(name) for name in machines.names]
            with Load(system, servers, ledger) as load:
                time.sleep(WARM_S)
                began, began_ns = time.monotonic(), time.monotonic_ns()
                episode.strikes = faults.play(machines, chance, lasts_s, began)
                if chance.random() < FLIP_SHARE:
                    episode.strikes.append(faults.flip(machines, chance, began))
                until_ns = time.monotonic_ns()
                if not load.drain(DRAIN_S):
                    episode.void = f"the queue did not become empty in {DRAIN_S:g} s"
                    keep.mkdir(parents=True, exist_ok=True)
                    for name in machines.names:
                        shutil.copy(machines.log(name), keep / f"{system.name}-{seed}-{name}.log")
    except NotReady as error:
        episode.void = str(error)
        return episode
    outcomes, found = ledger.outcomes(), ledger.findings()
    episode.confirmed, episode.refused = outcomes[CONFIRMED], outcomes[REFUSED]
    episode.unknown, episode.deliveries = outcomes[UNKNOWN], len(ledger.deliveries)
    episode.invented, episode.doubled = found.invented, found.doubled
    episode.lost = [] if episode.void else found.lost
    episode.gap_s = round(ledger.longest_gap_s(began_ns, until_ns), 2)
    return episode
