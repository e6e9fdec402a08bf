"""A cluster whose nodes are machines of their own: a network namespace and a disk each.

    with NamespacedCluster(3) as cluster:
        cluster.network.lose({("n1", "n2"), ("n2", "n1")})
        cluster.lose_power(["n1"])
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.chaos.machines.alterable import AlterableCluster
from tests.chaos.machines.beanstalkd import PROGRAM
from tests.proof import power
from tests.proof.network import CLIENTS, Network

DISK_MB = 640                               # files that are set aside stay there, too
READY_S = 240.0                             # of a start: the clients, and other nodes that start, have the processors
START_AGAIN = 75                            # the exit code of a node that is to be started again
OPEN = {"insecure": True}                   # without users, at addresses that are private
LIMITS = {"disk_free_bytes_min": 0}         # such a disk is beyond the usual mark from the start


class NamespacedCluster(AlterableCluster):
    """AlterableCluster in a Network. Clients are where the program is."""

    def __init__(self, nodes: int = 3, config: Any = None, **alterations: Any) -> None:
        """Make one that is not started, with the alterations that AlterableCluster takes."""
        config = {**(config or {}), "limits": {**LIMITS, **(config or {}).get("limits", {})}, "listen": OPEN}
        super().__init__(nodes, config, ready_s=READY_S, **alterations)
        self.network = Network(self.names)

    def start(self) -> None:
        """Start as AlterableCluster does; raises OSError where the kernel lacks what the machines need."""
        self.network.__enter__()
        super().start()

    def stop(self) -> dict[str, int | None]:
        """Stop as AlterableCluster does, and remove the machines."""
        try:
            self.network.lose(())
            return super().stop()
        finally:
            self.network.close()

    def lose_power(self, names: Sequence[str]) -> int:
        """Let these nodes, which have ended, lose what they had not written to their disks; returns of how many files
        something was lost."""
        with ThreadPoolExecutor(len(names)) as pool:
            return sum(pool.map(power.lose, map(self._disk_of, names)))

    # hooks of LocalCluster

    def _start_shut_out(self) -> None:
        """Do what a service manager does: a node may find out late that its files are damaged."""
        super()._start_shut_out()
        for node in self._nodes.values():
            if not node.stopped and node.wait(0) == START_AGAIN:
                node.start()

    def host(self, name: str) -> str:
        return self.network.address(name)

    def place(self, name: str) -> Path:
        """In a folder of the disk, because the root of a disk cannot be removed."""
        return self._disk_of(name) / "data"

    def wrapper(self, name: str) -> Sequence[str]:
        return self.network.enter(name)

    def run_by(self, name: str, *wrapper: str) -> None:
        super().run_by(name, *self.network.enter(name), *wrapper)

    def _doors(self, names: list[str]) -> dict[str, str]:
        ports = super()._doors(names)
        return {name: f"{self.network.address(CLIENTS if name == PROGRAM else name)}:{door.rpartition(':')[2]}"
                for name, door in ports.items()}

    def _prepare_node(self, name: str) -> None:
        power.mount(self._disk_of(name), DISK_MB)
        super()._prepare_node(name)

    def _disk_of(self, name: str) -> Path:
        return self.folder / f"{name}.machine"
