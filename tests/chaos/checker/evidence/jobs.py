"""The history, sorted by job: each body's PUT, its hand-outs in order, and the commands on their ids.

Ids rise with each hand-out. So a hand-out is not before the start of any with a smaller id, nor after the end of any
with a greater one, and that is usually much more precise than its own record: a GETB may have waited for long.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from msgspec import Struct, field

from tests.chaos.checker.evidence.moments import NEVER, acted, is_ok, latest, may_have_acted
from tests.chaos.workload.history import (
    Cascade,
    Copies,
    Done,
    Get,
    GetMany,
    Handed,
    Later,
    Outcome,
    Put,
    Puts,
    PutWith,
    Record,
)


class HandOut(Struct, eq=False):
    """A hand-out of a job to a client that knows about it."""

    record: Record
    get: Get
    handed: Handed
    earliest_ns: int
    latest_ns: int
    ends: list[Record]          # all DONEs and LATERs of its id that may have acted; shared by those of one id

    @property
    def id(self) -> int:
        """The id under which the job runs."""
        return self.handed.id

    @property
    def done(self) -> Record | None:
        """The first acknowledged DONE of this hand-out."""
        return next((end for end in self.ends if isinstance(end.command, Done) and acted(end)), None)

    @property
    def later(self) -> Record | None:
        """The first acknowledged LATER of this hand-out."""
        return next((end for end in self.ends if isinstance(end.command, Later) and acted(end)), None)


class Job(Struct, eq=False):
    """A body in a queue. `sound`: its hand-outs agree with its PUT, so that other rules can rely on both."""

    body: str
    put: Record | None
    queue: str = ""
    priority: int = 0
    item: str | None = None
    sound: bool = False
    hand_outs: list[HandOut] = field(default_factory=list)      # in rising id

    @property
    def last(self) -> HandOut | None:
        """The last known hand-out."""
        return self.hand_outs[-1] if self.hand_outs else None

    @property
    def done(self) -> Record | None:
        """The DONE that was acknowledged."""
        return next((hand_out.done for hand_out in self.hand_outs if hand_out.done is not None), None)

    @property
    def in_session(self) -> bool:
        """True if the job was put in a session, under a number that makes it one job."""
        return self.put is not None and self.put.session


class Jobs:
    """All jobs of a history. `rising`: no id says that a hand-out was before another one when it was after it.

    Jobs of extended commands are in queues of their own, and extended/tasks.py knows more about them: here are only
    their hand-outs, because ids rise over all queues together.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        self.by_body: dict[str, Job] = {}
        self.hand_outs: list[HandOut] = []                  # in rising id
        self.portions: list[HandOut] = []                   # those of GetMany, in rising id
        self.gets: list[Record] = []                        # in order of start
        self.ends: dict[int, list[Record]] = {}             # by id: DONEs and LATERs that may have acted
        self.missing: list[Record] = []                     # those that found no job
        self.last_ns = 0                                    # of the history
        self.late_puts = False                              # may one of the others' PUTs still be executed?
        for record in sorted(records, key=lambda record: record.start_ns):
            self._file(record)
        self.hand_outs.sort(key=_id)
        self.portions.sort(key=_id)
        self.numbered = sorted([*self.hand_outs, *self.portions], key=_id)
        for hand_out in self.hand_outs:
            job = self.by_body.setdefault(hand_out.handed.body, Job(hand_out.handed.body, None))
            job.hand_outs.append(hand_out)
        for job in self.by_body.values():
            self._settle(job)
        self.rising = self._narrow()
        self.sound = [job for job in self.by_body.values() if job.sound]

    def _file(self, record: Record) -> None:
        self.last_ns = max(self.last_ns, record.start_ns, record.end_ns or 0)
        match record.command:
            case Put() as put:
                if put.body in self.by_body:
                    raise ValueError(f"{put.body} is put twice: that is no history the checker can judge")
                self.by_body[put.body] = Job(put.body, record, put.queue, put.priority, put.item)
            case Get() as get:
                self.gets.append(record)
                if is_ok(record) and record.handed is not None:
                    ends = self.ends.setdefault(record.handed.id, [])
                    self.hand_outs.append(HandOut(record, get, record.handed, record.start_ns, latest(record), ends))
            case GetMany() as get:
                one_by_one = Get(get.queues, get.expire_ms, blocks=get.blocks)
                for handed in record.given:
                    ends = self.ends.setdefault(handed.id, [])
                    self.portions.append(HandOut(record, one_by_one, handed, record.start_ns, latest(record), ends))
            case PutWith() | Puts() | Cascade() | Copies():
                self.late_puts |= record.outcome is Outcome.UNKNOWN
            case Done() | Later() as end:
                if may_have_acted(record):
                    self.ends.setdefault(end.id, []).append(record)
                elif record.missing:
                    self.missing.append(record)

    @staticmethod
    def _settle(job: Job) -> None:
        """Draw conclusions about a job once all its records are filed."""
        record = job.put
        if record is None or record.outcome is Outcome.NOT_EXECUTED:
            return
        if job.item is None and job.hand_outs and not is_ok(record):
            job.item = job.hand_outs[0].handed.item         # no client has seen the name that was made for NEW
        job.sound = True
        for hand_out in job.hand_outs:
            handed = hand_out.handed
            same = (handed.queue, handed.priority, handed.item) == (job.queue, job.priority, job.item)
            if not same or record.start_ns > hand_out.latest_ns:
                job.sound = False
            else:
                hand_out.earliest_ns = max(hand_out.earliest_ns, record.start_ns)

    def _narrow(self) -> bool:
        """Narrow the hand-outs' intervals by those with smaller and greater ids, unless they contradict each other."""
        earliest = 0
        bounds = []
        if any(one.id == other.id for one, other in pairwise(self.numbered)):
            return False
        for hand_out in self.numbered:
            earliest = max(earliest, hand_out.earliest_ns)
            if earliest > hand_out.latest_ns:
                return False
            bounds.append(earliest)
        latest_ns = NEVER
        for hand_out, earliest in zip(reversed(self.numbered), reversed(bounds), strict=True):
            latest_ns = min(latest_ns, hand_out.latest_ns)
            hand_out.earliest_ns, hand_out.latest_ns = earliest, latest_ns
        return True


def _id(hand_out: HandOut) -> int:
    return hand_out.id
