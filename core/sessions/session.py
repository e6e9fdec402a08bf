"""One session: the answers it remembers, the jobs bound to it, and its deadline (spec/sessions 2).

A client that lost its connection cannot know whether its last request was executed. In a session it numbers its
requests and simply repeats the last one: the answers to the newest numbers are kept, and a request that was answered
before gets the same answer and is not executed again.

Most answers are small; those to batches are counted, and the bytes of them that an owner may keep are limited
(owners.py). For a job that was handed out only the id is kept: the job can be sent again while it runs, and is useless
afterwards.
"""

from __future__ import annotations

from msgspec import Struct, field

from sockpqd.core import limits
from sockpqd.core.ops.replies import Reply, RequestTooOld, Results
from sockpqd.core.store.job import RunningJob


class HandedOut(Struct, gc=False, frozen=True):
    """Remembered in place of a Handed."""

    id: int


class HandedOutMany(Struct, gc=False, frozen=True):
    """Remembered in place of a HandedMany."""

    ids: tuple[int, ...]


Answer = Reply | HandedOut | HandedOutMany      # never a Handed or HandedMany
FORGOTTEN = RequestTooOld()         # in place of an answer to a batch that took too much memory (owners.py)
ID_BYTES = 40                       # of a HandedOutMany, for each id
SHARED_REPLY_BYTES = 8              # of a batch, for each reply that is the same object as the first
OWN_REPLY_BYTES = 200               # for each other one, at most, as with a number or an item


def batch_bytes(answer: Answer | None) -> int:
    """Estimate the memory of the answer to a batch of commands or of jobs; 0 for any other."""
    if isinstance(answer, Results):
        count = len(answer.replies)
        same = answer.replies.count(answer.replies[0]) if count else 0
        return count * SHARED_REPLY_BYTES + (count - same) * OWN_REPLY_BYTES
    return ID_BYTES * len(answer.ids) if isinstance(answer, HandedOutMany) else 0


class AnsweredRequest(Struct, gc=False, eq=False):
    """A request and its answers by part. Most requests have a single part, which must be cheap to store."""

    digest: bytes
    first: Answer | None = None                     # of part 0
    others: dict[int, Answer] | None = None         # of the other parts

    def answer(self, part: int) -> Answer | None:
        """Return the answer to this part."""
        if part == 0:
            return self.first
        return None if self.others is None else self.others.get(part)

    def batch_bytes(self) -> int:
        """Estimate the memory of the answers to batches: 0 for most requests."""
        size = batch_bytes(self.first)
        return size if self.others is None else size + sum(map(batch_bytes, self.others.values()))

    def forget_batches(self) -> None:
        """Replace answers to batches with a mark that they were forgotten."""
        if batch_bytes(self.first):
            self.first = FORGOTTEN
        if self.others is not None:
            self.others = {
                part: FORGOTTEN if batch_bytes(answer) else answer for part, answer in self.others.items()
            }

    def answers(self) -> dict[int, Answer]:
        """Return the answers to all parts, by part."""
        answers = {} if self.first is None else {0: self.first}
        return answers if self.others is None else answers | self.others

    def keep(self, part: int, answer: Answer | None) -> None:
        """Remember the answer to the part; None: there is none."""
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
    """One session. No object it refers to refers back, so the garbage collector need not track it."""

    number: int
    secret: int
    ttl_ms: int
    deadline_ms: int                # when it ends unless it is used
    scheduled_ms: int                   # when the timer wheel looks at it next, never after its end
    user: str = ""                  # the owner's name, "" if there is none
    address: str = ""               # from where it was opened, "" if unknown
    used_ms: int = 0                # its last use
    graced: bool = False            # the failover grace is used up, until the next use
    ending: bool = False            # it has ended, but not all of its bound jobs are released yet
    lapsed: bool = False            # it has ended of itself, so its jobs count as failed
    newest: int = 0                 # the greatest request number, 0 before the first
    requests: dict[int, AnsweredRequest] = field(default_factory=dict)     # by number, only within the window
    taken: dict[int, None] = field(default_factory=dict)            # ids of the bound jobs, in rising order, unless
    disordered: bool = False            # an undone batch brought some back. Not state
    imminent: bool = False              # in the sorted part of the timer wheel, not in a slot
    # After an end with many bound jobs: the places of these and of some former ones, in reverse order. Not state.
    release: list[tuple[int, int, int]] | None = None
    aside: bool = False             # not among those its owner can give up (owners.py)
    batch_bytes: int = 0            # of the remembered answers to batches, as estimated

    @property
    def owner(self) -> tuple[str, str]:
        """The user and the address of its owner."""
        return (self.user, self.address)

    def advance(self, number: int) -> None:
        """Advance the window to `number`, now the newest; answers to requests below the window are forgotten."""
        newest = self.newest
        if number == newest + 1:        # nearly always, so it must be cheap
            self._forget(number - limits.REQUEST_WINDOW)
        elif number < newest + limits.REQUEST_WINDOW:
            for old in range(newest - limits.REQUEST_WINDOW + 1, number - limits.REQUEST_WINDOW + 1):
                self._forget(old)
        else:
            self.requests.clear()
            self.batch_bytes = 0
        self.newest = number

    def _forget(self, number: int) -> None:
        answered = self.requests.pop(number, None)
        if self.batch_bytes and answered is not None:
            self.batch_bytes -= answered.batch_bytes()

    def forgotten(self, number: int) -> bool:
        """Return whether the number is below the window, so that nothing is known about it, or below 1."""
        return number <= self.newest - limits.REQUEST_WINDOW or number < 1

    def answers(self, number: int, digest: bytes, part: int) -> bool:
        """Return whether this part of a request has been answered, or refused because the command differs."""
        if self.forgotten(number):
            return True
        answered = self.requests.get(number)
        return answered is not None and (answered.digest != digest or answered.answer(part) is not None)

    def keep(self, number: int, digest: bytes, part: int, answer: Answer | None) -> None:
        """Remember the answer to one part of a request; None: there is none yet."""
        answered = self.requests.get(number)
        if answered is None:
            answered = self.requests[number] = AnsweredRequest(digest)
        self.batch_bytes += batch_bytes(answer) - batch_bytes(answered.answer(part))
        answered.keep(part, answer)

    def forget_batches(self) -> int:
        """Forget the answers to batches, so that their repetition is too old; returns the bytes that they took."""
        for answered in self.requests.values():
            answered.forget_batches()
        freed, self.batch_bytes = self.batch_bytes, 0
        return freed

    def bind(self, job: RunningJob) -> None:
        """Bind the job just handed out: it is put back when the session ends."""
        job.session = self.number
        self.taken[job.id] = None
