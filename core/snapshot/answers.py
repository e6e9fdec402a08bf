"""The answers that sessions remember, as rows of a snapshot, and back."""

from __future__ import annotations

from core.ops.replies import (
    Aborted,
    Accepted,
    DataTooLarge,
    Empty,
    Finished,
    InvalidSnapshot,
    JobExists,
    JobIgnored,
    JobReplaced,
    JobRunning,
    Leased,
    NotFound,
    QueueExists,
    QueueFull,
    QueueNotEmpty,
    QueueNotFound,
    QueuePaused,
    Rearmed,
    Removed,
    Reply,
    Results,
    SessionNotFound,
    Stored,
    TooManyQueues,
)
from core.snapshot.frames import (
    AbortedAnswer,
    AnswerRow,
    EmptyAnswer,
    FinishedAnswer,
    HandedAnswer,
    HandedManyAnswer,
    LeasedAnswer,
    PlainAnswer,
    RearmedAnswer,
    RemovedAnswer,
    ResultsAnswer,
    SingleAnswer,
    StoredAnswer,
    check,
)
from core.store.session import Answer, HandedOut, HandedOutMany

# Answers that are made once, because there may be millions of them.
_COMMON: list[tuple[Reply, SingleAnswer]] = [
    (Stored(), StoredAnswer(None)),
    (Empty(False), EmptyAnswer(False)),
    (Empty(True), EmptyAnswer(True)),
    *((Finished(queue, item), FinishedAnswer(queue, item)) for queue in (False, True) for item in (False, True)),
    (Accepted(), PlainAnswer("accepted")),
    (NotFound(), PlainAnswer("not found")),
    (InvalidSnapshot(), PlainAnswer("invalid")),
    (SessionNotFound(), PlainAnswer("no session")),
    (JobExists(), PlainAnswer("job exists")),
    (JobIgnored(), PlainAnswer("job ignored")),
    (JobReplaced(), PlainAnswer("job replaced")),
    (JobRunning(), PlainAnswer("job running")),
    (QueueNotFound(), PlainAnswer("queue not found")),
    (QueueExists(), PlainAnswer("queue exists")),
    (QueueNotEmpty(), PlainAnswer("queue not empty")),
    (QueueFull(), PlainAnswer("queue full")),
    (QueuePaused(), PlainAnswer("queue paused")),
    (DataTooLarge(), PlainAnswer("too large")),
    (TooManyQueues(), PlainAnswer("too many queues")),
]
_ROWS: dict[Answer, SingleAnswer] = dict(_COMMON)
_ANSWERS = {row: answer for answer, row in _COMMON}


def answer_row(answer: Answer) -> AnswerRow:
    """The row of an answer."""
    match answer:
        case HandedOut(number):
            return HandedAnswer(number)
        case Results(replies):
            return ResultsAnswer(tuple([_single_row(reply) for reply in replies]))
        case Aborted(position, reply):
            return AbortedAnswer(position, _single_row(reply))
        case _:
            return _single_row(answer)


def _single_row(answer: Answer) -> SingleAnswer:
    match answer:
        case Stored(str(item)):
            return StoredAnswer(item)
        case HandedOutMany(numbers):
            return HandedManyAnswer(numbers)
        case Rearmed(next_ms):
            return RearmedAnswer(next_ms)
        case Leased(deadline_ms):
            return LeasedAnswer(deadline_ms)
        case Removed(count, more):
            return RemovedAnswer(count, more)
        case _:
            return _ROWS[answer]


def ids_of(row: AnswerRow) -> tuple[int, ...]:
    """The ids of the jobs that the answer handed out."""
    return (row.id,) if isinstance(row, HandedAnswer) else row.ids if isinstance(row, HandedManyAnswer) else ()


def answer_of(row: AnswerRow) -> Answer:
    """The answer in the row. Raises SnapshotError."""
    match row:
        case ResultsAnswer(rows):
            return Results(tuple([_reply_of(one) for one in rows]))
        case AbortedAnswer(position, one):
            return Aborted(position, _reply_of(one))
        case HandedAnswer(number):
            return HandedOut(number)
        case HandedManyAnswer(numbers):
            return HandedOutMany(numbers)
        case _:
            return _reply_of(row)


def _reply_of(row: SingleAnswer) -> Reply:
    match row:
        case StoredAnswer(str(item)):
            return Stored(item)
        case RearmedAnswer(next_ms):
            return Rearmed(next_ms)
        case LeasedAnswer(deadline_ms):
            return Leased(deadline_ms)
        case RemovedAnswer(count, more):
            return Removed(count, more)
        case _:
            check(row in _ANSWERS, "an answer in a batch that can be in none")
            return _ANSWERS[row]
