"""Cuts a large operation into fragments, one for each entry, so that small ones need not wait for it (core/ops).

An entry with a job of 8 MiB takes all nodes tens of milliseconds to encode, send, write, sync and execute, and
everything that arrives in the meantime waits for it, as the log has one order. In fragments the same job passes with
other clients' operations between them. Where the entries of a cluster take long, the fragments grow, so that the job
still arrives in good time: a client that waits too long would send it again.
"""

from __future__ import annotations

from sockpqd.cluster import limits
from sockpqd.cluster.api import ClientPending, Pending
from sockpqd.core import Fragment, FragmentsMissing, Operation, Reply, cost, encode_operation

# An operation, its pending, encoded bytes, work (core/handlers/cost.py), bytes of memory, whether it must stay right
# behind the one before, its charge (its bytes, or CLIENT_WORK_BYTES for each unit of its work if that is more; 0 if it
# needed no turn), and its client; None is the node itself.
Queued = tuple[Operation, Pending, int, int, int, bool, int, object]
OfClient = tuple[Operation, ClientPending, int, int, int, bool, int, object]



class Part:
    """The Pending of a fragment of `cut`. It ignores outcomes, as the last fragment's shows whether one is missing."""

    def __init__(self, cut: Cut) -> None:
        self.cut = cut

    def applied(self, reply: Reply) -> None:
        pass

    def refused(self) -> None:
        pass

    def unknown(self) -> None:
        pass


class _LastPart(Part):
    """Passes the outcome of the last fragment to the Pending of the whole operation."""

    def applied(self, reply: Reply) -> None:
        if type(reply) is FragmentsMissing:
            self.cut.queued[1].refused()
        else:
            self.cut.queued[1].applied(reply)

    def refused(self) -> None:
        self.cut.queued[1].refused()

    def unknown(self) -> None:
        self.cut.queued[1].unknown()


class Cut:
    """An operation that is being logged in fragments. `number`: differs from the previous operation's."""

    def __init__(self, number: int, queued: OfClient, level: int) -> None:
        self._number = number
        self.queued = queued
        self._data = memoryview(encode_operation(queued[0], level))
        self._offset = 0
        self._taken: list[int] = []     # where the fragments begin
        self._given_at: float | None = None

    def next(self, now: float) -> Queued:
        """The next fragment, at this monotonic time (s); the last one carries the rest of the operation's charge."""
        start, end = self._offset, min(self._offset + self._length(now), len(self._data))
        data = bytes(self._data[start:end])
        self._taken.append(start)
        self._offset = end
        if end < len(self._data):
            fragment = Fragment(self._number, start, data)
            size, work = cost(fragment)
            return fragment, Part(self), size, work, 0, False, len(data), self.queued[7]
        _, _, _, work, held, _, charge, client = self.queued
        last = Fragment(self._number, start, data, last=True)
        size, _ = cost(last)
        return last, _LastPart(self), size, work, held, False, max(1, charge - start), client

    def take_back(self) -> None:
        """Record that the last result of next() was not executed: next() will return it again."""
        self._offset = self._taken.pop()

    def _length(self, now: float) -> int:
        """Return the size of the next fragment, which is larger if earlier ones took long."""
        before, self._given_at = self._given_at, now
        if before is None:
            return limits.FRAGMENT_BYTES
        return int(limits.FRAGMENT_BYTES * max(1.0, (now - before) / limits.FRAGMENT_S))

    @property
    def complete(self) -> bool:
        """True if the last fragment was taken."""
        return self._offset >= len(self._data)

    @property
    def begun(self) -> bool:
        """True if a fragment was taken."""
        return self._offset > 0
