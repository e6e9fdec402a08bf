"""Ties a client to one cluster: the first one that it used.

Ids of jobs, sessions and request numbers have other meanings in another cluster: a DONE would end some other client's
job there. So each connection begins with CLUSTER ID, and commands that change anything wait for its answer.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from sockpq._engine.retry import ForeignServer
from sockpq._protocol.addresses import Address

LOG = logging.getLogger("sockpq")


class Known(NamedTuple):
    """The cluster of a client, and the server at which it was first seen (None: the caller named the cluster)."""

    cluster: str
    server: Address | None


class Identity:
    """Remembers one id, for all connections of a client. Safe in threads and after a fork, without a lock."""

    def __init__(self, cluster: str | None = None) -> None:
        """`cluster`: the id of the cluster to stay with; None takes the id of the first server that is used."""
        self._known: dict[None, Known] = {}         # one at most: setdefault is a single step
        if cluster is not None:
            self._known[None] = Known(cluster, None)
        self._warned: set[tuple[Address, str]] = set()
        self.follows_map = False    # commands go where the map of clusters says
        self.map_is_read = False
        self._name: str | None = None       # of the cluster in the map

    @property
    def cluster(self) -> str | None:
        """The id; None before any cluster was used."""
        known = self._known.get(None)
        return known.cluster if known else None

    @property
    def map_is_unread(self) -> bool:
        """True if the cluster has a map of clusters that this client should follow and has not read yet."""
        return self._name is not None and self.follows_map and not self.map_is_read

    def use(self, address: Address, cluster: str, name: str | None) -> None:
        """Bind the client to this cluster; raises ForeignServer if it is bound to another one."""
        self._known.setdefault(None, Known(cluster, address))
        self.check(address, cluster, name)

    def check(self, address: Address, cluster: str, name: str | None) -> None:
        """Raise ForeignServer for any other cluster than the client's.

        `name`: in the map of clusters, if it has one.
        """
        known = self._known.get(None)
        if known is None or known.cluster == cluster:
            if known and name:
                self._name = name
            return
        began = f"began with {known.cluster} at {known.server}" if known.server else f"is for {known.cluster}"
        why = f"of cluster {cluster}, but this client {began}"
        self.warn(address, cluster, why)
        raise ForeignServer(str(address), why)

    def warn(self, address: Address, cluster: str, why: str) -> None:
        """Log once that this server is of another cluster."""
        if (address, cluster) not in self._warned:
            self._warned.add((address, cluster))
            LOG.warning("nothing is sent to %s: %s", address, why)
