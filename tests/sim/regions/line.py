"""The puller of a replica and the line to its origin, which is long, loses connections, and is cut for a long time."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from sockpqd.cluster.api import Checkpoint, FeedRefusal, Frame
from sockpqd.cluster.driver import Driver
from sockpqd.cluster.feed.log_feed import LogFeed
from sockpqd.cluster.journal.journal import Journal
from sockpqd.core import MirrorChunk, Mirrored, PageLost, Reply
from tests.cluster.helpers.feed_at_once import feed_at_once, read_at_once
from tests.sim.world.node import SimNode
from tests.sim.world.trace import Violation

if TYPE_CHECKING:
    from tests.sim.regions.world import Regions

DELAY_S = (0.05, 0.2)           # each way
LOST = 0.05                     # of the requests: their connection breaks
LOOK_S = 0.02
RETRY_S = 0.5                   # a puller without an answer asks again
CUT_EVERY_S, CUT_S = 5.0, (0.2, 4.0)
AWAY, AWAY_FROM_S, AWAY_S = 0.4, (1.0, 5.0), (4.0, 8.0)     # in so many runs the line is cut once for so long
CHUNK_BYTES = 700


class Line:
    """One request at a time, by the node that leads the replica."""

    def __init__(self, regions: Regions) -> None:
        self._regions = regions
        self._rng = regions.rng
        self._delay_s = self._rng.uniform(*DELAY_S)
        self._most = self._rng.choice([1, 5, 50, 1000])         # frames in one answer
        self._cut_until = 0.0
        self._away = random.Random(f"away {regions.seed}")
        self._healed = False
        self._number = 0                # of the present request
        self._asked_at: float | None = None

    def begin(self) -> None:
        """Begin to pull, and schedule the first cut."""
        self._regions.events.after(LOOK_S, self._act)
        self._regions.events.after(self._rng.expovariate(1 / CUT_EVERY_S), self._cut)
        if self._away.random() < AWAY:
            self._regions.events.after(self._away.uniform(*AWAY_FROM_S), self._go_away)

    def heal(self) -> None:
        """End all cuts: nothing is lost from now on."""
        self._healed = True
        self._cut_until = 0.0

    def describe(self) -> str:
        """Return the present state in a line."""
        head = self._head()
        halted = None if head is None else head.up.mirroring.halted
        return f"the line: head={None if head is None else head.name} asked_at={self._asked_at} halted={halted}"

    def _cut(self) -> None:
        if not self._healed:
            self._cut_for(self._rng.uniform(*CUT_S))
            self._regions.seen["cuts of the line"] += 1
            self._regions.events.after(self._rng.expovariate(1 / CUT_EVERY_S), self._cut)

    def _go_away(self) -> None:
        if not self._healed:
            self._cut_for(self._away.uniform(*AWAY_S))
            self._regions.seen["long absences of the copy"] += 1

    def _cut_for(self, seconds: float) -> None:
        self._cut_until = max(self._cut_until, self._regions.events.now + seconds)

    def _head(self) -> SimNode | None:
        for node in self._regions.replica.nodes.values():
            if node.driver is not None and node.driver.mirroring.active:
                return node
        return None

    def _act(self) -> None:
        events = self._regions.events
        events.after(LOOK_S, self._act)
        if events.now < self._cut_until:
            return
        if self._asked_at is not None and events.now < self._asked_at + RETRY_S + 3 * self._delay_s:
            return
        head = self._head()
        origins = [node for node in self._regions.origin.nodes.values() if node.running]
        if head is not None and origins:
            self._ask(head, self._rng.choice(origins))

    def _ask(self, head: SimNode, source: SimNode) -> None:
        self._number += 1
        number, driver, position = self._number, head.up, head.up.mirroring.position()
        self._asked_at = self._regions.events.now
        checkpoint = Checkpoint(position.at, position.hash) if position.at else None

        def arrives() -> None:
            if source.driver is None:
                return
            feed = feed_at_once(source.driver)
            refusal = feed.refusal(position.index + 1, checkpoint)
            if refusal is FeedRefusal.DIFFERENT:
                raise Violation(f"{source.name} has another hash than the copy at entry {position.at}")
            if refusal is FeedRefusal.TOO_OLD:
                self._send_state(number, head, driver, source.driver)
            else:               # where the source is behind the copy, there are none
                if refusal is None:
                    self._note_kept(source.driver.journal, position.index + 1)
                frames = [] if refusal is not None else _frames(feed, position.index, self._most)
                self._back(lambda: self._offer(number, head, driver, frames))
        self._back(arrives)

    def _note_kept(self, journal: Journal, index: int) -> None:
        """Count a request for an entry that a node has only for its copies."""
        if index < journal.first_index:
            self._regions.seen["requests for what is kept"] += 1
            self._regions.seen["segments indexed for the copy"] += journal.unindexed(index) is not None

    def _back(self, arrives: object) -> None:
        """Deliver something to the other side, unless it is lost."""
        events = self._regions.events
        if not self._healed and (events.now < self._cut_until or self._rng.random() < LOST):
            self._regions.seen["lost on the line"] += 1
            return
        assert callable(arrives)
        events.after(self._delay_s, arrives)

    def _offer(self, number: int, head: SimNode, driver: Driver, frames: list[Frame]) -> None:
        if number != self._number or head.driver is not driver:
            return

        def done(reached: bool) -> None:
            self._regions.seen["offers taken" if reached else "offers lost"] += bool(frames)
            if number == self._number:
                self._asked_at = None
        driver.mirroring.offer(frames, done)
        head.wake(self._regions.events.now)

    def _send_state(self, number: int, head: SimNode, driver: Driver, source: Driver) -> None:
        try:
            data, index = b"".join(source.machine.export(users=True)), source.machine.index
        except PageLost:                # the source is about to stop
            return
        chain = source.chain.value
        self._regions.seen["snapshots of the origin"] += 1

        def next_chunk(offset: int, reply: Reply | None) -> None:
            if number != self._number:
                return
            if not isinstance(reply, Mirrored) or offset >= len(data):
                self._asked_at = None
                return
            chunk = data[offset:offset + CHUNK_BYTES]
            driver.mirroring.propose(
                MirrorChunk(index, offset, chunk), lambda reply: next_chunk(offset + len(chunk), reply))
            head.wake(self._regions.events.now)
            self._asked_at = self._regions.events.now

        def begin() -> None:
            if number == self._number and head.driver is driver and driver.mirroring.active:
                driver.mirroring.propose(
                    MirrorChunk(index, 0, b"", len(data), chain), lambda reply: next_chunk(0, reply))
                head.wake(self._regions.events.now)
        self._back(begin)


def _frames(feed: LogFeed, index: int, most: int) -> list[Frame]:
    """Return up to `most` entries behind `index`, fewer if the disk does not give more."""
    found: list[Frame] = []
    while len(found) < most:
        piece = read_at_once(feed, index + 1)
        if piece is None or piece.next == index + 1:
            break
        found += piece.frames
        index = piece.next - 1
    return found[:most]
