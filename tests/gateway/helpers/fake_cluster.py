"""A cluster of one node in memory around the real machine: what is proposed is committed at the end of the loop turn,
or when the test says so. It can be made follower, leader or lone, and can refuse or lose what is in flight.

Operators' commands take the same way; those that would need other nodes fail for the reason in `impossible`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import cast

from sockpqd.cluster.api import (
    BACKLOG_BYTES_MAX,
    Channels,
    Checkpoint,
    ClientPending,
    ClusterListener,
    Feed,
    FeedRefusal,
    FeedSlice,
    Figures,
    Frame,
    Mirror,
    NodeStatus,
    NotLeader,
    NotPossible,
    OutcomeUnknown,
    PagingFigures,
    PeerFigures,
    Pending,
)
from sockpqd.cluster.metrics.histogram import Histogram
from sockpqd.core import (
    Accepted,
    Address,
    ChangeInProgress,
    ChangeMember,
    CloneChunk,
    Fence,
    Get,
    Joined,
    LastNode,
    Lead,
    Machine,
    MemberChange,
    Mirrored,
    NodeExists,
    NotYet,
    Operation,
    Promote,
    Put,
    PutWith,
    ReplicaRefused,
    Reply,
    Request,
    Return,
    ServiceFenced,
    SwitchService,
    UnknownNode,
    encode_entry,
)

MEMBERS = ("n1", "n2", "n3")
ADDRESSES = (
    Address("n1", "10.0.0.1:11362", "10.0.0.1:11361"),
    Address("n2", "10.0.0.2:11362", "10.0.0.2:11361"),
    Address("n3", "[::1]:11362", "[::1]:11361"),
)
SILENT = ("n3",)        # never in contact


class Promise:
    """The place for the outcome of an operator's operation, which its caller awaits."""

    def __init__(self) -> None:
        self.reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    def applied(self, reply: Reply) -> None:
        self.reply.set_result(reply)

    def refused(self) -> None:
        self.reply.set_exception(NotLeader())

    def unknown(self) -> None:
        self.reply.set_exception(OutcomeUnknown())


class FakeFeed:
    """Implements cluster.api.Feed on the entries of the fake cluster.

    `lost`: entries before this one are gone. `damaged`: entries from this one on cannot be read; 0: all can.
    """

    def __init__(self, cluster: FakeCluster) -> None:
        self.lost = self.damaged = 0
        self.hashes: dict[int, bytes] = {}
        self._cluster = cluster

    @property
    def executed(self) -> int:
        """Implement cluster.api."""
        return len(self._cluster.frames)

    def refusal(self, index: int, checkpoint: Checkpoint | None) -> FeedRefusal | None:
        """Implement cluster.api."""
        if index > self.executed + 1:
            return FeedRefusal.TOO_NEW
        if index < self.lost:
            return FeedRefusal.TOO_OLD
        if checkpoint is None or self.hashes.get(checkpoint.index, checkpoint.hash) == checkpoint.hash:
            return None
        return FeedRefusal.DIFFERENT

    def checkpoints(self, after: int, up_to: int) -> list[Checkpoint]:
        """Implement cluster.api."""
        return [Checkpoint(index, value) for index, value in self.hashes.items() if after < index <= up_to]

    async def read(self, index: int) -> FeedSlice | None:
        """Implement cluster.api."""
        if index < self.lost or 0 < self.damaged <= index:
            return None
        return FeedSlice(self._cluster.frames[index - 1:], self.executed + 1)


