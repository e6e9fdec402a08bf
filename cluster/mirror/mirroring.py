"""Logs what the origin of a replica has executed: its entries in portions, and its snapshots (spec/region 1).

Only the leader does. It decodes each frame before it proposes it, because a member that cannot execute a committed
entry must stop: an entry unknown to this cluster is not taken until its nodes have been upgraded.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec

from sockpqd.cluster import limits
from sockpqd.cluster.api import Frame, MirrorPosition, Pending
from sockpqd.cluster.leader.leadership import Leadership
from sockpqd.cluster.storage.state_hash import Chain
from sockpqd.core import (
    REPLICAS,
    Entry,
    InvalidSnapshot,
    Machine,
    MirrorChunk,
    Mirrored,
    MirrorEntries,
    MirrorFrame,
    NotYet,
    RaiseLevel,
    ReplicaRefused,
    Reply,
    cost,
    decode_entry,
)

log = logging.getLogger("sockpqd.cluster")

MirrorOperation = MirrorEntries | MirrorChunk

NEWER = (
    "the origin has entries of a newer version of sockpqd: the copy stands still until all nodes of this cluster were "
    "upgraded"
)
LEVEL = (
    "the origin has feature level {wanted}, this cluster has level {has}: the copy stands still until all its nodes "
    "know that level; upgrade them"
)
NOT_EMPTY = (
    "this cluster has jobs, settings or users of its own, or was fenced, so it cannot be a replica: start all its "
    "nodes with empty data directories, or remove replica.of from their configuration"
)
UNREADABLE = "the snapshot of the origin cannot be read: it is damaged, or of a newer version of sockpqd"
REPLACED = "another snapshot began to arrive before all of this one was taken"
PROMOTED = "this cluster was promoted, so it is a replica no longer"
UNEXPECTED = "the entry was answered with {}"


class _Unknown(Exception):
    """This cluster must not log the frame; the message says what a person has to do."""


class _Taken(Pending):
    """The Pending of one operation on the mirror: passes on the reply, or None if there may never be one."""

    def __init__(self, done: Callable[[Reply | None], None]) -> None:
        self._done = done

    def applied(self, reply: Reply) -> None:
        self._done(reply)

    def refused(self) -> None:
        self._done(None)

    def unknown(self) -> None:
        self._done(None)


class _Offer:
    """The outcome of several operations: `done` is called once, when all have been executed, or with the first that
    was not.
    """

    def __init__(self, operations: int, complete: bool, done: Callable[[bool], None]) -> None:
        """`complete`: False if there is more that was not proposed."""
        self._open = operations
        self._complete = complete
        self._done: Callable[[bool], None] | None = done

    def outcome(self, reached: bool) -> None:
        """Record the outcome of one of the operations."""
        self._open -= 1
        if self._done is not None and (not reached or not self._open):
            done, self._done = self._done, None
            done(reached and self._complete)


class Mirroring:
    """The leader's part in following an origin. `halted`: why it takes nothing, if a person has to do something."""

    def __init__(self, machine: Machine, chain: Chain, leadership: Leadership) -> None:
        """`chain`: the hashes of the log that the mirror has executed."""
        self.halted: str | None = None
        self._halted_level = 0          # of this cluster, when it halted
        self._machine = machine
        self._chain = chain
        self._leadership = leadership
        # The last frame that was proposed; None: the mirror's index, after a failure. Frames must follow it without a
        # gap. They do, because an offer that failed makes the puller begin again behind the mirror's index.
        self._tail: int | None = None

    @property
    def active(self) -> bool:
        """True if this node leads a replica that can take frames now, and was not stopped (CLUSTER OFFLINE)."""
        machine = self._machine
        if self.halted is not None and machine.level > self._halted_level:
            self.halted = None
        return (
            self.halted is None and machine.online and machine.level >= REPLICAS and self._leadership.heads_replica()
        )

    @property
    def origin(self) -> bytes | None:
        """Return the id of the cluster that the mirror is a copy of; None before anything has come."""
        return self._machine.origin_id

    def position(self) -> MirrorPosition:
        """Return the position behind which the next frames must begin."""
        return MirrorPosition(self._reached, *self._chain.checkpoint())

    def offer(self, frames: Sequence[Frame], done: Callable[[bool], None]) -> None:
        """Propose consecutive frames; `done` is called once, as api.Mirror.offer returns. Raises ValueError."""
        if not self.active:
            done(False)
            return
        after = self._reached if self._tail is None else self._tail
        taken: list[tuple[MirrorOperation, int]] = []
        complete = True
        try:
            for one in self._operations(after, frames):
                taken.append(one)       # one by one: what comes before an unknown frame is taken
        except _Unknown as error:
            complete = False
            self._halt(str(error))
        if not taken:
            done(complete and after <= self._reached)       # otherwise the outcome of these frames is not known yet
            return
        self._tail = taken[-1][1]
        offer = _Offer(len(taken), complete, done)
        for operation, index in taken:
            self.propose(operation, partial(self._settle, offer, index))

    def propose(self, operation: MirrorOperation, done: Callable[[Reply | None], None]) -> None:
        """Propose an operation on the mirror as an entry of its own; None: it may not have been executed."""
        self._leadership.propose_alone(operation, _Taken(done))

    def objection(self, reply: Reply, index: int) -> str | None:
        """Return None if this reply says that the mirror has reached `index`, or else why it has not, as a sentence.

        Halts if a person must act.
        """
        match reply:
            case Mirrored():
                return None if reply.index >= index else REPLACED
            case InvalidSnapshot():
                return UNREADABLE
            case NotYet():
                return self._halt(NEWER)
            case ReplicaRefused(reason="not empty"):
                return self._halt(NOT_EMPTY)
            case ReplicaRefused():
                return PROMOTED
        return UNEXPECTED.format(type(reply).__name__)

    def _settle(self, offer: _Offer, index: int, reply: Reply | None) -> None:
        reached = reply is not None and self.objection(reply, index) is None
        if not reached:
            self._tail = None
        offer.outcome(reached)

    @property
    def _reached(self) -> int:
        return self._machine.mirrored or 0

    def _halt(self, why: str) -> str:
        """Take nothing more; returns the reason."""
        if why != self.halted:
            log.error("%s", why)
        self.halted, self._halted_level = why, self._machine.level
        return why

    def _operations(self, after: int, frames: Sequence[Frame]) -> Iterator[tuple[MirrorOperation, int]]:
        """Yield operations with these frames, each with the index that the mirror then has.

        Raises _Unknown after the last frame that may be logged, and ValueError.
        """
        portion: list[MirrorFrame] = []
        size = work = 0
        begun = last = after                    # the index before the portion, and of the last frame
        for frame in frames:
            if frame.index <= last:
                continue
            try:
                entry = self._known(frame)
            except _Unknown:
                if portion:
                    yield MirrorEntries(begun, tuple(portion)), last
                raise
            its_work = sum(cost(operation)[1] for operation in entry.operations)
            large = len(frame.data) > limits.MIRROR_PORTION_BYTES
            if portion and (
                large or size + len(frame.data) > limits.MIRROR_PORTION_BYTES
                or work + its_work > limits.ENTRY_WORK_MAX or len(portion) >= limits.ENTRY_OPERATIONS_MAX
            ):
                yield MirrorEntries(begun, tuple(portion)), last
                portion, size, work, begun = [], 0, 0, last
            if large:
                yield from _parts(begun, frame)
                begun = frame.index
            else:
                portion.append(MirrorFrame(frame.index, frame.data))
                size += len(frame.data)
                work += its_work
            last = frame.index
        if portion:
            yield MirrorEntries(begun, tuple(portion)), last

    def _known(self, frame: Frame) -> Entry:
        """Return the entry of a frame that this cluster may log. Raises _Unknown, and ValueError for anything else."""
        try:
            entry = decode_entry(frame.data)
        except (ValueError, msgspec.MsgspecError) as error:
            raise _Unknown(f"{NEWER} (entry {frame.index}: {error})") from error
        if (entry.now_ms, entry.seed) != (frame.now_ms, frame.seed):
            raise ValueError(f"frame {frame.index} has another time or seed than its entry")
        level = max([one.level for one in entry.operations if isinstance(one, RaiseLevel)], default=0)
        if level > self._machine.level:
            raise _Unknown(LEVEL.format(wanted=level, has=self._machine.level))
        return entry


def _parts(after: int, frame: Frame) -> Iterator[tuple[MirrorOperation, int]]:
    """Yield the operations with a frame that is too large for one; the mirror reaches it with the last."""
    step = limits.MIRROR_PORTION_BYTES
    starts = range(0, len(frame.data), step)
    for start in starts:
        last = start == starts[-1]
        part = MirrorFrame(frame.index, frame.data[start:start + step])
        yield MirrorEntries(after, (part,), start, last), frame.index if last else after
