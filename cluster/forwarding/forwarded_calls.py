"""Calls that a node forwards to the leader for its clients, over the link between the nodes, however long they take.

A call, and its outcome, are bytes that only the gateways understand. They are not part of Raft. A call whose leader is
lost, or no longer leads, ends without an outcome; the gateway then has to find out whether it was executed.

Both are bounded before they are sent: no call or outcome is larger than CALL_BYTES_MAX, and while much is queued for a
node, no new call is sent to it.
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
from sockpqd.cluster.api import RunningCall
from sockpqd.cluster.raft.peer import Peer
from sockpqd.cluster.wire.messages import CallOutcome, CancelCall, ForwardedCall, Message

log = logging.getLogger("sockpqd.cluster")

OnOutcome = Callable[[bytes | None], None]      # takes the outcome, None if there is none
LOOK_S = 0.1                                    # how often to check whether the leader has changed


class CallExecutor(Protocol):
    """Executes calls of other nodes."""

    def execute_call(self, user: str | None, address: str, data: bytes, on_outcome: OnOutcome) -> RunningCall:
        ...


class Wires(Protocol):
    """The part of the connections between nodes that forwarded calls use."""

    def unsent_calls_bytes(self, name: str) -> int:
        """Bytes of large calls and outcomes for this node that the operating system has not accepted yet."""


class _Sent(Struct):
    node: str
    on_outcome: OnOutcome


class ForwardedCalls:
    """The calls that this node has forwarded, and those that it executes. `send` queues a message for another node."""

    def __init__(
        self, peers: Mapping[str, Peer], leader: Callable[[], str | None], executor: CallExecutor,
        send: Callable[[str, Message], None], wires: Wires,
    ) -> None:
        self._peers = peers
        self._leader = leader
        self._executor = executor
        self._send = send
        self._wires = wires
        # The numbers must differ from those before a restart, as outcomes of older calls may still arrive.
        self._numbers = itertools.count(secrets.randbits(48))
        self._sent: dict[int, _Sent] = {}
        self._running: dict[tuple[str, int], RunningCall] = {}
        self._looking: asyncio.TimerHandle | None = None

    def send(self, user: str | None, address: str, data: bytes, on_outcome: OnOutcome) -> int | None:
        leader = self._leader()
        peer = None if leader is None else self._peers.get(leader)
        if leader is None or peer is None or not peer.up or self._crowded(leader):
            return None
        if len(data) > limits.CALL_BYTES_MAX:
            raise ValueError(f"a forwarded call of {len(data)} bytes")
        number = next(self._numbers)
        self._sent[number] = _Sent(leader, on_outcome)
        self._send(leader, ForwardedCall(number, user, address, data))
        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(LOOK_S, self._look)
        return number

    def cancel(self, number: int) -> None:
        sent = self._sent.get(number)
        if sent is not None:
            self._send(sent.node, CancelCall(number))

    def received(self, name: str, message: ForwardedCall | CancelCall | CallOutcome) -> None:
        """Handle a message of another node."""
        if isinstance(message, CallOutcome):
            sent = self._sent.pop(message.number, None)
            if sent is not None:
                sent.on_outcome(message.data)
        elif isinstance(message, CancelCall):
            running = self._running.get((name, message.number))
            if running is not None:
                running.cancel()
        else:
            self._execute(name, message)

    def lost(self, name: str) -> None:
        """End all calls to and from this node: the link to it is down."""
        for key in [key for key in self._running if key[0] == name]:
            self._running.pop(key).cancel()
        self._end([number for number, sent in self._sent.items() if sent.node == name])

    def stop(self) -> None:
        """Stop for good: send and do nothing more."""
        if self._looking is not None:
            self._looking.cancel()
        self._end(list(self._sent))

    def _crowded(self, name: str) -> bool:
        """Return whether too much is queued for the node to send another call."""
        return self._wires.unsent_calls_bytes(name) > limits.CALLS_UNSENT_BYTES_MAX

    def _execute(self, name: str, call: ForwardedCall) -> None:
        if self._crowded(name):
            self._send(name, CallOutcome(call.number, None))
            return
        key = (name, call.number)
        ended = False

        def on_outcome(data: bytes | None) -> None:
            nonlocal ended
            ended = True
            self._running.pop(key, None)
            if data is not None and len(data) > limits.CALL_BYTES_MAX:
                log.error("an outcome of %d bytes for %s was not sent: report it, with this line", len(data), name)
                data = None
            # An outcome may be ready when there is no room for it: the other node will ask for it again.
            self._send(name, CallOutcome(call.number, None if self._crowded(name) else data))

        running = self._executor.execute_call(call.user, call.address, call.data, on_outcome)
        if not ended:
            self._running[key] = running

    def _look(self) -> None:
        """End the calls to a node that no longer leads."""
        self._looking = None
        leader = self._leader()
        gone = [number for number, sent in self._sent.items() if sent.node != leader]
        for number in gone:
            self.cancel(number)     # it may still lead, and must not go on alongside what is sent next
        self._end(gone)
        if self._sent:
            self._looking = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _end(self, numbers: list[int]) -> None:
        for number in numbers:
            sent = self._sent.pop(number, None)
            if sent is not None:
                sent.on_outcome(None)
