"""Connections between nodes: ordered, slow, lost with what is in flight, half-open, or silent in one direction.

A message reaches the other side in order or not at all; after a loss nothing more arrives on that connection. A blocked
direction keeps everything until it is freed or the receiver has received nothing for three seconds and gives the
connection up, as the real network layer does. When only one side sees a connection end, the other one sends into the
void until a new one reaches it, or until it has received nothing for as long.
"""

from __future__ import annotations

import random
from collections import deque
from typing import NamedTuple, Protocol

from sockpqd.cluster.wire.messages import Hello, Message, decode, encode, incompatible
from tests.sim.world.events import Events
from tests.sim.world.trace import Trace

SILENCE_S = 3.0
REDIAL_S = (0.05, 0.2)
REDIAL_REFUSED_S = (0.5, 1.0)
DELAY_S = 0.001


class Endpoint(Protocol):
    """A node as the network sees it."""

    @property
    def running(self) -> bool:
        """True if there is a process."""

    def knows(self, name: str) -> bool:
        """Return whether it wants to talk to this peer."""

    def hello(self, receiver: str) -> Hello:
        """Return the greeting for this receiver."""

    def meet(self, hello: Hello) -> None:
        """Handle the greeting of an unknown node."""

    def receive(self, sender: str, event: Hello | Message | None) -> None:
        """Take a message; a Hello: the link is up, None: it is down."""


class _Item(NamedTuple):
    sent: float                 # when the sender's disk was done
    leaves: float               # when the last byte leaves the sender's buffer
    arrives: float
    size: int
    connection: int
    content: Hello | bytes | None       # None: the connection is closed


class Channel:
    """One direction between two nodes."""

    def __init__(self, network: Network, sender: str, receiver: str) -> None:
        self._network = network
        self._events = network.events
        self.sender = sender
        self.receiver = receiver
        self.queue: deque[_Item] = deque()
        self.blocked = False
        self.delay_s = DELAY_S
        self.jitter_s = 0.0
        self.bytes_per_s = network.bytes_per_s
        self.heard_at = float("-inf")           # when something arrived last
        self.open = 0               # connection that the receiver believes to be up
        self._last_arrival = 0.0
        self._last_leaves = 0.0
        self._alarm = float("inf")

    def buffered(self) -> int:
        """Return the bytes that have not left the sender."""
        now = self._events.now
        return sum(item.size for item in self.queue if self.blocked or item.leaves > now)

    def put(self, content: Hello | bytes | None, size: int, connection: int, wait_s: float = 0.0) -> None:
        """Send a message, `wait_s` from now."""
        start = self._events.now + wait_s
        leaves = self._last_leaves = max(self._last_leaves, start) + size / self.bytes_per_s
        arrives = leaves + self.delay_s
        if self.jitter_s:
            arrives += self._network.rng.random() * self.jitter_s
        arrives = self._last_arrival = max(self._last_arrival, arrives)
        self.queue.append(_Item(start, leaves, arrives, size, connection, content))
        if arrives < self._alarm:
            self._wait()

    def lose(self, connection: int) -> None:
        """Break the connection: some of what is in flight still arrives, nothing of a blocked direction does."""
        kept = 0 if self.blocked else self._network.rng.randrange(len(self.queue) + 1)
        self.queue = deque(
            item for place, item in enumerate(self.queue)
            if place < kept or item.content is None or item.connection != connection
        )
        now = self._events.now
        self._last_leaves = now
        self._last_arrival = max(now, self.queue[-1].arrives if self.queue else now)
        self.put(None, 0, connection)

    def hurry(self) -> None:
        """Restore the line, also for messages in flight."""
        now = self._events.now
        self.delay_s, self.jitter_s, self.blocked = DELAY_S, 0.0, False
        self.bytes_per_s = self._network.bytes_per_s
        self.queue = deque(
            item._replace(leaves=max(item.sent, now), arrives=max(item.sent, now)) for item in self.queue
        )
        self._last_leaves = self._last_arrival = self.queue[-1].arrives if self.queue else now
        self._alarm = float("inf")
        self._wait()

    def unblock(self) -> None:
        """Let messages pass again, those in the queue first."""
        self.blocked = False
        self._wait()

    def _wait(self) -> None:
        if self.queue and self.queue[0].arrives < self._alarm:
            self._alarm = max(self.queue[0].arrives, self._events.now)
            self._events.at(self._alarm, self._fire)

    def _fire(self) -> None:
        now, queue = self._events.now, self.queue
        if now < self._alarm:
            return                  # this one was set before the line changed
        self._alarm = float("inf")
        while queue and queue[0].arrives <= now:
            if self.blocked and queue[0].content is not None:
                return
            self._deliver(queue.popleft())
        self._wait()

    def _deliver(self, item: _Item) -> None:
        node = self._network.nodes[self.receiver]
        if not node.running:
            return
        self.heard_at = self._events.now
        if isinstance(item.content, Hello):
            self.open = item.connection
            node.receive(self.sender, item.content)
        elif item.connection == self.open:
            if item.content is None:
                self.open = 0
            node.receive(self.sender, None if item.content is None else decode(item.content))


