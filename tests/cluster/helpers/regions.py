"""Two small clusters in made-up time: an origin, and a replica whose leader pulls what the origin has executed.

The puller here is the simplest that can be: it reads any node of the origin, some frames at a time, and begins again
where the mirror is after each failure. `Puller.frames` is what the feed sends.
"""

from __future__ import annotations

from sockpqd.cluster.api import Frame
from sockpqd.cluster.driver import Driver
from sockpqd.cluster.storage.state_hash import Chain
from sockpqd.core import InvalidSnapshot, MirrorChunk, Mirrored, NotYet, Promote, Reply
from tests.cluster.helpers.feed_at_once import feed_at_once, read_at_once
from tests.cluster.helpers.small_cluster import Outcome, SmallCluster, SmallNode

STEP_S = 0.02


def frames_behind(driver: Driver, index: int, most: int) -> list[Frame] | None:
    """Return up to `most` executed entries behind `index`; None: the journal does not reach back so far."""
    feed = feed_at_once(driver)
    found: list[Frame] = []
    if feed.refusal(index + 1, None) is not None:
        return None
    while len(found) < most:
        piece = read_at_once(feed, index + 1)
        if piece is None:
            return found or None
        if piece.next == index + 1:
            break
        found += piece.frames
        index = piece.next - 1
    return found[:most]


class Regions:
    """Both clusters, each with a time of its own. `at_once`: how many frames the puller fetches."""

    def __init__(self, seed: int = 1, nodes: int = 3, at_once: int = 20) -> None:
        self.origin = SmallCluster(seed=seed)
        self.replica = SmallCluster(nodes, seed=seed + 1000, replica=True)
        self.at_once = at_once
        self.linked = True
        self.snapshots = 0
        self.hashes: dict[int, bytes] = {}      # of the origin, by index
        self.mirrored: dict[int, bytes] = {}    # of the copies
        self.compared: set[int] = set()
        self.look()
        self._open: list[bool] = []             # offers without an outcome
        self._source = "n1"

    def run(self, seconds: float) -> None:
        """Let time pass in both, and pull."""
        end = self.origin.now + seconds
        while self.origin.now < end:
            self.step()

    def step(self) -> None:
        """Let a moment pass in both, and pull once."""
        for cluster in (self.origin, self.replica):
            cluster.run(STEP_S)
        self.look()
        if self.linked:
            self.pull()

    def run_until_level(self, seconds: float = 60.0) -> None:
        """Pull until the mirror has all that the origin has executed."""
        end = self.origin.now + seconds
        while not self.level():
            assert self.origin.now < end, "the copy does not follow"
            self.step()

    def level(self) -> bool:
        """Return whether all running nodes of the replica have what the origin's most advanced node has executed."""
        newest = max(node.machine.index for node in self.origin if node.driver is not None)
        running = [node for node in self.replica if node.driver is not None]
        return bool(running) and all(node.machine.mirrored == newest for node in running)

    def look(self) -> None:
        """Note the origin's hashes after each entry, and compare the mirrors' hashes with them."""
        for node in self.origin:
            if node.driver is not None:
                self._watch(node.up.chain, self.hashes)
        for node in self.replica:
            if node.driver is not None:
                self._watch(node.up.store.mirror_chain, self.mirrored)
        for index in self.mirrored.keys() & self.hashes.keys():
            assert self.mirrored[index] == self.hashes[index], f"the copy differs at entry {index}"
        self.compared |= self.mirrored.keys() & self.hashes.keys()

    def _watch(self, chain: Chain, hashes: dict[int, bytes]) -> None:
        """Note the values of the chain, from now on after each entry; all nodes must have the same."""
        self._note(chain, hashes)
        if not hasattr(chain, "watched"):
            extend = chain.extend

            def noted(index: int, entry: bytes, replies: list[object]) -> None:
                extend(index, entry, replies)
                self._note(chain, hashes)
            chain.extend = noted
            chain.watched = True

    @staticmethod
    def _note(chain: Chain, hashes: dict[int, bytes]) -> None:
        for index, value in ((chain.index, chain.value), chain.checkpoint()):
            assert not index or hashes.setdefault(index, value) == value, f"two nodes differ at entry {index}"

    def head(self) -> SmallNode | None:
        """Return the replica's leader, if it may pull."""
        for node in self.replica:
            if node.driver is not None and node.up.mirroring.active:
                return node
        return None

    def pull(self) -> None:
        """Fetch some frames from a node of the origin and offer them; fetch its snapshot if it has these no more."""
        head, source = self.head(), self.source()
        if head is None or source is None or self._open:
            return
        position = head.up.mirroring.position()
        frames = frames_behind(source, position.index, self.at_once)
        if frames is None:
            self.install(head, source)
        elif frames:
            self._open.append(True)
            head.up.mirroring.offer(frames, lambda reached: self._open.clear())
        if self._open and head.driver is None:
            self._open.clear()

    def source(self) -> Driver | None:
        """Return a running node of the origin, the same as before if it runs."""
        running = [node for node in self.origin if node.driver is not None]
        for node in running:
            if node.name == self._source:
                return node.up
        if running:
            self._source = running[0].name
            return running[0].up
        return None

    def install(self, head: SmallNode, source: Driver) -> None:
        """Send the state of the source, in chunks."""
        self.snapshots += 1
        data, index = b"".join(source.machine.export(users=True)), source.machine.index
        self._open.append(True)

        def send(offset: int, reply: Reply | None) -> None:
            if not isinstance(reply, Mirrored) or offset == len(data):
                assert not isinstance(reply, InvalidSnapshot | NotYet)
                self._open.clear()
                return
            chunk = data[offset:offset + 3000]
            mirroring.propose(MirrorChunk(index, offset, chunk), lambda reply: send(offset + len(chunk), reply))

        mirroring = head.up.mirroring
        mirroring.propose(
            MirrorChunk(index, 0, b"", len(data), source.chain.value), lambda reply: send(0, reply))

    def forget_offers(self) -> None:
        """Begin again: the puller's process has ended."""
        self._open.clear()

    def promote(self, grace_ms: int = 0) -> Outcome:
        """Promote the replica at its leader, and wait for the outcome."""
        outcome = Outcome()
        leaders = [node for node in self.replica if node.driver is not None and node.up.leadership.leading()]
        leaders[0].up.leadership.propose_alone(Promote(grace_ms), outcome)
        self.replica.run_until(lambda: outcome.state != "open")
        return outcome

