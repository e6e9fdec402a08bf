"""Whose sessions are whose, so that nobody uses up those of others.

An owner is a user at an address. One that has as many sessions as it may have gets another one only in the place of its
own longest unused one without bound jobs; so programs that open a session each and leave it behind take places from
nobody but each other. Which one that is must be found quickly, as somebody may do nothing else all day: the sessions of
an owner are in a heap by their last use at some time ago, and only one that comes to the top is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush, heapreplace

from msgspec import Struct, field

from core import limits
from core.store.session import Session


class _Owner(Struct, gc=False, eq=False):
    """One user at one address."""

    sessions: int = 0
    # (last use, number) of its sessions, but for those that had bound jobs when they were looked at; and of some that
    # have ended. No session was used earlier than it says here.
    unused: list[tuple[int, int]] = field(default_factory=list)


class Owners:
    """Those that have a session."""

    __slots__ = ("_by_number", "_owners")

    def __init__(self, by_number: Mapping[int, Session]) -> None:
        """`by_number` has all sessions in it that were added."""
        self._by_number = by_number
        self._owners: dict[tuple[str, str], _Owner] = {}

    def count(self, user: str, address: str) -> int:
        """How many sessions this owner has."""
        owner = self._owners.get((user, address))
        return 0 if owner is None else owner.sessions

    def add(self, session: Session) -> None:
        """There is another session."""
        owner = self._owners.get(session.owner)
        if owner is None:
            owner = self._owners[session.owner] = _Owner()
        owner.sessions += 1
        session.aside = False
        heappush(owner.unused, (session.used_ms, session.number))

    def remove(self, session: Session) -> None:
        """It is no more; `by_number` does not have it either."""
        owner = self._owners[session.owner]
        owner.sessions -= 1
        if not owner.sessions:
            del self._owners[session.owner]
        elif len(owner.unused) > 2 * owner.sessions + limits.STALE_OWNER_ENTRIES_MAX:
            owner.unused = [entry for entry in owner.unused if entry[1] in self._by_number]
            heapify(owner.unused)

    def freed(self, session: Session) -> None:
        """Its last bound job is gone."""
        if session.aside:
            session.aside = False
            heappush(self._owners[session.owner].unused, (session.used_ms, session.number))

    def longest_unused(self, user: str, address: str) -> Session | None:
        """The session of this owner that can be given up best: without bound jobs, and not used for longest."""
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
