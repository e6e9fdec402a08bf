"""Group commit: the operations of one loop turn become one log entry, and every one of them gets exactly one outcome.

The library may call back late or never (hazards H11a, H11b), so each entry carries its own deadline: what is not
answered by then has an unknown outcome. What was not handed to the library yet is surely not executed.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from cluster.api import BACKLOG_BYTES_MAX, ClientPending, Pending
from cluster.leader.lanes import WORK_BYTES, Lanes, Queued
from cluster.metrics.histogram import Histogram
from cluster.raft.pysyncobj_adapter import NOT_EXECUTED, SUCCESS, Callback
from core import OPERATION_BYTES_MAX, Applied, Effects, Operation, continues, cost, encode_entry

log = logging.getLogger("sockpqd.cluster")

OPERATIONS_MAX = 448            # of one entry: with more, others wait longer; with fewer, less is done in a second
ENTRY_BYTES = 1 << 20           # an entry is closed at this size; a larger operation travels alone
IN_FLIGHT_MAX = 1               # entries proposed and not applied; 2 made entries smaller and a PUT a quarter dearer
WORK_MAX = 16_000               # the same for the work of its operations, in names (core/handlers/cost.py); some 10 ms
WORK_HELD_BYTES = 48            # of memory for a unit of work: a name, or a share of an operation and its outcome,
HELD_PER_BYTE_MAX = 8           # but only so much for each byte: what is just asked for takes up none
OUTCOME_S = 3.0                 # no answer for so long: unknown (spec/cluster 3.1)
OUTCOME_AFTER_LOSS_S = 1.0      # the same once this node has lost leadership or the lease

_random = Random()              # seeded by the operating system


def _held_bytes(size: int, work: int) -> int:
    """The memory that an operation of this cost takes up while it is queued, about: names are more there than sent."""
    return size + min(WORK_HELD_BYTES * work, HELD_PER_BYTE_MAX * size)


class Answered(NamedTuple):
    """An entry that was applied, when its replies are given out."""

    operations: int             # that it carried
    queued: int                 # that wait for the next one
    at: float                   # monotonic seconds
    took_s: float               # since it was handed to Raft


class _Batch:
    """The operations of one entry on its way."""

    __slots__ = ("begun", "deadline", "held", "launched", "open", "operations", "pendings")

    def __init__(
        self, operations: list[Operation], pendings: list[Pending], held: int, begun: float, launched: float,
    ) -> None:
        self.operations = operations
        self.pendings = pendings
        self.held = held            # bytes of memory
        self.begun = begun          # when its first operation was proposed, monotonic seconds
        self.launched = launched    # when it was handed to Raft
        self.deadline = launched + OUTCOME_S
        self.open = True            # its operations have no outcome yet


class Proposer:
    """Collects operations, proposes entries, gives out outcomes.

    `submit(entry, callback)` hands an entry to Raft, `stamp()` is the replicated time for it in milliseconds, `effects`
    is told the effects of each applied entry after its replies were given out. `monotonic()`: seconds, for `latencies`:
    how long entries took from the proposal of their first operation until they were applied.
    """

    def __init__(
        self,
        submit: Callable[[bytes, Callback], None],
        stamp: Callable[[], int],
        effects: Callable[[Effects], None],
        monotonic: Callable[[], float],
    ) -> None:
        self._submit = submit
        self._stamp = stamp
        self._effects = effects
        self._monotonic = monotonic
        self._queue: deque[Queued] = deque()            # all, as long as an entry holds it
        self._lanes = Lanes(monotonic)                  # what waits for a turn behind that
        self._bytes = self._work = 0                    # of what is in the queue; what lanes give is not counted
        self._flying: deque[_Batch] = deque()
        self._since = 0.0                               # when the next entry could have begun
        self.answered: Answered | None = None           # the last entry that was
        self.accepting = False
        self.backlog_bytes = 0                          # of memory, for all that has no outcome yet
        self.latencies = Histogram()
        self.failure: BaseException | None = None       # a Pending or listener raised: a bug

    def propose(self, operation: Operation, pending: Pending) -> None:
        """Queue an operation of the node itself, before all that wait for a turn; refused while it does not serve."""
        if not self.accepting:
            pending.refused()
            return
        size, work = cost(operation)
        held = _held_bytes(size, work)
        self.backlog_bytes += held
        self._bytes += size
        self._work += work
        if not self._queue and not self._lanes.count:
            self._since = self._monotonic()
        self._queue.append((operation, pending, size, work, held, False, 0))

    def propose_for(
        self, client: object, operation: Operation, pending: ClientPending, behind: bool = False,
    ) -> bool:
        """Queue an operation of this client; `behind`: right behind the one that was proposed before it.

        As long as the next entry takes all that is queued, it does not matter who is first. True: what this client has
        queued takes up its share of memory, or all have together, and it should propose nothing before something of it
        has an outcome.
        """
        if not self.accepting:
            pending.refused()
            return False
        size, work = cost(operation)
        held = _held_bytes(size, work)
        self.backlog_bytes += held
        queue = self._queue
        if self._lanes.count or (
            not behind and (len(queue) >= OPERATIONS_MAX or self._bytes > ENTRY_BYTES or self._work > WORK_MAX)
        ):
            charge = max(size, WORK_BYTES * work)
            sated = self._lanes.add(client, (operation, pending, size, work, held, behind, charge))
            return sated or self.backlog_bytes > BACKLOG_BYTES_MAX
        self._bytes += size
        self._work += work
        if not queue:
            self._since = self._monotonic()
        queue.append((operation, pending, size, work, held, False, 0))
        return self.backlog_bytes > BACKLOG_BYTES_MAX

    def withdraw(self, client: object) -> None:
        """The client has gone: what it has waiting for a turn will not be executed. What others have behind it, the
        hand-outs of blocked commands, is proposed anew by them."""
        for _, pending, _, _, held, _, _ in self._lanes.withdraw(client):
            self.backlog_bytes -= held
            pending.overdue()

    def propose_alone(self, operation: Operation, pending: Pending, now: float) -> None:
        """Propose one operation as an entry of its own, also while this node does not serve (its Lead entry, say)."""
        self._launch(_Batch([operation], [pending], 0, now, now))

    @property
    def idle(self) -> bool:
        """Nothing queued, nothing in flight."""
        return not self.queued and not self._flying

    @property
    def in_flight(self) -> int:
        """Operations that have no outcome yet."""
        return self.queued + sum(len(batch.pendings) for batch in self._flying)

    @property
    def ready(self) -> bool:
        """Would flush() propose something?"""
        return bool(self._queue or self._lanes.count) and len(self._flying) < IN_FLIGHT_MAX

    @property
    def queued(self) -> int:
        """Operations that no entry carries yet."""
        return len(self._queue) + self._lanes.count

    @property
    def share(self) -> int:
        """Operations that one client should have queued at most."""
        return self._lanes.share

    def flush(self, now: float) -> None:
        """Propose what was collected, as far as few enough entries are in flight. `now`: monotonic seconds."""
        while (self._queue or self._lanes.count) and len(self._flying) < IN_FLIGHT_MAX:
            batch = self._collect(now)
            if batch.operations:
                self._launch(batch)
            self._since = now

    def _collect(self, now: float) -> _Batch:
        """The next entry: as many operations as it may carry, but one at least, whatever that costs."""
        queue = self._queue
        operations: list[Operation] = []
        pendings: list[Pending] = []
        total = total_work = total_held = 0
        while queue or self._lanes.give(queue, now):
            operation, pending, size, work, held, _, _ = queue[0]
            total_work += work
            if len(operations) >= OPERATIONS_MAX or total_work > WORK_MAX or total + size > ENTRY_BYTES:
                if operations and not continues(operation, operations[-1]):
                    break
                if size > OPERATION_BYTES_MAX:          # whoever proposes must not: no node could send it
                    log.error("an operation of %d bytes is refused: report it, with this line", size)
                    queue.popleft()
                    self.backlog_bytes -= held
                    pending.refused()
                    continue
            queue.popleft()
            operations.append(operation)
            pendings.append(pending)
            total += size
            total_held += held
        if not queue:
            self._bytes = self._work = 0
        return _Batch(operations, pendings, total_held, self._since, now)

    def _launch(self, batch: _Batch) -> None:
        self._flying.append(batch)
        entry = encode_entry(self._stamp(), _random.getrandbits(64), batch.operations)
        self._submit(entry, lambda applied, reason: self._landed(batch, applied, reason))

    def _landed(self, batch: _Batch, applied: Applied | None, reason: int) -> None:
        # An exception here would make the library apply the entry a second time (H5b).
        try:
            self._settle(batch, applied, reason)
        except Exception as error:
            log.exception("a listener failed while replies were given out; this node stops: report it, with this line")
            self.failure = error

    def _settle(self, batch: _Batch, applied: Applied | None, reason: int) -> None:
        pendings = self._close(batch)
        if reason == SUCCESS and applied is not None:
            executed = len(applied.replies)
            if pendings:
                now = self._monotonic()
                self.latencies.observe(now - batch.begun)
                if executed < len(pendings):
                    self._put_back(batch.operations[executed:], pendings[executed:], batch.begun)
                self.answered = Answered(executed, self.queued, now, now - batch.launched)
            for pending, reply in zip(pendings, applied.replies, strict=False):
                pending.applied(reply)
            self._effects(applied.effects)
        elif reason in NOT_EXECUTED:
            for pending in pendings:
                pending.refused()
        else:
            for pending in pendings:
                pending.unknown()

    def _put_back(self, operations: Sequence[Operation], pendings: Sequence[Pending], begun: float) -> None:
        """An entry had enough before these (Machine.apply): the next one begins with them.

        So all operations are executed in the order in which they were proposed. There is nothing in flight behind them
        (IN_FLIGHT_MAX) that could overtake them. What comes too late for that was surely not executed.
        """
        if not self.accepting:
            for pending in pendings:
                pending.refused()
            return
        for operation, pending in zip(reversed(operations), reversed(pendings), strict=True):
            size, work = cost(operation)
            held = _held_bytes(size, work)
            self.backlog_bytes += held
            self._queue.appendleft((operation, pending, size, work, held, False, 0))
        self._since = begun

    def _close(self, batch: _Batch) -> list[Pending]:
        """Take the batch out of flight; returns those that still wait for an outcome."""
        if not batch.open:
            return []
        batch.open = False
        self.backlog_bytes -= batch.held
        self._flying.remove(batch)
        pendings, batch.pendings = batch.pendings, []   # the library may keep the callback, and with it the batch
        return pendings

    def stop_accepting(self, now: float, *, lost: bool) -> None:
        """This node ceases to serve: refuse what Raft has not seen.

        `lost`: it was not our will, and what is in flight has little hope: its clients wait a last second only.
        """
        self.accepting = False
        for batch in self._flying:
            batch.deadline = min(batch.deadline, now + OUTCOME_AFTER_LOSS_S) if lost else batch.deadline
        queued = [*self._queue, *self._lanes.clear()]
        self._queue.clear()
        self._bytes = self._work = 0
        for _, pending, _, _, held, _, _ in queued:
            self.backlog_bytes -= held
            pending.refused()

    def expire(self, now: float) -> None:
        """Give up waiting for entries whose time is over, and refuse what had no turn for too long."""
        while self._flying and self._flying[0].deadline <= now:
            for pending in self._close(self._flying[0]):
                pending.unknown()
        for _, pending, _, _, held, _, _ in self._lanes.overdue(now):
            self.backlog_bytes -= held
            pending.overdue()
