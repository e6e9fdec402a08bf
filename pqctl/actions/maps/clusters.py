"""The clusters of a map: a client for each, their maps, and the order in which they get a new one.

A new version goes to home first, which refuses the second of two operators, and then to all others. So the map of home
is the newest, and a command that is run again finds its progress there: `reach` brings that version to all
clusters before anything is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from sockpq import Client, ClusterMap, MapChanged, MappedCluster, Unavailable

from sockpqd.pqctl.actions.maps.changes import frozen
from sockpqd.pqctl.connect import find
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import REFUSED, UNREACHED, Failure
from sockpqd.pqctl.output.stdio import say

NO_MAP = "there is no map of clusters: `pqctl map init NAME` makes one, with this cluster as home"


class Clusters:
    """The clusters of the newest map.

    `map`: the newest version. `own`: the id of the cluster whose servers were given. `lost`: the name of a cluster that
    the operator gave up: it is neither asked nor written to.
    """

    def __init__(self, call: Call, stack: ExitStack, lost: str | None = None) -> None:
        self._call = call
        self._stack = stack
        self._clients: dict[str, Client] = {}           # by the id of the cluster
        self._former: dict[str, MappedCluster] = {}     # clusters of older maps
        self._version_seen = 0                          # the greatest in a cluster that is not in the map yet
        self.lost = lost
        self.own = self._enter(find(call, several=True).addresses)
        self.map = self._newest()

    @property
    def names(self) -> list[str]:
        """The clusters of the map, home first, without the lost one."""
        return [name for name in self.map.clusters if name != self.lost]

    def client(self, name: str) -> Client:
        """Return the client of this cluster of the map. Raises Failure if its servers do not answer or are another's.
        """
        return self._client(name, self.map.clusters[name])

    def members(self) -> tuple[str, ...]:
        """Return the addresses for clients of all nodes of the cluster whose servers were given."""
        return tuple(line.client for line in self._clients[self.own].cluster_status() if line.client is not None)

    def must_have(self, name: str) -> None:
        """Raise Failure if the map has no such cluster."""
        if name not in self.map.clusters:
            raise Failure(REFUSED, f"the map has no cluster {name!r}; it has: {', '.join(self.map.clusters)}")

    def at(self, name: str, servers: str) -> MappedCluster:
        """Return the cluster that answers at these servers, as an entry for the map. Raises Failure."""
        addresses = tuple(servers.split(","))
        with _named(name):
            id_ = self._enter(addresses)
            held = self._clients[id_].cluster_map()
        homes = {one.id for one in self.map.clusters.values()}
        if held.home is not None and held.clusters[held.home].id not in homes:
            raise Failure(REFUSED, f"{servers} belongs to another map, with the cluster {held.home} as home")
        self._version_seen = max(self._version_seen, held.version)
        return MappedCluster(id_, addresses)

    def change(self, after: ClusterMap) -> None:
        """Replace the map in all clusters; names that change owner have none in the version between the two.

        Raises Failure if another operator was faster, or a cluster does not answer: running the command again completes
        the change.
        """
        if after == self.map:
            return
        # No other cluster owns the names of a lost one before.
        between = None if self.lost else frozen(self.map, after)
        for new in (after,) if between is None else (between, after):
            before, version = self.map, max(self.map.version, self._version_seen) + 1
            self.map = new._replace(version=version)
            self._write(before)

    def must_go_on_with(self, prefix: str) -> None:
        """Raise Failure unless home has the map's line for this prefix.

        Another operator may have been interrupted between two versions: then no worker looks for the jobs.
        """
        home = self.names[0]
        held = self._held(home, self.client(home))
        now, then = ((one.rules.get(prefix), one.moving.get(prefix)) for one in (held, self.map))
        if now != then:
            raise _changed_meanwhile(home, held.version)

    def reach(self) -> None:
        """Bring the map to all clusters, including those that only older maps have.

        Raises Failure if one does not answer.
        """
        for name in self.names:
            self._bring(name, self.map.clusters[name])
        ids = {one.id for one in self.map.clusters.values()}
        for name, former in self._former.items():
            if former.id not in ids and name != self.lost:
                self._bring(name, former)

    # the clusters

    def _newest(self) -> ClusterMap:
        """Return the map of home. If that is lost, the newest of the others."""
        known = self._held("", self._clients[self.own])
        while known.home is not None and known.home != self.lost:
            newer = self._held(known.home, self._client(known.home, known.clusters[known.home]))
            if newer.version < known.version:
                raise Failure(REFUSED, f"{known.home} is home and has version {newer.version} of the map, but another "
                                       f"cluster has version {known.version}")
            if newer == known:
                return known
            known = newer
        others = [(name, one) for name, one in known.clusters.items() if name != self.lost]
        held = [self._held(name, self._client(name, one)) for name, one in others]
        return max([known, *held], key=lambda one: one.version)

    def _enter(self, servers: tuple[str, ...] | list[str]) -> str:
        """Make a client for the cluster at these servers, and return its id."""
        client = self._stack.enter_context(self._call.access.client(servers, self._call.timeout))
        id_ = client.cluster_id().id
        if id_ is None:
            raise Failure(UNREACHED, f"{','.join(servers)}: the cluster has had no leader yet")
        self._clients.setdefault(id_, client)
        return id_

    def _client(self, name: str, cluster: MappedCluster) -> Client:
        if cluster.id not in self._clients:
            with _named(name):
                id_ = self._enter(cluster.servers)
            if id_ != cluster.id:
                raise Failure(REFUSED, f"the servers of {name} in the map belong to the cluster {id_}, not to "
                                       f"{cluster.id}: `pqctl map add {name} SERVERS` corrects them")
        return self._clients[cluster.id]

    def _held(self, name: str, client: Client) -> ClusterMap:
        with _named(name):
            held = client.cluster_map()
        self._former.update(held.clusters)
        return held

    # writing

    def _write(self, before: ClusterMap) -> None:
        """Set the map: at home, then in a cluster that it no longer has, then in all others."""
        home = self.names[0]
        removed = [name for name in before.clusters if name not in self.map.clusters and name != self.lost]
        for name in (home, *removed, *self.names[1:]):
            self._set(name, self._client(name, self.map.clusters.get(name) or before.clusters[name]))

    def _bring(self, name: str, cluster: MappedCluster) -> None:
        client = self._client(name, cluster)
        held = self._held(name, client)
        if held == self.map:
            return
        if held.version >= self.map.version:
            raise Failure(REFUSED, f"{name} has version {held.version} of the map, home another one with version "
                                   f"{self.map.version}: `pqctl map show --servers` of each shows them")
        say(f"{name} gets version {self.map.version} of the map, it had {held.version}")
        self._set(name, client)

    def _set(self, name: str, client: Client) -> None:
        try:
            with _named(name):
                client.set_cluster_map(self.map)
        except MapChanged as error:
            raise _changed_meanwhile(name, error.version) from None


def _changed_meanwhile(name: str, version: int) -> Failure:
    return Failure(REFUSED, f"the map was changed meanwhile, {name} has version {version}: look at `pqctl map show`, "
                            "and run this again if it is still to be done")


@contextmanager
def clusters_of(call: Call, lost: str | None = None) -> Iterator[Clusters]:
    """Find the clusters of the map that the servers of the call have. Raises Failure if they have none."""
    with ExitStack() as stack:
        found = Clusters(call, stack, lost)
        if not found.map.clusters:
            raise Failure(REFUSED, NO_MAP)
        yield found


@contextmanager
def changing(call: Call, lost: str | None = None) -> Iterator[Clusters]:
    """Find the clusters for a change of their map: all answer, and have the newest version."""
    with clusters_of(call, lost) as found:
        found.reach()
        yield found


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Name the cluster if it does not answer."""
    try:
        yield
    except Unavailable as error:
        raise Failure(UNREACHED, f"the cluster {name} does not answer: {error}" if name else str(error)) from None
