"""Sessions: what their clients were answered, which jobs are bound to them, and when they end (spec/sessions 2).

A client that lost its connection cannot know whether its last request was executed. In a session it numbers its
requests and simply repeats the last one: the answers of the last WINDOW numbers are kept, and what was answered before
is answered again and not executed.

Answers are small. Instead of a job that was handed out its id is kept: as long as it runs the same job can be given
again, and after that it would be of no use.

A session ends `ttl_ms` after its last use. When it is looked at is told in session_timers.py; whose it is, and which
one an owner loses that has too many, in session_owners.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from core.ops.replies import Reply
from core.store.job import RunningJob
from core.store.session_owners import Owners
from core.store.session_timers import Calendar

SESSIONS_MAX = 100_000
WINDOW = 64                         # request numbers of a session that are remembered: the newest and those before it
TTL_MS_MIN = 1_000
TTL_MS_MAX = 86_400_000


class HandedOut(Struct, gc=False, frozen=True):
    """What is kept of a Handed."""

    id: int


class HandedOutMany(Struct, gc=False, frozen=True):
    """What is kept of a HandedMany."""

    ids: tuple[int, ...]


Answer = Reply | HandedOut | HandedOutMany      # never a Handed or HandedMany


class Answered(Struct, gc=False, eq=False):
    """A request, and its answers by part. Most commands have one part only, and that must cost little."""

    digest: bytes
    first: Answer | None = None                     # of part 0
    others: dict[int, Answer] | None = None         # of the other parts

    def answer(self, part: int) -> Answer | None:
        """The answer to this part."""
        if part == 0:
            return self.first
        return None if self.others is None else self.others.get(part)

    def answers(self) -> dict[int, Answer]:
        """All answers by part."""
        answers = {} if self.first is None else {0: self.first}
        return answers if self.others is None else answers | self.others

    def keep(self, part: int, answer: Answer | None) -> None:
        """This is the answer to the part now; None: it has none."""
        if part == 0:
            self.first = answer
            return
        others = {} if self.others is None else self.others
        if answer is None:
            others.pop(part, None)
        else:
            others[part] = answer
        self.others = others or None


class Session(Struct, gc=False, eq=False):
    """One session. It refers to no object that refers back, so the garbage collector need not see it (see job.py)."""

    number: int
    secret: int
    ttl_ms: int
    deadline_ms: int                # when it ends, if nobody uses it
    filed_ms: int                   # under which it is filed in the calendar: the deadline of some time ago
    user: str = ""                  # whose it is, "" when nobody's
    address: str = ""               # from where it was opened, "" when nobody knows
    used_ms: int = 0                # its last use
    graced: bool = False            # the failover grace was used up; the next use brings a new one
    ending: bool = False            # it has ended, but there were more bound jobs than one entry can release
    newest: int = 0                 # the greatest request number, 0: there was none
    requests: dict[int, Answered] = field(default_factory=dict)     # by number, those of the window only
    taken: dict[int, None] = field(default_factory=dict)            # ids of the bound jobs, in rising order
    soon: bool = False              # where it is filed in the calendar
    aside: bool = False             # not among those of its owner that can be given up (session_owners.py)

    @property
    def owner(self) -> tuple[str, str]:
        """Who has one session more because of it."""
        return (self.user, self.address)

    def advance(self, number: int) -> None:
        """The window moves on to `number`, the newest from now on; what falls out of it is forgotten."""
        newest = self.newest
        if number == newest + 1:        # nearly always, so it must cost little
            self.requests.pop(number - WINDOW, None)
        elif number < newest + WINDOW:
            for old in range(newest - WINDOW + 1, number - WINDOW + 1):
                self.requests.pop(old, None)
        else:
            self.requests.clear()
        self.newest = number

    def forgotten(self, number: int) -> bool:
        """Does this number lie below the window? Then nobody knows whether it was used. Below 1 there is none."""
        return number <= self.newest - WINDOW or number < 1

    def keep(self, number: int, digest: bytes, part: int, answer: Answer | None) -> None:
        """This is the answer to one part of a request from now on; None: it has none yet."""
        answered = self.requests.get(number)
        if answered is None:
            answered = self.requests[number] = Answered(digest)
        answered.keep(part, answer)

    def bind(self, job: RunningJob) -> None:
        """The job just handed out goes LATER when the session ends."""
        job.session = self.number
        self.taken[job.id] = None


class Sessions:
    """All sessions by number, in rising order: numbers only grow."""

    __slots__ = ("_calendar", "by_number", "next_session", "owners")

    def __init__(self) -> None:
        self.by_number: dict[int, Session] = {}
        self.next_session = 1
        self.owners = Owners(self.by_number)
        self._calendar = Calendar(self.by_number)

    def open(self, secret: int, ttl_ms: int, user: str, address: str, clock_ms: int) -> Session:
        """A new session."""
        end_ms = clock_ms + ttl_ms
        session = Session(self.next_session, secret, ttl_ms, end_ms, end_ms, user, address, clock_ms)
        self.next_session += 1
        self.resume(session)
        return session

    def resume(self, session: Session) -> None:
        """Add this session; numbers must come in rising order."""
        self.by_number[session.number] = session
        self.owners.add(session)
        self._calendar.file(session)

    def get(self, number: int) -> Session | None:
        """The session of this number, unless it has ended."""
        session = self.by_number.get(number)
        return None if session is None or session.ending else session

    def use(self, number: int, clock_ms: int) -> Session | None:
        """The session of this number, unless it has ended; its time counts anew. That never takes time from it."""
        session = self.by_number.get(number)
        if session is None or session.ending:
            return None
        deadline_ms = clock_ms + session.ttl_ms
        if deadline_ms > session.deadline_ms:
            session.deadline_ms = deadline_ms
        session.used_ms = clock_ms
        session.graced = False
        return session

    def next_due_ms(self) -> int | None:
        """A time before which `first_due` has nothing to give; None when there is no session."""
        return self._calendar.next_due_ms()

    def first_due(self, clock_ms: int) -> Session | None:
        """The first session in the order (deadline, number), if it is over: never early, at most 16 ms late."""
        return self._calendar.first_due(clock_ms)

    def extend(self, until_ms: int, *, once: bool = True) -> None:
        """Sessions that end before `until_ms` end then; `once`: per use (spec/state-machine 3.3)."""
        for session in self.by_number.values():
            if session.deadline_ms < until_ms and not (once and session.graced) and not session.ending:
                session.deadline_ms = until_ms
                session.graced = session.graced or once

    def end(self, session: Session, clock_ms: int) -> None:
        """Nobody can use the session from now on; it is due until `remove`."""
        session.ending = True
        if session.deadline_ms > clock_ms:
            self._calendar.remove(session)
            session.deadline_ms = clock_ms
            self._calendar.file(session)

    def remove(self, session: Session) -> None:
        """The session is forgotten."""
        del self.by_number[session.number]
        self.owners.remove(session)
        self._calendar.remove(session)

    def unbind(self, job: RunningJob) -> None:
        """The bound job no longer runs, or no longer depends on its session."""
        assert job.session is not None
        session = self.by_number[job.session]
        del session.taken[job.id]
        job.session = None
        if not session.taken:
            self.owners.freed(session)

    def rebind(self, running: Mapping[int, RunningJob]) -> None:
        """All jobs were replaced, these run now: what was bound still is, ids that vanished are forgotten."""
        for job in running.values():
            job.session = None
        for session in self.by_number.values():
            session.taken = {number: None for number in session.taken if number in running}
            for number in session.taken:
                running[number].session = session.number
            if not session.taken:
                self.owners.freed(session)
