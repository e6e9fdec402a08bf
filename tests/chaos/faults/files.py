"""Faults of files: damage, a second process with the name of a node, another release."""

from __future__ import annotations

import contextlib
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from devcluster.node import NodeError
from sockpqd.core.levels import FEATURE_LEVEL
from tests.chaos.faults.fault import Fault, called
from tests.chaos.faults.processes import LEVEL_S, NEAR, RollingRestart
from tests.chaos.faults.roles import Role
from tests.chaos.machines.alterable import AlterableCluster
from tests.system.damages import DAMAGES, Damage
from tests.system.second_process import twin_of

LOOK_S = 0.5
START_AGAIN = 75            # the exit code of a node that is to be started again
NEXT = (sys.executable, "-m", "tests.upgrade.next_release")


def copy_live(data_dir: Path, copy: Path) -> None:
    """Copy the folder of a node that runs: the copy is an older one, perhaps torn, without files removed meanwhile."""
    def copy_file(source: str, target: str) -> str:
        with contextlib.suppress(FileNotFoundError):
            shutil.copy2(source, target)
        return target
    shutil.copytree(data_dir, copy, copy_function=copy_file)


class Damaged(Fault):
    """Kills a node and damages its files; its service manager starts it, and it must become whole again."""

    def __init__(self, role: Role, seed: int, damages: Sequence[Damage] = DAMAGES) -> None:
        """`damages`: the kinds of damage to choose from."""
        super().__init__()
        self._role = role
        self._damages = damages
        self._rng = random.Random(seed)

    def __repr__(self) -> str:
        return f"Damaged {called(self._role)}"

    def _begin(self, cluster: AlterableCluster) -> None:
        self.names = self._role(cluster)
        for name in self.names:
            data_dir = cluster.data_dir(name)
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder) / "copy"
                copy_live(data_dir, copy)
                cluster.kill(name)
                self._saw(True, f"{name}: {self._rng.choice(self._damages)(data_dir, copy, self._rng)}")
            self._log_sizes[name] = len(cluster.logs(name))
            cluster.restart(name, wait=False)

    def _end(self, cluster: AlterableCluster) -> None:
        until = time.monotonic() + LEVEL_S
        while not self.missing and not self._level(cluster):
            self._keep_running(cluster)
            if time.monotonic() > until:
                self.missing.append("all are level again")

    def _keep_running(self, cluster: AlterableCluster) -> None:
        """Act as a service manager: a node may learn from others that its files are damaged."""
        for name in self.names:
            if not cluster.running(name):
                code = cluster.terminate(name)
                self._saw(code == START_AGAIN, f"{name} ended with {code}")
                self._log_sizes[name] = len(cluster.logs(name))
                cluster.restart(name, wait=False)

    def _level(self, cluster: AlterableCluster) -> bool:
        """Return the level. Before it has met another node, a node does not know what it lacks."""
        if not all(self._logged(cluster, name, "connected to") for name in self.names):
            return False
        try:
            cluster.wait_until_level(LOOK_S, NEAR)
        except NodeError:
            return False
        return True


class SecondProcess(Fault):
    """Runs a second process with the name of a node elsewhere, with a copy of its files."""

    def __init__(self, role: Role) -> None:
        super().__init__()
        self._role = role
        self._running = contextlib.ExitStack()

    def __repr__(self) -> str:
        return f"SecondProcess {called(self._role)}"

    def _begin(self, cluster: AlterableCluster) -> None:
        self.names = self._role(cluster)
        for name in self.names:
            folder = Path(self._running.enter_context(tempfile.TemporaryDirectory())) / "twin"
            twin = self._running.enter_context(twin_of(cluster, name, folder, copied=True))
            refused = f"refuses this node: a second process with the name {name}"
            self._wait_to_see(
                lambda twin=twin, refused=refused: refused in twin.log(), f"{name} has one, refused", LEVEL_S)

    def _end(self, cluster: AlterableCluster) -> None:
        self._running.close()


class RollingUpgrade(RollingRestart):
    """Upgrades one node after the other to the next release; when the last has it the level rises."""

    def _change(self, cluster: AlterableCluster, name: str) -> None:
        cluster.run_by(name, *NEXT)

    def _roll(self, cluster: AlterableCluster, stopping: threading.Event) -> None:
        super()._roll(cluster, stopping)
        raised = f"the cluster has feature level {FEATURE_LEVEL + 1}"
        self._wait_to_see(lambda: self._logged(cluster, cluster.wait_for_leader(), raised), raised, LEVEL_S)
