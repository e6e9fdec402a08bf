"""The commands for several jobs at once, for jobs by key or id, and transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

from sockpq._protocol import arguments, job_replies, replies
from sockpq._protocol.arguments import UINT64_MAX, Then
from sockpq._protocol.commands import Block, Blocks, Command, Repeat, get_line
from sockpq._protocol.session import NUMBER_BYTES_MAX
from sockpq.errors import BadArguments, DataTooLarge
from sockpq.model import Finished, Handed, Key, PeekedJob
from sockpq.options import Data, as_key, as_word, get_options, ranked, when, within

T = TypeVar("T")
State = Literal["ready", "delayed", "running", "dead"]

BATCH_JOBS_MAX = 4096                   # of a command that a session is to remember the answer of
BATCH_BYTES_MAX = 16 * 1024 * 1024      # of all jobs put by one command, with their lines
TRANSACTION_COMMANDS_MAX = 1000
PEEK_JOBS_MAX = 10_000
KICK_JOBS_MAX = 2**31 - 1


class Part(NamedTuple):
    """A piece of a batch: the command for it, and how many of the whole it is."""

    command: Command[Any]
    members: int


def puts_batch(puts: Sequence[Command[str | None]]) -> list[Part]:
    """PUTS, as many of them as needed. A job that fits into none goes alone."""
    parts = []
    for piece in _pieces(puts, lambda put: len(put.line) - 4 + len(put.data), BATCH_BYTES_MAX):
        head = f"PUTS {len(piece)}\r\n".encode()
        body = b"".join(part for put in piece for part in (put.line[4:], put.data))     # without "PUT "
        if len(body) > BATCH_BYTES_MAX:
            parts.append(Part(piece[0], 1))
            continue
        read = partial(job_replies.each, job_replies.is_new, len(piece))
        parts.append(Part(Command(head, body, read, Repeat.IF_ASKED, logged=True, needs=("batch",)), len(piece)))
    return parts


def get_batch(
    count: int,
    queues: str | Iterable[str] | None = None,
    block: Block = False,
    expire: float | None = None,
    then: Then | None = None,
    wait: float | None = None,
    *,
    item: str | None = None,
    meta: bool = False,
    policy: str | None = None,
) -> Command[list[Handed]]:
    """GET .. COUNT."""
    if wait is not None and block is False:
        raise BadArguments("wait limits a blocking get: it needs block")
    names, line = get_line(
        queues if queues is None or isinstance(queues, str) else tuple(queues), block, expire, then, True
    )
    line += f"{get_options(item, meta, policy)} COUNT {count}{'' if wait is None else within(wait)}\r\n"
    return Command(
        _short(line), b"", partial(replies.jobs, names, count, meta),
        Repeat.HARMLESS if expire else Repeat.IF_ASKED, Blocks.AT_ONCE if block else Blocks.NEVER, logged=True,
        needs=("batch",) if wait is None else ("batch", "within"),
    )


def ends(verb: Literal["DONE", "LATER"], ids: Iterable[int]) -> list[Part]:
    """DONE or LATER of several jobs, as many of them as needed."""
    read = replies.as_finished if verb == "DONE" else job_replies.as_accepted
    words = [b" %d" % job_id(number) for number in ids]
    room = arguments.LINE_BYTES_MAX - NUMBER_BYTES_MAX - len(verb) - 2
    parts = []
    for piece in _pieces(words, len, room):
        line = verb.encode() + b"".join(piece) + b"\r\n"
        several = len(piece) > 1        # one has an answer of another form
        reader = partial(job_replies.each if several else job_replies.alone, read, len(piece))
        needs = ("batch",) if several else ()
        parts.append(Part(Command(line, b"", reader, Repeat.HARMLESS, logged=True, needs=needs), len(piece)))
    return parts


def done_last(number: int) -> Command[Finished]:
    """DONE .. LAST."""
    return Command(b"DONE %d LAST\r\n" % job_id(number), b"", replies.finished, Repeat.HARMLESS, logged=True)


def later(
    number: int, *, delay: float | None = None, at: float | None = None, priority: int | None = None,
    first: bool = False, yielded: bool = False,
) -> Command[None]:
    """LATER with options; see LaterOptions."""
    if arguments.switch(first, "first") and (delay is not None or at is not None):
        raise BadArguments("first is the job's old place, delay and at another one: not both")
    words = when(delay, at) + ranked(priority)
    words += (" FIRST" if first else "") + (" YIELD" if arguments.switch(yielded, "yielded") else "")
    return _accepted(f"LATER {job_id(number)}{words}", Repeat.HARMLESS)


def touch(number: int, expire: float | None = None, then: Then | None = None) -> Command[int | None]:
    """TOUCH."""
    line = f"TOUCH {job_id(number)}{arguments.lease(expire, then)}\r\n"
    return Command(line.encode(), b"", job_replies.leased, Repeat.HARMLESS, logged=True)


def change(
    job: int | Key, *, data: Data | None = None, priority: int | None = None, delay: float | None = None,
    at: float | None = None, item: str | None = None, no_item: bool = False,
) -> Command[None]:
    """CHANGE."""
    if arguments.switch(no_item, "no_item") and item is not None:
        raise BadArguments("item names another item, no_item takes it away: not both")
    words = ranked(priority) + when(delay, at) + (" NOITEM" if no_item else "")
    words += "" if item is None else f" IS {arguments.name(item, 'item')}"
    if not words and data is None:
        raise BadArguments("change() without anything to change")
    return _with_data(f"CHANGE {_selector(job)}{words}", data, replies.done, "change")


def move(
    number: int, queue: str, *, data: Data | None = None, priority: int | None = None, delay: float | None = None,
    at: float | None = None,
) -> Command[Finished]:
    """MOVE."""
    line = f"MOVE {job_id(number)} {arguments.name(queue, 'queue')}{ranked(priority)}{when(delay, at)}"
    return _with_data(line, data, replies.finished, "move")


def delete(job: int | Key) -> Command[Finished]:
    """DELETE. By key a repetition could meet another job of this key."""
    repeat = Repeat.IF_ASKED if isinstance(job, Key) else Repeat.HARMLESS
    return Command(f"DELETE {_selector(job)}\r\n".encode(), b"", replies.finished, repeat, logged=True)


def bury(number: int, reason: str | None = None) -> Command[Finished]:
    """BURY."""
    line = f"BURY {job_id(number)}" + ("" if reason is None else f" REASON {as_word(reason)}")
    return Command(f"{line}\r\n".encode(), b"", replies.finished, Repeat.HARMLESS, logged=True)


def kick(queue: str, count: int) -> Command[int]:
    """KICK."""
    count = arguments.integer(count, "count", 1, KICK_JOBS_MAX)
    line = f"KICK {arguments.name(queue, 'queue')} {count}\r\n"
    return Command(line.encode(), b"", replies.number, Repeat.IF_ASKED, slow=True, logged=True)


def peek(job: int | Key) -> Command[PeekedJob | None]:
    """PEEK of one job."""
    return Command(f"PEEK {_selector(job)}\r\n".encode(), b"", job_replies.peeked, Repeat.FREELY)


def peek_queue(queue: str, state: State = "ready", count: int = 1) -> Command[list[PeekedJob]]:
    """PEEK of a queue's first jobs in this state."""
    count = arguments.integer(count, "count", 1, PEEK_JOBS_MAX)
    line = f"PEEK {arguments.name(queue, 'queue')} {as_state(state)} COUNT {count}\r\n"
    return Command(line.encode(), b"", partial(job_replies.peeked_many, count), Repeat.FREELY)


