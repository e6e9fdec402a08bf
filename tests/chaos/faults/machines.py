"""What befalls a machine: its clock is set, its disk is full."""

from __future__ import annotations

from sockpq import survey

from tests.chaos.faults.fault import Fault, called
from tests.chaos.faults.roles import Role
from tests.chaos.machines import disks
from tests.chaos.machines.cluster import ProxiedCluster

ASK_S = 1.0
TOLERANCE_MS = 2000


class ClockJump(Fault):
    """The wall clocks of these nodes are ahead (or behind: negative) of the others', then right again at once.

    The cluster must have been made with `fake_clocks`.
    """

    def __init__(self, role: Role, seconds: float) -> None:
        super().__init__()
        self._role = role
        self._seconds = seconds

    def __repr__(self) -> str:
        return f"ClockJump {called(self._role)} {self._seconds:+g} s"

    def _begin(self, cluster: ProxiedCluster) -> None:
        self.names = self._role(cluster)
        for name in self.names:
            cluster.set_clock(name, self._seconds)
        for name in self.names:
            self._wait_to_see(lambda name=name: self._seen(cluster, name), f"the others see it at {name}")

    def _seen(self, cluster: ProxiedCluster, name: str) -> bool:
        others = [cluster.direct(other) for other in cluster.names if other not in self.names]
        ahead = [node.ahead_ms for view in survey(others, ASK_S) for node in view.nodes if node.name == name]
        return any(ms is not None and abs(ms - 1000 * self._seconds) < TOLERANCE_MS for ms in ahead)

    def _end(self, cluster: ProxiedCluster) -> None:
        for name in self.names:
            cluster.set_clock(name, 0)


class FullDisk(Fault):
    """There is no byte left for these nodes, then there is space again. The cluster must have been made with
    `disk_mb`."""

    def __init__(self, role: Role) -> None:
        super().__init__()
        self._role = role

    def __repr__(self) -> str:
        return f"FullDisk {called(self._role)}"

    def _begin(self, cluster: ProxiedCluster) -> None:
        self.names = self._role(cluster)
        for name in self.names:
            size = disks.fill(cluster.data_dir(name))
            free = disks.free_bytes(cluster.data_dir(name))
            self._saw(free == 0, f"{name} has {free} bytes left, {size} were taken")

    def _end(self, cluster: ProxiedCluster) -> None:
        for name in self.names:
            if self._logged(cluster, name, "no space for the next journal segment"):
                self.evidence.append(f"{name} noticed")
            disks.empty(cluster.data_dir(name))