class Network:
    """All channels and connections. `bytes_per_s`: of an undisturbed line."""

    def __init__(
        self, events: Events, rng: random.Random, trace: Trace, names: list[str], bytes_per_s: float = 1e9,
    ) -> None:
        self.events = events
        self.bytes_per_s = bytes_per_s
        self.rng = rng
        self.nodes: dict[str, Endpoint] = {}
        self._trace = trace
        self.channels = {(a, b): Channel(self, a, b) for a in names for b in names if a != b}
        self._links: dict[tuple[str, str], int] = {}
        self._half_open: set[tuple[str, str]] = set()       # one side has seen that the connection has ended
        self._dialing: set[tuple[str, str]] = set()
        self._connections = 0

    @staticmethod
    def _pair(a: str, b: str) -> tuple[str, str]:
        return (a, b) if a < b else (b, a)

    def transmit(self, sender: str, receiver: str, message: Message, wait_s: float) -> None:
        """Send on the connection that the sender believes to be up; it may be dead already."""
        connection = self._links.get(self._pair(sender, receiver))
        if connection is None or self.channels[receiver, sender].open != connection:
            return
        data = encode(message)
        self._trace.message(sender, receiver, data, wait_s)
        self.channels[sender, receiver].put(data, len(data), connection, wait_s)

    def dial(self, a: str, b: str) -> None:
        """Connect soon, and try again until it works, a node is down or neither wants to."""
        self._dial(self._pair(a, b), REDIAL_S)

    def _dial(self, pair: tuple[str, str], delays_s: tuple[float, float]) -> None:
        if pair not in self._dialing:
            self._dialing.add(pair)
            self.events.after(self.rng.uniform(*delays_s), lambda: self._connect(pair))

    def _connect(self, pair: tuple[str, str]) -> None:
        self._dialing.discard(pair)
        a, b = pair
        node, other = self.nodes[a], self.nodes[b]
        if (pair in self._links and pair not in self._half_open) or not (node.running and other.running):
            return
        if not (node.knows(b) or other.knows(a)):
            return
        ways = self.channels[a, b], self.channels[b, a]
        if any(way.blocked for way in ways):
            self.dial(a, b)
            return
        if not node.knows(b):
            node.meet(other.hello(a))
        elif not other.knows(a):
            other.meet(node.hello(b))
        if not (node.knows(b) and other.knows(a)):
            self._dial(pair, REDIAL_REFUSED_S)
            return
        if incompatible(node.hello(b), other.hello(a)):
            self._dial(pair, REDIAL_REFUSED_S)
            return
        if pair in self._half_open:
            self._break(pair)           # the other side closes the old connection when a new one comes
        self._connections += 1
        connection = self._links[pair] = self._connections
        self._trace.connected(a, b)
        for way in ways:
            way.put(self.nodes[way.sender].hello(way.receiver), 100, connection)

    def linked(self, a: str, b: str) -> bool:
        """Return whether both believe that they are connected."""
        connection = self._links.get(self._pair(a, b))
        return connection is not None and self.channels[a, b].open == self.channels[b, a].open == connection

    def lose(self, a: str, b: str) -> None:
        """Break the connection; it is dialed again."""
        if self._break(self._pair(a, b)):
            self.dial(a, b)

    def _break(self, pair: tuple[str, str]) -> bool:
        """End the connection at both sides; returns False if there is none."""
        self._half_open.discard(pair)
        connection = self._links.pop(pair, None)
        if connection is not None:
            for way in (self.channels[pair], self.channels[pair[1], pair[0]]):
                way.lose(connection)
        return connection is not None

    def end_for(self, name: str, other: str) -> bool:
        """End the connection at this node only; returns False if there is none."""
        pair = self._pair(name, other)
        connection, way = self._links.get(pair), self.channels[other, name]
        if connection is None or way.open != connection:
            return False
        self._half_open.add(pair)
        way.open = 0
        self.nodes[name].receive(other, None)
        self.dial(name, other)
        self.events.after(SILENCE_S, lambda: self._given_up(pair, connection))
        return True

    def _given_up(self, pair: tuple[str, str], connection: int) -> None:
        if pair in self._half_open and self._links.get(pair) == connection:
            self.lose(*pair)

    def block(self, sender: str, receiver: str, *, reset: bool) -> None:
        """Block this direction. `reset`: the connection breaks at once, else when the silence is long."""
        self.channels[sender, receiver].blocked = True
        connection = self._links.get(self._pair(sender, receiver))
        if reset:
            self.lose(sender, receiver)
        elif connection is not None:
            self.events.after(SILENCE_S, lambda: self._silent(sender, receiver, connection))

    def _silent(self, sender: str, receiver: str, connection: int) -> None:
        if self.channels[sender, receiver].blocked and self._links.get(self._pair(sender, receiver)) == connection:
            self.lose(sender, receiver)

    def unblock(self) -> None:
        """Let messages pass in all directions."""
        for channel in self.channels.values():
            channel.unblock()

    def repair(self) -> None:
        """Restore all lines, also for messages in flight."""
        for channel in self.channels.values():
            channel.hurry()

    def started(self, name: str) -> None:
        """Note the start of a process: its peers have been dialing all the time."""
        for other, node in self.nodes.items():
            if other != name and node.running and node.knows(name):
                self.dial(name, other)

    def died(self, name: str) -> None:
        """Note the end of a process: its connections break, and nothing reaches it any more."""
        for other in self.nodes:
            if other != name:
                self.lose(name, other)
                way = self.channels[other, name]
                way.queue.clear()
                way.open = 0
