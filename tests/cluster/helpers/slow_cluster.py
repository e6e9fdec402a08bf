"""A SmallCluster whose work, disks and links take time, with clients that send their next PUT when one is answered.

What a turn and a command cost is made up (TURN_S and others, of the order of what is measured): all runs are alike.
A node's turns come one after another; its clock advances during a turn. It delays its commits as cluster/node.py does.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future

from sockpqd.cluster.leader.commit_delay import CommitDelay
from sockpqd.cluster.wire.messages import Message
from sockpqd.core import Put, Reply
from tests.cluster.helpers.memory_disk import MemoryDisk
from tests.cluster.helpers.small_cluster import SmallCluster, SmallNode

TURN_S = 0.0002                 # of a turn at any node,
COMMAND_S = 8e-6                # of a command that the leader reads, executes and answers,
CONNECTION_S = 8e-6             # and for each connection that has some
CLIENT_S = 0.0001               # from an answer to the next command
LOOK_S = 0.00002                # of a turn that only waits for clients
TIMER_S = 0.05
BODY = bytes(100)


class SlowSync(Future[float]):
    """A background sync, which ends at a given time."""

    def __init__(self, node: SlowNode, over_at: float) -> None:
        super().__init__()
        self._node = node
        self._over_at = over_at
        self._took_s = over_at - node.monotonic()

    def done(self) -> bool:
        return self._node.monotonic() >= self._over_at

    def result(self, timeout: float | None = None) -> float:
        self._node.spend(max(0.0, self._over_at - self._node.monotonic()))
        return self._took_s


class SlowDisk(MemoryDisk):
    """A disk that works on one sync after another, `sync_s` each."""

    node: SlowNode | None = None
    sync_s = 0.0

    def __init__(self) -> None:
        super().__init__()
        self._free_at = 0.0
        self.beside = self.in_loop = 0

    def _over_at(self, now: float) -> float:
        self._free_at = max(now, self._free_at) + self.sync_s
        return self._free_at

    def sync(self, file: int) -> None:
        if self.node is not None:
            self.in_loop += 1
            now = self.node.monotonic()
            self.node.spend(self._over_at(now) - now)
        super().sync(file)

    def sync_in_background(self, file: int) -> Future[float]:
        node = self.node
        if node is None:
            return super().sync_in_background(file)
        self.beside += 1
        super().sync(file)
        over_at = self._over_at(node.monotonic())
        node.cluster.events.at(over_at, node.sync_ended)
        return SlowSync(node, over_at)


class CommandAnswer:
    """A Pending of a client that notes when it has its answer."""

    def __init__(self, node: SlowNode, client: int) -> None:
        self._node = node
        self._client = client

    def applied(self, reply: Reply) -> None:
        self._node.answered[self._client] += 1

    def refused(self) -> None:
        raise AssertionError("refused")

    unknown = overdue = refused


class SlowNode(SmallNode):
    """A node that is busy while it works."""

    disk: SlowDisk

    def __init__(self, cluster: SlowCluster, name: str) -> None:
        super().__init__(cluster, name)
        self.cluster = cluster
        self.disk = SlowDisk()
        self.answered: Counter[int] = Counter()
        self.commands: Counter[int] = Counter()     # of each client, not read yet
        self.most_under_way = 0
        self._spent_s: float | None = None          # in the present turn
        self._free_at = self._woken_at = 0.0
        self._scheduled = False
        self._delay: CommitDelay | None = None

    def monotonic(self) -> float:
        return self.world.now + (self._spent_s or 0.0)

    steady = monotonic

    def spend(self, seconds: float) -> None:
        """Let time pass in a turn."""
        if self._spent_s is not None:
            self._spent_s += seconds

    def wake(self) -> None:
        """Schedule a turn for when the node is free, as something has arrived."""
        if not self._scheduled:
            self._scheduled = True
            self._woken_at = self.world.now
            self.cluster.events.at(max(self.world.now, self._free_at), self._work)

    def sync_ended(self) -> None:
        """Handle the end of a sync in the background."""
        if not self._scheduled and (self.world.now < self._free_at or self.up.sync_ended()):
            self.wake()

    def turn_ended(self) -> None:
        answered, self.answered = self.answered, Counter()
        for client, count in answered.items():
            self.spend(CONNECTION_S)
            self.cluster.answers(self, client, count, self.monotonic())

    def _work(self) -> None:
        self._scheduled = False
        if self.world.now < self._free_at:
            self.wake()
            return
        self._spent_s = 0.0
        driver, delay = self.up, self._delay or CommitDelay(self.up.proposer, self.monotonic)
        self._delay = delay
        commands, self.commands = self.commands, Counter()
        for client, count in commands.items():
            self.spend(CONNECTION_S + COMMAND_S * count)
            for _ in range(count):
                driver.proposer.propose_for(client, Put("q", 0, BODY), CommandAnswer(self, client))
        waits = delay.should_wait()
        if waits and not driver.inbox:
            self.spend(LOOK_S)
        else:
            self.spend(TURN_S)
            driver.syncing.pipelining.waited(max(0.0, self._woken_at - self._free_at))
            driver.turn(propose=not waits)
            delay.turned(self.monotonic())
        self.most_under_way = max(self.most_under_way, driver.proposer.entries_in_flight)
        self._free_at, self._spent_s = self.monotonic(), None
        if driver.busy or driver.inbox:
            self.wake()


class SlowCluster(SmallCluster):
    """Three nodes; `sync_s` and `link_s`: the duration of a sync and of a message. Counts begin with load()."""

    def __init__(self, sync_s: float, link_s: float = 0.00006) -> None:
        super().__init__(3, start=False, sleeps=False)
        self.sync_s = sync_s
        self.link_s = link_s
        self.done = 0
        self._loaded = False
        self._nodes = {name: SlowNode(self, name) for name in self.nodes}
        self.nodes.update(self._nodes)
        for name in self._nodes:
            self.start(name)
        leader = self.leader()
        self.run(0.5)
        self.leading = self._nodes[leader.name]

    @property
    def slow_nodes(self) -> list[SlowNode]:
        return list(self._nodes.values())

    def turn(self, name: str) -> None:
        if self._loaded:
            self._nodes[name].wake()
        else:
            super().turn(name)

    def transmit(self, source: str, target: str, message: Message) -> None:
        if not self._loaded:
            super().transmit(source, target, message)
            return
        node = self._nodes[target]

        def arrive() -> None:
            node.up.inbox.append((source, message))
            if node.up.urgent(message):
                node.wake()
        self.events.at(self._nodes[source].monotonic() + self.link_s, arrive)

    def answers(self, node: SlowNode, client: int, count: int, at: float) -> None:
        """Give a client this many answers; it sends as many commands."""
        def again() -> None:
            node.commands[client] += count
            node.wake()
        self.done += count
        self.events.at(at + CLIENT_S, again)

    def load(self, clients: int, under_way: int, seconds: float) -> tuple[float, float]:
        """Run clients with this many commands in flight each; returns PUTs per second and PUTs per entry."""
        self._loaded = True
        for node in self._nodes.values():
            node.disk.node, node.disk.sync_s = node, self.sync_s        # type: ignore[attr-defined]
        for client in range(clients):
            self.leading.commands[client] += under_way
        self.leading.wake()
        self.run(seconds / 4)
        done, entries = self.done, self.leading.up.replica.applied_index
        self.run(seconds)
        done, entries = self.done - done, self.leading.up.replica.applied_index - entries
        return done / seconds, done / entries

