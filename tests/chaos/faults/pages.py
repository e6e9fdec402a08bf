"""Faults around pages of jobs on disk: while these are written, read and moved, named by snapshots, or damaged.

The cluster must have been made with `small_pages`, and limits.hot_bytes be small.
"""

from __future__ import annotations

import contextlib
import random
import threading
import urllib.request

from devcluster.cluster import say
from tests.chaos.faults.fault import Background, Fault, called
from tests.chaos.faults.processes import LEVEL_S, NEAR
from tests.chaos.faults.roles import Role
from tests.chaos.machines.alterable import AlterableCluster

ASK_S = 1.0
SNAPSHOT_S = 10.0
PAGED_S = 30.0
PAGED_JOBS_MIN = 50         # on the disk of each node,
BODIES_MIN = 10             # and bodies of jobs that are not
MOVED_MIN = 30              # pages: they are not in one file
DAMAGE = " is damaged: "
FLIPPED_EVERY = 2000        # bytes of a changed file
LEFT = 0.2                  # so many files are left as they are


class Paged(Fault):
    """No fault: waits until each node has jobs on its disk, and sees at the end that pages were written and read.
    Unless files were `damaged`, no node found damage.

    `bodies`: each node has bodies on its disk without their jobs, too. `moved`: the nodes have snapshots, and have
    moved pages since then, out of files with little else.
    """

    def __init__(self, *, moved: bool = False, damaged: bool = False, bodies: bool = False) -> None:
        super().__init__()
        self._bodies = bodies
        self._moved = moved
        self._damaged = damaged

    def _begin(self, cluster: AlterableCluster) -> None:
        self.names = list(cluster.names)
        for name in self.names:
            self._wait_to_see(lambda name=name: told(cluster, name, "paged_jobs") >= PAGED_JOBS_MIN,
                              f"{name} has jobs on its disk", PAGED_S)
            if self._bodies:
                self._wait_to_see(lambda name=name: told(cluster, name, "paged_bodies") >= BODIES_MIN,
                                  f"{name} has bodies on its disk", PAGED_S)
            if self._moved:
                say(cluster.direct(name), "CLUSTER SNAPSHOT", SNAPSHOT_S)
        if self._moved:
            before = {name: told(cluster, name, "pages_moved_total") for name in self.names}
            for name in self.names:
                enough = before[name] + MOVED_MIN
                self._wait_to_see(lambda name=name, enough=enough: told(cluster, name, "pages_moved_total") >= enough,
                                  f"{name} moved pages", PAGED_S)

    def _end(self, cluster: AlterableCluster) -> None:
        for what in ("written", "read"):
            self._wait_to_see(lambda what=what: any(told(cluster, name, f"pages_{what}_total") for name in self.names),
                              f"pages were {what}", PAGED_S)
        for name in self.names:
            assert self._damaged or not self._logged(cluster, name, DAMAGE), f"{name} has found its files damaged"


class Snapshots(Fault):
    """Lets all nodes write snapshots one after another, as fast as they can."""

    def __init__(self) -> None:
        super().__init__()
        self._background: Background | None = None
        self._written = 0

    def _begin(self, cluster: AlterableCluster) -> None:
        self.names = list(cluster.names)
        self._background = Background(lambda stopping: self._write(cluster, stopping))

    def _write(self, cluster: AlterableCluster, stopping: threading.Event) -> None:
        while not stopping.is_set():
            for name in self.names:
                answer = say(cluster.direct(name), "CLUSTER SNAPSHOT", SNAPSHOT_S) or ""
                self._written += answer.startswith("200")

    def _end(self, cluster: AlterableCluster) -> None:
        if self._background is not None:
            self._background.finish()
        self._saw(self._written > 0, f"{self._written} snapshots were written")


class DamagedPages(Fault):
    """A node writes a snapshot and is killed, most files of pages are changed, or cut, swapped or lost, and it is
    started as its service manager does. Then it leads: what it has is what clients get."""

    def __init__(self, role: Role, seed: int) -> None:
        super().__init__()
        self._role = role
        self._rng = random.Random(seed)

    def __repr__(self) -> str:
        return f"DamagedPages {called(self._role)}"

    def _begin(self, cluster: AlterableCluster) -> None:
        self.names = self._role(cluster)
        for name in self.names:
            say(cluster.direct(name), "CLUSTER SNAPSHOT", SNAPSHOT_S)
            cluster.kill(name)
            done = self._damage(cluster, name)
            self._saw(bool(done), f"{name}: {', '.join(done)}")
            cluster.restart(name, wait=False)

    def _damage(self, cluster: AlterableCluster, name: str) -> list[str]:
        files = sorted(path for path in (cluster.data_dir(name) / "pages").glob("pages-*") if path.stat().st_size)
        how, done = self._rng.choice(("changed", "changed", "cut", "lost", "swapped")), []
        for path in files:
            if self._rng.random() < LEFT:
                continue
            other = self._rng.choice(files)
            data = bytearray(path.read_bytes()) if path.exists() else bytearray()
            if how == "lost":
                path.unlink(missing_ok=True)
            elif how == "swapped" and path.exists() and other.exists() and other != path:
                path.write_bytes(other.read_bytes())
                other.write_bytes(data)
            elif how == "cut":
                path.write_bytes(data[:self._rng.randrange(max(1, len(data)))])
            elif how == "changed":
                for place in range(self._rng.randrange(FLIPPED_EVERY), len(data), FLIPPED_EVERY):
                    data[place] ^= 1 << self._rng.randrange(8)
                path.write_bytes(data)
            done.append(f"{path.name} {how}")
        return done

    def _end(self, cluster: AlterableCluster) -> None:
        for name in self.names:
            while not cluster.running(name):        # it has set its files aside, and ended for that
                cluster.restart(name, wait=False)
        cluster.wait_until_level(LEVEL_S, NEAR)
        for name in self.names:
            say(cluster.direct(cluster.wait_for_leader()), f"CLUSTER TRANSFER {name}", SNAPSHOT_S)
            self._wait_to_see(lambda name=name: cluster.leader() == name, f"{name} leads", LEVEL_S)


def told(cluster: AlterableCluster, name: str, figure: str) -> float:
    """Return a metric of a node; 0 when it does not answer."""
    url = f"http://{cluster.http(name)}/metrics"
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=ASK_S) as page:
        for line in page.read().decode().splitlines():
            if line.startswith(f"sockpqd_{figure} "):
                return float(line.split()[1])
    return 0.0
