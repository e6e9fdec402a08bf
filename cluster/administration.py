"""Operators' commands to a running node: add, remove, transfer, switch the service, compact (spec/cluster 7)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from sockpqd.cluster import limits
from sockpqd.cluster.api import (
    AddNodeReply,
    FenceReply,
    NotLeader,
    NotPossible,
    OutcomeUnknown,
    Pending,
    PromoteReply,
    RemoveNodeReply,
    SwitchServiceReply,
)
from sockpqd.cluster.driver import Driver
from sockpqd.cluster.raft.peer import Peer
from sockpqd.core import (
    Accepted,
    ChangeMember,
    Fence,
    MemberChange,
    Mirrored,
    Operation,
    Promote,
    Reply,
    SwitchService,
    UnknownNode,
)

log = logging.getLogger("sockpqd.cluster")


class _OutcomeFuture(Pending):
    """A Pending that completes a future with (reply, index of its entry), or an exception."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.future: asyncio.Future[tuple[Reply, int]] = asyncio.get_running_loop().create_future()

    def applied(self, reply: Reply) -> None:
        if not self.future.done():
            self.future.set_result((reply, self._driver.machine.index))

    def refused(self) -> None:
        if not self.future.done():
            self.future.set_exception(NotLeader())

    def unknown(self) -> None:
        if not self.future.done():
            self.future.set_exception(OutcomeUnknown())


class Administration:
    """The coroutines behind the administrative methods of cluster.api.Cluster, which documents them."""

    def __init__(self, driver: Driver, wake: Callable[[], None]) -> None:
        self._driver = driver
        self._wake = wake
        self._loop = asyncio.get_running_loop()

    async def _execute(self, operation: Operation) -> tuple[Reply, int]:
        """Propose an operation, even while this node does not serve. Raises NotLeader and OutcomeUnknown."""
        leadership = self._driver.leadership
        if not leadership.leading():
            raise NotLeader
        awaited = _OutcomeFuture(self._driver)
        leadership.propose_alone(operation, awaited)
        self._wake()
        return await awaited.future

    async def add_node(self, name: str, peer: str, client: str) -> AddNodeReply:
        reply, _ = await self._execute(ChangeMember(name, MemberChange.JOIN, peer=peer, client=client))
        assert isinstance(reply, AddNodeReply)
        return reply

    async def remove_node(self, name: str) -> RemoveNodeReply | NotPossible:
        driver = self._driver
        if not driver.leadership.leading():
            raise NotLeader
        if name in driver.members.voters and not self._rest_can_decide(name):
            return NotPossible("quorum")
        configuration = driver.machine.membership.configuration
        reply, index = await self._execute(ChangeMember(name, MemberChange.REMOVE, configuration))
        assert isinstance(reply, RemoveNodeReply)
        if isinstance(reply, Accepted | UnknownNode):       # an unknown node may have been removed a moment ago
            await self._until(lambda: self._known(index), limits.REMOVAL_KNOWN_S)
            if not self._known(index):
                raise OutcomeUnknown
        return reply

    def _rest_can_decide(self, leaver: str) -> bool:
        """Return whether enough other voters are running and may vote for a majority without `leaver`."""
        driver = self._driver
        rest = [name for name in driver.members.voters if name != leaver]
        if not rest:
            return True                         # the machine refuses to remove the last node
        peers = driver.peers
        able = sum(name == driver.settings.name or _votes(peers.get(name)) for name in rest)
        return able > len(rest) // 2

    def _known(self, index: int) -> bool:
        """Return whether most voters have applied this entry, so that no later leader counts the removed node."""
        driver = self._driver
        peers, voters = driver.peers, driver.members.voters
        applied = sum(
            name == driver.settings.name or (name in peers and _applied(peers[name]) >= index) for name in voters
        )
        return applied > len(voters) // 2

    async def transfer(self, name: str | None) -> str | NotPossible:
        """See Cluster; returns the name of the new leader."""
        leadership = self._driver.leadership
        if not leadership.leading():
            raise NotLeader
        if name == self._driver.settings.name:
            return name
        word = leadership.handover.begin(name)
        if word is not None:
            return NotPossible(word)
        self._wake()
        try:
            await self._until(lambda: self._new_leader() is not None, limits.TRANSFER_S)
        finally:
            leadership.handover.end()
        leader = self._new_leader()
        if leader is None:
            return NotPossible("timeout")
        leadership.preference.send_away()
        return leader

    def _new_leader(self) -> str | None:
        """The new leader's name once it serves, None while this node leads or no node serves."""
        leader = self._driver.leader()
        served = leader == self._driver.machine.leader and leader != self._driver.settings.name
        return leader if served else None

    async def switch_service(self, online: bool) -> SwitchServiceReply:
        reply, _ = await self._execute(SwitchService(online, self._driver.settings.failover_grace_ms))
        assert isinstance(reply, SwitchServiceReply)
        if isinstance(reply, Accepted):
            log.info("the service is switched %s", "online" if online else "offline")
        return reply

    async def promote(self, grace_ms: int) -> PromoteReply:
        reply, _ = await self._execute(Promote(grace_ms))
        assert isinstance(reply, PromoteReply)
        if isinstance(reply, Mirrored):
            log.warning("this replica was promoted: it goes on from entry %d of its origin, and follows nobody",
                        reply.index)
        return reply

    async def fence(self, replica: str) -> FenceReply:
        reply, _ = await self._execute(Fence(replica))
        assert isinstance(reply, FenceReply)
        if isinstance(reply, Accepted):
            log.warning("the service is switched off for good: the replica %s takes its place", replica)
        return reply

    async def compact(self) -> int:
        driver = self._driver
        store, target = driver.store, driver.machine.index
        while store.newest_index < target:
            if store.failing:
                raise OSError("the snapshot could not be written")
            if not store.busy:
                driver.replica.compact()
                self._wake()
            await asyncio.sleep(limits.POLL_S)
        return store.newest_index

    async def _until(self, condition: Callable[[], bool], seconds: float) -> None:
        deadline = self._loop.time() + seconds
        while not condition() and self._loop.time() < deadline:
            await asyncio.sleep(limits.POLL_S)


def _votes(peer: Peer | None) -> bool:
    return peer is not None and peer.up and peer.info is not None and peer.info.voter


def _applied(peer: Peer) -> int:
    return 0 if peer.info is None else peer.info.applied
