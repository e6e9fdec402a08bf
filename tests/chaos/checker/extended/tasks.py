"""Jobs that were put or taken by extended commands, each with the commands on it.

A part of a command surely took effect, perhaps, or surely not. An acknowledged one did. One of unknown outcome may
have, unless it is a transaction, or puts copies, which is all or nothing: when one of its jobs was seen it was
executed, as a whole, and when after a drain none was seen it was not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from msgspec import Struct, field

from tests.chaos.checker.evidence.jobs import HandOut, Jobs
from tests.chaos.checker.evidence.moments import NEVER
from tests.chaos.checker.facts import Facts
from tests.chaos.workload.history import (
    Cascade,
    Command,
    Copies,
    Done,
    DoneMany,
    Later,
    LaterMany,
    Move,
    Outcome,
    PutOff,
    Puts,
    PutWith,
    Record,
    Touch,
    TouchMany,
)

ENDS = (Done, DoneMany, Cascade)        # the commands that finish a job


class Effect(Enum):
    """The certainty that a command took effect."""

    SURE = "sure"
    PERHAPS = "perhaps"
    NEVER = "never"


class Act(Struct, eq=False):
    """A command, or a part of one, that concerns a job. It took effect not before `earliest_ns`, and not after
    `latest_ns` if ever."""

    record: Record
    effect: Effect
    latest_ns: int

    @property
    def command(self) -> Command:
        """Return the command that was recorded."""
        return self.record.command

    @property
    def earliest_ns(self) -> int:
        """The earliest time at which it took effect."""
        return self.record.start_ns

    @property
    def ends(self) -> bool:
        """True if it finishes its job."""
        return isinstance(self.command, ENDS)


class Turn(Struct, eq=False):
    """A hand-out, and the commands on its id in order of start, except those that certainly had no effect."""

    hand_out: HandOut
    acts: list[Act] = field(default_factory=list)
    missed: list[Act] = field(default_factory=list)     # those answered that the job does not run

    @property
    def id(self) -> int:
        """The id under which the job runs."""
        return self.hand_out.id


class Task(Struct, eq=False):
    """A body, its PUT, and its hand-outs in rising id. `put`: None if no PUT of it is recorded."""

    body: str
    put: PutWith | None = None
    birth: Act | None = None
    turns: list[Turn] = field(default_factory=list)

    @property
    def done(self) -> list[Act]:
        """All commands that certainly finished it."""
        return [act for turn in self.turns for act in turn.acts if act.ends and act.effect is Effect.SURE]

    def over_earliest_ns(self) -> int:
        """The earliest time at which it was finished, or left the queue it was put into."""
        leaving = (*ENDS, Move)
        acts = (act for turn in self.turns for act in turn.acts if isinstance(act.command, leaving))
        return min((act.earliest_ns for act in acts), default=NEVER)


class Tasks:
    """All tasks of a history, by body."""

    def __init__(self, records: Iterable[Record], jobs: Jobs, facts: Facts) -> None:
        self.by_body: dict[str, Task] = {}
        self._turns: dict[int, Turn] = {}
        self._running = {one.body for one in facts.running}
        self._drained = facts.drained
        for hand_out in jobs.portions:
            turn = self._turns[hand_out.id] = Turn(hand_out)
            self._task(hand_out.handed.body).turns.append(turn)
        for record in sorted(records, key=lambda record: record.start_ns):
            self._file(record)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.by_body.values())

    def _task(self, body: str) -> Task:
        return self.by_body.setdefault(body, Task(body))

    def _file(self, record: Record) -> None:
        match record.command:
            case PutWith() as put:
                self._born(put, _act(record, 0))
            case Puts(puts):
                for number, put in enumerate(puts):
                    self._born(put, _act(record, number))
            case Cascade(done, puts):
                act = self._together(record, puts)
                for put in puts:
                    self._born(put, act)
                self._acted(done, act)
            case Copies(puts):
                act = self._together(record, puts)
                for put in puts:
                    self._born(put, act)
            case DoneMany(ids) | LaterMany(ids) | TouchMany(ids):
                for place, number in enumerate(ids):
                    self._acted(number, _act(record, place))
            case Done(number) | Later(number) | PutOff(number) | Touch(number) | Move(number):
                self._acted(number, _act(record, 0))

    def _born(self, put: PutWith, act: Act) -> None:
        task = self._task(put.body)
        if task.birth is not None:
            raise ValueError(f"{put.body} is put twice: that is no history the checker can judge")
        task.put, task.birth = put, act

    def _acted(self, number: int, act: Act) -> None:
        turn = self._turns.get(number)
        if turn is None:
            return
        if act.effect is not Effect.NEVER:
            turn.acts.append(act)
        elif act.record.outcome is Outcome.OK:
            turn.missed.append(act)

    def _together(self, record: Record, puts: tuple[PutWith, ...]) -> Act:
        act = _act(record, 0)
        if record.outcome is Outcome.UNKNOWN:
            seen = [self.by_body[put.body] for put in puts if put.body in self.by_body]
            if seen or any(put.body in self._running for put in puts):
                turns = [turn.hand_out.latest_ns for task in seen for turn in task.turns]
                act.effect, act.latest_ns = Effect.SURE, min(turns, default=NEVER)
            elif self._drained:
                act.effect = Effect.NEVER
        return act


def _act(record: Record, part: int) -> Act:
    """Return the outcome of a part of a command."""
    if record.outcome is Outcome.UNKNOWN:
        return Act(record, Effect.PERHAPS, NEVER)
    good = record.good[part] if record.good else not record.missing
    if record.outcome is Outcome.NOT_EXECUTED or not good:
        return Act(record, Effect.NEVER, NEVER)
    return Act(record, Effect.SURE, NEVER if record.end_ns is None else record.end_ns)
