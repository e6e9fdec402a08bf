"""A cluster of one node in memory around the real machine: what is proposed is committed at the end of the loop turn,
or when the test says so. It can be made follower, leader or lone, and can refuse or lose what is in flight."""

from __future__ import annotations

import asyncio
from pathlib import Path

from cluster.api import Listener, NodeStatus, Pending
from core import CloneChunk, Get, Lead, Machine, Operation, Put, Return

MEMBERS = ("n1", "n2", "n3")


class FakeCluster:
    """Implements cluster.api.Cluster. `log` keeps the operations of each committed entry."""

    def __init__(self, *, automatic: bool = True) -> None:
        self.name = "n1"
        self.machine = Machine()
        self.serving = False
        self.online = True
        self.automatic = automatic
        self.log: list[list[Operation]] = []
        self.now_ms = 1_700_000_000_000
        self.backlog_bytes = 0
        self._listener: Listener | None = None
        self._leader: str | None = None
        self._in_flight: list[tuple[Operation, Pending]] = []
        self._scheduled = False
        self._index = 0
        self._term = 0

    # ---- the test's side

    def start(self, listener: Listener) -> None:
        """Lead, so that clients are served."""
        self._listener = listener
        self.lead()

    def lead(self) -> None:
        """This node is elected and serves."""
        self._term += 1
        self._leader = self.name
        self._apply([Lead(self.name, self._term, MEMBERS, b"0123456789abcdef", 10_000)])
        self._serve(True)

    def follow(self, leader: str | None) -> None:
        """Another node leads, or nobody (None); what is in flight stays undecided."""
        if leader is not None:
            self._term += 1
            self._apply([Lead(leader, self._term, MEMBERS, b"0123456789abcdef", 10_000)])
        self._leader = leader
        self._serve(False)

    def commit(self, count: int | None = None) -> None:
        """Apply what is in flight as one entry: everything, or the first `count` operations."""
        in_flight = self._take(count)
        if in_flight:
            self._apply([operation for operation, _ in in_flight], [pending for _, pending in in_flight])
        self._turn_ended()

    def refuse(self) -> None:
        """What is in flight is overwritten by another leader's entries."""
        for _, pending in self._take():
            pending.refused()
        self._turn_ended()

    def lose(self) -> None:
        """Nobody can say what became of the operations in flight."""
        for _, pending in self._take():
            pending.unknown()
        self._turn_ended()

    def pass_time(self, seconds: float) -> None:
        """Let replicated time go by; ends leases."""
        self.now_ms += round(seconds * 1000)
        self._apply([])
        self._turn_ended()

    @property
    def in_flight(self) -> list[Operation]:
        """What is proposed and not decided."""
        return [operation for operation, _ in self._in_flight]

    def operations(self, kind: type) -> list[Operation]:
        """All committed operations of one kind."""
        return [operation for entry in self.log for operation in entry if isinstance(operation, kind)]

    # ---- Cluster

    def propose(self, operation: Operation, pending: Pending) -> None:
        """As cluster.api."""
        if not self.serving:
            pending.refused()
            return
        if isinstance(operation, Get) and operation.item_of_put:
            assert isinstance(self._in_flight[-1][0], Put), "the hand-out of a PUT .. WAIT stands right behind its PUT"
        self._in_flight.append((operation, pending))
        self.backlog_bytes += _size(operation)
        if self.automatic and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._automatic_commit)

    def leader(self) -> str | None:
        """As cluster.api."""
        return self._leader

    def interconnect_id(self) -> int:
        """As cluster.api."""
        ids = self.machine.server_ids
        if self.serving or ids[self.name] != min(ids.values()):
            return ids[self.name]
        return self.machine.max_id + 1

    def status(self) -> list[NodeStatus]:
        """As cluster.api; n3 was never heard of."""
        ids = self.machine.server_ids
        known = [NodeStatus(
            server_id=ids[name], name=name, client=f"10.0.0.{name[1]}:11361",
            role="LEADER" if name == self._leader else "FOLLOWER", online=self.online, term=self._term,
            applied=self._index, lag=0, version="0.1.0",
        ) for name in MEMBERS[:2]]
        unknown = NodeStatus(ids["n3"], "n3", "[::1]:11361", "DOWN", None, None, None, None, None)
        return sorted([*known, unknown], key=lambda node: node.server_id or 0)

    full = False

    def state_hash(self) -> tuple[int, bytes]:
        return self.machine.index, b"\xab" * 16

    async def go_offline(self) -> None:
        """As cluster.api; n2 takes over."""
        self.commit()
        self.online = False
        if self.serving:
            self.follow("n2")

    def go_online(self) -> None:
        """As cluster.api."""
        self.online = True

    async def export_snapshot(self, path: Path) -> None:
        """As cluster.api."""
        path.write_bytes(b"".join(self.machine.snapshot()))

    # ---- inside

    def _automatic_commit(self) -> None:
        self._scheduled = False
        self.commit()

    def _take(self, count: int | None = None) -> list[tuple[Operation, Pending]]:
        if count is None:
            count = len(self._in_flight)
        in_flight, self._in_flight = self._in_flight[:count], self._in_flight[count:]
        self.backlog_bytes = sum(_size(operation) for operation, _ in self._in_flight)
        return in_flight

    def _apply(self, operations: list[Operation], pendings: list[Pending] | None = None) -> None:
        self._index += 1
        self.log.append(operations)
        applied = self.machine.apply(self._index, self.now_ms, self._index * 7919, operations)
        for pending, reply in zip(pendings or [], applied.replies, strict=False):
            pending.applied(reply)
        if self.serving and self._listener is not None:
            self._listener.effects(applied.effects)

    def _serve(self, serving: bool) -> None:
        if serving != self.serving:
            self.serving = serving
            if self._listener is not None:
                self._listener.serving_changed(serving)
        self._turn_ended()

    def _turn_ended(self) -> None:
        if self._listener is not None:
            self._listener.turn_ended()


def _size(operation: Operation) -> int:
    return 64 + (len(operation.data) if isinstance(operation, Put | CloneChunk) else 0)


def returned(cluster: FakeCluster) -> list[int]:
    """Ids of the hand-outs that were undone."""
    return [operation.id for operation in cluster.operations(Return) if isinstance(operation, Return)]
