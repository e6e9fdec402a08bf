"""Nodes that cannot reach each other: the connections of clients are left alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from tests.chaos.faults.fault import LinkedFault, called
from tests.chaos.faults.roles import Role
from tests.chaos.machines.alterable import AlterableCluster
from tests.chaos.machines.cluster import ProxiedCluster
from tests.chaos.proxies.proxies import FRO, TO, Link
from tests.chaos.workload.history import Cut

How = Callable[[Link], None]


def cut(link: Link) -> None:
    """End connections and refuse new ones: both sides notice at once."""
    link.cut()


def silent(link: Link) -> None:
    """Block all messages; those sent in between arrive when the fault ends."""
    link.silence()


def lossy(link: Link) -> None:
    """Drop all messages; those sent in between are lost."""
    link.silence(lost=True)


class _Partition(LinkedFault):
    """Breaks some links between nodes in this way."""

    def __init__(self, how: How) -> None:
        super().__init__()
        self._how = how

    def __repr__(self) -> str:
        return f"{type(self).__name__} {called(self._how)}"

    def _break(self, cluster: AlterableCluster, links: Iterable[Link]) -> None:
        assert isinstance(cluster, ProxiedCluster)
        self._take(links)
        for link in self._links:
            self._wait_to_see(lambda link=link: link.connections > 0, f"{link} stood")
        cluster.together(self._links, self._how)
        if self._how is cut:
            self._wait_to_see(lambda: not any(link.connections for link in self._links), "all of them ended")

    def _end(self, cluster: AlterableCluster) -> None:
        for link in self._links:
            dialing, _, dialed = link.name.partition(">")
            if self._logged(cluster, dialing, f"connection to {dialed} lost"):
                self.evidence.append(f"{dialing} noticed that {dialed} is away")
        self._heal_links(cluster)


class Partition(_Partition):
    """Separates these nodes from the rest."""

    def __init__(self, role: Role, how: How) -> None:
        super().__init__(how)
        self._role = role
        self._since_ns = 0

    def __repr__(self) -> str:
        return f"Partition {called(self._role)} {called(self._how)}"

    def _begin(self, cluster: AlterableCluster) -> None:
        assert isinstance(cluster, ProxiedCluster)
        self.names = self._role(cluster)
        rest = [name for name in cluster.names if name not in self.names]
        self._break(cluster, cluster.between(self.names, rest))
        self._since_ns = time.monotonic_ns()

    def _end(self, cluster: AlterableCluster) -> None:
        until_ns = time.monotonic_ns()
        if self._since_ns:
            rest = [name for name in cluster.names if name not in self.names]
            self.cuts += [Cut(name, self._since_ns, until_ns) for side in (self.names, rest)
                          if 2 * len(side) <= len(cluster.names) for name in side]
        super()._end(cluster)


class Bridge(_Partition):
    """Leaves one node connected to all, the others in two groups that cannot reach each other; the leader is in one of
    these.
    """

    def _begin(self, cluster: AlterableCluster) -> None:
        assert isinstance(cluster, ProxiedCluster)
        serving = cluster.wait_for_leader()
        names = [serving, *(name for name in cluster.names if name != serving)]
        half = (len(names) - 1) // 2
        self.names = names[:2 * half]
        self._break(cluster, cluster.between(names[:half], names[half:2 * half]))


class OneWay(LinkedFault):
    """These nodes can send to the others but receive nothing, or receive and cannot send.

    Only TCP's data go one way: a greeting or its answer is lost, so no new connection is established.
    """

    def __init__(self, role: Role, *, deaf: bool, lost: bool = False) -> None:
        """`deaf`: they receive nothing, otherwise their messages are blocked; `lost`: blocked messages never arrive."""
        super().__init__()
        self._role = role
        self._deaf = deaf
        self._lost = lost

    def __repr__(self) -> str:
        return f"OneWay {called(self._role)} {'deaf' if self._deaf else 'mute'}{' lossy' if self._lost else ''}"

    def _begin(self, cluster: AlterableCluster) -> None:
        assert isinstance(cluster, ProxiedCluster)
        self.names = self._role(cluster)
        self._take(cluster.between(self.names, [name for name in cluster.names if name not in self.names]))
        for link in self._links:
            self._wait_to_see(lambda link=link: link.connections > 0, f"{link} stood")
        cluster.together(self._links, self._break)

    def _break(self, link: Link) -> None:
        dials = link.name.partition(">")[0] in self.names
        link.silence(FRO if dials == self._deaf else TO, lost=self._lost)

    def _end(self, cluster: AlterableCluster) -> None:
        self._heal_links(cluster)


class Undialable(_Partition):
    """Makes these nodes undialable while they can dial the others: each pair has one of its two connections."""

    def __init__(self, role: Role) -> None:
        super().__init__(cut)
        self._role = role

    def __repr__(self) -> str:
        return f"Undialable {called(self._role)}"

    def _begin(self, cluster: AlterableCluster) -> None:
        assert isinstance(cluster, ProxiedCluster)
        self.names = self._role(cluster)
        self._break(cluster, [cluster.peer_link(other, name) for name in self.names for other in cluster.names
                              if other not in self.names])
