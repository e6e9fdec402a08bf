"""Readers of answers: how a status line is split into fields, and which error a refusal stands for.

A reader yields LINE to get the next line (without its CRLF), a number n to get the next n bytes, or a Waiting to report
that the first of two answers has arrived. It returns the value, or raises: a NotExecuted or OutcomeUnknown if that is
the answer (the connection is still in sync), a ProtocolError if the connection can no longer be trusted. Nothing here
knows where the bytes come from.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

from sockpq._protocol.arguments import INT64_MAX, NAME, UINT64_MAX
from sockpq._protocol.session import NumberUsed, SessionLost
from sockpq.errors import (
    AuthError,
    BadArguments,
    BindingNotFound,
    Busy,
    DataTooLarge,
    Elsewhere,
    ForbiddenError,
    GroupNotFound,
    InvalidSnapshot,
    ItemCancelled,
    ItemNotFound,
    ItemNotHeld,
    JobExists,
    JobNotFound,
    JobRunning,
    MapChanged,
    NotServing,
    NotSupported,
    OutcomeUnknown,
    ProtocolError,
    PulseExists,
    PulseInUse,
    PulseNotFound,
    QueueExists,
    QueueFull,
    QueueNotEmpty,
    QueueNotFound,
    QueuePaused,
    Refused,
    SockpqError,
    TicketNotFound,
    TooManyBindings,
    TooManyPulses,
    TopicNotFound,
    WaitTimeout,
    WorkerExists,
    WorkerNotFound,
)
from sockpq.model import Waiting

T = TypeVar("T")
Reader = Generator["int | Waiting", bytes, T]

LINE = -1
BODY_BYTES_MAX = 2**32              # a longer announcement is rubbish: the default limit of a snapshot is 4 GiB
LIST_LINES_MAX = 10_000_000

_REFUSALS: dict[str, type[SockpqError]] = {
    "400": BadArguments,
    "401": AuthError,
    "403": ForbiddenError,
    "404": Refused,
    "408": Refused,
    "409": Refused,
    "413": DataTooLarge,
    "429": Refused,
    "501": NotSupported,
    "503": Busy,
    "504": OutcomeUnknown,
}
_REFUSAL_LINES: dict[str, type[SockpqError]] = {
    "404 Queue Empty": ProtocolError,
    "404 Job Not Found": JobNotFound,
    "404 Session Not Found": SessionLost,
    "404 Group Not Found": GroupNotFound,
    "404 Item Not Found": ItemNotFound,
    "404 Item Not Held": ItemNotHeld,
    "409 Item Cancelled": ItemCancelled,
    "404 Queue Not Found": QueueNotFound,
    "404 Topic Not Found": TopicNotFound,
    "404 Binding Not Found": BindingNotFound,
    "503 Too Many Bindings": TooManyBindings,
    "404 Worker Not Found": WorkerNotFound,
    "409 Worker Exists": WorkerExists,
    "409 Job Exists": JobExists,
    "409 Job Running": JobRunning,
    "409 Queue Exists": QueueExists,
    "409 Queue Not Empty": QueueNotEmpty,
    "404 Pulse Not Found": PulseNotFound,
    "404 Ticket Not Found": TicketNotFound,
    "408 Wait Timeout": WaitTimeout,
    "409 Pulse Exists": PulseExists,
    "409 Pulse In Use": PulseInUse,
    "503 Too Many Pulses": TooManyPulses,
    "503 Queue Full": QueueFull,
    "503 Queue Paused": QueuePaused,
    "409 Request Mismatch": NumberUsed,
    "409 Request Too Old": SessionLost,
    "500 Offline Mode": NotServing,
    "500 Invalid Snapshot": InvalidSnapshot,
}
_ELSEWHERE, _MAP_CHANGED = "409 Elsewhere ", "409 Map Changed "      # and a word


def ok(line: bytes) -> list[str]:
    """Return the fields after `200 OK`; raises the error of any other status line."""
    return fields_of(as_text(line))


def fields_of(text: str) -> list[str]:
    """Return the fields of a line that is already decoded; see `ok`."""
    if text == "200 OK":
        return []
    if text.startswith("200 OK "):
        return text[7:].split(" ")
    raise failure(text)


def failure(text: str) -> SockpqError:
    """Return the error that a status line stands for."""
    if text.startswith(_ELSEWHERE):
        cluster = text.removeprefix(_ELSEWHERE)
        return Elsewhere(text, None if cluster == "-" else cluster)
    if text.startswith(_MAP_CHANGED):
        return MapChanged(text, as_number(text.removeprefix(_MAP_CHANGED)))
    if text.startswith("HTTP/"):
        return ProtocolError("this is a port for HTTP, such as the dashboard's: give the one for clients, as 11361")
    error = _REFUSAL_LINES.get(text) or _REFUSALS.get(text[:3] if text[3:4] == " " else text)
    return error(text) if error else ProtocolError(f"unexpected answer {text[:200]!r}")


def accepted(text: str) -> None:
    """Check a line whose only good form is `200 OK`; raises the error of any other."""
    if text != "200 OK":
        raise failure(text)


def accepted_with(expected: str, text: str) -> None:
    """Check a line whose only good form is `expected`; raises the error of any other."""
    if text != expected:
        raise failure(text)


def number_of(text: str) -> int:
    """Return the number in `200 OK <n>`."""
    fields = fields_of(text)
    expect(len(fields) == 1, "one number expected")
    return as_number(fields[0])


def expect(condition: bool, why: str) -> None:
    """Raise ProtocolError unless the condition holds."""
    if not condition:
        raise ProtocolError(why)


def as_text(line: bytes) -> str:
    """Decode a status line, which is ASCII."""
    try:
        return line.decode("ascii")
    except UnicodeDecodeError:
        raise ProtocolError(f"not a status line: {line[:200]!r}") from None


def as_name(field: str) -> str:
    """Parse the name of a queue or an item."""
    if NAME.fullmatch(field) is None:
        raise ProtocolError(f"not a name: {field[:300]!r}")
    return field


def as_number(field: str, high: int = UINT64_MAX) -> int:
    """Parse an unsigned number, at most `high`."""
    if not field.isdigit() or len(field) > 20:
        raise ProtocolError(f"not a number: {field[:100]!r}")
    value = int(field)
    if value > high:
        raise ProtocolError(f"number too large: {value}")
    return value


def as_signed(field: str) -> int:
    """Parse a signed number of 64 bits."""
    return -as_number(field[1:], INT64_MAX + 1) if field.startswith("-") else as_number(field, INT64_MAX)


def as_known(field: str) -> int | None:
    """Parse a number, None for `-`."""
    return None if field == "-" else as_number(field)


def data_block() -> Reader[bytes]:
    """Read a length, then that many bytes."""
    fields = ok((yield LINE))
    expect(len(fields) == 1, "one length expected")
    return (yield as_number(fields[0], BODY_BYTES_MAX))


def lines_of_list() -> Reader[list[str]]:
    """Read a count, then that many lines."""
    return (yield from list_of(str))


def list_of(parse: Callable[[str], T]) -> Reader[list[T]]:
    """Read a count, then that many lines, each parsed when it has come: a long list holds up no event loop."""
    fields = ok((yield LINE))
    expect(len(fields) == 1, "one count expected")
    result = []
    for _ in range(as_number(fields[0], LIST_LINES_MAX)):
        result.append(parse(as_text((yield LINE))))
    return result
