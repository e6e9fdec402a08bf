"""A few real drivers in one process, with a clock, a network and disks that the test moves.

Time passes only in run(). A message takes `delay` seconds; a test may hold messages back or drop them with `filter`.
Nodes take a turn when one is due (cluster/idle.py), as in cluster/node.py; without `sleeps` every TURN_S.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

from sockpqd.cluster.driver import Driver
from sockpqd.cluster.idle import next_turn_at
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.node import ANSWERS_SHARE, NEVER
from sockpqd.cluster.paging.page_files import PageFiles
from sockpqd.cluster.paging.paging import paging_machine
from sockpqd.cluster.settings import Member, NodeSettings
from sockpqd.cluster.snapshots.snapshot_directory import needed_from
from sockpqd.cluster.snapshots.snapshot_store import SnapshotStore
from sockpqd.cluster.wire.messages import (
    Append,
    Heartbeat,
    Hello,
    Message,
    SnapshotChunk,
    TimeoutNow,
    incompatible,
)
from sockpqd.core import Effects, Event, Machine, Operation, Put, Reply
from tests.cluster.helpers.memory_disk import MemoryDisk
from tests.sim.world.events import Events

DELAY_S = 0.001
TURN_S = 0.01
EARLY = (Append, Heartbeat, SnapshotChunk, TimeoutNow)       # need not wait for the journal
BUSY_TURNS_MAX = 100            # turns of a busy node without time passing


class Outcome:
    """A Pending that remembers its outcome."""

    def __init__(self) -> None:
        self.reply: Reply | None = None
        self.state = "open"

    def applied(self, reply: Reply) -> None:
        assert self.state == "open"
        self.state, self.reply = "applied", reply

    def refused(self) -> None:
        assert self.state == "open"
        self.state = "refused"

    def unknown(self) -> None:
        assert self.state == "open"
        self.state = "unknown"

    def overdue(self) -> None:
        assert self.state == "open"
        self.state = "overdue"


class SmallNode:
    """One node, whose disk outlives its driver."""

    def __init__(self, world: SmallCluster, name: str) -> None:
        self.world = world
        self.name = name
        self.disk = MemoryDisk()
        self.driver: Driver | None = None
        self.known_level: int | None = None     # the feature level that its program knows; None: this program's
        self.feature_level_max = 0              # of its configuration
        self.prefer = 50                        # likewise
        self.machine = Machine()
        self.life = 0
        self.early: list[tuple[str, Message]] = []
        self.late: list[tuple[str, Message]] = []
        self.held: list[tuple[str, Message]] = []
        self.wall_offset_ms = 0
        self.serving_log: list[bool] = []
        self.failure: Exception | None = None
        self.peers: dict[str, str] = {}
        self.turned_at = 0.0
        self.look_at = NEVER                    # when it looks next whether a turn is due
        self.awake = False                      # something has come that needs a turn
        self.woken = 0                          # turns that it took by itself

    # Whom to connect to
    def add_peer(self, name: str, address: str) -> None:
        self.peers[name] = address
        if name in self.world.nodes:
            self.world.events.at(self.world.now, lambda: self.world._connect(frozenset((self.name, name))))

    def drop_peer(self, name: str) -> None:
        del self.peers[name]
        self.world._disconnect(frozenset((self.name, name)))

    # Outbox
    def send(self, name: str, message: Message) -> None:
        (self.early if isinstance(message, EARLY) else self.late).append((name, message))

    def buffered_bytes(self, name: str) -> int:
        return 0

    def flush_appends(self) -> None:
        early, self.early = self.early, []
        for name, message in early:
            self.world.transmit(self.name, name, message)

    def hold(self) -> None:
        self.held += self.late
        self.late = []

    def release(self) -> None:
        held, self.held = self.held, []
        for name, message in held:
            self.world.transmit(self.name, name, message)

    def flush(self) -> None:
        self.release()
        self.flush_appends()
        late, self.late = self.late, []
        for name, message in late:
            self.world.transmit(self.name, name, message)

    # Listener
    def effects(self, effects: Effects) -> None:
        pass

    def events(self, events: list[Event]) -> None:
        """Implement ClusterListener."""

    def recording(self, types: frozenset[str]) -> None:
        """Implement ClusterListener."""

    def notice(self, channel: str, data: bytes) -> None:
        """Implement ClusterListener."""

    def notices_lost(self) -> None:
        """Implement ClusterListener."""

    def state_replaced(self) -> None:
        """Implement ClusterListener."""

    def serving_changed(self, serving: bool) -> None:
        self.serving_log.append(serving)

    def turn_ended(self) -> None:
        pass

    # Clock
    def monotonic(self) -> float:
        return self.world.now

    def steady(self) -> float:
        return self.world.now

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + int(self.world.now * 1000) + self.wall_offset_ms

    def propose(self, operation: Operation) -> Outcome:
        outcome = Outcome()
        assert self.driver is not None
        self.driver.proposer.propose(operation, outcome)
        self.world.wake(self.name)
        return outcome

    @property
    def up(self) -> Driver:
        assert self.driver is not None, f"{self.name} is down"
        return self.driver


class SmallCluster:
    """Nodes n1..nN, all started and connected; spare ones after them are no members yet, and not started."""

    def __init__(
        self, count: int = 3, seed: int = 1, *, start: bool = True, spares: int = 0, sleeps: bool = True,
        **settings: int,
    ) -> None:
        self.events = Events()
        self.events.now = 1000.0
        self.rng = random.Random(seed)
        self.settings = settings
        self.sleeps = sleeps
        names = [f"n{k + 1}" for k in range(count + spares)]
        self.members = tuple(Member(name, f"127.0.0.1:{k + 1}", f"127.0.0.1:{k + 101}") for k, name in enumerate(names))
        self.founders = self.members[:count]
        self.nodes = {name: SmallNode(self, name) for name in names}
        self.cuts: set[frozenset[str]] = set()
        self.links: dict[frozenset[str], int] = {}      # connection number while up
        self._connections = 0
        self.refusals: list[str] = []                   # why nodes did not talk
        self.filter: Callable[[str, str, Message], bool] = lambda source, target, message: True
        self.sent: list[tuple[str, str, Message]] = []
        if start:
            for name in names[:count]:
                self.start(name)

    def __iter__(self) -> Iterator[SmallNode]:
        return iter(self.nodes.values())

    def __getitem__(self, name: str) -> SmallNode:
        return self.nodes[name]

    # Nodes

    def configured(self, name: str) -> tuple[Member, ...]:
        """Return the members in this node's configuration file: the founders, and itself."""
        return self.founders + tuple(m for m in self.members if m.name == name and m not in self.founders)

    def start(self, name: str, *, bootstrap: bool = False) -> SmallNode:
        node = self.nodes[name]
        node.life += 1
        pages = PageFiles(Path("/pages"), node.disk)
        node.machine = paging_machine(pages, 0, node.known_level)
        node.failure = None
        node.peers = {}
        journal = Journal.open(Path("/journal"), node.disk, segment_bytes=1 << 20,
                               needed_from=needed_from(node.disk, Path("/snapshots")))
        store = SnapshotStore.open(
            Path("/snapshots"), node.disk, journal, node.machine, fork=False, clock=lambda: self.now,
            pages=pages,
        )
        settings = NodeSettings(
            name=name, data_dir=Path("/"), peer_listen="", members=self.configured(name), version="test",
            bootstrap=bootstrap, feature_level_max=node.feature_level_max, prefer=node.prefer,
            **self.settings,
        )
        node.driver = Driver(
            settings, journal, store, node.machine, node, node, node, random.Random(self.rng.random()), pages)
        node.driver.recover()
        node.turned_at, node.look_at, node.awake = self.now, NEVER, True
        first = self.now + self.rng.random() * TURN_S
        if self.sleeps:
            self._look_by(name, first)
        else:
            self.events.at(first, self._timer(name, node.life))
        for other in self.nodes:
            if other != name:
                self._connect(frozenset((name, other)))
        return node

    def kill(self, name: str) -> None:
        """Kill the process and cut the machine's power."""
        node = self.nodes[name]
        node.driver = None
        node.life += 1
        node.early, node.late = [], []
        node.disk.crash()
        for pair in list(self.links):
            if name in pair:
                self._disconnect(pair)

    def wipe(self, name: str) -> None:
        """Replace the disk of a node that does not run with an empty one."""
        assert self.nodes[name].driver is None
        self.nodes[name].disk = MemoryDisk()

    def _timer(self, name: str, life: int) -> Callable[[], None]:
        def fire() -> None:
            if self.nodes[name].life == life:
                self.turn(name)
                self.events.at(self.now + TURN_S, fire)
        return fire

    def wake(self, name: str) -> None:
        """Let a node take a turn as soon as time passes."""
        self.nodes[name].awake = True
        self._look_by(name, self.now)

    def _look_by(self, name: str, when: float) -> None:
        """Look at this time or sooner whether a turn is due, as a node's timer does."""
        node = self.nodes[name]
        if not self.sleeps or when >= node.look_at:
            return
        node.look_at, life = when, node.life

        def look() -> None:
            if node.life != life or node.look_at != when:
                return                      # of an earlier process, or replaced by an earlier look
            node.look_at = NEVER
            if node.awake or (due := self._due_at(node)) <= self.now:
                node.woken += 1
                self.turn(name)
            else:
                self._look_by(name, due)
        self.events.at(when, look)

    def _due_at(self, node: SmallNode) -> float:
        """Return when the next turn is due if nothing comes."""
        if node.up.journal.syncing is not None:         # nobody says here that a disk has synced
            return node.turned_at + TURN_S
        return next_turn_at(node.up, node.turned_at, self.now)

    def turn(self, name: str) -> None:
        """Take a turn of a node, and the next ones as long as it is busy."""
        node = self.nodes[name]
        node.turned_at, node.awake = self.now, False
        for _ in range(BUSY_TURNS_MAX):
            if node.driver is None:
                return
            node.driver.capacity.free_bytes = node.disk.free_bytes
            try:
                node.driver.turn()
            except Exception as error:
                node.failure = error
                self.kill(name)
                return
            if not node.driver.busy:
                break
        self._look_by(name, self._due_at(node))

    # Network

    def transmit(self, source: str, target: str, message: Message) -> None:
        connection = self.links.get(frozenset((source, target)))
        if connection is None:
            return
        self.sent.append((source, target, message))
        if self.filter(source, target, message):
            self.deliver(source, target, message, connection)

    def deliver(self, source: str, target: str, message: Message, connection: int | None = None) -> None:
        """Deliver a message after the delay, if its connection (None: any) still stands then."""
        def arrive() -> None:
            node, present = self.nodes[target], self.links.get(frozenset((source, target)))
            if node.driver is not None and present is not None and connection in (None, present):
                node.driver.inbox.append((source, message))
                if node.driver.urgent(message):
                    self.turn(target)
                else:
                    self._look_by(target, self.now + node.up.settings.lease_ms / 1000 * ANSWERS_SHARE)
        self.events.at(self.now + DELAY_S, arrive)

    def _connect(self, pair: frozenset[str]) -> None:
        a, b = (self.nodes[name] for name in sorted(pair))
        if pair in self.cuts or pair in self.links or a.driver is None or b.driver is None:
            return
        for node, other in ((a, b), (b, a)):
            if other.name not in node.peers and node.name in other.peers:
                node.up.add_unknown_peer(other.up.hello(node.name))
        if a.name not in b.peers or b.name not in a.peers or pair in self.links:
            return
        if reason := incompatible(a.up.hello(b.name), b.up.hello(a.name)):
            self.refusals.append(reason)
            return
        self._connections += 1
        self.links[pair] = self._connections
        hellos: list[tuple[SmallNode, str, Hello]] = [
            (a, b.name, b.driver.hello(a.name)), (b, a.name, a.driver.hello(b.name)),
        ]
        for node, other, hello in hellos:
            node.up.inbox.append((other, hello))
            self.wake(node.name)

    def _disconnect(self, pair: frozenset[str]) -> None:
        if self.links.pop(pair, None) is None:
            return
        for name in pair:
            driver = self.nodes[name].driver
            if driver is not None:
                driver.inbox.append((next(iter(pair - {name})), None))
                self.wake(name)

    def cut(self, *groups: str) -> None:
        """Cut the connections between the groups, each a string of names with blanks."""
        sides = [group.split() for group in groups]
        for k, side in enumerate(sides):
            for other in sides[k + 1:]:
                for a in side:
                    for b in other:
                        self.cuts.add(frozenset((a, b)))
                        self._disconnect(frozenset((a, b)))

    def heal(self) -> None:
        """Restore all connections."""
        self.cuts.clear()
        names = list(self.nodes)
        for k, a in enumerate(names):
            for b in names[k + 1:]:
                self._connect(frozenset((a, b)))

    def flap(self, a: str, b: str) -> None:
        """Break a connection and restore it at once."""
        self._disconnect(frozenset((a, b)))
        self._connect(frozenset((a, b)))

    # Time

    @property
    def now(self) -> float:
        """The simulated time, in seconds."""
        return self.events.now

    def run(self, seconds: float) -> None:
        """Let this many simulated seconds pass."""
        self.events.run_until(self.now + seconds)

    def run_until(self, condition: Callable[[], object], seconds: float = 20.0) -> None:
        """Let time pass until the condition holds; fails after this many seconds."""
        end = self.now + seconds
        while not condition():
            assert self.now < end, f"not within {seconds} simulated seconds"
            self.run(0.005)

    # ForwardedCommands

    def serving(self) -> SmallNode | None:
        """Return the node that serves; fails when there are two."""
        serving = [node for node in self if node.driver is not None and node.driver.leadership.serving]
        assert len(serving) <= 1, f"two nodes serve: {[node.name for node in serving]}"
        return serving[0] if serving else None

    def leader(self, seconds: float = 20.0) -> SmallNode:
        """Wait for a serving leader."""
        self.run_until(self.serving, seconds)
        node = self.serving()
        assert node is not None
        return node

    def followers(self) -> list[SmallNode]:
        """Return all running nodes except the serving leader."""
        leader = self.serving()
        return [node for node in self if node is not leader and node.driver is not None]

    def put(self, data: bytes = b"x", queue: str = "q") -> Outcome:
        """Propose a job on the serving leader."""
        return self.leader().propose(Put(queue, 0, data))

    def put_now(self, data: bytes = b"x", queue: str = "q") -> None:
        """Put a job and wait for its acknowledgement."""
        outcome = self.put(data, queue)
        self.run_until(lambda: outcome.state != "open")
        assert outcome.state == "applied", outcome.state

    def settled(self) -> bool:
        """Return whether all running nodes have applied the same, and everything."""
        applied = {node.up.replica.applied_index for node in self if node.driver is not None}
        last = {node.up.journal.last_index for node in self if node.driver is not None}
        return len(applied | last) == 1

    def states(self) -> set[bytes]:
        """Return the different states of the running nodes."""
        return {b"".join(node.machine.snapshot()) for node in self if node.driver is not None}

    def bodies(self, name: str, queue: str = "q") -> list[bytes]:
        """Return the data of the waiting jobs of a queue on one node, in the order in which they would be handed out.
        """
        copy = Machine()
        copy.restore(self.nodes[name].machine.snapshot())
        return drain(copy, queue)


def drain(machine: Machine, queue: str) -> list[bytes]:
    """Take every job out of a queue of an otherwise unused machine."""
    from sockpqd.core import Get, Handed

    bodies = []
    while True:
        applied = machine.apply(machine.index + 1, machine.clock_ms, 0, [Get((queue,))])
        reply = applied.replies[0]
        if not isinstance(reply, Handed):
            return bodies
        bodies.append(reply.data)
