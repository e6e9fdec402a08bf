"""Group commit: the operations of one turn become one log entry, and each of them gets exactly one outcome.

The library may call back late or never (hazards H11a, H11b), so each entry has its own deadline, after which its
outcome is unknown. Operations not yet handed to the library are certainly not executed.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from operator import itemgetter
from random import Random
from typing import NamedTuple

from sockpqd.cluster import limits
from sockpqd.cluster.api import ClientPending, Pending
from sockpqd.cluster.leader.client_queues import ClientQueues
from sockpqd.cluster.leader.fragments import Queued
from sockpqd.cluster.leader.rests import Rests
from sockpqd.cluster.metrics.histogram import Histogram
from sockpqd.cluster.raft.pysyncobj_adapter import NOT_EXECUTED, SUCCESS, Callback
from sockpqd.core import (
    COSTS,
    FEATURE_LEVEL,
    OPERATION_BYTES_MAX,
    Applied,
    Effects,
    Fragment,
    NotYet,
    Operation,
    Put,
    continues,
    cost,
    encode_entry,
)

log = logging.getLogger("sockpqd.cluster")


NOT_YET = NotYet()
_random = Random()              # seeded by the operating system
_BYTES, _WORK, _HELD = itemgetter(2), itemgetter(3), itemgetter(4)     # of what is queued
_CLIENT = 7
_CLIENT_OF = itemgetter(_CLIENT)


def _held_bytes(size: int, work: int) -> int:
    """An estimate of the memory an operation of this cost takes while queued; names take more than when encoded."""
    return size + min(limits.WORK_HELD_BYTES * work, limits.HELD_PER_BYTE_MAX * size)


class AnsweredEntry(NamedTuple):
    """An applied entry at the moment its replies are delivered."""

    operations: int             # how many of its operations were executed
    queued: int                 # operations that wait for the next entry
    number: int                 # of the entries of this proposer, from 1 on
    took_s: float               # since it was handed to Raft


class _Batch:
    """The operations of an entry in flight."""

    __slots__ = ("begun", "deadline", "held", "large", "launched", "number", "open", "operations",
                 "overtaken", "pendings", "taken", "whole")

    def __init__(
        self, operations: list[Operation], pendings: list[Pending], taken: list[Queued], held: int, begun: float,
        launched: float,
    ) -> None:
        self.operations = operations
        self.pendings = pendings
        self.taken = taken          # the same as they were queued
        self.held = held            # bytes of memory
        self.begun = begun          # when its first operation was proposed, monotonic seconds
        self.launched = launched    # when it was handed to Raft
        self.deadline = launched + limits.OUTCOME_S
        self.large = False          # it has an operation that others may have to rest from
        self.open = True            # its operations still wait for their outcomes
        self.number = 0
        self.whole = False          # another may follow while it is in flight: it hardly leaves any operation out,
        self.overtaken = False      # and another does follow


class Proposer:
    """Collects operations, proposes entries and delivers outcomes.

    `submit(entry, callback)` hands an entry to Raft; `stamp()` gives its replicated time in milliseconds; `effects`
    receives the effects of each applied entry after its replies were delivered; `monotonic()` gives seconds.
    `known_work(operation)` gives the work beyond its declared cost (Machine.known_work). `executed_s()`: how long this
    node took to execute the last entry.
    `latencies`: the times from the proposal of an entry's first operation until it was applied.
    """

    def __init__(
        self,
        submit: Callable[[bytes, Callback], None],
        stamp: Callable[[], int],
        effects: Callable[[Effects], None],
        monotonic: Callable[[], float],
        known_work: Callable[[Operation], int] = lambda operation: 0,
        executed_s: Callable[[], float] = lambda: 0.0,
        level: Callable[[], int] = lambda: FEATURE_LEVEL,
    ) -> None:
        """`level()`: the feature level of the cluster, whose programs read the entries; asked for each of them, so that
        what `refuses` lets through is written whole.
        """
        self._submit = submit
        self.rests = Rests(monotonic, executed_s)
        self._known_work = known_work
        self._stamp = stamp
        self._effects = effects
        self._monotonic = monotonic
        self._queue: deque[Queued] = deque()            # operations for the next entry, as many as it holds
        self._clients = ClientQueues(monotonic, level)           # the rest, waiting for turns
        self._bytes = self._work = 0                    # cost of the queue
        self._flying: deque[_Batch] = deque()
        self.entries = 0                                # handed to Raft so far
        self.overlaps = False                           # a second entry may be in flight if both are large
        self._awaited_at = float("-inf")                # when an entry was proposed that a client waits for
        self._since = 0.0                               # the earliest time the next entry could have begun
        self.answered: AnsweredEntry | None = None      # the last entry whose replies were delivered
        self.accepting = False
        self.paused = False                             # flush() proposes nothing
        self.refuses: Callable[[Operation], bool] | None = None     # what is above the cluster's feature level
        self._level = level
        self.backlog_bytes = 0                          # memory of all operations without an outcome
        self.latencies = Histogram()
        self.failure: BaseException | None = None       # raised by a Pending or listener, which is a bug

    def propose(self, operation: Operation, pending: Pending) -> None:
        """Queue an operation of the node itself, ahead of all client queues; refused while the node does not serve."""
        if not self.accepting:
            pending.refused()
            return
        if self.refuses is not None and self.refuses(operation):
            pending.applied(NOT_YET)
            return
        size, work = cost(operation)
        held = _held_bytes(size, work)
        self.backlog_bytes += held
        self._bytes += size
        self._work += work
        if not self._queue and not self._clients.count:
            self._since = self._monotonic()
        self._queue.append((operation, pending, size, work, held, False, 0, None))

    def propose_for(
        self, client: object, operation: Operation, pending: ClientPending, behind: bool = False,
    ) -> bool:
        """Queue an operation of this client (see Cluster.propose_for).

        While the next entry has room for everything queued no turns are needed; the rest goes into client queues.
        """
        if not self.accepting:
            pending.refused()
            return False
        if self.refuses is not None and self.refuses(operation):
            pending.applied(NOT_YET)
            return False
        size, work = COSTS[type(operation)](operation)
        large = False
        if work == limits.PLAIN_WORK:
            held = size + limits.PLAIN_HELD_BYTES
        else:
            work += self._known_work(operation)
            held = _held_bytes(size, work)
            large = work > limits.LARGE_WORK and not behind
        self.backlog_bytes = backlog = self.backlog_bytes + held
        queue, clients = self._queue, self._clients
        if clients.count or large or size > limits.WHOLE_BYTES_MAX or (
            not behind and (
                len(queue) >= limits.ENTRY_OPERATIONS_MAX
                or self._bytes > limits.ENTRY_BYTES_MAX or self._work > limits.ENTRY_WORK_MAX
            )
        ):
            charge = limits.CLIENT_WORK_BYTES * work        # charge_of() without a call
            if not queue and not clients.count:
                self._since = self._monotonic()
            if charge < size:
                charge = size
            clients.add(client, (operation, pending, size, work, held, behind, charge, client))
            return backlog > limits.QUEUED_BYTES_MAX and (backlog > limits.BACKLOG_BYTES_MAX or clients.sated(client))
        self._bytes += size
        self._work += work
        if not queue:
            self._since = self._monotonic()
        queue.append((operation, pending, size, work, held, behind, 0, client))
        return backlog > limits.BACKLOG_BYTES_MAX

    @property
    def collecting(self) -> int:
        """The number of the entry that is collected; 0 while clients take turns (see Cluster.collecting)."""
        return 0 if self._clients.count else self.entries + 1

    def withdraw(self, client: object) -> None:
        """Drop the operations in the queue of a disconnected client; their outcome is overdue().

        If there are hand-outs for other clients' blocked commands among them, those clients propose them again.
        """
        for _, pending, _, _, held, _, _, _ in self._clients.withdraw(client):
            self.backlog_bytes -= held
            pending.overdue()

    def propose_alone(self, operation: Operation, pending: Pending, now: float) -> None:
        """Propose one operation as its own entry, even while this node does not serve (a Lead entry, for example)."""
        if self.refuses is not None and self.refuses(operation):
            pending.applied(NOT_YET)
            return
        self._launch(_Batch([operation], [pending], [], 0, now, now))

    @property
    def idle(self) -> bool:
        """True if nothing is queued and nothing is in flight."""
        return not self.queued and not self._flying

    @property
    def unwatched(self) -> bool:
        """True if nothing is queued, and no entry in flight has operations of clients."""
        return not self.queued and not any(batch.taken for batch in self._flying)

    @property
    def in_flight(self) -> int:
        """The number of operations without an outcome."""
        return self.queued + sum(len(batch.pendings) for batch in self._flying)

    @property
    def ready(self) -> bool:
        """True if flush() would propose an entry."""
        if self.paused:
            return False
        if not self._queue and not (self._clients.count and self._clients.offers(resting=self.rests.resting)):
            return False
        return len(self._flying) < limits.ENTRIES_IN_FLIGHT_MAX or self._one_more()

    def _one_more(self) -> bool:
        """Return whether one more entry may be in flight, after one that will not leave out operations (_leave_out)."""
        least = limits.OVERLAP_OPERATIONS_MIN
        flying = self._flying
        return (
            self.overlaps and self.queued >= least and len(flying) == limits.ENTRIES_IN_FLIGHT_MAX
            and flying[-1].whole and len(flying[-1].pendings) >= least
        )

    @property
    def entries_in_flight(self) -> int:
        """The number of entries without an outcome."""
        return len(self._flying)

    @property
    def queued(self) -> int:
        """The number of operations that are not in an entry yet."""
        return len(self._queue) + self._clients.count

    @property
    def share(self) -> int:
        """The maximum number of operations that one client should have queued."""
        return self._clients.share

    def flush(self, now: float) -> None:
        """Propose queued operations while fewer than ENTRIES_IN_FLIGHT_MAX are in flight. `now`: monotonic seconds.

        One more (_one_more) is proposed in a turn of its own, so that none takes long.
        """
        while self.ready:
            batch = self._collect(now)
            if batch.operations:
                for earlier in self._flying:
                    earlier.overtaken = True
                batch.whole = self.overlaps and set(map(type, batch.operations)) == {Put}
                self._launch(batch)
            self._since = now
            if len(self._flying) >= limits.ENTRIES_IN_FLIGHT_MAX:
                break

    def _collect(self, now: float) -> _Batch:
        """Take the operations of the next entry: as many as fit, and at least one, whatever its cost."""
        queue = self._queue
        taken: list[Queued] = []
        total, total_work = self._bytes, self._work     # of what is taken and of what is in the queue, at most
        resting = self.rests.resting
        work_max = self._turns_work_max(now)
        while True:
            if (
                len(taken) + len(queue) > limits.ENTRY_OPERATIONS_MAX
                or total > limits.ENTRY_BYTES_MAX or total_work > limits.ENTRY_WORK_MAX
            ):
                self._fill(taken, now, work_max, resting=resting)
                break
            taken += queue
            queue.clear()
            if total_work >= work_max:
                break
            charge = self._clients.give(queue, now, resting=resting)
            if not charge:
                break
            if type(queue[0][0]) is Fragment:               # one of them in each entry
                taken += queue
                queue.clear()
                break
            total += charge                             # an upper bound of bytes and, in CLIENT_WORK_BYTES, work
            total_work += charge // limits.CLIENT_WORK_BYTES
        self._bytes = sum(map(_BYTES, queue))
        self._work = sum(map(_WORK, queue))
        if not taken:
            return _Batch([], [], [], 0, self._since, now)
        operations, pendings, _, _, held, _, _, _ = zip(*taken, strict=True)
        batch = _Batch(list(operations), list(pendings), taken, sum(held), self._since, now)
        self._note_awaited(taken, now)
        if self._clients.gave_large or resting:
            batch.large = self.rests.proposed(taken, now)
            self._clients.gave_large = any(_WORK(queued) > limits.LARGE_WORK for queued in queue)
        return batch

    def _turns_work_max(self, now: float) -> int:
        """Return how much work an entry may have and still be given further turns of clients."""
        return limits.AWAITED_WORK_MAX if now - self._awaited_at < limits.SMALL_SEEN_S else limits.ENTRY_WORK_MAX

    def _note_awaited(self, taken: Sequence[Queued], now: float) -> None:
        """Record whether a client waits for this entry: while others take turns it has nothing more queued."""
        clients = self._clients
        if clients.count and any(
            client is not None and not clients.has_any(client) for client in set(map(_CLIENT_OF, taken))
        ):
            self._awaited_at = now

    def _fill(self, taken: list[Queued], now: float, work_max: int, *, resting: bool) -> None:
        """Add operations to the entry one by one, checking each, until it is full.

        Once it is full no turns are given: a client with a turn would precede those that come while the entry is in
        flight.
        """
        queue = self._queue
        total, total_work = sum(map(_BYTES, taken)), sum(map(_WORK, taken))
        while queue or (
            total < limits.ENTRY_BYTES_MAX and total_work < work_max
            and self._clients.give(queue, now, resting=resting)
        ):
            operation, pending, size, work, held, _, _, _ = queue[0]
            total_work += work
            if (
                len(taken) >= limits.ENTRY_OPERATIONS_MAX
                or total_work > limits.ENTRY_WORK_MAX or total + size > limits.ENTRY_BYTES_MAX
            ):
                if taken and not continues(operation, taken[-1][0]):
                    break
                if size > OPERATION_BYTES_MAX:          # must not be proposed: no node could send it
                    log.error("an operation of %d bytes is refused: report it, with this line", size)
                    queue.popleft()
                    self.backlog_bytes -= held
                    pending.refused()
                    continue
            taken.append(queue.popleft())
            total += size

    def _launch(self, batch: _Batch) -> None:
        self.entries += 1
        batch.number = self.entries
        self._flying.append(batch)
        entry = encode_entry(self._stamp(), _random.getrandbits(64), batch.operations, self._level())
        self._submit(entry, lambda applied, reason: self._landed(batch, applied, reason))

    def _landed(self, batch: _Batch, applied: Applied | None, reason: int) -> None:
        # An exception here would make the library apply the entry a second time (H5b).
        try:
            self._settle(batch, applied, reason)
        except Exception as error:
            log.exception("a listener failed while replies were delivered; this node stops: report it, with this line")
            self.failure = error

    def _settle(self, batch: _Batch, applied: Applied | None, reason: int) -> None:
        pendings = self._close(batch)
        if reason == SUCCESS and applied is not None:
            executed = len(applied.replies)
            if pendings:
                now = self._monotonic()
                self.latencies.observe(now - batch.begun)
                if executed < len(pendings):
                    self._leave_out(batch, pendings, executed)
                if batch.large:
                    self.rests.executed(now)
                self.answered = AnsweredEntry(executed, self.queued, batch.number, now - batch.launched)
            batch.taken = []
            for pending, reply in zip(pendings, applied.replies, strict=False):
                pending.applied(reply)
            self._effects(applied.effects)
        elif reason in NOT_EXECUTED:
            for pending in pendings:
                pending.refused()
        else:
            for pending in pendings:
                pending.unknown()

    def _leave_out(self, batch: _Batch, pendings: list[Pending], executed: int) -> None:
        """Handle the operations that an entry left out (Machine.apply).

        They are put back, unless a later entry with operations of the same clients may be in flight already. Then they
        are refused, because they would be executed after that entry, which is not the order of their proposals. Only an
        entry of Puts may be followed by another one, and such an entry hardly ever leaves any out.
        """
        if batch.overtaken or not self.accepting:
            for pending in pendings[executed:]:
                pending.refused()
            return
        taken, self._since = batch.taken, batch.begun
        self._put_back(taken[executed:], taken[executed - 1][_CLIENT] if executed else None)

    def _put_back(self, left: Sequence[Queued], filled: object) -> None:
        """Put operations back: the node's own at the head of the queue, the others into their clients' queues.

        A client's operations stay in order, but clients whose turn comes earlier precede it. Later operations of
        clients in the queue also move into the clients' queues. `filled`: see ClientQueues.put_back.
        """
        self.backlog_bytes += sum(map(_HELD, left))
        queue = self._queue
        self._clients.put_back([one for one in (*left, *queue) if one[_CLIENT] is not None], filled)
        self._queue = deque(one for one in (*left, *queue) if one[_CLIENT] is None)
        self._bytes = sum(map(_BYTES, self._queue))
        self._work = sum(map(_WORK, self._queue))

    def _close(self, batch: _Batch) -> list[Pending]:
        """Remove the batch from those in flight; returns the pendings that still wait for an outcome."""
        if not batch.open:
            return []
        batch.open = False
        self.backlog_bytes -= batch.held
        self._flying.remove(batch)
        pendings, batch.pendings = batch.pendings, []   # the library may keep the callback, and with it the batch
        return pendings

    def stop_accepting(self, now: float, *, lost: bool) -> None:
        """Stop accepting operations, and refuse those not yet given to Raft.

        `lost`: leadership was lost involuntarily; entries in flight then get only OUTCOME_AFTER_LOSS_S more.
        """
        self.accepting = False
        self.rests.end()
        for batch in self._flying:
            batch.deadline = min(batch.deadline, now + limits.OUTCOME_AFTER_LOSS_S) if lost else batch.deadline
        queued = [*self._queue, *self._clients.clear()]
        self._queue.clear()
        self._bytes = self._work = 0
        for _, pending, _, _, held, _, _, _ in queued:
            self.backlog_bytes -= held
            pending.refused()

    def expire(self, now: float) -> None:
        """Declare entries past their deadline unknown, and operations without a turn for too long overdue."""
        while self._flying and self._flying[0].deadline <= now:
            for pending in self._close(self._flying[0]):
                pending.unknown()
        for _, pending, _, _, held, _, _, _ in self._clients.overdue(now):
            self.backlog_bytes -= held
            pending.overdue()
