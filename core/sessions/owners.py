"""The sessions of each owner, so that no owner can use up the sessions of others.

An owner is a user at an address. When it has as many sessions as allowed, a new one replaces its own least recently
used one without bound jobs; so programs that each open a session and abandon it only displace each other's. That
session must be found quickly, as a client may open sessions all day: the sessions of an owner are in a heap by a
possibly outdated time of their last use, and only the one at the top is inspected.

Nor can it fill the memory with answers: beyond BATCH_ANSWERS_MAX the answers to batches in its least recently used
sessions are forgotten. That is no state of its own: it follows from the answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush, heapreplace

from msgspec import Struct, field

from sockpqd.core import limits
from sockpqd.core.sessions.session import Session


class _Owner(Struct, gc=False, eq=False):
    """The sessions of one user at one address."""

    sessions: int = 0
    # (last use, number) of its sessions, except those that had bound jobs when last inspected; some of them may have
    # ended. No session was last used before the time recorded here.
    unused: list[tuple[int, int]] = field(default_factory=list)
    batch_bytes: int = 0                # of the answers to batches in all of its sessions
    with_batches: dict[int, None] = field(default_factory=dict)     # the numbers of those that have such answers


class Owners:
    """All owners that have a session."""

    __slots__ = ("_by_number", "_owners")

    def __init__(self, by_number: Mapping[int, Session]) -> None:
        """`by_number`: contains all sessions that were added."""
        self._by_number = by_number
        self._owners: dict[tuple[str, str], _Owner] = {}

    def count(self, user: str, address: str) -> int:
        """Return the number of sessions of this owner."""
        owner = self._owners.get((user, address))
        return 0 if owner is None else owner.sessions

    def add(self, session: Session) -> None:
        """Add a new session to its owner."""
        owner = self._owners.get(session.owner)
        if owner is None:
            owner = self._owners[session.owner] = _Owner()
        owner.sessions += 1
        session.aside = False
        heappush(owner.unused, (session.used_ms, session.number))
        if session.batch_bytes:
            owner.batch_bytes += session.batch_bytes
            owner.with_batches[session.number] = None

    def batches_changed(self, session: Session, added: int) -> int:
        """Record that answers to batches of the session take more bytes, or fewer; forget others' beyond the limit.

        Returns the number of sessions that were inspected for it.
        """
        owner = self._owners.get(session.owner)
        if owner is None or session.number not in self._by_number:      # the request itself has ended it
            return 0
        owner.batch_bytes += added
        if session.batch_bytes:
            owner.with_batches[session.number] = None
        else:
            del owner.with_batches[session.number]
        return self._forget_batches(owner, session) if owner.batch_bytes > limits.BATCH_ANSWERS_MAX else 0

    def _forget_batches(self, owner: _Owner, used: Session) -> int:
        """Forget the answers to batches of the least recently used sessions, until an eighth of the limit is free."""
        sessions = [self._by_number[number] for number in owner.with_batches if number != used.number]
        sessions.sort(key=lambda session: (session.used_ms, session.number))
        for session in sessions:
            owner.batch_bytes -= session.forget_batches()
            del owner.with_batches[session.number]
            if owner.batch_bytes <= limits.BATCH_ANSWERS_MAX - limits.BATCH_ANSWERS_MAX // 8:
                break
        return len(sessions)

    def remove(self, session: Session) -> None:
        """Stop counting a session that `by_number` no longer has."""
        owner = self._owners[session.owner]
        owner.sessions -= 1
        if session.batch_bytes:
            owner.batch_bytes -= session.batch_bytes
            del owner.with_batches[session.number]
        if not owner.sessions:
            del self._owners[session.owner]
        elif len(owner.unused) > 2 * owner.sessions + limits.STALE_OWNER_ENTRIES_MAX:
            owner.unused = [entry for entry in owner.unused if entry[1] in self._by_number]
            heapify(owner.unused)

    def freed(self, session: Session) -> None:
        """Record that the session no longer has a bound job."""
        if session.aside:
            session.aside = False
            heappush(self._owners[session.owner].unused, (session.used_ms, session.number))

    def longest_unused(self, user: str, address: str) -> Session | None:
        """Return the least recently used session of this owner without bound jobs; None if all have bound jobs."""
        owner = self._owners.get((user, address))
        unused = [] if owner is None else owner.unused
        while unused:
            filed_ms, number = unused[0]
            session = self._by_number.get(number)
            if session is None or session.ending:
                heappop(unused)
            elif session.taken:
                heappop(unused)
                session.aside = True
            elif session.used_ms > filed_ms:
                heapreplace(unused, (session.used_ms, number))
            else:
                return session
        return None
