"""The clusters of one client: the executor of each cluster, and the newest map.

Without a map there is one cluster, the one whose servers the client was given. The first connection shows whether there
is a map (CLUSTER ID has a name). The newest map of all clusters is kept; they are asked again after a refusal (409
Elsewhere) and every minute. Clients that only take jobs are never refused: while they find nothing, the first cluster
of the map, in which each change begins, is asked about once a second.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import suppress

from sockpq._backends.base import Network
from sockpq._engine.executor import Executor
from sockpq._engine.limits import Limits
from sockpq._engine.probe import ask_all
from sockpq._engine.retry import pause_s
from sockpq._engine.stats import Counters
from sockpq._engine.tracing import Tracing
from sockpq._protocol.addresses import Address, parse_servers
from sockpq._protocol.arguments import Codec
from sockpq._protocol.cluster_map import ClusterMap
from sockpq._protocol.commands.clusters import CLUSTER_MAP
from sockpq._routing.routes import Routes
from sockpq._routing.targets import target_of
from sockpq.errors import MapUnread, SockpqError

READ_AGAIN_S = 60.0     # how old the map may be
LOOK_S = 1.0            # between two looks for a newer map, while nothing is found
LOOK_BYTES = 8192       # this many bytes of a map make a look cost as much as another second
LOOK_TIMEOUT_S = 0.5    # what a look may take, as a job that comes meanwhile has to wait
BLIND_S = 5.0           # after a look, or a reading, without an answer
STRAGGLER_S = 0.1       # how long the maps of slower clusters are waited for


class KnownClusters:
    """The clusters of one client. As many threads or tasks as its network allows may share them.

    `first`: the one whose servers the client was given. `routes`: from the newest map; None while there is none.
    `plain`: jobs were taken before there was a map.
    """

    def __init__(
        self, network: Network, addresses: tuple[Address, ...], limits: Limits, codec: Codec | None,
        tracing: Tracing | None, cluster: str | None, follows_map: bool,
    ) -> None:
        """`cluster`: the id of the first one, the only one unless the client `follows_map`."""
        self._network = network
        self._limits = limits
        self._codec = codec
        self._tracing = tracing
        self.counters = Counters()
        self.first = Executor(network, addresses, limits, codec, tracing, cluster, self.counters)
        self.identity = self.first.identity
        self.identity.follows_map = follows_map
        self.first.look_around(self._look_around, math.inf)
        self._others: dict[str, Executor] = {}          # by the id of their cluster
        self.routes: Routes | None = None
        self.plain = False
        self.read_at = network.now() + READ_AGAIN_S if follows_map else math.inf    # when the map is to be read again
        self._began_at = -math.inf                      # when the last reading began
        self._look_at = 0.0                             # when the next look for a newer one may be
        self._look_s = LOOK_S
        self._reading = network.lock()
        self._process = os.getpid()
        self._guard: Callable[[], None] | None = None

    @property
    def all(self) -> list[Executor]:
        """The executors of all clusters, the first one before the others."""
        return [self.first, *list(self._others.values())]

    @property
    def guard(self) -> Callable[[], None] | None:
        """A function that is called before each call, in the thread of the caller."""
        return self._guard

    @guard.setter
    def guard(self, guard: Callable[[], None]) -> None:
        self._guard = guard
        for executor in self.all:
            executor.guard = guard

    @property
    def must_read(self) -> bool:
        """True if there is a map; for a call that began without one."""
        return self.routes is not None or self.identity.map_is_unread

    async def known(self) -> Routes | None:
        """Return the routes; None if there is no known map."""
        if self.routes is None and self.identity.map_is_unread:
            await self.read_map()
        return None if self.routes is None else await self.now()

    async def now(self) -> Routes:
        """Return the routes, of a map that is not older than a minute if any cluster answers."""
        now = self._network.now()
        if now >= self.read_at:
            self.read_at = now + READ_AGAIN_S      # meanwhile others go on by the map that there is
            await self.read_map()
        if self.routes is None:
            servers = ", ".join(map(str, self.first.addresses))
            raise MapUnread(f"the map of clusters cannot be read from {servers}", None)
        return self.routes

    async def read_map(self) -> None:
        """Ask all clusters for their map, and keep the newest."""
        asked_at = self._network.now()
        if self._process != os.getpid():        # nobody here would release what a thread of the parent held
            self._reading, self._process = self._network.lock(), os.getpid()
        await self._reading.acquire(math.inf)
        try:
            if self.routes is not None and self._began_at > asked_at:
                return              # somebody else has, meanwhile
            servers = list(dict.fromkeys(
                address for one in self.all for address in ((one.leader,) if one.leader else one.addresses)))
            self._began_at = self._network.now()
            self.read_at = self._began_at + READ_AGAIN_S
            found = await ask_all(self._network, servers, [CLUSTER_MAP], self._limits.connect_timeout, STRAGGLER_S)
            maps = [
                response.answers[0].value for response in found.values()
                if response.failure is None and response.answers and not response.answers[0].error
            ]
            if not maps:
                self.read_at = self._network.now() + min(BLIND_S, READ_AGAIN_S)
            self._use(max(maps, key=lambda one: one.version, default=ClusterMap()))
        finally:
            self._reading.release()

    async def look(self) -> None:
        """Read the map if the first cluster has a newer one, unless it was checked a moment ago; never raises.

        Called when nothing was found, as jobs may have moved to another cluster. Without a map, once a minute.
        """
        now = self._network.now()
        routes = self.routes
        if now < self._look_at or (routes is None and now < self.read_at):
            return
        self._look_at = now + self._look_s              # meanwhile others go on by the map that there is
        if routes is None:
            self.read_at = now + READ_AGAIN_S
        executor = self.first if routes is None else routes.home.executor
        try:
            seen = await executor.run_call(executor.calls.call(CLUSTER_MAP, timeout=LOOK_TIMEOUT_S), None)
            if seen.version > (routes.map.version if routes else 0):
                await self.read_map()
        except SockpqError:
            self._look_at = self._network.now() + BLIND_S

    async def may_try_again(self, attempts: int, until: float) -> bool:
        """Read the map again after a refusal by the wrong cluster; wait unless it is new.

        Returns False without time left.
        """
        if not self.identity.follows_map:
            return False
        before = self.routes
        await self.read_map()
        if self.routes is not before:
            return True
        pause = pause_s(attempts)
        if self._network.closed or self._network.now() + pause >= until:
            return False
        await self._network.sleep(pause)
        return True

    async def _look_around(self) -> None:
        """Check whether the map has changed, while a command is blocked."""
        if self.identity.map_is_unread or (self.routes and self._network.now() >= self.read_at):
            with suppress(SockpqError):
                await self.read_map()
        else:
            await self.look()

    def _use(self, found: ClusterMap) -> None:
        """Use this map if it is newer than the current one."""
        before = self.routes
        if found.version <= (before.map.version if before else 0):
            return
        self.routes = Routes(found, self._executor_of, self.identity.cluster if self.plain else None)
        self.identity.map_is_read = True
        self._look_s = LOOK_S * (1 + len(found.text()) // LOOK_BYTES)
        self.first.look_around(self._look_around, LOOK_S)
        for executor in self.all:
            for call in executor.calls.blocking:
                names = target_of(call.command.line).names
                if names and (before is None or before.of_any(names) != self.routes.of_any(names)):
                    executor.calls.withdraw(call)

    def _executor_of(self, cluster: str, servers: tuple[str, ...]) -> Executor:
        addresses = parse_servers(servers)
        executor = self.first if cluster == self.identity.cluster else self._others.get(cluster)
        if executor is not None:
            executor.also_at(addresses)
        else:
            executor = Executor(
                self._network, addresses, self._limits, self._codec, self._tracing, cluster, self.counters)
            executor.guard = self._guard
            executor.look_around(self._look_around, LOOK_S)
            self._others[cluster] = executor
        return executor
