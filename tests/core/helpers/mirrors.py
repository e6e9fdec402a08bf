"""A replica without a cluster around it: a machine that takes in the log of another one in any way that is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from sockpqd.core import (
    FromOrigin,
    Lead,
    Machine,
    MirrorChunk,
    Mirrored,
    MirrorEntries,
    MirrorFrame,
    Operation,
    Promote,
    RaiseLevel,
    Reply,
    SwitchService,
    Tick,
    encode_entry,
)
from tests.core.helpers.logs import MEMBERS, LogEntry

REPLICA = b"id of the copy.."


def frames_of(log: list[LogEntry]) -> list[MirrorFrame]:
    """Return the entries of the log as the origin's journal has them."""
    return [
        MirrorFrame(index, encode_entry(entry.now_ms, entry.seed, entry.operations))
        for index, entry in enumerate(log, start=1)
    ]


def begin_replica(machine: Machine, now_ms: int = 0) -> None:
    """Begin a cluster that may log what a replica does."""
    machine.apply(1, now_ms, 0, [Lead("n1", 1, MEMBERS, REPLICA, 0)])
    machine.apply(2, now_ms, 0, [RaiseLevel(2, MEMBERS)])


class Replica:
    """A machine that follows an origin; each step is one entry of its own log."""

    def __init__(self, machine: Machine, now_ms: int = 0) -> None:
        self.machine = machine
        self.executed: list[FromOrigin] = []
        begin_replica(machine, now_ms)

    def log(self, *operations: Operation, now_ms: int = 0) -> list[Reply]:
        """Apply an entry of the replica's own log."""
        applied = self.machine.apply(self.machine.index + 1, now_ms, 0, operations)
        self.executed += applied.mirrored or []
        return applied.replies

    @property
    def reached(self) -> int:
        """Return the index of the mirror."""
        return self.machine.mirrored or 0

    def take(self, *frames: MirrorFrame, after: int | None = None) -> int:
        """Take in frames that follow the mirror's index, or `after`; returns the mirror's index then."""
        (reply,) = self.log(MirrorEntries(self.reached if after is None else after, frames))
        assert isinstance(reply, Mirrored)
        return reply.index

    def take_parts(self, frame: MirrorFrame, size: int) -> None:
        """Take in one frame in parts of this size."""
        after = self.reached
        starts = range(0, len(frame.data), size)
        for start in starts:
            part = MirrorFrame(frame.index, frame.data[start:start + size])
            self.log(MirrorEntries(after, (part,), start, last=start == starts[-1]))

    def install(self, origin: Machine, size: int, chain: bytes = b"hash") -> Iterator[None]:
        """Take in a snapshot of the origin, in chunks of this size; yields between them."""
        data, index = b"".join(origin.export(users=True)), origin.index
        self.log(MirrorChunk(index, 0, b"", len(data), chain))
        for start in range(0, len(data), size):
            yield
            self.log(MirrorChunk(index, start, data[start:start + size]))


def something_of_its_own(random: Random) -> Operation:
    """Return an operation that a replica's leader may log for its own cluster."""
    return random.choice([
        Tick(), Lead("n2", random.randrange(1, 9), MEMBERS, REPLICA, 1000, silence_ms=500), SwitchService(True, 1000),
    ])


def promoted(machine: Machine, grace_ms: int = 0, now_ms: int = 0) -> Machine:
    """Promote the machine and return it."""
    (reply,) = machine.apply(machine.index + 1, now_ms, 0, [Promote(grace_ms)]).replies
    assert isinstance(reply, Mirrored)
    return machine


def mirrored_state(machine: Machine) -> bytes:
    """Return the snapshot of the state that is read: of the mirror, or of what is no replica."""
    return b"".join(machine.export(users=True))


def assert_mirrors(machine: Machine, origin: Machine) -> None:
    """Assert that the mirror is the origin."""
    assert machine.mirrored == origin.index
    assert mirrored_state(machine) == mirrored_state(origin)
    assert machine.event_seq == origin.event_seq
    assert machine.total(None) == origin.total(None)
