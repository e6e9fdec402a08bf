"""A command of the protocol as a value: its bytes, the reader of its answer, and the rule for a lost answer."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from sockpq._protocol.reader import LINE, Reader, as_text

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Repeat(Enum):
    """The rule for repeating a command that was sent and whose answer was lost."""

    FREELY = "it changes nothing"
    HARMLESS = "doing it twice does no harm: a lost job returns when its lease ends, an id is done only once"
    IF_ASKED = "doing it twice may be wrong: only if the caller accepts at-least-once"


class Blocks(Enum):
    """The commands whose answers the server may delay for any length of time, and the point at which it may."""

    NEVER = "it answers at once"
    AT_ONCE = "GETB, GETBE: until a job comes"
    AFTER_206 = "PUT .. WAIT: the first line at once, the output when it comes"


class MissingJob(NamedTuple):
    """The value of a command whose repetition finds no such job, after an attempt whose answer was lost.

    `always`: return it for all callers, as it does not matter which attempt succeeded; otherwise only if they accept
    at-least-once.
    """

    value: Any
    always: bool


class Hidden(bytes):
    """The line of a command with a secret in it, which must not appear in logs or debuggers."""

    def __repr__(self) -> str:
        return "<hidden>"


class Command(NamedTuple, Generic[T]):
    """One command, ready to send."""

    line: bytes
    data: bytes
    read: Callable[[], Reader[T]]
    repeat: Repeat
    blocks: Blocks = Blocks.NEVER
    slow: bool = False      # it may take its time: silence meanwhile is no reason for concern
    logged: bool = False    # it may be a numbered request of a session
    needs: tuple[str, ...] = ()             # words of CAPS: it must not be sent to a server that does not list them
    older: Command[Any] | None = None       # to be sent to such a server (an original sockPQd has no CAPS) instead
    opening: Command[Any] | None = None     # sent before it on the same connection; must be answered well
    prelude: bytes = b""                    # goes directly before its line
    of_line: Callable[[str], T] | None = None       # what a single line means that is the answer, instead of `read`
    gone: MissingJob | None = None
    unblocked: Command[Any] | None = None   # of a GETB: the GET; under the same number it tells what that one has got
    place: str = ""         # a queue: the cluster that owns it executes the command, which does not name it itself
    members: tuple[Command[Any], ...] = ()  # of a transaction, and of a PUTS: the commands in it
    beside: str = ""        # an item: of several clusters only the one that has it may execute the command


class Steps(NamedTuple, Generic[T]):
    """Commands that are executed one after another; the call returns the result of the last one."""

    before: tuple[Command[Any], ...]
    last: Command[T]


def single(
    line: str | bytes, of_line: Callable[[str], T], repeat: Repeat, *, data: bytes = b"", logged: bool = False,
    slow: bool = False, needs: tuple[str, ...] = (), gone: MissingJob | None = None,
) -> Command[T]:
    """Return a command whose answer is a single line; `line` is without its CRLF."""
    written = (line.encode() if isinstance(line, str) else line) + b"\r\n"
    return Command(
        written, data, lambda: _one_line(of_line), repeat, slow=slow, logged=logged, needs=needs, of_line=of_line,
        gone=gone,
    )


def _one_line(of_line: Callable[[str], T]) -> Reader[T]:
    return of_line(as_text((yield LINE)))


def call(
    at: Literal["leader", "any", "one", "elected"] = "leader",
    *,
    retry: bool = False,
    job: bool = False,
    transaction: bool = False,
) -> Callable[[F], F]:
    """Mark the declaration of a call: both clients get a method with this name, signature and documentation.

    client/tools/faces.py writes these methods. `at`: which server executes it: "leader", the serving one; "any", the
    leader or a server the caller names; "one", the server the caller names; "elected", the leader even if it serves
    no clients. `retry`: the method has `retry_unknown`. `job`: Job has a method of this name that ends the job;
    `transaction`: Transaction has one.
    """
    return lambda declaration: declaration
