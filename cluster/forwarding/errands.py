"""Errands: what a node has the leader do for one of its clients, over the link between them, however long it takes.

An errand is bytes that only the gateways understand; so is its outcome. Errands are not part of Raft. One whose leader
is gone, or is no longer the leader, ends without an outcome: what became of it is for the gateway to find out.

What travels is bounded before it is sent: the gateways make no errand and no outcome larger than ERRAND_BYTES_MAX, and
while much is on its way to a node, nothing more is begun for it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Struct

from sockpqd.cluster import limits
from sockpqd.cluster.api import Doing
from sockpqd.cluster.raft.peer import Peer
from sockpqd.cluster.wire.messages import Errand, Message, Recall, Reported

log = logging.getLogger("sockpqd.cluster")

Told = Callable[[bytes | None], None]       # takes the outcome; None: there is none
LOOK_S = 0.1                                # how often it is looked whether the leader has changed


class Doer(Protocol):
    """Does errands of other nodes."""

    def errand(self, user: str | None, address: str, data: bytes, told: Told) -> Doing:
        """See ClusterListener."""


class Wires(Protocol):
    """What errands need of the connections between nodes."""

    def unsent_errands_bytes(self, name: str) -> int:
        """Bytes of large errands and outcomes for this node that the operating system has not accepted yet."""


class _Sent(Struct):
    """An errand under way."""

    node: str
    told: Told


class Errands:
    """The errands that this node has sent, and those that it does. `send` passes on a message to another node, soon."""

    def __init__(
        self, peers: Mapping[str, Peer], leader: Callable[[], str | None], doer: Doer,
        send: Callable[[str, Message], None], wires: Wires,
    ) -> None:
        self._peers = peers
        self._leader = leader
        self._doer = doer
        self._send = send
        self._wires = wires
        # Other numbers than before a restart, as outcomes of those may still come.
        self._numbers = itertools.count(secrets.randbits(48))
        self._sent: dict[int, _Sent] = {}
        self._doing: dict[tuple[str, int], Doing] = {}
        self._looking: asyncio.TimerHandle | None = None

    def send(self, user: str | None, address: str, data: bytes, told: Told) -> int | None:
        """See Cluster.send_errand."""
        leader = self._leader()
        peer = None if leader is None else self._peers.get(leader)
        if leader is None or peer is None or not peer.up or self._crowded(leader):
            return None
        if len(data) > limits.ERRAND_BYTES_MAX:
            raise ValueError(f"an errand of {len(data)} bytes")
        number = next(self._numbers)
        self._sent[number] = _Sent(leader, told)
        self._send(leader, Errand(number, user, address, data))
        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(LOOK_S, self._look)
        return number

    def recall(self, number: int) -> None:
        """See Cluster.recall_errand."""
        sent = self._sent.get(number)
        if sent is not None:
            self._send(sent.node, Recall(number))

    def received(self, name: str, message: Errand | Recall | Reported) -> None:
        """Handle a message of another node."""
        if isinstance(message, Reported):
            sent = self._sent.pop(message.number, None)
            if sent is not None:
                sent.told(message.data)
        elif isinstance(message, Recall):
            doing = self._doing.get((name, message.number))
            if doing is not None:
                doing.cancel()
        else:
            self._do(name, message)

    def lost(self, name: str) -> None:
        """The link to this node is down: nothing of what was under way comes any more."""
        for key in [key for key in self._doing if key[0] == name]:
            self._doing.pop(key).cancel()
        self._end([number for number, sent in self._sent.items() if sent.node == name])

    def stop(self) -> None:
        """Send and do nothing more."""
        if self._looking is not None:
            self._looking.cancel()
        self._end(list(self._sent))

    def _crowded(self, name: str) -> bool:
        """Whether so much is on its way to the node that nothing more is to begin."""
        return self._wires.unsent_errands_bytes(name) > limits.ERRANDS_UNSENT_BYTES_MAX

    def _do(self, name: str, errand: Errand) -> None:
        if self._crowded(name):
            self._send(name, Reported(errand.number, None))
            return
        key = (name, errand.number)
        ended = False

        def told(data: bytes | None) -> None:
            nonlocal ended
            ended = True
            self._doing.pop(key, None)
            if data is not None and len(data) > limits.ERRAND_BYTES_MAX:
                log.error("an outcome of %d bytes for %s was not sent: report it, with this line", len(data), name)
                data = None
            # One that was waited for may come when there is no room for it: it is asked for again.
            self._send(name, Reported(errand.number, None if self._crowded(name) else data))

        doing = self._doer.errand(errand.user, errand.address, errand.data, told)
        if not ended:
            self._doing[key] = doing

    def _look(self) -> None:
        """End the errands whose node does not lead any more."""
        self._looking = None
        leader = self._leader()
        gone = [number for number, sent in self._sent.items() if sent.node != leader]
        for number in gone:
            self.recall(number)     # it may lead all the same, and must not go on beside what is sent next
        self._end(gone)
        if self._sent:
            self._looking = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _end(self, numbers: list[int]) -> None:
        for number in numbers:
            sent = self._sent.pop(number, None)
            if sent is not None:
                sent.told(None)
