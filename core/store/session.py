"""One session: the answers it remembers, the jobs bound to it, and when it ends (spec/sessions 2).

A client that lost its connection cannot know whether its last request was executed. In a session it numbers its
requests and simply repeats the last one: the answers to the newest numbers are kept, and a request that was answered
before gets the same answer and is not executed again.

Answers are small. Instead of a job that was handed out its id is kept: as long as it runs the same job can be given
again, and after that it would be of no use.
"""

from __future__ import annotations

from msgspec import Struct, field

from core import limits
from core.ops.replies import Reply
from core.store.job import RunningJob


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
            self.requests.pop(number - limits.REQUEST_WINDOW, None)
        elif number < newest + limits.REQUEST_WINDOW:
            for old in range(newest - limits.REQUEST_WINDOW + 1, number - limits.REQUEST_WINDOW + 1):
                self.requests.pop(old, None)
        else:
            self.requests.clear()
        self.newest = number

    def forgotten(self, number: int) -> bool:
        """Does this number lie below the window? Then nobody knows whether it was used. Below 1 there is none."""
        return number <= self.newest - limits.REQUEST_WINDOW or number < 1

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
