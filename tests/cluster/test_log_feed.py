"""The log of a node as its copies read it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sockpqd.cluster import ClusterNode, Member, NodeSettings, limits
from sockpqd.cluster.api import Checkpoint, FeedRefusal, FeedSlice, Frame
from sockpqd.cluster.feed.feed_thread import FeedThread
from sockpqd.cluster.feed.log_feed import LogFeed
from sockpqd.cluster.journal.archived_segments import ArchivedSegments
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.journal.log_index import Entry, Stretch
from sockpqd.cluster.storage.state_hash import Chain
from sockpqd.core import Machine, decode_entry, digests_of
from tests.cluster.helpers.feed_at_once import feed_at_once, read_at_once
from tests.cluster.helpers.small_cluster import SmallCluster, SmallNode
from tests.cluster.test_directories import Ignorant
from tests.waiting import PATIENCE_S, until

SEGMENT_BYTES = 1 << 20         # of a small cluster


def feed_of(node: SmallNode) -> LogFeed:
    driver = node.up
    return LogFeed(driver.journal, driver.replica, driver.chain, FeedThread())


def frames_of(node: SmallNode) -> Iterator[Frame]:
    """All frames."""
    feed, index = feed_at_once(node.up), 1
    while index <= feed.executed:
        found = read_at_once(feed, index)
        assert found is not None
        yield from found.frames
        index = found.next


def copied(frames: Iterator[Frame], machine: Machine, chain: Chain) -> None:
    """Execute the frames as a copy does."""
    for frame in frames:
        entry = decode_entry(frame.data)
        assert (entry.now_ms, entry.seed) == (frame.now_ms, frame.seed)
        applied = machine.apply(frame.index, frame.now_ms, frame.seed, entry.operations)
        chain.extend(frame.index, frame.data, digests_of(applied.replies))


def snapshot(node: SmallNode, world: SmallCluster) -> None:
    """Let a node write a snapshot and cut its journal."""
    driver = node.up
    before = driver.store.newest_index
    driver.replica.compact()
    world.run_until(lambda: driver.store.newest_index > before)


def fill(world: SmallCluster, count: int, length: int = 10) -> None:
    for _ in range(count):
        world.put_now(bytes(length))
    world.run_until(world.settled)


@pytest.fixture
def world() -> SmallCluster:
    world = SmallCluster(3)
    world.leader()
    return world


def test_a_copy_that_executes_the_feed_has_the_same_state_and_chain(world: SmallCluster) -> None:
    fill(world, 300)
    for node in world:
        machine, chain = Machine(), Chain()
        copied(frames_of(node), machine, chain)
        assert b"".join(machine.snapshot()) == b"".join(node.machine.snapshot())
        assert (chain.index, chain.value) == (node.up.chain.index, node.up.chain.value)


def test_entries_of_the_library_are_left_out(world: SmallCluster) -> None:
    fill(world, 3)
    node = world.followers()[0]
    indexes = [frame.index for frame in frames_of(node)]
    assert indexes == sorted(set(indexes))
    assert 1 not in indexes, "what pysyncobj puts into an empty log"
    assert indexes[-1] == feed_of(node).executed


def test_old_entries_are_read_from_the_disk_a_slice_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FEED_SLICE_BYTES", 20_000)
    world = SmallCluster(1)
    node = world.leader()
    feed, journal = feed_at_once(node.up), node.up.journal
    journal._cache._window_bytes = 1 << 16
    fill(world, 200, 3000)
    assert not journal.is_recent(2)
    index, slices = 1, 0
    while index <= feed.executed:
        found = read_at_once(feed, index)
        assert found is not None
        assert sum(len(frame.data) for frame in found.frames) < 20_000 + 4000
        index, slices = found.next, slices + 1
    assert slices > 10
    machine, chain = Machine(), Chain()
    copied(frames_of(node), machine, chain)
    assert chain.value == node.up.chain.value


def test_the_disk_is_read_in_a_thread_one_slice_at_a_time(
    world: SmallCluster, monkeypatch: pytest.MonkeyPatch,
) -> None:
    fill(world, 20)
    node = world.leader()
    feed, journal = feed_of(node), node.up.journal
    expected = [frame for frame in frames_of(node) if frame.index < feed.executed - 3]
    monkeypatch.setattr(Journal, "is_recent", lambda self, index: index >= feed.executed - 3)
    monkeypatch.setattr(Journal, "recent", lambda self, index, last, bytes_max: [])
    reading: list[str] = []
    read = journal.read_stretch

    def noted(file: int, stretch: object) -> object:
        reading.append(threading.current_thread().name)
        assert len(reading) == 1
        found = read(file, stretch)     # type: ignore[arg-type]
        reading.pop()
        return found

    monkeypatch.setattr(journal, "read_stretch", noted)

    async def read_all() -> list[list[Frame]]:
        slices = await asyncio.gather(*(feed.read(1) for _ in range(4)))
        assert not reading
        return [found.frames for found in slices if found is not None]

    for frames in asyncio.run(read_all()):
        assert frames[:len(expected)] == expected


def test_a_feed_begins_where_the_copy_is_or_says_why_not(
    world: SmallCluster, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sockpqd.cluster.storage.state_hash.CHECKPOINT_ENTRIES", 10)
    fill(world, 50)
    feed, chain = feed_of(world.leader()), world.leader().up.chain
    at, value = chain.checkpoint()
    assert feed.refusal(1, None) is None
    assert feed.refusal(at + 1, Checkpoint(at, value)) is None
    assert feed.refusal(at + 1, Checkpoint(at, bytes(16))) is FeedRefusal.DIFFERENT
    assert feed.refusal(at + 1, Checkpoint(at - 1, value)) is None, "there is no checkpoint, but that of a snapshot"
    assert feed.refusal(feed.executed + 1, None) is None
    assert feed.refusal(feed.executed + 2, None) is FeedRefusal.TOO_NEW
    assert [one.index for one in feed.checkpoints(at - 20, at)] == [at - 10, at]


def test_what_a_snapshot_covers_is_kept_as_configured_and_a_feed_goes_on_after_a_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sockpqd.cluster.storage.state_hash.CHECKPOINT_ENTRIES", 16)
    kept, cut = (SmallCluster(1, feed_keep_bytes=keep) for keep in (64 * SEGMENT_BYTES, 0))
    for world in (kept, cut):
        node = world.leader()
        for _ in range(3):
            fill(world, 150, 10_000)
            snapshot(node, world)
        fill(world, 20)
        world.kill("n1")
        node = world.start("n1")
        world.leader()
        feed = feed_of(node)
        assert node.up.journal.first_index > 1
        if world is cut:
            assert feed.refusal(2, None) is FeedRefusal.TOO_OLD
            assert read_at_once(feed_at_once(node.up), 2) is None
            continue
        machine, chain = Machine(), Chain()
        copied(frames_of(node), machine, chain)
        assert chain.value == node.up.chain.value
        assert node.up.store.newest_index > 64
        at, value = next(chain.between(63, 80))
        assert feed.refusal(at + 1, Checkpoint(at, value)) is None
        assert feed.refusal(at + 1, Checkpoint(at, bytes(16))) is FeedRefusal.DIFFERENT, "as a snapshot kept it"


def restarted_with_old_segments() -> SmallNode:
    """A node that was started again, and has segments that only feeds need."""
    world = SmallCluster(1, feed_keep_bytes=64 * SEGMENT_BYTES)
    node = world.leader()
    for _ in range(4):
        fill(world, 150, 10_000)
        snapshot(node, world)
    world.kill("n1")
    node = world.start("n1")
    world.leader()
    assert node.up.journal.unindexed(2) is not None
    return node


def test_old_segments_are_indexed_in_the_thread_when_a_feed_comes_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    node = restarted_with_old_segments()
    feed, threads = feed_of(node), set()
    read = ArchivedSegments.read

    def noted(archive: ArchivedSegments, *arguments: Any) -> Any:
        threads.add(threading.current_thread().name)
        return read(archive, *arguments)

    monkeypatch.setattr(ArchivedSegments, "read", noted)
    monkeypatch.setattr(limits, "FEED_INDEX_FRAMES", 10)

    async def read_all() -> list[Frame]:
        frames: list[Frame] = []
        index = 1
        while index <= feed.executed:
            found = await feed.read(index)
            assert found is not None
            frames += found.frames
            index = found.next
        return frames

    machine, chain = Machine(), Chain()
    copied(iter(asyncio.run(read_all())), machine, chain)
    assert chain.value == node.up.chain.value
    assert len(threads) == 1
    assert threads.pop().startswith("feed")


def test_a_damaged_old_segment_is_reported_and_not_sent(caplog: pytest.LogCaptureFixture) -> None:
    node = restarted_with_old_segments()
    feed, journal = feed_of(node), node.up.journal
    node.disk.file(journal.segments.path(1))[5000] ^= 4
    assert asyncio.run(feed.read(2)) is None
    assert "entry 2 cannot be read for a copy in another region: journal /journal/journal-00000001" in caplog.text
    assert "Only copies in other regions need what is there" in caplog.text
    assert "must not serve" not in caplog.text
    index = journal.segments.heads[2].state.next
    found = asyncio.run(feed.read(index))
    assert found is not None
    assert found.frames[0].index == index


class Gate:
    """Holds up a method of an object in its thread, until it is opened; notes what happens."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> None:
        self.calls = 0
        self.ended: list[object] = []               # results and errors
        self._method = getattr(owner, name)
        self._entered, self._opened = threading.Event(), threading.Event()
        monkeypatch.setattr(owner, name, self._call)

    def _call(self, *arguments: Any) -> Any:
        self.calls += 1
        self._entered.set()
        assert self._opened.wait(PATIENCE_S)
        try:
            result = self._method(*arguments)
        except BaseException as error:
            self.ended.append(error)
            raise
        self.ended.append(result)
        return result

    async def entered(self) -> None:
        """Wait until the thread is held up."""
        assert await asyncio.to_thread(self._entered.wait, PATIENCE_S)

    def open(self) -> None:
        """Let the thread go on."""
        self._opened.set()


