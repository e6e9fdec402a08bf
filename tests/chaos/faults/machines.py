"""Faults of a machine: its clock is set, its disk is slow, or full."""

from __future__ import annotations

import contextlib
import urllib.request

from sockpq import survey

from tests.chaos.faults.fault import Fault, called
from tests.chaos.faults.roles import Role
from tests.chaos.machines import disks
from tests.chaos.machines.alterable import AlterableCluster

ASK_S = 1.0
TOLERANCE_MS = 2000
SYNCS = "sockpqd_journal_sync_seconds"


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

    def _begin(self, cluster: AlterableCluster) -> None:
        self.names = self._role(cluster)
        for name in self.names:
            cluster.set_clock(name, self._seconds)
        for name in self.names:
            self._wait_to_see(lambda name=name: self._seen(cluster, name), f"the others see it at {name}")

    def _seen(self, cluster: AlterableCluster, name: str) -> bool:
        others = [cluster.direct(other) for other in cluster.names if other not in self.names]
        ahead = [node.ahead_ms for view in survey(others, ASK_S) for node in view.nodes if node.name == name]
        return any(ms is not None and abs(ms - 1000 * self._seconds) < TOLERANCE_MS for ms in ahead)

    def _end(self, cluster: AlterableCluster) -> None:
        for name in self.names:
            cluster.set_clock(name, 0)


class SlowDisk(Fault):
    """Each sync of these nodes' disks takes this many milliseconds longer. The cluster must have been made with
    `slow_disks`."""

    def __init__(self, role: Role, slower_ms: float) -> None:
        super().__init__()
        self._role = role
        self._slower_ms = slower_ms
        self._before: dict[str, tuple[int | None, Syncs]] = {}

    def __repr__(self) -> str:
        return f"SlowDisk {called(self._role)} +{self._slower_ms:g} ms"

    def _begin(self, cluster: AlterableCluster) -> None:
        self.names = self._role(cluster)
        for name in self.names:
            cluster.set_disk(name, self._slower_ms)
            self._before[name] = cluster.pid(name), _syncs(cluster, name)

    def _end(self, cluster: AlterableCluster) -> None:
        """Record the evidence; the counts of a node that was restarted begin with its start."""
        for name in self.names:
            pid, before = self._before[name]
            count, seconds = _syncs(cluster, name)
            if cluster.pid(name) == pid:
                count, seconds = count - before[0], seconds - before[1]
            slow = count > 0 and seconds >= count * self._slower_ms / 1000
            self._saw(slow, f"{name} made {count} syncs in {seconds:.2f} s")
            cluster.set_disk(name, 0)


Syncs = tuple[int, float]           # how many a node has made since its start, and how many seconds that took


def _syncs(cluster: AlterableCluster, name: str) -> Syncs:
    url = f"http://{cluster.http(name)}/metrics"
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=ASK_S) as page:
        told = dict(line.rpartition(" ")[::2] for line in page.read().decode().splitlines())
        return int(float(told[f"{SYNCS}_count"])), float(told[f"{SYNCS}_sum"])
    return 0, 0.0


class FullDisk(Fault):
    """There is no byte left for these nodes, then there is space again. The cluster must have been made with
    `disk_mb`."""

    def __init__(self, role: Role) -> None:
        super().__init__()
        self._role = role

    def __repr__(self) -> str:
        return f"FullDisk {called(self._role)}"

    def _begin(self, cluster: AlterableCluster) -> None:
        self.names = self._role(cluster)
        for name in self.names:
            size = disks.fill(cluster.data_dir(name))
            free = disks.free_bytes(cluster.data_dir(name))
            self._saw(free == 0, f"{name} has {free} bytes left, {size} were taken")

    def _end(self, cluster: AlterableCluster) -> None:
        for name in self.names:
            if self._logged(cluster, name, "no space for the next journal segment"):
                self.evidence.append(f"{name} noticed")
            disks.empty(cluster.data_dir(name))
