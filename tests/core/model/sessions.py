"""The sessions of the reference model: every request is kept for ever, and searched again each time."""

from __future__ import annotations

from dataclasses import dataclass, field

from sockpqd.core import (
    AttachSession,
    Get,
    GetWith,
    OpenSession,
    Reply,
    Request,
    RequestMismatch,
    RequestTooOld,
    SessionAttached,
    SessionNotFound,
    SessionOpened,
    TooManySessions,
)

SESSIONS_MAX = 100_000
WINDOW = 64
SECOND_MS, DAY_MS = 1000, 24 * 3600 * 1000


@dataclass
class ModelSession:
    """A session; `ending` means that it has ended and some of its jobs are still to be released."""

    number: int
    secret: int
    ttl_ms: int
    deadline_ms: int
    user: str
    address: str
    used_ms: int
    graced: bool = False
    ending: bool = False
    lapsed: bool = False            # it was not closed by a client
    digests: dict[int, bytes] = field(default_factory=dict)                     # by request number
    answers: dict[tuple[int, int], Reply] = field(default_factory=dict)         # by request number and part

    @property
    def newest(self) -> int:
        """Return the greatest request number."""
        return max(self.digests, default=0)

    def refusal(self, request: Request) -> Reply | None:
        """Return why this request cannot be executed."""
        if request.number < 1 or request.number <= self.newest - WINDOW:
            return RequestTooOld()
        takes_over = isinstance(request.operation, Get | GetWith) and not request.keep_waiting and not any(
            number == request.number for number, _ in self.answers)
        if not takes_over and self.digests.get(request.number, request.digest) != request.digest:
            return RequestMismatch()
        return None


class ModelSessions:
    """All sessions, in the order of their numbers."""

    def __init__(self) -> None:
        self.all: list[ModelSession] = []
        self.next_number = 1

    def open(self, operation: OpenSession, clock_ms: int, bound: set[int | None]) -> Reply:
        """Open a session; `bound` are those that have bound jobs."""
        its = [one for one in self.all if (one.user, one.address) == (operation.user, operation.address)]
        if operation.owner_max is not None and len(its) >= operation.owner_max:
            unused = [one for one in its if one.number not in bound and not one.ending]
            if not unused:
                return TooManySessions()
            self.all.remove(min(unused, key=lambda one: (one.used_ms, one.number)))
        if len(self.all) == SESSIONS_MAX:
            return TooManySessions()
        ttl_ms = sorted([SECOND_MS, operation.ttl_ms, DAY_MS])[1]
        secret, deadline_ms = operation.secret % 2**64, clock_ms + ttl_ms
        self.all.append(ModelSession(
            self.next_number, secret, ttl_ms, deadline_ms, operation.user, operation.address, clock_ms,
        ))
        session = self.all[-1]
        self.next_number += 1
        return SessionOpened(f"{session.number}_{session.secret:016x}", ttl_ms)

    def attach(self, operation: AttachSession, clock_ms: int) -> Reply:
        """Execute AttachSession, which counts as a use."""
        session = self.find(operation.session)
        if session is None or session.secret != operation.secret:
            return SessionNotFound()
        if "" not in (session.user, operation.user) and session.user != operation.user:
            return SessionNotFound()
        self.use(session.number, clock_ms)
        return SessionAttached(session.ttl_ms, session.newest)

    def find(self, number: int) -> ModelSession | None:
        """Return the session of this number, unless it has ended."""
        return next((one for one in self.all if one.number == number and not one.ending), None)

    def use(self, number: int, clock_ms: int) -> ModelSession | None:
        """Return the same session, and restart its time limit."""
        session = self.find(number)
        if session is not None:
            session.deadline_ms = max(session.deadline_ms, clock_ms + session.ttl_ms)
            session.used_ms = clock_ms
            session.graced = False
        return session

    def grant_grace(self, until_ms: int, *, once: bool = True) -> None:
        """Prolong it once between two uses."""
        for session in self.all:
            if not session.ending and not (once and session.graced) and session.deadline_ms < until_ms:
                session.deadline_ms = until_ms
                session.graced = session.graced or once
