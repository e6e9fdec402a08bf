"""The law of the mirror: however a log reaches a replica, its mirror is the origin at each index.

The replica's leader may change, offer what has been offered, leave parts and snapshots unfinished, and its nodes may
restart from a snapshot at any moment, with pages or without.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from sockpqd.core import (
    FromOrigin,
    Get,
    Lead,
    Machine,
    MirrorChunk,
    MirrorEntries,
    MirrorFrame,
    Promote,
    Put,
    RaiseLevel,
    Reply,
    digests_of,
    expanded,
    references,
)
from tests.core.helpers.logs import KNOWN_LEVEL, MEMBERS, LogEntry, lead, random_log, restored, snapshot_of
from tests.core.helpers.mirrors import (
    REPLICA,
    Replica,
    assert_mirrors,
    frames_of,
    mirrored_state,
    something_of_its_own,
)
from tests.core.helpers.paging import MemoryStore, page_out, paged_machine, small_collections
from tests.core.helpers.session_logs import random_session_log
from tests.core.helpers.time_logs import random_time_log

Made = Callable[[int, int], list[LogEntry]]
LOGS = [random_log, random_time_log, random_session_log]


def play_both(log: list[LogEntry], seed: int, machine: Machine, between: Callable[[Replica, Random], None]) -> None:
    """Let the machine mirror the log in random steps; `between` may do anything between them. Compare at each."""
    random, frames = Random(seed), frames_of(log)
    origin, replica = Machine(), Replica(machine)
    replies: list[object] = []
    while origin.index < len(log):
        begin = origin.index
        end = min(len(log), begin + random.choice([1, 1, 2, 5, 20]))
        for entry in log[begin:end]:
            applied = origin.apply(origin.index + 1, *entry)
            replies.append(digests(applied.replies, applied.mirrored))
        taken = frames[max(0, begin - random.choice([0, 0, 3])):end]
        way = random.random()
        if way < 0.6:
            assert replica.take(*taken, after=taken[0].index - 1) == end
        elif way < 0.8:
            for frame in frames[begin:end]:
                replica.take_parts(frame, random.choice([1 + len(frame.data) // 3, 1000]))
        elif way < 0.9 and begin and origin.mirrored is None:       # a replica feeds nobody
            for _ in replica.install(origin, random.choice([300, 5000])):
                between(replica, random)
        else:
            assert replica.take(*frames[begin + 1:end], after=frames[begin].index) == begin     # one is missing
            replica.log(MirrorEntries(begin, (MirrorFrame(begin + 1, b"begun"),), last=False))
            replica.log(MirrorChunk(end, 0, b"", 1 << 40), MirrorChunk(end, 0, snapshot_of(origin)[:100]))
            between(replica, random)
            replica.take(*taken, after=taken[0].index - 1)
        between(replica, random)
        assert_mirrors(replica.machine, origin)
    executed = {one.index: digests(one.replies, one.mirrored) for one in replica.executed if one.data}
    assert executed == {index: replies[index - 1] for index in executed}
    assert all(frames[one.index - 1].data == one.data for one in replica.executed if one.data)


def digests(replies: list[Reply], mirrored: list[FromOrigin] | None) -> list[object]:
    """Return the replies of an entry, and those on the mirror, without data."""
    return [digests_of(replies), *[digests(one.replies, one.mirrored) for one in mirrored or ()]]


def lives_on(replica: Replica, random: Random) -> None:
    """Let the replica's own cluster do something, or let it restart from its snapshot."""
    way = random.random()
    if way < 0.3:
        replica.log(something_of_its_own(random), now_ms=random.choice([0, 1 << 50]))
    elif way < 0.5:
        before = snapshot_of(replica.machine)
        replica.machine = restored(before)
        assert snapshot_of(replica.machine) == before


@pytest.mark.parametrize("made", LOGS)
@pytest.mark.parametrize("seed", range(3))
def test_the_mirror_is_the_origin_at_each_index(made: Made, seed: int) -> None:
    play_both(made(seed, 400), seed, Machine(), lives_on)


