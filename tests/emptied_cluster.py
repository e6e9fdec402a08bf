"""A cluster of real nodes that is emptied between tests, as sockpq.testing.Server is one node."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from sockpq import Client

from devcluster.cluster import LocalCluster


class EmptiedCluster:
    """Nodes on loopback, from the beginning to the end of a block."""

    def __init__(self, nodes: int = 3) -> None:
        self.cluster = LocalCluster(nodes)
        self.address = ""           # those of all nodes, for clients
        self._empty = b""

    def empty(self) -> None:
        """Remove all jobs, waiting and running."""
        with Client(self.address, sessions=False) as client:
            client.clone(self._empty)

    def __enter__(self) -> Self:
        self.cluster.start()
        self.cluster.wait_for_leader()
        self.address = ",".join(self.cluster.servers)
        with Client(self.address, sessions=False) as client:
            self._empty = client.snapshot()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.cluster.stop()
