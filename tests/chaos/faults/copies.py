"""Nodes that come back with an older copy of their data directory, or with an empty one.

Both are done as docs/OPERATIONS.md allows it: one follower at a time, while all others are sound and the leader is up.
"""

from __future__ import annotations

import random
import shutil
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.chaos.faults.again import keep_running, level_again
from tests.chaos.faults.fault import Background, Fault
from tests.chaos.faults.processes import LEVEL_S, answers
from tests.chaos.machines.alterable import AlterableCluster
from tests.system.damage_rounds import REJOINS, VOTES
from tests.waiting import until

WORK_S = (0.3, 2.5)         # between the copy and its return


class _Returns(Fault):
    """Kills a follower repeatedly; it comes back with something else on its disk."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._chance = random.Random(seed)
        self._background: Background | None = None

    def _begin(self, cluster: AlterableCluster) -> None:
        self._background = Background(lambda stopping: self._return(cluster, stopping))

    def _return(self, cluster: AlterableCluster, stopping: threading.Event) -> None:
        while True:
            leader = cluster.wait_for_leader()
            name = self._chance.choice([one for one in cluster.names if one != leader])
            self.names.append(name)
            before = self._exchange(cluster, name, stopping)
            cluster.restart(name, wait=False)
            until(lambda name=name, before=before: self._is_back(cluster, name, before),        # type: ignore[misc]
                  lambda name=name: f"{name} has no vote: {cluster.logs(name)[-2000:]}", LEVEL_S)   # type: ignore[misc]
            level_again(cluster)
            if stopping.is_set():
                return

    def _exchange(self, cluster: AlterableCluster, name: str, stopping: threading.Event) -> int:
        """Kill the node and change its files; returns how much it had logged before its return."""
        raise NotImplementedError

    def _is_back(self, cluster: AlterableCluster, name: str, before: int) -> bool:
        keep_running(cluster)
        said = cluster.logs(name)[before:]
        return "connected to" in said and answers(cluster, name) and self._votes(said)

    def _votes(self, said: str) -> bool:
        return said.rfind(VOTES) >= said.rfind(REJOINS)

    def _end(self, cluster: AlterableCluster) -> None:
        if self._background is not None:
            self._background.finish()


class OlderCopies(_Returns):
    """Brings a follower back with its files of a while ago."""

    def _exchange(self, cluster: AlterableCluster, name: str, stopping: threading.Event) -> int:
        with TemporaryDirectory() as folder:
            data_dir, copy = cluster.data_dir(name), Path(folder) / "copy"
            cluster.kill(name)
            shutil.copytree(data_dir, copy)
            cluster.restart(name)
            level_again(cluster)
            stopping.wait(self._chance.uniform(*WORK_S))
            cluster.kill(name)
            for path in data_dir.iterdir():     # the directory itself may be the root of a disk
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            shutil.copytree(copy, data_dir, dirs_exist_ok=True)
        self._saw(True, f"an older copy at {name}")
        return len(cluster.logs(name))


class Wiped(_Returns):
    """Brings a follower back with an empty disk."""

    def _exchange(self, cluster: AlterableCluster, name: str, stopping: threading.Event) -> int:
        cluster.kill(name)
        for path in cluster.data_dir(name).iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self._saw(True, f"{name} is wiped")
        return len(cluster.logs(name))

    def _votes(self, said: str) -> bool:
        return VOTES in said
