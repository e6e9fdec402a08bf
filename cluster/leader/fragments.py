"""Cuts a large operation into fragments, one for each entry, so that small ones need not wait behind it (core/ops).

An entry with a job of 8 MiB takes all nodes tens of milliseconds to encode, send, write, sync and execute, and whatever
comes meanwhile waits for it, as the log has one order. In fragments the same job passes with other clients' operations
between them. Where the entries of a cluster take long, the fragments grow, so that the job still arrives in good time:
a client that waits too long would send it again.
"""

from __future__ import annotations

from sockpqd.cluster import limits
from sockpqd.cluster.api import ClientPending, Pending
from sockpqd.core import Fragment, FragmentsMissing, LastFragment, Operation, Reply, cost, encode_operation

# An operation, its pending, encoded bytes, work (core/handlers/cost.py), bytes of memory, whether it must stay right
# behind the one before, and its charge: its bytes, or CLIENT_WORK_BYTES for each unit of its work if that is more.
Queued = tuple[Operation, Pending, int, int, int, bool, int]
OfClient = tuple[Operation, ClientPending, int, int, int, bool, int]


FRAGMENTS = frozenset({Fragment, LastFragment})


class _Nobody:
    """The Pending of a fragment, which needs no outcome: if one is missing, the outcome of the last shows it."""

    def applied(self, reply: Reply) -> None:
        """See Pending."""

    def refused(self) -> None:
        """See Pending."""

    def unknown(self) -> None:
        """See Pending."""


_NOBODY = _Nobody()


class _Whole:
    """The Pending of the whole operation, which gets the outcome of its last fragment."""

    def __init__(self, pending: Pending) -> None:
        self._pending = pending
        self.refused = pending.refused
        self.unknown = pending.unknown

    def applied(self, reply: Reply) -> None:
        """See Pending."""
        if type(reply) is FragmentsMissing:
            self._pending.refused()
        else:
            self._pending.applied(reply)


class Cut:
    """An operation that is being logged in fragments. `number`: differs from the previous operation's."""

    def __init__(self, number: int, queued: OfClient) -> None:
        self._number = number
        self._queued = queued
        self._data = memoryview(encode_operation(queued[0]))
        self._offset = 0
        self._given_at: float | None = None

    def next(self, now: float) -> Queued:
        """The next fragment, at this monotonic time (s); the last one has what is left of the operation's charge."""
        start, end = self._offset, self._offset + self._length(now)
        data = bytes(self._data[start:end])
        self._offset = end
        if end < len(self._data):
            fragment = Fragment(self._number, start, data)
            size, work = cost(fragment)
            return fragment, _NOBODY, size, work, 0, False, len(data)
        _, pending, _, work, held, _, charge = self._queued
        last = LastFragment(self._number, start, data)
        size, _ = cost(last)
        return last, _Whole(pending), size, work, held, False, max(1, charge - start)

    def _length(self, now: float) -> int:
        """Return the size of the next fragment, which is larger if the ones before took long."""
        before, self._given_at = self._given_at, now
        if before is None:
            return limits.FRAGMENT_BYTES
        return int(limits.FRAGMENT_BYTES * max(1.0, (now - before) / limits.FRAGMENT_S))

    @property
    def complete(self) -> bool:
        """Was the last fragment taken?"""
        return self._offset >= len(self._data)
