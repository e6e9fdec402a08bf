"""Converts the answers that sessions remember to rows of a snapshot and back."""

from __future__ import annotations

from msgspec import UNSET

from sockpqd.core.ops import replies
from sockpqd.core.sessions.session import FORGOTTEN, Answer, HandedOut, HandedOutMany
from sockpqd.core.snapshot import frames
from sockpqd.core.snapshot.frames import check

# One object each, shared by all sessions: there may be millions of them.
_COMMON: list[tuple[replies.Reply, frames.SingleAnswer]] = [
    (replies.STORED, frames.StoredAnswer(None)),
    (replies.EMPTY, frames.EmptyAnswer(False)),
    (replies.EMPTY_UNFINISHED, frames.EmptyAnswer(True)),
    *((finished, frames.FinishedAnswer(queue, item)) for (queue, item), finished in replies.FINISHED.items()),
    (replies.ACCEPTED, frames.PlainAnswer("accepted")),
    (replies.NOT_FOUND, frames.PlainAnswer("not found")),
    (replies.INVALID_SNAPSHOT, frames.PlainAnswer("invalid")),
    (replies.SESSION_NOT_FOUND, frames.PlainAnswer("no session")),
    (replies.JOB_EXISTS, frames.PlainAnswer("job exists")),
    (replies.ITEM_NOT_FOUND, frames.PlainAnswer("item not found")),
    (replies.ITEM_CANCELLED, frames.PlainAnswer("item cancelled")),
    (replies.ITEM_NOT_HELD, frames.PlainAnswer("item not held")),
    (replies.TOO_MANY_HOLDS, frames.PlainAnswer("too many holds")),
    (replies.JOB_DROPPED, frames.PlainAnswer("job dropped")),
    (replies.JOB_IGNORED, frames.PlainAnswer("job ignored")),
    (replies.JOB_REPLACED, frames.PlainAnswer("job replaced")),
    (replies.JOB_RUNNING, frames.PlainAnswer("job running")),
    (replies.QUEUE_NOT_FOUND, frames.PlainAnswer("queue not found")),
    (replies.QUEUE_EXISTS, frames.PlainAnswer("queue exists")),
    (replies.QUEUE_NOT_EMPTY, frames.PlainAnswer("queue not empty")),
    (replies.QUEUE_FULL, frames.PlainAnswer("queue full")),
    (replies.QUEUE_PAUSED, frames.PlainAnswer("queue paused")),
    (replies.DATA_TOO_LARGE, frames.PlainAnswer("too large")),
    (replies.TOO_MANY_QUEUES, frames.PlainAnswer("too many queues")),
    (replies.TopicNotFound(), frames.PlainAnswer("topic not found")),
    (replies.BindingNotFound(), frames.PlainAnswer("binding not found")),
    (replies.TooManyBindings(), frames.PlainAnswer("too many bindings")),
    (replies.WorkerNotFound(), frames.PlainAnswer("worker not found")),
    (replies.WorkerExists(), frames.PlainAnswer("worker exists")),
    (replies.TooManyWorkers(), frames.PlainAnswer("too many workers")),
    (replies.PULSE_EXISTS, frames.PlainAnswer("pulse exists")),
    (replies.PULSE_NOT_FOUND, frames.PlainAnswer("pulse not found")),
    (replies.PULSE_IN_USE, frames.PlainAnswer("pulse in use")),
    (replies.TOO_MANY_PULSES, frames.PlainAnswer("too many pulses")),
    (replies.BAD_SETTING, frames.PlainAnswer("bad setting")),
    (replies.GROUP_DECIDED, frames.PlainAnswer("group decided")),
    (replies.TICKET_NOT_FOUND, frames.PlainAnswer("ticket not found")),
    (replies.GroupNotFound(), frames.PlainAnswer("group not found")),
    (replies.TooManyGroups(), frames.PlainAnswer("too many groups")),
    (FORGOTTEN, frames.PlainAnswer("request too old")),
]
_ROWS: dict[Answer, frames.SingleAnswer] = dict(_COMMON)
_ANSWERS = {row: answer for answer, row in _COMMON}


