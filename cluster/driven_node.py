"""A node as its own gateway sees it: implements cluster.api.Cluster on a driver, independent of the event loop.

node.py runs it on a real event loop, the simulation in simulated time.
"""

from __future__ import annotations

from sockpqd.cluster.api import Channels, ClientPending, Feed, NodeStatus, Pending
from sockpqd.cluster.driver import Driver
from sockpqd.cluster.feed.feed_thread import FeedThread
from sockpqd.cluster.feed.log_feed import LogFeed
from sockpqd.cluster.raft.peer import Peer
from sockpqd.cluster.wire.messages import Info
from sockpqd.core import Operation

UNSURE = 2147483647             # INTERCONNECT of a node that knows no leader: never the minimum (spec/cluster 5)


class DrivenNode:
    """Implements the part of cluster.api.Cluster that needs no loop, no sockets and no files."""

    def __init__(self, driver: Driver) -> None:
        self.name = driver.settings.name
        self.machine = driver.machine
        self._driver = driver
        self._proposer = driver.proposer
        self._scheduled = False         # the driver's next turn comes at once
        self._log_feed = LogFeed(driver.journal, driver.replica, driver.chain, FeedThread())
        self.feed: Feed = self._log_feed

    def _wake(self) -> None:
        """Let the driver take a turn soon."""
        raise NotImplementedError

    @property
    def serving(self) -> bool:
        return self._driver.leadership.serving

    @property
    def holds_lease(self) -> bool:
        return self._driver.holds_lease()

    @property
    def online(self) -> bool:
        return self._driver.leadership.online

    @property
    def time_ms(self) -> int:
        return max(self.machine.clock_ms, self._driver.leadership.time_ms())

    @property
    def full(self) -> bool:
        return self._driver.full

    @property
    def backlog_bytes(self) -> int:
        return self._proposer.backlog_bytes

    def propose(self, operation: Operation, pending: Pending) -> None:
        self._proposer.propose(operation, pending)
        self._wake()

    def propose_for(
        self, client: object, operation: Operation, pending: ClientPending, behind: bool = False,
    ) -> bool:
        if not self._scheduled:
            self._wake()
        return self._proposer.propose_for(client, operation, pending, behind)

    @property
    def collecting(self) -> int:
        return self._proposer.collecting

    def withdraw(self, client: object) -> None:
        self._proposer.withdraw(client)

    @property
    def share(self) -> int:
        return self._proposer.share

    def subscribed(self, types: frozenset[str]) -> None:
        self._driver.subscribed(types)
        self._wake()

    def listen(self, channels: list[Channels]) -> None:
        self._driver.listen(channels)
        self._wake()

    @property
    def listening_known(self) -> bool:
        return self._driver.notices.known

    def notify(self, channel: str, data: bytes) -> int:
        count = self._driver.notices.notify(channel, data)
        if count:
            self._wake()
        return count

    def leader(self) -> str | None:
        return self._driver.leader()

    def interconnect_id(self) -> int:
        ids, mine = self.machine.server_ids, self.machine.server_ids.get(self.name)
        quiet = not self.machine.online or self.is_replica      # it leads and does not serve
        if mine is not None and (self.holds_lease or (quiet and self._driver.is_sole_leader())):
            return mine
        leader = self.leader()
        in_contact = self._driver.transport.elections.silence_s() * 1000 < self._driver.settings.lease_ms
        if leader in (None, self.name) or mine is None or not in_contact:
            return UNSURE
        numbers_are_old = leader != self.machine.leader     # it already leads, but its Lead entry is not applied here
        return self.machine.max_id + 1 if numbers_are_old or mine == min(ids.values()) else mine

    def status(self) -> list[NodeStatus]:
        nodes = [self._status(name) for name in self._driver.members.names]
        return sorted(nodes, key=lambda node: (node.server_id is None, node.server_id, node.name))

    def _status(self, name: str) -> NodeStatus:
        driver, server_id = self._driver, self.machine.server_ids.get(name)
        client, peer = driver.members.client_address(name), driver.peers.get(name)
        up, info = (True, driver.info()) if name == self.name else _known(peer)
        if name == driver.members.learner:
            role, info = "LEARNER", info if up else None
        else:
            role = info.role if up and info is not None else "DOWN"
        if info is None:
            return NodeStatus(server_id, name, client, role, None, None, None, None, None, None)
        return NodeStatus(
            server_id, name, client, role, info.online, info.term, info.applied, info.lag, info.version,
            0 if peer is None else driver.leadership.ahead_ms(peer), info.level, info.cluster_level,
            info.host,
        )

    @property
    def is_replica(self) -> bool:
        return self._driver.leadership.is_replica

    def state_hash(self) -> tuple[int, bytes]:
        driver = self._driver
        chain = driver.store.mirror_chain if self.is_replica else driver.chain
        return chain.index, chain.value

    def go_online(self) -> None:
        self._driver.leadership.online = True
        self._driver.transport.elections.may_campaign = True
        self._wake()


def _known(peer: Peer | None) -> tuple[bool, Info | None]:
    return (False, None) if peer is None else (peer.up, peer.info)
