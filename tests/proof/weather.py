"""Faults that last while others strike: clocks that drift, disks that are slow. Packets that are lost: outages.py."""

from __future__ import annotations

import random
import threading

from tests.chaos.faults.fault import Background, Fault
from tests.chaos.machines.alterable import AlterableCluster

STEP_S = 0.1
DRIFTS = (-0.2, -0.05, 0.05, 0.2)       # seconds in a second: far more than a clock is ever off
STEPS_S = (-3600.0, -60.0, -5.0, -0.5, 0.5, 5.0, 60.0, 3600.0)
SLOW_MS = (1, 100)


class Drift(Fault):
    """The wall clock of one node runs too fast or too slow, then it is right again at once, as NTP steps it. The
    cluster must have been made with `fake_clocks`."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance
        self._rate = chance.choice(DRIFTS)
        self._ahead_s = 0.0
        self._background: Background | None = None

    def _begin(self, cluster: AlterableCluster) -> None:
        self.names = [self._chance.choice(cluster.names)]
        self._background = Background(lambda stopping: self._run(cluster, stopping))

    def _run(self, cluster: AlterableCluster, stopping: threading.Event) -> None:
        while not stopping.wait(STEP_S):
            self._ahead_s += STEP_S * self._rate
            cluster.set_clock(self.names[0], self._ahead_s)

    def _end(self, cluster: AlterableCluster) -> None:
        if self._background is None:
            return
        self._background.finish()
        cluster.set_clock(self.names[0], 0)
        self._saw(self._ahead_s != 0, f"{self._rate:+.0%}, {self._ahead_s:+.2f} s in the end")


class Step(Fault):
    """The wall clock of one node is set, then right again. The cluster must have been made with `fake_clocks`."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance
        self._ahead_s = chance.choice(STEPS_S)

    def _begin(self, cluster: AlterableCluster) -> None:
        self.names = [self._chance.choice(cluster.names)]
        cluster.set_clock(self.names[0], self._ahead_s)
        self._saw(True, f"{self._ahead_s:+g} s")

    def _end(self, cluster: AlterableCluster) -> None:
        for name in self.names:
            cluster.set_clock(name, 0)


class SlowDisks(Fault):
    """Each sync of some nodes takes 1 to 100 ms longer. The cluster must have been made with `faulty_disks`."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance
        self._before = 0

    def _begin(self, cluster: AlterableCluster) -> None:
        self.names = self._chance.sample(cluster.names, self._chance.randint(1, len(cluster.names)))
        self._before = self._syncs(cluster)
        for name in self.names:
            cluster.faulty_disk(name)["delay_us"] = 1000 * self._chance.randint(*SLOW_MS)

    def _end(self, cluster: AlterableCluster) -> None:
        for name in self.names:
            cluster.faulty_disk(name)["delay_us"] = 0
        count = self._syncs(cluster) - self._before
        self._saw(count > 0, f"{count} slow syncs")

    def _syncs(self, cluster: AlterableCluster) -> int:
        return sum(cluster.faulty_disk(name)["syncs"] for name in self.names)