async def cut(task: asyncio.Task[Any]) -> None:
    """End a feed as its connection does."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_segments_of_a_feed_that_ended_are_indexed_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    node = restarted_with_old_segments()
    feed, files = feed_of(node), node.disk.open_files
    gate = Gate(monkeypatch, node.up.journal._archive, "read")

    async def cut_and_read_again() -> None:
        first = asyncio.create_task(feed.read(2))
        await gate.entered()
        await cut(first)
        assert node.disk.open_files > files, "the thread uses them"
        others = [asyncio.create_task(feed.read(index)) for index in (2, 3)]
        await asyncio.sleep(0)
        await cut(others.pop())
        gate.open()
        found = await others[0]
        assert found is not None
        assert found.frames

    asyncio.run(cut_and_read_again())
    assert gate.calls == 1
    assert not isinstance(gate.ended[0], BaseException)
    assert node.disk.open_files == files


def test_a_segment_stays_open_until_its_slice_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    node = restarted_with_old_segments()
    feed, files = feed_of(node), node.disk.open_files
    gate = Gate(monkeypatch, node.up.journal, "read_stretch")

    async def cut_and_read_again() -> None:
        first = asyncio.create_task(feed.read(2))
        await gate.entered()
        await cut(first)
        gate.open()
        assert await feed.read(2) is not None

    asyncio.run(cut_and_read_again())
    assert not any(isinstance(result, BaseException) for result in gate.ended)
    assert node.disk.open_files == files


def test_a_loop_that_ends_waits_for_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    node = restarted_with_old_segments()
    feed, files = feed_of(node), node.disk.open_files
    gate = Gate(monkeypatch, node.up.journal, "read_stretch")
    ending = threading.Timer(0.1, gate.open)

    async def leave() -> None:
        task = asyncio.create_task(feed.read(2))
        await gate.entered()
        ending.start()
        await cut(task)

    asyncio.run(leave())
    assert [isinstance(result, BaseException) for result in gate.ended] == [False]
    assert node.disk.open_files == files
    ending.join()


def test_a_node_that_stops_indexes_no_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(limits, "FEED_INDEX_FRAMES", 1)
    node = restarted_with_old_segments()
    feed, files = feed_of(node), node.disk.open_files
    gate = Gate(monkeypatch, node.up.journal._archive, "read")

    async def stop() -> None:
        reading = asyncio.create_task(feed.read(2))
        await gate.entered()
        stopping = asyncio.create_task(feed.stop())
        await asyncio.sleep(0)
        assert not stopping.done()
        gate.open()
        await stopping
        for found in (await reading, await feed.read(2)):
            assert found == FeedSlice([], 2), "nothing yet, but not gone"

    asyncio.run(stop())
    assert [type(result).__name__ for result in gate.ended] == ["FeedStopped"]
    assert node.disk.open_files == files
    assert "cannot be read" not in caplog.text


def test_a_node_closes_its_journal_when_its_feeds_have_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    async def stop() -> None:
        member = Member("n1", "127.0.0.1:0", "127.0.0.1:0")
        node = ClusterNode(NodeSettings(
            name="n1", data_dir=tmp_path, peer_listen="127.0.0.1:0", members=(member,), version="test",
        ), Ignorant())
        await node.start()
        async with asyncio.timeout(PATIENCE_S):
            while not node.serving:
                await asyncio.sleep(0.01)
        journal, work = node._driver.journal, node._log_feed._work
        assert isinstance(work, FeedThread)
        stopping = work._stopping
        monkeypatch.setattr(Journal, "is_recent", lambda self, index: False)
        monkeypatch.setattr(Journal, "recent", lambda self, index, last, bytes_max: [])
        read, close = journal.read_stretch, journal.close
        entered = threading.Event()

        def read_late(file: int, stretch: Stretch) -> list[Entry]:
            entered.set()
            until(lambda: stopping.is_set() or events)
            found = read(file, stretch)
            events.append("read")
            return found

        def note_close() -> None:
            events.append("closed")
            close()

        monkeypatch.setattr(journal, "read_stretch", read_late)
        monkeypatch.setattr(journal, "close", note_close)
        reading = asyncio.create_task(node.feed.read(1))
        assert await asyncio.to_thread(entered.wait, PATIENCE_S)
        await node.stop()
        assert await reading is not None

    asyncio.run(stop())
    assert events == ["read", "closed"]


def test_a_node_that_is_short_of_room_keeps_nothing_for_feeds() -> None:
    world = SmallCluster(1, feed_keep_bytes=64 * SEGMENT_BYTES)
    node = world.leader()
    for _ in range(3):
        fill(world, 150, 10_000)
        snapshot(node, world)
    journal, capacity = node.up.journal, node.up.capacity
    world.run(3)
    assert journal.oldest_index == 1
    capacity.free_bytes_min = capacity.free_bytes       # nearly at the watermark
    world.run(3)
    assert journal.oldest_index == node.up.store.needed_from > 1
    assert journal.segments.oldest > 1


def test_entries_that_cannot_be_read_are_reported_and_not_sent(
    world: SmallCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:
    fill(world, 20)
    node = world.leader()
    feed, journal = feed_of(node), node.up.journal
    monkeypatch.setattr(Journal, "is_recent", lambda self, index: False)
    monkeypatch.setattr(Journal, "recent", lambda self, index, last, bytes_max: [])

    def broken(file: int, stretch: object) -> None:
        raise OSError("the disk is broken")

    monkeypatch.setattr(journal, "read_stretch", broken)
    assert asyncio.run(feed.read(1)) is None
    assert "entry 1 cannot be read for a copy in another region: the disk is broken" in caplog.text
