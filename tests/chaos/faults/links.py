"""Connections that are slow, break, or are taken for alive by one side only.

    LinkFault(all_peers, delayed(100, 50))                  # throughout
    Storm(all_clients, [reset, cut_in_command])             # again and again for a moment, with time to recover
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence

from tests.chaos.faults.fault import Background, LinkedFault, called
from tests.chaos.faults.roles import Role
from tests.chaos.machines.alterable import AlterableCluster
from tests.chaos.machines.cluster import ProxiedCluster
from tests.chaos.proxies.proxies import FRO, NEVER_MS, TO, Link
from tests.chaos.workload.history import Cut

Where = Callable[[ProxiedCluster], list[Link]]
What = Callable[[Link], None]


# where

def all_peers(cluster: ProxiedCluster) -> list[Link]:
    """Every link between nodes."""
    return cluster.peer_links()


def all_clients(cluster: ProxiedCluster) -> list[Link]:
    """Every link that clients dial."""
    return cluster.client_links()


# what, throughout: nothing is lost

def delayed(ms: int, jitter_ms: int = 0) -> What:
    """Delay each direction by this time."""
    return lambda link: link.delay(ms, jitter_ms)


def throttled(kb_per_s: int) -> What:
    """Limit the throughput to this many thousand bytes a second."""
    return lambda link: link.throttle(kb_per_s)


def sliced(size: int = 5, variation: int = 3, delay_us: int = 100) -> What:
    """Deliver everything in small pieces."""
    return lambda link: link.slice(size, variation, delay_us)


def slowly_closed(ms: int) -> What:
    """Delay the notice to one side that the other has closed."""
    return lambda link: link.slow_close(ms)


# what, for a moment: connections end

def reset(link: Link) -> None:
    """RST at the next bytes, for connections made during the fault; an orderly end for existing ones."""
    link.reset()


def cut_off(link: Link) -> None:
    """End connections in an orderly way, including those that wait and have nothing to send."""
    link.cut()


def cut_in_command(link: Link) -> None:
    """Cut connections after some bytes to the server: in the middle of a line or of its data."""
    link.limit(random.randrange(1, 60), TO)


def cut_before_answer(link: Link) -> None:
    """Let the server receive the command, and lose its answer."""
    link.limit(0, FRO)


def cut_in_answer(link: Link) -> None:
    """Let a part of the answer arrive."""
    link.limit(random.randrange(1, 20), FRO)


def swallowed(link: Link) -> None:
    """Lose commands and answers while connections stay open; then end the connections."""
    link.silence(lost=True)


class _Links(LinkedFault):
    def __init__(self, where: Where) -> None:
        super().__init__()
        self._where = where
        self._accepted = 0

    def _begin_on(self, links: list[Link]) -> None:
        self._take(links)
        self.names = [link.name for link in links]
        self._accepted = sum(link.accepted for link in links)

    def _count_accepted(self) -> int:
        return sum(link.accepted for link in self._links) - self._accepted


class LinkFault(_Links):
    """Applies the effect to all these links from the beginning to the end."""

    def __init__(self, where: Where, what: What) -> None:
        super().__init__(where)
        self._what = what

    def __repr__(self) -> str:
        return f"LinkFault {called(self._where)} {called(self._what)}"

    def _begin(self, cluster: AlterableCluster) -> None:
        assert isinstance(cluster, ProxiedCluster)
        self._begin_on(self._where(cluster))
        standing = sum(link.connections for link in self._links)
        if standing:
            self.evidence.append(f"{standing} connections stood")
        cluster.together(self._links, self._what)

    def _end(self, cluster: AlterableCluster) -> None:
        made = self._count_accepted()
        if made:
            self.evidence.append(f"{made} connections were made meanwhile")
        self._saw(bool(self.evidence), "there was a connection to befall")
        self._heal_links(cluster)


class Storm(_Links):
    """Applies one of the effects to the links for a moment, then leaves them healthy for a moment, repeatedly."""

    def __init__(
        self, where: Where, what: Sequence[What], bad_s: float = 0.15, good_s: float = 0.5, seed: int | None = None
    ) -> None:
        """The moments vary by half; `seed`: of the choice and of the times."""
        super().__init__(where)
        self._what = what
        self._bad_s, self._good_s = bad_s, good_s
        self._random = random.Random(seed)
        self._gusts = 0
        self._background: Background | None = None

    def __repr__(self) -> str:
        return f"Storm {called(self._where)} {' '.join(map(called, self._what))}"

    def _begin(self, cluster: AlterableCluster) -> None:
        assert isinstance(cluster, ProxiedCluster)
        self._begin_on(self._where(cluster))
        self._background = Background(lambda stopping: self._blow(cluster, stopping))

    def _blow(self, cluster: AlterableCluster, stopping: threading.Event) -> None:
        assert isinstance(cluster, ProxiedCluster)
        while not stopping.is_set():
            try:
                cluster.together(self._links, self._random.choice(self._what))
                self._gusts += 1
                stopping.wait(self._bad_s * self._random.uniform(0.5, 1.5))
            finally:
                self._heal_links(cluster)
            stopping.wait(self._good_s * self._random.uniform(0.5, 1.5))

    def _end(self, cluster: AlterableCluster) -> None:
        if self._background is None:
            return
        self._background.finish()
        made = self._count_accepted()
        self._saw(self._gusts > 0 and made > 0, f"{self._gusts} times; {made} connections were made meanwhile")


class HalfOpen(LinkedFault):
    """The others have lost their connections with these nodes, which believe that they stand. New ones do not come up:
    what these nodes send ends the connection for its receiver, and the sender does not notice.

    With `dropped` they also receive nothing, from the same moment on: so a leader among them has its lease from nodes
    that have lost their connections with it.
    """

    def __init__(self, role: Role, *, dropped: bool = False) -> None:
        super().__init__()
        self._role = role
        self._dropped = dropped
        self._since_ns = 0

    def __repr__(self) -> str:
        return f"HalfOpen {called(self._role)}{' dropped' if self._dropped else ''}"

    def _begin(self, cluster: AlterableCluster) -> None:
        assert isinstance(cluster, ProxiedCluster)
        self.names = self._role(cluster)
        rest = [name for name in cluster.names if name not in self.names]
        self._take(cluster.between(self.names, rest))
        cluster.together(self._links, self._break)
        self._since_ns = time.monotonic_ns()
        for name in self.names:
            for other in rest:
                self._wait_to_see(lambda name=name, other=other: self._lost(cluster, other, name),
                                  f"{other} lost {name}")

    def _break(self, link: Link) -> None:
        if link.name.partition(">")[0] in self.names:
            link.half_open(TO)
        else:
            link.slow_close(NEVER_MS, TO)
            if self._dropped:
                link.silence()

    def _lost(self, cluster: AlterableCluster, name: str, other: str) -> bool:
        return self._logged(cluster, name, f"connection to {other} lost")

    def _end(self, cluster: AlterableCluster) -> None:
        if self._since_ns and 2 * len(self.names) < len(cluster.names):     # nothing that they send arrives
            self.cuts += [Cut(name, self._since_ns, time.monotonic_ns()) for name in self.names]
        self._heal_links(cluster)