@pytest.mark.parametrize("made", LOGS)
@pytest.mark.parametrize("seed", range(2))
def test_pages_of_a_mirror_show_nowhere(made: Made, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    small_collections(monkeypatch)
    store, paged = MemoryStore(), 0

    def restarts(replica: Replica, random: Random) -> None:
        nonlocal paged
        page_out(replica.machine, random)
        if random.random() < 0.7:
            return
        before, named = snapshot_of(replica.machine), list(replica.machine.snapshot(by_reference=True))
        paged += len(list(references(named)))
        store.restart()
        whole = expanded(named, lambda reference: store.left[int.from_bytes(reference, "big")])
        assert snapshot_of(restored(b"".join(whole))) == before
        replica.machine = paged_machine(store)
        replica.machine.restore(named)
        assert snapshot_of(replica.machine) == before

    play_both(made(seed, 300), seed, paged_machine(store), restarts)
    assert paged or made is random_session_log


def test_a_snapshot_of_a_replica_needs_its_level() -> None:
    replica = Replica(Machine())
    replica.take(*frames_of(random_log(0, 5)))
    assert mirrored_state(restored(snapshot_of(replica.machine))) == mirrored_state(replica.machine)
    with pytest.raises(Exception, match="feature level 2, known are those up to 1"):
        Machine(1).restore([snapshot_of(replica.machine)])
    assert replica.machine.level <= KNOWN_LEVEL


def test_a_part_that_does_not_continue_what_has_come_is_dropped() -> None:
    first, second = frames_of(random_log(0, 2))
    replica = Replica(Machine())
    for offset, last in ((9, False), (9, True), (0, False), (8, True), (9, True)):
        part = MirrorFrame(first.index, first.data[offset:][:None if last else 9])
        replica.log(MirrorEntries(0, (part,), offset, last))
        assert replica.reached == 0
    replica.log(MirrorEntries(0, (MirrorFrame(first.index, first.data[:9]),), last=False))
    replica.log(MirrorEntries(0, (MirrorFrame(second.index, second.data[9:]),), 9))         # of another frame
    assert replica.reached == 0
    replica.take_parts(first, 9)
    assert replica.take(second) == second.index


@pytest.mark.parametrize("seed", range(2))
def test_the_copy_of_a_promoted_replica_equals_it_from_its_first_entry(seed: int) -> None:
    """Its log has the entries of its own origin, and its promotion."""
    frames = frames_of(random_log(seed, 120))
    log = [
        LogEntry(0, 0, [Lead("n1", 1, MEMBERS, REPLICA, 0)]), LogEntry(0, 0, [RaiseLevel(2, MEMBERS)]),
        *[LogEntry(7 * frame.index, frame.index, [MirrorEntries(frame.index - 1, (frame,))]) for frame in frames[:-1]],
        LogEntry(900, 1, [MirrorEntries(119, (MirrorFrame(120, frames[-1].data[:9]),), last=False)]),
        LogEntry(901, 1, [MirrorEntries(119, (MirrorFrame(120, frames[-1].data[9:]),), 9)]),
        LogEntry(10**13, 2, [Promote(1000)]),
        *[LogEntry(10**13 + number, number, [Put("q", 0, b"%d" % number), Get(("q",))]) for number in range(20)],
    ]
    play_both(log, seed, Machine(), lives_on)


def test_events_of_a_copy_are_reported_across_the_promotion_of_its_origin() -> None:
    frames = frames_of([LogEntry(0, 0, [lead()]), LogEntry(0, 0, [Put("q", 0, b"1")])])
    log = [
        LogEntry(0, 0, [Lead("n1", 1, MEMBERS, REPLICA, 0)]), LogEntry(0, 0, [RaiseLevel(2, MEMBERS)]),
        LogEntry(0, 0, [MirrorEntries(0, tuple(frames))]), LogEntry(0, 0, [Promote(0)]),
        LogEntry(0, 0, [Put("q", 0, b"2")]),
    ]
    origin, replica = Machine(), Replica(Machine())
    replica.machine.record({"PUT"})
    origin.record({"PUT"})
    for entry, frame in zip(log, frames_of(log), strict=True):
        right = origin.apply(origin.index + 1, *entry).events
        after = replica.reached
        found = replica.machine.apply(replica.machine.index + 1, 0, 0, [MirrorEntries(after, (frame,))]).events
        assert found == right
    assert origin.event_seq == replica.machine.event_seq > 1 << 32
