"""Two real clusters that a program uses as one, by a map that the test sets."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from types import TracebackType

from sockpq import Client, ClusterMap, MappedCluster, Moving, QueueNotFound

from devcluster.cluster import LocalCluster


class Pair:
    """The clusters `a`, which is home, and `b`."""

    def __init__(self, nodes: int = 1) -> None:
        """`nodes`: the number of nodes of each cluster."""
        self._stack = ExitStack()
        self.a = LocalCluster(nodes)
        self.b = LocalCluster(nodes)
        self.map = ClusterMap()
        self._clusters: dict[str, MappedCluster] = {}

    def __enter__(self) -> Pair:
        for name, cluster in (("a", self.a), ("b", self.b)):
            self._stack.enter_context(cluster)
            with Client(cluster.servers) as client:
                id_ = client.cluster_id().id
            assert id_ is not None
            self._clusters[name] = MappedCluster(id_, tuple(cluster.servers))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def only(self, name: str) -> Client:
        """Return a client of this cluster alone, regardless of the map; the caller closes it."""
        cluster = self._clusters[name]
        return Client(cluster.servers, cluster=cluster.id, timeout=10)

    def clear(self) -> None:
        """Delete all queues, with their jobs."""
        for name in "ab":
            with self.only(name) as client:
                for queue in client.queues():
                    with suppress(QueueNotFound):       # it has gone with the jobs of another one, of the same item
                        client.queue_delete(queue.name, force=True)

    def set(
        self, rules: dict[str, str | None], moving: dict[str, Moving] | None = None, spread: tuple[str, ...] = (),
        where: str = "ab",
    ) -> None:
        """Set the next version of the map, in both clusters or only in those that `where` names."""
        self.map = ClusterMap(self.map.version + 1, self._clusters, rules, moving or {}, frozenset(spread))
        self.tell(where)

    def tell(self, where: str) -> None:
        """Give the present map to these clusters."""
        for name in where:
            with self.only(name) as client:
                client.set_cluster_map(self.map)

    def count(self, name: str, queue: str) -> tuple[int, int]:
        """Return how many jobs of a queue wait in this cluster, and how many run."""
        with self.only(name) as client:
            total = client.total(queue)
        return total.jobs, total.running
