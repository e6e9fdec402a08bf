"""Faults again and again: nodes killed faster than they come back, and any other fault in many short rounds.

    Kills(OneAtATime(), 0.1, 0.3, seed)                     # kill -9 of one node every 100 to 300 ms
    Again(lambda chance: Pause(a_majority), 0.3, 2.0, 0.5, 1.5, seed)

A node that ends by itself is started again, as its service manager does it, if it ended as it may (75).
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from devcluster.node import NodeError
from tests.chaos.faults.fault import Background, Fault, called
from tests.chaos.faults.files import START_AGAIN
from tests.chaos.faults.processes import LEVEL_S, NEAR, answers
from tests.chaos.machines.alterable import AlterableCluster
from tests.waiting import eventually

FAILURES = "restarts"       # the file in which a node counts them
LOOK_S = 0.05
LEVEL_LOOK_S = 0.5
SERVE_S = 20.0
KILLS = (3, 12)             # of one node, until it is the turn of another one

Choice = Callable[[AlterableCluster, random.Random], list[str]]


class OneAtATime:
    """Choose one node for a while, while the others may serve, then another one; or any node each time."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._left = 0

    def __call__(self, cluster: AlterableCluster, chance: random.Random) -> list[str]:
        if self._left == 0:
            bring_back(cluster)
            self._name = chance.choice([None, *cluster.names])
            self._left = chance.randint(*KILLS)
        self._left -= 1
        return [self._name or chance.choice(cluster.names)]


def all_at_once(cluster: AlterableCluster, chance: random.Random) -> list[str]:
    """Choose all nodes; half of the times not before one serves."""
    if chance.random() < 0.5:
        eventually(lambda: cluster.leader() is not None, SERVE_S)
        time.sleep(chance.uniform(0, 0.5))
    return list(cluster.names)


class Kills(Fault):
    """SIGKILL of the chosen nodes at the same moment, at an interval; they are restarted at once, and may be killed
    again before they are ready."""

    def __init__(self, choice: Choice, least_s: float, most_s: float, seed: int) -> None:
        super().__init__()
        self._choice, self._least_s, self._most_s = choice, least_s, most_s
        self._what = called(choice if hasattr(choice, "__qualname__") else type(choice))
        self._chance = random.Random(seed)
        self._killed: Counter[str] = Counter()
        self._background: Background | None = None

    def __repr__(self) -> str:
        return f"Kills {self._what} every {self._least_s:g} to {self._most_s:g} s"

    def _begin(self, cluster: AlterableCluster) -> None:
        self.names = list(cluster.names)
        self._background = Background(lambda stopping: self._kill(cluster, stopping))

    def _kill(self, cluster: AlterableCluster, stopping: threading.Event) -> None:
        with ThreadPoolExecutor(len(cluster.names)) as pool:
            while not stopping.wait(self._chance.uniform(self._least_s, self._most_s)):
                names = self._choice(cluster, self._chance)
                kill_at_once(cluster, names)
                self._killed.update(names)
                list(pool.map(lambda name: self._start(cluster, name), names))
                keep_running(cluster)

    def _start(self, cluster: AlterableCluster, name: str) -> None:
        cluster.kill(name)                      # waits for its end
        cluster.restart(name, wait=False)

    def _end(self, cluster: AlterableCluster) -> None:
        if self._background is not None:
            self._background.finish()
        bring_back(cluster)
        self._saw(bool(self._killed), f"killed {', '.join(f'{n} {k} times' for n, k in sorted(self._killed.items()))}")


class Again(Fault):
    """Another fault in rounds: `make` makes one, it lasts for a while, then the cluster has time to recover."""

    def __init__(
        self, make: Callable[[random.Random], Fault], least_s: float, most_s: float, rest_least_s: float,
        rest_most_s: float, seed: int,
    ) -> None:
        super().__init__()
        self._make = make
        self._bad, self._good = (least_s, most_s), (rest_least_s, rest_most_s)
        self._chance = random.Random(seed)
        self._rounds: list[Fault] = []
        self._background: Background | None = None

    def __repr__(self) -> str:
        return f"Again {self._rounds[0] if self._rounds else '-'}"

    def _begin(self, cluster: AlterableCluster) -> None:
        self.names = list(cluster.names)
        self._background = Background(lambda stopping: self._repeat(cluster, stopping))

    def _repeat(self, cluster: AlterableCluster, stopping: threading.Event) -> None:
        while True:
            fault = self._make(self._chance)
            self._rounds.append(fault)
            try:
                fault.begin(cluster)
                stopping.wait(self._chance.uniform(*self._bad))
            finally:
                fault.end()
            if stopping.wait(self._chance.uniform(*self._good)):
                return

    def _end(self, cluster: AlterableCluster) -> None:
        if self._background is not None:
            self._background.finish()
        self.cuts += [cut for fault in self._rounds for cut in fault.cuts]
        fired = sum(fault.fired for fault in self._rounds)
        self._saw(fired > 0, f"{fired} of {len(self._rounds)} rounds fired")


def kill_at_once(cluster: AlterableCluster, names: list[str]) -> None:
    """SIGKILL without waiting for the processes to end."""
    for pid in [cluster.pid(name) for name in names]:
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def keep_running(cluster: AlterableCluster) -> None:
    """Start nodes that have ended and may be started again. Raises AssertionError for other exit codes."""
    for name in cluster.names:
        if cluster.running(name):
            continue
        code = cluster.terminate(name)              # it only returns how it ended
        assert code in (None, -signal.SIGKILL, START_AGAIN) or cluster.shut_out(name), (
            f"{name} ended with {code}: {cluster.logs(name)[-2000:]}")
        start_at_once(cluster, name)


def start_at_once(cluster: AlterableCluster, name: str) -> None:
    """Start the node without the pause that grows with successive failures: here they are many, and not its own."""
    (cluster.data_dir(name) / FAILURES).unlink(missing_ok=True)
    cluster.restart(name, wait=False)


def bring_back(cluster: AlterableCluster) -> None:
    """Start what does not run, until all answer."""
    until = time.monotonic() + LEVEL_S
    while not all(answers(cluster, name) for name in cluster.names):
        keep_running(cluster)
        assert time.monotonic() < until, f"not all answer after {LEVEL_S:g} s"
        time.sleep(LOOK_S)


def level_again(cluster: AlterableCluster) -> None:
    """Start nodes that end and may be started again, until all are level."""
    until = time.monotonic() + LEVEL_S
    while True:
        keep_running(cluster)
        try:
            cluster.wait_until_level(LEVEL_LOOK_S, NEAR)
        except NodeError:
            if time.monotonic() > until:
                raise
        else:
            return