class FakeCluster:
    """Implements cluster.api.Cluster. `log` keeps the operations of each committed entry."""

    def __init__(self, *, automatic: bool = True) -> None:
        self.name = "n1"
        self.machine = Machine()
        self.serving = False
        self.online = True
        self.leased = True              # whether the lease holds while this node serves
        self.automatic = automatic
        self.log: list[list[Operation]] = []
        self.frames: list[Frame] = []   # the same as a feed has them
        self.now_ms = 1_700_000_000_000
        self.backlog_bytes = 0
        self.over_share = False         # the result of propose_for()
        self.full = False
        self.share = 1 << 20                    # operations of one client
        self.withdrawn = 0              # clients that have gone
        self.lag = 0                            # of this node
        self.paging: PagingFigures | None = None
        self.silence_s = 0.0                    # since the last message of its leader
        self.impossible: str | None = None      # why REMOVE and TRANSFER are refused
        self.broken_disk = False
        self.feed: Feed = FakeFeed(self)
        self.recorded: frozenset[str] = frozenset()     # types of events
        self.channels: list[Channels] = []              # of NOTIFY, that somebody listens to
        self.listening_known = True
        self._listener: ClusterListener | None = None
        self._leader: str | None = None
        self._in_flight: list[tuple[Operation, ClientPending]] = []
        self._scheduled = False
        self._index = 0
        self._term = 0

    # ---- the test's side

    def start(self, listener: ClusterListener) -> None:
        """Lead, so that clients are served."""
        self._listener = listener
        self.lead()

    def lead(self) -> None:
        """Elect this node; it serves, if it is not switched offline."""
        self._begin_term(self.name)
        self._leader = self.name
        self._judge()

    def follow(self, leader: str | None) -> None:
        """Follow another leader, or none (None); operations in flight stay undecided."""
        if leader is not None:
            self._begin_term(leader)
        self._leader = leader
        self._judge()

    def commit(self, count: int | None = None) -> None:
        """Apply what is in flight as one entry: everything, or the first `count` operations."""
        in_flight = self._take(count)
        if in_flight:
            self._apply([operation for operation, _ in in_flight], [pending for _, pending in in_flight])
        self._turn_ended()

    def refuse(self) -> None:
        """Overwrite what is in flight by another leader's entries."""
        for _, pending in self._take():
            pending.refused()
        self._turn_ended()

    def lose(self) -> None:
        """Leave the outcome of the operations in flight unknown."""
        for _, pending in self._take():
            pending.unknown()
        self._turn_ended()

    def withdraw(self, client: object) -> None:
        """Implement cluster.api: no operation waits for its turn here."""
        self.withdrawn += 1

    def neglect(self) -> None:
        """Fail what is in flight, as if it had had no turn for too long."""
        for _, pending in self._take():
            pending.overdue()
        self._turn_ended()

    def pass_time(self, seconds: float) -> None:
        """Let replicated time go by; ends leases."""
        self.now_ms += round(seconds * 1000)
        self._apply([])
        self._turn_ended()

    @property
    def time_ms(self) -> int:
        """Implement cluster.api."""
        return self.now_ms

    @property
    def in_flight(self) -> list[Operation]:
        """Return what is proposed and not decided."""
        return [operation for operation, _ in self._in_flight]

    def operations(self, kind: type) -> list[Operation]:
        """Return all committed operations of one kind."""
        return [operation for entry in self.log for operation in entry if isinstance(operation, kind)]

    # ---- Cluster

    @property
    def holds_lease(self) -> bool:
        """Implement cluster.api."""
        return self.serving and self.leased

    def propose(self, operation: Operation, pending: Pending) -> None:
        """Implement cluster.api."""
        self.propose_for(None, operation, cast(ClientPending, pending))

    def propose_for(
        self, client: object, operation: Operation, pending: ClientPending, behind: bool = False,
    ) -> bool:
        """Implement cluster.api."""
        if not self.serving:
            pending.refused()
            return False
        inner = _inner(operation)
        if isinstance(inner, Get) and inner.item_of_put:
            assert isinstance(_inner(self._in_flight[-1][0]), Put | PutWith), "a hand-out stands right behind its PUT"
        self._append(operation, pending)
        return self.over_share or self.backlog_bytes > BACKLOG_BYTES_MAX

    @property
    def collecting(self) -> int:
        """Implement cluster.api; whatever is in flight becomes one entry."""
        return len(self.log) + 1

    def subscribed(self, types: frozenset[str]) -> None:
        """Implement cluster.api, but nothing is recorded longer than somebody listens."""
        if types != self.recorded:
            self.recorded = types
            self.machine.record(types)
            if self._listener is not None:
                self._listener.recording(types)

    def listen(self, channels: list[Channels]) -> None:
        """Implement cluster.api."""
        self.channels = channels

    def notify(self, channel: str, data: bytes) -> int:
        """Implement cluster.api; other nodes have no listeners."""
        if self._listener is not None:
            self._listener.notice(channel, data)
        return sum(count for names, prefixes, count in self.channels
                   if channel in names or channel.startswith(tuple(prefixes)))

    def forward_call(self, user: str | None, address: str, data: bytes, told: Callable[[bytes | None], None]) -> None:
        """Implement cluster.api; no other node does any."""

    def leader(self) -> str | None:
        """Implement cluster.api."""
        return self._leader

    def interconnect_id(self) -> int:
        """Implement cluster.api."""
        ids = self.machine.server_ids
        mine = ids.get(self.name)
        leads = self.serving or (self._leader == self.name and not self.machine.online)
        if mine is None or not (leads or mine != min(ids.values())):
            return self.machine.max_id + 1
        return mine

    def status(self) -> list[NodeStatus]:
        """Implement cluster.api; n3 has never been in contact."""
        nodes = [self._status(address) for address in self.machine.membership.addresses.values()]
        return sorted(nodes, key=lambda node: node.server_id or 0)

    def figures(self) -> Figures:
        """Implement cluster.api; nothing but role, indexes and what tests set."""
        return Figures(
            role="LEADER" if self._leader == self.name else "FOLLOWER", term=self._term, commit_index=self._index,
            applied_index=self._index, lag=self.lag, leader_changes=0, elections=0, commit_latency=Histogram(),
            fsync=Histogram(), preparations=Histogram(), turns=Histogram(), turn_longest_s=0.0,
            journal_bytes=0, journal_room=0, snapshot_index=0, snapshot_bytes=0, snapshot_s=0.0,
            proposals=len(self._in_flight), backlog_bytes=self.backlog_bytes, memory_bytes=0, memory_used_bytes=0,
            memory_mark_bytes=0,
            memory_reached=False, disk_free_bytes=0, disk_free_bytes_min=0, disk_reached=False, journal_reached=False,
            full=self.full, clock_ahead_ms=0, time_ahead_ms=None, level=1, cluster_level=1,
            rejoining=False, damaged_files=0, scrubbed_bytes=0,
            peers=(PeerFigures("n2", True, 0), PeerFigures("n3", False, None)), paging=self.paging,
        )

    def age_s(self) -> float:
        """Implement cluster.api."""
        return self.silence_s

    def state_hash(self) -> tuple[int, bytes]:
        """Implement cluster.api."""
        return self.machine.index, b"\xab" * 16

    async def go_offline(self) -> None:
        """Implement cluster.api; n2 takes over."""
        self.commit()
        self.online = False
        if self._leader == self.name:
            self.follow("n2")

    def go_online(self) -> None:
        """Implement cluster.api."""
        self.online = True

    async def export_snapshot(self, path: Path, *, users: bool = False) -> None:
        """Implement cluster.api."""
        path.write_bytes(b"".join(self.machine.export(users=users)))

    async def export_for_copy(self, path: Path) -> tuple[int, bytes]:
        """Implement cluster.api."""
        await self.export_snapshot(path, users=True)
        return self.state_hash()

    async def add_node(self, name: str, peer: str, client: str) -> Joined | NodeExists | ChangeInProgress:
        """Implement cluster.api."""
        reply = await self._ask(ChangeMember(name, MemberChange.JOIN, peer=peer, client=client))
        assert isinstance(reply, Joined | NodeExists | ChangeInProgress)
        return reply

    async def remove_node(self, name: str) -> Accepted | UnknownNode | LastNode | ChangeInProgress | NotPossible:
        """Implement cluster.api; n2 takes over when this node is removed."""
        if self.impossible:
            return NotPossible(self.impossible)
        reply = await self._ask(ChangeMember(name, MemberChange.REMOVE, self.machine.membership.configuration))
        assert isinstance(reply, Accepted | UnknownNode | LastNode | ChangeInProgress)
        if name == self.name and isinstance(reply, Accepted):
            self.follow("n2")
        return reply

    async def transfer(self, name: str | None) -> NodeStatus | NotPossible:
        """Implement cluster.api; n2 is best prepared."""
        if self._leader != self.name:
            raise NotLeader
        if self.impossible:
            return NotPossible(self.impossible)
        self.follow(name or "n2")
        return self._status(self.machine.membership.addresses[name or "n2"])

    async def switch_service(self, online: bool) -> Accepted | ServiceFenced:
        """Implement cluster.api."""
        reply = await self._ask(SwitchService(online))
        assert isinstance(reply, Accepted | ServiceFenced)
        return reply

    @property
    def is_replica(self) -> bool:
        """Implement cluster.api."""
        return self.machine.mirrored is not None

    @property
    def mirror(self) -> Mirror:
        """Implement cluster.api: nothing is pulled."""
        raise NotImplementedError

    async def promote(self, grace_ms: int) -> Mirrored | ReplicaRefused | NotYet:
        """Implement cluster.api."""
        reply = await self._ask(Promote(grace_ms))
        assert isinstance(reply, Mirrored | ReplicaRefused | NotYet)
        self._judge()
        return reply

    async def fence(self, replica: str) -> Accepted | ReplicaRefused | NotYet:
        """Implement cluster.api."""
        reply = await self._ask(Fence(replica))
        assert isinstance(reply, Accepted | ReplicaRefused | NotYet)
        return reply

    async def compact(self) -> int:
        """Implement cluster.api."""
        if self.broken_disk:
            raise OSError("no space left on device")
        return self.machine.index

    # ---- inside

    def _begin_term(self, leader: str) -> None:
        self._term += 1
        self._apply([Lead(leader, self._term, MEMBERS, b"0123456789abcdef", 10_000, addresses=ADDRESSES)])

    async def _ask(self, operation: Operation) -> Reply:
        """Ask the leader, also while the service is switched offline."""
        if self._leader != self.name:
            raise NotLeader
        promise = Promise()
        self._append(operation, cast(ClientPending, promise))
        return await promise.reply

    def _append(self, operation: Operation, pending: ClientPending) -> None:
        self._in_flight.append((operation, pending))
        self.backlog_bytes += _size(operation)
        if self.automatic and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._automatic_commit)

    def _status(self, address: Address) -> NodeStatus:
        server_id = self.machine.server_ids[address.name]
        learns = address.name == self.machine.membership.learner
        if address.name in SILENT:
            role = "LEARNER" if learns else "DOWN"
            return NodeStatus(server_id, address.name, address.client, role, None, None, None, None, None, None)
        follower = "LEARNER" if learns else "FOLLOWER"
        return NodeStatus(
            server_id=server_id, name=address.name, client=address.client,
            role="LEADER" if address.name == self._leader else follower, online=self.online, term=self._term,
            applied=self._index, lag=0, version="1.0.0", ahead_ms=0, level=1, cluster_level=1,
        )

    def _automatic_commit(self) -> None:
        self._scheduled = False
        self.commit()

    def _take(self, count: int | None = None) -> list[tuple[Operation, ClientPending]]:
        if count is None:
            count = len(self._in_flight)
        while 0 < count < len(self._in_flight) and self._belongs_to_put(count):
            count += 1
        in_flight, self._in_flight = self._in_flight[:count], self._in_flight[count:]
        self.backlog_bytes = sum(_size(operation) for operation, _ in self._in_flight)
        return in_flight

    def _belongs_to_put(self, place: int) -> bool:
        """Return whether this is the hand-out of a PUT .. WAIT. It stands in the same entry as its PUT, always."""
        inner = _inner(self._in_flight[place][0])
        return isinstance(inner, Get) and inner.item_of_put

    def _apply(self, operations: list[Operation], pendings: list[Pending] | None = None) -> None:
        self._index += 1
        self.log.append(operations)
        seed = self._index * 7919
        self.frames.append(Frame(self._index, self.now_ms, seed, encode_entry(self.now_ms, seed, operations)))
        applied = self.machine.apply(self._index, self.now_ms, self._index * 7919, operations)
        executed = len(applied.replies)
        if pendings and executed < len(pendings):       # the entry had enough: the next one begins with the others
            again = zip(operations[executed:], pendings[executed:], strict=True)
            for operation, pending in reversed(list(again)):
                self._in_flight.insert(0, (operation, pending))
        for pending, reply in zip(pendings or [], applied.replies, strict=False):
            pending.applied(reply)
        if applied.events and self._listener is not None:
            self._listener.events(applied.events)
        if self.serving and self._listener is not None:
            self._listener.effects(applied.effects)
        self._judge()

    def _judge(self) -> None:
        """Return whether this node serves."""
        serving = self._leader == self.name and self.machine.online and not self.is_replica
        if serving != self.serving:
            self.serving = serving
            if self._listener is not None:
                self._listener.serving_changed(serving)
        self._turn_ended()

    def _turn_ended(self) -> None:
        if self._listener is not None:
            self._listener.turn_ended()


def _inner(operation: Operation) -> Operation:
    """Return what is requested by a numbered command."""
    return operation.operation if isinstance(operation, Request) else operation


def _size(operation: Operation) -> int:
    operation = _inner(operation)
    return 64 + (len(operation.data) if isinstance(operation, Put | CloneChunk) else 0)


def returned(cluster: FakeCluster) -> list[int]:
    """The ids of the hand-outs that were undone."""
    return [operation.id for operation in cluster.operations(Return) if isinstance(operation, Return)]
