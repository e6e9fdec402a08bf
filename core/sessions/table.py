"""All sessions by number, and their deadlines (spec/sessions 2).

A session ends `ttl_ms` after its last use. timers.py finds the expired ones; owners.py counts the sessions of each
owner, and finds the one to end when there are too many.
"""

from __future__ import annotations

from collections.abc import Mapping

from sockpqd.core.sessions.owners import Owners
from sockpqd.core.sessions.session import Session
from sockpqd.core.sessions.timers import TimerWheel
from sockpqd.core.store.job import RunningJob


class Sessions:
    """All sessions by number, in rising order: numbers only grow."""

    __slots__ = ("_timers", "by_number", "next_session", "owners")

    def __init__(self) -> None:
        self.by_number: dict[int, Session] = {}
        self.next_session = 1
        self.owners = Owners(self.by_number)
        self._timers = TimerWheel(self.by_number)

    def open(self, secret: int, ttl_ms: int, user: str, address: str, clock_ms: int) -> Session:
        """Open a new session and return it."""
        end_ms = clock_ms + ttl_ms
        session = Session(self.next_session, secret, ttl_ms, end_ms, end_ms, user, address, clock_ms)
        self.next_session += 1
        self.resume(session)
        return session

    def resume(self, session: Session) -> None:
        """Add an existing session, from a snapshot; numbers must be rising."""
        self.by_number[session.number] = session
        self.owners.add(session)
        self._timers.schedule(session)

    def get(self, number: int) -> Session | None:
        """Return the session of this number; None if it has ended."""
        session = self.by_number.get(number)
        return None if session is None or session.ending else session

    def use(self, number: int, clock_ms: int) -> Session | None:
        """Use the session of this number, which extends its deadline and never shortens it; None if it has ended."""
        session = self.by_number.get(number)
        if session is None or session.ending:
            return None
        if session.used_ms == clock_ms and not session.graced:
            return session              # used by this entry already, as by a request and the Get in it
        deadline_ms = clock_ms + session.ttl_ms
        if deadline_ms > session.deadline_ms:
            session.deadline_ms = deadline_ms
        session.used_ms = clock_ms
        session.graced = False
        return session

    def next_due_ms(self) -> int | None:
        """Return a time before which `first_due` returns nothing; None: there is no session."""
        return self._timers.next_due_ms()

    def first_due(self, clock_ms: int) -> Session | None:
        """Return the first session in the order of (deadline, number), if it has expired.

        Never early, at most 16 ms late.
        """
        return self._timers.first_due(clock_ms)

    def extend(self, until_ms: int, *, once: bool = True) -> None:
        """Extend sessions that end before `until_ms` to it; `once`: per use (spec/state-machine 3.3)."""
        for session in self.by_number.values():
            if session.deadline_ms < until_ms and not (once and session.graced) and not session.ending:
                session.deadline_ms = until_ms
                session.graced = session.graced or once

    def postpone(self, by_ms: int) -> None:
        """Let all sessions that have not ended yet end this much later."""
        for session in self.by_number.values():
            if not session.ending:
                session.deadline_ms += by_ms

    def end(self, session: Session, clock_ms: int, *, lapsed: bool) -> None:
        """Make the session unusable; it counts as due until `remove`. `lapsed`: it was unused for too long."""
        if not session.ending:
            session.ending, session.lapsed = True, lapsed
        if session.deadline_ms > clock_ms:
            self._timers.remove(session)
            session.deadline_ms = clock_ms
            self._timers.schedule(session)

    def remove(self, session: Session) -> None:
        """Remove a session that has ended."""
        del self.by_number[session.number]
        self.owners.remove(session)
        self._timers.remove(session)

    def unbind(self, job: RunningJob) -> None:
        """Unbind the job, which no longer runs or no longer depends on its session."""
        assert job.session is not None
        session = self.by_number[job.session]
        del session.taken[job.id]
        job.session = None
        if not session.taken:
            self.owners.freed(session)

    def rebind(self, running: Mapping[int, RunningJob]) -> None:
        """Rebind sessions after all jobs were replaced: bound jobs that still run stay bound, others are forgotten."""
        for job in running.values():
            job.session = None
        for session in self.by_number.values():
            session.taken = {number: None for number in session.taken if number in running}
            session.release = None
            for number in session.taken:
                running[number].session = session.number
            if not session.taken:
                self.owners.freed(session)
