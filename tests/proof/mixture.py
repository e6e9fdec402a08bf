"""All faults, mixed by a seed: in each round one strikes, often while the weather is bad.

The weather (packets that are lost, clocks that are wrong, slow disks) begins and ends by its own time; what strikes
(kills, pauses, losses of power, damage, changes of members) begins in the midst of it and may last longer. Before each
round the cluster is whole. Faults that a cluster survives only while all other nodes are sound (docs/OPERATIONS.md: an
older copy, an emptied disk, damage) strike in good weather.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from msgspec import Struct

from tests.chaos.faults.again import level_again
from tests.chaos.faults.copies import OlderCopies, Wiped
from tests.chaos.faults.disks import FailingCalls
from tests.chaos.faults.fault import Background, Fault
from tests.chaos.faults.files import Damaged, RollingUpgrade
from tests.chaos.faults.machines import FullDisk
from tests.chaos.faults.membership import Changes, Transfer
from tests.chaos.faults.processes import Kill, Pause, RollingRestart
from tests.chaos.faults.roles import Role, everyone, leader
from tests.chaos.machines.alterable import AlterableCluster
from tests.chaos.torture_scenarios import a_majority, any_node
from tests.proof.outages import SHAPES, Outage, PowerLoss
from tests.proof.weather import Drift, SlowDisks, Step
from tests.system import damages

SEEDS = 2**31
WEATHER_SHARE, ALONE_SHARE = 0.5, 0.4       # of the rounds that may have weather; of the rounds in which only that is
FIRST_S, BAD_S, STRUCK_S, REST_S = (0.2, 1.5), (1.5, 6.0), (0.3, 4.0), (0.5, 2.0)

Make = Callable[[random.Random], Fault]


def some_node(chance: random.Random) -> Role:
    """One node, the leader as often as all others together, or more of them."""
    return chance.choice((leader, any_node(chance), a_majority(chance), everyone))


def one_node(chance: random.Random) -> Role:
    """One node, half of the times the leader."""
    return chance.choice((leader, any_node(chance)))


WEATHER: dict[str, Make] = {
    **{shape: lambda chance, shape=shape: Outage(shape, chance) for shape in SHAPES},       # type: ignore[misc]
    "slow disks": SlowDisks,
}
CLOCKS: dict[str, Make] = {"clock step": Step, "clock drift": Drift}
ANY_WEATHER: dict[str, Make] = {
    "kill": lambda chance: Kill(some_node(chance)),
    "pause": lambda chance: Pause(chance.choice((one_node, a_majority))(chance)),
    "power loss": lambda chance: PowerLoss(some_node(chance)),
    "transfer": Transfer,
}
GOOD_WEATHER: dict[str, Make] = {
    "bit flips": lambda chance: Damaged(one_node(chance), chance.randrange(SEEDS), [damages.flip_bits]),
    "truncation": lambda chance: Damaged(
        one_node(chance), chance.randrange(SEEDS), [damages.cut, damages.cut_between_frames]),
    "other damage": lambda chance: Damaged(
        one_node(chance), chance.randrange(SEEDS), [damages.overwrite, damages.swap, damages.remove]),
    "older copy": lambda chance: OlderCopies(chance.randrange(SEEDS)),
    "emptied disk": lambda chance: Wiped(chance.randrange(SEEDS)),
    "failed calls": lambda chance: FailingCalls(chance.randrange(SEEDS)),
    "full disk": lambda chance: FullDisk(one_node(chance)),
    "membership": lambda chance: Changes(chance.randrange(SEEDS)),
    "rolling restart": lambda chance: RollingRestart(),
}
UPGRADE = "rolling upgrade"
KINDS = (*WEATHER, *CLOCKS, *ANY_WEATHER, *GOOD_WEATHER, UPGRADE)


class Round(Struct, omit_defaults=True):
    """One round, as it is recorded in the results. Times are in seconds since the mixture began."""

    began_s: float
    struck: str = ""
    weather: str = ""
    lasted_s: float = 0.0
    evidence: str = ""
    missing: str = ""                       # what was not seen of it


class Mixture(Fault):
    """Rounds of faults until it ends."""

    def __init__(self, seed: int, *, clocks: bool, only: str = "") -> None:
        """`clocks`: the cluster was made with `fake_clocks`; `only`: nothing but this kind."""
        super().__init__()
        self._chance = random.Random(seed)
        self._weather = {**WEATHER, **(CLOCKS if clocks else {})}
        self._strikes: dict[str, Make] = {**ANY_WEATHER, **GOOD_WEATHER, UPGRADE: lambda chance: RollingUpgrade()}
        if only:
            self._weather = {only: self._weather[only]} if only in self._weather else {}
            self._strikes = {only: self._strikes[only]} if only in self._strikes else {}
        self._deck: list[str] = []
        self._upgraded = False
        self._background: Background | None = None
        self.rounds: list[Round] = []

    def _begin(self, cluster: AlterableCluster) -> None:
        self.names = list(cluster.names)
        self._background = Background(lambda stopping: self._play(cluster, stopping))

    def _play(self, cluster: AlterableCluster, stopping: threading.Event) -> None:
        began = time.monotonic()
        while not stopping.is_set():
            level_again(cluster)
            self.rounds.append(one := Round(round(time.monotonic() - began, 1)))
            self._round(cluster, one)
            one.lasted_s = round(time.monotonic() - began - one.began_s, 1)
            stopping.wait(self._chance.uniform(*REST_S))
        level_again(cluster)

    def _round(self, cluster: AlterableCluster, one: Round) -> None:
        chance = self._chance
        alone = not self._strikes or (bool(self._weather) and chance.random() < ALONE_SHARE)
        one.struck = "" if alone else self._draw()
        if alone or (one.struck in ANY_WEATHER and self._weather and chance.random() < WEATHER_SHARE):
            one.weather = chance.choice(list(self._weather))
        faults: list[Fault] = []
        weather: Background | None = None
        try:
            if one.weather:
                fault, lasts_s = self._weather[one.weather](chance), chance.uniform(*BAD_S)
                faults.append(fault)
                weather = Background(lambda stopping: _stand(cluster, fault, stopping, lasts_s))
                time.sleep(chance.uniform(*FIRST_S))
            if one.struck:
                self._strike(cluster, one.struck, faults)
        finally:
            if weather is not None:
                weather.wait()
        one.evidence = "; ".join(fault.report() for fault in faults)
        one.missing = ", ".join(word for fault in faults for word in fault.missing)
        self.cuts += [cut for fault in faults for cut in fault.cuts]
        self.late += [cut for fault in faults for cut in fault.late]
        self.records += [record for fault in faults for record in fault.records]
        self._saw(True, one.struck or one.weather)

    def _draw(self) -> str:
        """Each kind once before any comes twice; the upgrade once."""
        if not self._deck:
            words = [word for word in self._strikes if word != UPGRADE or not self._upgraded or len(self._strikes) == 1]
            self._deck = self._chance.sample(words, len(words))
        word = self._deck.pop()
        self._upgraded = self._upgraded or word == UPGRADE
        return word

    def _strike(self, cluster: AlterableCluster, word: str, faults: list[Fault]) -> None:
        fault = self._strikes[word](self._chance)
        faults.append(fault)
        try:
            fault.begin(cluster)
            time.sleep(self._chance.uniform(*STRUCK_S))
        finally:
            fault.end()

    def _end(self, cluster: AlterableCluster) -> None:
        if self._background is not None:
            self._background.finish()


def _stand(cluster: AlterableCluster, fault: Fault, stopping: threading.Event, lasts_s: float) -> None:
    """Hold the fault for this time, or until `stopping`."""
    try:
        fault.begin(cluster)
        stopping.wait(lasts_s)
    finally:
        fault.end()