def as_state(state: str) -> str:
    """The state as the protocol has it."""
    if state not in ("ready", "delayed", "running", "dead"):
        raise BadArguments(f"a state is 'ready', 'delayed', 'running' or 'dead', not {state!r}")
    return state.upper()


def transaction(commands: Sequence[Command[Any]], readers: Sequence[Callable[[str], object]]) -> Command[list[object]]:
    """BEGIN, these commands, COMMIT. `readers`: for each command what its line in the answer to COMMIT means.

    Nothing is sent before BEGIN is answered: a server that does not take it would execute the commands one by one. It
    is the COMMIT that has the number of the request.
    """
    if len(commands) > TRANSACTION_COMMANDS_MAX:
        raise BadArguments(f"a transaction has {TRANSACTION_COMMANDS_MAX} commands at most, not {len(commands)}")
    prelude = b"".join(part for command in commands for part in (command.line, command.data))
    if len(prelude) > BATCH_BYTES_MAX:
        raise DataTooLarge(f"a transaction has {BATCH_BYTES_MAX} bytes at most, not {len(prelude)}")
    read = partial(job_replies.committed, tuple(readers))
    return Command(b"COMMIT\r\n", b"", read, Repeat.IF_ASKED, logged=True, opening=_BEGIN, prelude=prelude)


def job_id(number: int) -> int:
    """`number`, when it may be the id of a job."""
    return arguments.integer(number, "job id", 0, UINT64_MAX)


def _selector(job: int | Key) -> str:
    if isinstance(job, Key):
        return f"KEY {arguments.name(job.queue, 'queue')} {as_key(job.key)}"
    return str(job_id(job))


def _accepted(line: str, repeat: Repeat) -> Command[None]:
    return Command(f"{line}\r\n".encode(), b"", replies.done, repeat, logged=True)


def _with_data(line: str, data: Data | None, read: Callable[[], Any], word: str) -> Command[Any]:
    """A command that may end with `DATA <len>`; the block must not come to a server that takes it for commands."""
    if data is None:
        return Command(f"{line}\r\n".encode(), b"", read, Repeat.HARMLESS, logged=True)
    body = arguments.body(data)
    return Command(f"{line} DATA {len(body)}\r\n".encode(), body, read, Repeat.HARMLESS, logged=True, needs=(word,))


def _short(line: str) -> bytes:
    if len(line) + NUMBER_BYTES_MAX > arguments.LINE_BYTES_MAX:
        raise BadArguments(f"too many queues: the command would have {len(line)} bytes")
    return line.encode()


def _pieces(things: Sequence[T], size: Callable[[T], int], size_max: int) -> Iterator[list[T]]:
    """Pieces of at most BATCH_JOBS_MAX things and `size_max` together; at least one thing each."""
    piece: list[T] = []
    room = size_max
    for thing in things:
        if piece and (len(piece) == BATCH_JOBS_MAX or size(thing) > room):
            yield piece
            piece, room = [], size_max
        piece.append(thing)
        room -= size(thing)
    if piece:
        yield piece


_BEGIN: Command[None] = Command(b"BEGIN\r\n", b"", job_replies.begun, Repeat.FREELY)
