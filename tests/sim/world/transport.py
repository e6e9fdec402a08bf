"""A node's side of the simulated network: the messages it sends, their order, and its peers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sockpqd.cluster.wire.messages import Ack, Append, Heartbeat, Message, RequestVote, SnapshotChunk, TimeoutNow, Vote

if TYPE_CHECKING:
    from tests.sim.world.node import SimNode

EARLY = (Append, Heartbeat, SnapshotChunk, TimeoutNow)


class SimOutbox:
    """See cluster.driver.Outbox. One for each process."""

    def __init__(self, node: SimNode) -> None:
        self.peers: set[str] = set()
        self._node = node
        self._name = node.name
        self._network = node.world.network
        self._early: list[tuple[str, Message]] = []
        self._late: list[tuple[str, Message]] = []
        self._held: list[tuple[str, Message]] = []

    def add_peer(self, name: str, address: str) -> None:
        """Implement Outbox."""
        self.peers.add(name)
        self._network.dial(self._name, name)

    def drop_peer(self, name: str) -> None:
        """Implement Outbox."""
        self.peers.discard(name)
        self._network.lose(self._name, name)

    def send(self, name: str, message: Message) -> None:
        """Implement Outbox."""
        (self._early if isinstance(message, EARLY) else self._late).append((name, message))

    def buffered_bytes(self, name: str) -> int:
        """Implement Outbox."""
        return self._network.channels[self._name, name].buffered()

    def flush_appends(self) -> None:
        """Implement Outbox."""
        if self._early:
            early, self._early = self._early, []
            self._send_all(early)

    def hold(self) -> None:
        """Implement Outbox."""
        self._held += self._late
        self._late = []

    def release(self) -> None:
        """Implement Outbox."""
        held, self._held = self._held, []
        self._send_all(held)

    def flush(self) -> None:
        """Implement Outbox."""
        self.release()
        self.flush_appends()
        if self._late:
            late, self._late = self._late, []
            self._send_all(late)

    def _send_all(self, messages: list[tuple[str, Message]]) -> None:
        disk = self._node.disk
        for name, message in messages:
            disk.step()                 # the machine may die between two messages
            self._promises(name, message)
            self._network.transmit(self._name, name, message, disk.spent_s)

    def _promises(self, receiver: str, message: Message) -> None:
        """Record what leaves this node, as it binds the node for good."""
        memory, step = self._node.memory, self._node.world.trace.step
        if isinstance(message, Ack):
            if message.success and message.next_index:
                held = self._node.up.transport.right.held
                step("acknowledges", self._name, message.term, message.next_index - 1, held)
            memory.acknowledges(message, self._node.disk.spent_s)
        elif isinstance(message, Vote):
            step("votes", self._name, receiver, message.term)
            memory.votes(message.term, receiver)
        elif isinstance(message, RequestVote):
            step("asks", self._name, message.term, message.last_index, message.last_term)
            memory.votes(message.term, self._name)
