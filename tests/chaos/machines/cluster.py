"""A local cluster in which every connection leads through a proxy of its own.

    with ProxiedCluster() as cluster:
        client = sockpq.Client(cluster.servers)             # through the proxies "client>n1", ..
        cluster.peer_link("n1", "n2").silence()             # what n1 dials to reach n2
        cluster.leader()                                    # asked directly
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import permutations
from typing import Any

from tests.chaos.machines.alterable import AlterableCluster
from tests.chaos.proxies.proxies import Link, Proxies

CLIENT = "client"
NOWHERE = "127.0.0.1:1"         # without a listener


class ProxiedCluster(AlterableCluster):
    """AlterableCluster with a proxy for each ordered pair of nodes, and one in front of each node for clients.

    `servers` and `server(name)` are what clients dial, and what nodes announce: the proxies. `direct(name)`,
    `leader()` and all that waits go to the nodes themselves, so they work whatever the network is like.
    (A `spare()` dials through proxies, but the others dial it at `peer(name)`, without one.)
    """

    def __init__(self, *given: Any, **alterations: Any) -> None:
        """Make one that is not started, with what AlterableCluster takes."""
        super().__init__(*given, **alterations)
        self._founders = frozenset(self.names)
        self._links: dict[str, Link] = {}
        self._proxies: Proxies | None = None

    @property
    def proxies(self) -> Proxies:
        """Return the server of all proxies."""
        assert self._proxies
        return self._proxies

    def start(self) -> None:
        """Start as LocalCluster does; raises ToxiproxyError without toxiproxy-server."""
        self._proxies = Proxies()
        super().start()

    def stop(self) -> dict[str, int | None]:
        """Stop as LocalCluster does."""
        try:
            return super().stop()
        finally:
            proxies, self._proxies = self._proxies, None
            if proxies is not None:
                proxies.close()

    # links

    def peer_link(self, dialing: str, dialed: str) -> Link:
        """Return what `dialing` dials to reach `dialed`. It carries what `dialing` sends, and one greeting back."""
        return self._links[f"{dialing}>{dialed}"]

    def client_link(self, name: str) -> Link:
        """Return what clients dial to reach this node."""
        return self._links[f"{CLIENT}>{name}"]

    def peer_links(self) -> list[Link]:
        """Return all links between nodes."""
        return [link for name, link in self._links.items() if not name.startswith(f"{CLIENT}>")]

    def client_links(self) -> list[Link]:
        """Return all links that clients dial."""
        return [self.client_link(name) for name in self.names]

    def between(self, some: Iterable[str], others: Iterable[str]) -> list[Link]:
        """Return all links between the two groups, in both directions."""
        left, right = set(some), set(others)
        return [self.peer_link(a, b) for a, b in permutations(self.names, 2)
                if (a in left and b in right) or (a in right and b in left)]

    def together(self, links: Iterable[Link], what: Callable[[Link], None]) -> None:
        """Do the same to several links at the same time."""
        self.proxies.together(links, what)

    def heal_links(self) -> None:
        """Restore all proxies to their initial state."""
        self.together(self._links.values(), Link.heal)

    # hooks of LocalCluster

    def peer_address(self, dialing: str, dialed: str, address: str) -> str:
        return self._link(f"{dialing}>{dialed}", address).address

    def announced_address(self, name: str, address: str) -> str:
        """Return one address for all, which is ignored for that reason: no connection may bypass a proxy."""
        return NOWHERE if name in self._founders else address

    def client_address(self, name: str, address: str) -> str:
        return self._link(f"{CLIENT}>{name}", address).address

    def _prepare(self) -> None:
        self._links.clear()
        self.proxies.remove_all()
        super()._prepare()

    def _link(self, name: str, upstream: str) -> Link:
        if name not in self._links:
            taken = {int(address.rpartition(":")[2]) for kinds in self._listens.values() for address in kinds.values()}
            self._links[name] = self.proxies.create(name, upstream, avoid=taken)
        return self._links[name]
