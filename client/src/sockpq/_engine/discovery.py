"""Finds the serving leader by asking all known servers, and remembers it, for all calls of a client, until it fails.

One address of a cluster is enough: a server that answers reports the others. They are remembered, so the first ones may
disappear.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence

from sockpq._backends.base import Network
from sockpq._engine.identity import Identity
from sockpq._engine.probe import (
    QUESTIONS,
    REFUSAL_S,
    Response,
    ask,
    ask_all,
    choose_leader,
    claims_to_serve,
    members,
    members_of,
)
from sockpq._engine.region import region_part
from sockpq._engine.retry import Lost
from sockpq._engine.stats import Counters
from sockpq._protocol.addresses import Address
from sockpq._protocol.commands.cluster import CLUSTER_LEADER, INTERCONNECT, PING, cluster_replica
from sockpq.model import NodeStatus

LOG = logging.getLogger("sockpq")

DOUBT_S = 0.3           # how long the others have to say whether one of them has taken over
DOUBT_AGAIN_S = 0.15    # how long an answer to that question is valid for all calls
LIFE_AGAIN_S = 1.0      # how long a sign of life is valid for all calls that are blocked on the server
PART_AGAIN_S = 5.0      # how long the answers about the part of the cluster for another region are valid for all calls
STRAGGLER_S = 0.1       # how long the answers of slower servers are waited for, doubled with each failed attempt


class Discovery:
    """Knows the serving leader, or finds it. While one call asks, the others wait for its result.

    It trusts only servers of the client's cluster or, before that is known, of the cluster whose leader it finds.
    """

    leaderless = False

    def __init__(
        self, network: Network, addresses: tuple[Address, ...], identity: Identity, timeout: float, life_s: float,
        counters: Counters,
    ) -> None:
        """`timeout`: seconds a server has for connecting and answering; `life_s`: for a sign that it lives."""
        self._network = network
        self._identity = identity
        self._given = addresses
        self._members: tuple[Address, ...] = ()     # as the servers tell them
        self._timeout = timeout
        self._life_s = life_s
        self._leader: Address | None = None         # read and written in one piece, without a lock
        self._taken: dict[Address, tuple[float, bool]] = {}     # when last asked, and whether another claimed to serve
        self._vanished: dict[Address, tuple[float, bool]] = {}  # how long the verdict is valid, and the verdict
        self._part = -math.inf, ""      # until when it is valid, and the part of the cluster for another region
        self._has_refused = False       # any server, ever
        self._was_asked = False         # a single server, who else is there
        self.counters = counters
        self.look_around: Callable[[], Awaitable[None]] | None = None       # see Watch.waiting
        self.look_s = math.inf
        self._last: Address | None = None           # the leader that was found last
        self.new_locks()

    def new_locks(self) -> None:
        """Make new locks: a forked child needs its own, as nothing there would release the parent's."""
        self._searching = self._network.lock()
        self._doubting = self._network.lock()
        self._checking = self._network.lock()

    async def leader(self, deadline: float, attempts: int) -> Address:
        """Return the server to which to send.

        `deadline`: on the monotonic clock; `attempts`: how often this call failed already.

        Raises NoLeader, or Lost when another call's survey did not end in time: nothing was executed. Raises AuthError
        or Untrusted when asking again is pointless.
        """
        if self._leader is not None:
            return self._leader
        if not await self._searching.acquire(deadline - self._network.now()):
            raise Lost("no server was found in time", sent=False)
        try:
            leader = self._leader           # perhaps another call has found it meanwhile
            if leader is None:
                leader = await self._survey(deadline, attempts)
                self._found(leader)
            return leader
        finally:
            self._searching.release()

    @property
    def addresses(self) -> tuple[Address, ...]:
        """All servers that are known: those that were given first."""
        return tuple(dict.fromkeys((*self._given, *self._members)))

    def also_at(self, addresses: tuple[Address, ...]) -> None:
        """Ask these servers, too, when searching for the leader."""
        self._given = tuple(dict.fromkeys((*self._given, *addresses)))

    @property
    def known_leader(self) -> Address | None:
        """The server to which calls are sent now; None while it is being searched for."""
        return self._leader

    def _found(self, leader: Address) -> None:
        self._leader = leader
        if leader != self._last:
            self.counters.leader_changes += self._last is not None
            self._last = leader
            LOG.info("commands go to %s", leader)        # a single server is not asked whether it leads

    def failed(self, address: Address, refused: bool = False) -> None:
        """Record that this server is unreachable or `refused` to serve.

        If it was the leader, the next command searches for a new one.
        """
        self._has_refused |= refused
        if self._leader == address:
            self._leader = None

    def wants_members(self) -> bool:
        """Return whether only one server is known and it was never asked for the other members."""
        return not self._was_asked and len(self.addresses) == 1

    def learned(self, nodes: Sequence[NodeStatus]) -> None:
        """Record the members that this server reported."""
        self._was_asked = True
        self._members = members_of(nodes)

    async def learn(self, deadline: float) -> None:
        """Ask the known servers for the other members."""
        timeout = min(self._timeout, max(deadline - self._network.now(), 0.01))
        responses = await ask_all(
            self._network, self.addresses, QUESTIONS, timeout, STRAGGLER_S, of_cluster=self._identity.check
        )
        self._members = members(responses) or self._members

    async def taken_over(self, address: Address) -> bool:
        """Return whether a server other than `address` claims to serve; commands then go to that one."""
        await self._doubting.acquire(math.inf)      # many calls wait for one server: one of them asks
        try:
            asked_at, taken = self._taken.get(address, (-math.inf, False))
            if self._network.now() - asked_at > DOUBT_AGAIN_S:
                claimer = await self._ask_others(address)
                taken = claimer is not None
                self._taken[address] = self._network.now(), taken
                if claimer:
                    self._found(claimer)
            return taken
        finally:
            self._doubting.release()

    async def vanished(self, address: Address) -> bool:
        """Return whether another server serves now, or this one does not answer on another connection."""
        if self._verdict(address) is False:
            return False
        if await self.taken_over(address):
            return True
        await self._checking.acquire(math.inf)
        try:
            vanished = self._verdict(address)
            if vanished is None:
                response = await ask(self._network, address, [PING], self._life_s, of_cluster=self._identity.check)
                vanished = response.failure is not None     # a server without PING answers 400 and lives too
                valid_s = DOUBT_AGAIN_S if vanished else LIFE_AGAIN_S
                self._vanished[address] = self._network.now() + valid_s, vanished
            return vanished
        finally:
            self._checking.release()

    async def region_part(self) -> str:
        """Return which cluster takes writes, if the known servers are a copy in another region; "" if they are not."""
        await self._checking.acquire(math.inf)
        try:
            if self._network.now() >= self._part[0]:
                responses = await ask_all(self._network, self.addresses, [cluster_replica()], DOUBT_S, STRAGGLER_S,
                                          of_cluster=self._identity.check)
                self._part = self._network.now() + PART_AGAIN_S, region_part(responses.values())
            return self._part[1]
        finally:
            self._checking.release()

    async def waiting(self) -> None:
        """Check whether the map of clusters has changed, if there is one."""
        if self.look_around:
            await self.look_around()

    def _verdict(self, address: Address) -> bool | None:
        """Return whether this server has vanished; None if it was not probed recently."""
        valid_until, vanished = self._vanished.get(address, (-math.inf, False))
        return vanished if self._network.now() < valid_until else None

    async def _ask_others(self, address: Address) -> Address | None:
        """Return another server that claims to serve, if any does."""
        others = [other for other in self.addresses if other != address]
        responses = await ask_all(
            self._network, others, [INTERCONNECT, CLUSTER_LEADER], DOUBT_S, STRAGGLER_S, of_cluster=self._identity.check
        )
        return next((other for other, response in responses.items() if claims_to_serve(response)), None)

    async def _survey(self, deadline: float, attempts: int) -> Address:
        """Ask all servers, then the members they report, and keep their addresses.

        A single server is asked only after it has refused to serve; before that, the command itself is sent to it.
        """
        if not self._has_refused and len(self.addresses) == 1:
            return self.addresses[0]
        responses: dict[Address, Response] = {}
        while new := [address for address in self.addresses if address not in responses]:
            timeout = min(self._timeout, max(deadline - self._network.now(), 0.01))
            straggler = min(STRAGGLER_S * 2 ** min(attempts, 10), timeout)
            refusal_s = min(REFUSAL_S, max(deadline - self._network.now() - timeout, 0))
            responses |= await ask_all(
                self._network, new, QUESTIONS, timeout, straggler, refusal_s, self._identity.check
            )
            self._members = members(responses) or self._members
            if any(claims_to_serve(response) for response in responses.values()):
                break
        leader = choose_leader(responses)
        self._keep_to(leader, responses)
        return leader

    def _keep_to(self, leader: Address, responses: Mapping[Address, Response]) -> None:
        """Forget servers of other clusters, once the client's first leader was found among them."""
        cluster = responses[leader].cluster
        if cluster is None:
            return
        others = {at: one.cluster for at, one in responses.items() if one.cluster and one.cluster != cluster}
        for at, other in others.items():
            self._identity.warn(at, other, f"of cluster {other}, and the leader {leader} is of {cluster}")
        if others:
            self._members = members({at: one for at, one in responses.items() if at not in others})