def answer_row(answer: Answer) -> frames.AnswerRow:
    """Return the row that stores the answer."""
    match answer:
        case HandedOut(number):
            return frames.HandedAnswer(number)
        case replies.Results(answers):
            return frames.ResultsAnswer(tuple([_single_row(reply) for reply in answers]))
        case replies.Aborted(position, reply):
            return frames.AbortedAnswer(position, _single_row(reply))
        case _:
            return _single_row(answer)


def _single_row(answer: Answer) -> frames.SingleAnswer:
    match answer:
        case replies.Stored(str(item)):
            return frames.StoredAnswer(item)
        case replies.StoredNumber(number, item):
            return frames.StoredNumberAnswer(number, item)
        case replies.IgnoredNumber(number):
            return frames.IgnoredNumberAnswer(number)
        case HandedOutMany(numbers):
            return frames.HandedManyAnswer(numbers)
        case replies.Rearmed(next_ms):
            return frames.RearmedAnswer(next_ms)
        case replies.Leased(deadline_ms):
            return frames.LeasedAnswer(deadline_ms)
        case replies.DataDropped(reply):
            inside = _single_row(reply)
            assert isinstance(inside, frames.FinishedAnswer | frames.PlainAnswer | frames.RearmedAnswer)
            return frames.DroppedAnswer(inside)
        case replies.Removed(count, more, buried):
            return frames.RemovedAnswer(count, more, None if buried is UNSET else buried)
        case replies.Moved(count, left, behind, refusal):
            refused = None if refusal is None else _single_row(refusal)
            assert refused is None or isinstance(refused, frames.PlainAnswer | frames.ElsewhereAnswer)
            return frames.MovedAnswer(count, left, behind, refused)
        case replies.Spread(count):
            return frames.SpreadAnswer(count)
        case replies.WorkerBounds(most, least, state):
            return frames.BoundsAnswer(most, least, state)
        case replies.Turn(ticket):
            return frames.TurnAnswer(ticket)
        case replies.Elsewhere(cluster):
            return frames.ElsewhereAnswer(cluster)
        case _:
            return _ROWS[answer]


def ids_of(row: frames.AnswerRow) -> tuple[int, ...]:
    """Return the ids of the jobs that the answer handed out."""
    if isinstance(row, frames.HandedAnswer):
        return (row.id,)
    return row.ids if isinstance(row, frames.HandedManyAnswer) else ()


def answer_of(row: frames.AnswerRow) -> Answer:
    """Return the answer that the row stores. Raises SnapshotError."""
    match row:
        case frames.ResultsAnswer(rows):
            return replies.Results(tuple([_reply_of(one) for one in rows]))
        case frames.AbortedAnswer(position, one):
            return replies.Aborted(position, _reply_of(one))
        case frames.HandedAnswer(number):
            return HandedOut(number)
        case frames.HandedManyAnswer(numbers):
            return HandedOutMany(numbers)
        case _:
            return _reply_of(row)


def _reply_of(row: frames.SingleAnswer) -> replies.Reply:
    match row:
        case frames.StoredAnswer(str(item)):
            return replies.Stored(item)
        case frames.StoredNumberAnswer(number, item):
            return replies.StoredNumber(number, item)
        case frames.IgnoredNumberAnswer(number):
            return replies.IgnoredNumber(number)
        case frames.RearmedAnswer(next_ms):
            return replies.Rearmed(next_ms)
        case frames.LeasedAnswer(deadline_ms):
            return replies.Leased(deadline_ms)
        case frames.DroppedAnswer(one):
            inside = _reply_of(one)
            check(isinstance(inside, replies.Finished | replies.Accepted | replies.Rearmed), "data that no job had")
            assert isinstance(inside, replies.Finished | replies.Accepted | replies.Rearmed)
            return replies.DataDropped(inside)
        case frames.RemovedAnswer(count, more, buried):
            return replies.Removed(count, more, UNSET if buried is None else buried)
        case frames.MovedAnswer(count, left, behind, refusal):
            return replies.Moved(count, left, behind, None if refusal is None else _reply_of(refusal))
        case frames.SpreadAnswer(count):
            return replies.Spread(count)
        case frames.BoundsAnswer(most, least, state):
            return replies.WorkerBounds(most, least, state)
        case frames.TurnAnswer(ticket):
            return replies.Turn(ticket)
        case frames.ElsewhereAnswer(cluster):
            return replies.Elsewhere(cluster)
        case _:
            check(row in _ANSWERS, "an answer in a batch that can be in none")
            return _ANSWERS[row]
