"""The commands of beanstalkd, and how a line becomes one.

The rules are those of beanstalkd 1.13, even where they are odd: verbs are compared by their beginning, so `stats x` is
a stats with a bad format and `quitting` is a quit; numbers may have any spaces before them; some commands ignore what
follows their arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct

from sockpqd.beanstalk.limits import NAME_BYTES_MAX, U32_MAX, U64_MAX, WAIT_S_MAX

NAME = re.compile(rb"[A-Za-z0-9+/;.$_()][-A-Za-z0-9+/;.$_()]*")
_NUMBER = re.compile(rb" *([0-9]+)")
_PAUSE = re.compile(rb" *([-A-Za-z0-9+/;.$_()]+)(.*)", re.DOTALL)
_BOUND = re.compile(rb"[ \t\n\v\f\r]*([-+]?)([0-9]+)")      # as strtoul() reads it


class ParsedCommand(Struct, frozen=True, gc=False):
    """A command: its verb, as in the counters of `stats`, and its arguments.

    `numbers`: in the order of the line, without the length of a put. `name`: a tube. `body`: the data of a put.
    """

    verb: str
    numbers: tuple[int, ...] = ()
    name: str = ""
    body: bytes = b""


class BodyHeader(NamedTuple):
    """The body announced by a line: its `length` without CR LF. `clean`: nothing follows the length."""

    length: int
    clean: bool


class BadFormat(Exception):
    """The command is malformed: it is answered BAD_FORMAT."""


_USUAL = re.compile(
    rb"put ([0-9]{1,9}) ([0-9]{1,9}) ([0-9]{1,9}) ([0-9]{1,9})\r\n"
    rb"|reserve\r\n|reserve-with-timeout ([0-9]{1,9})\r\n|delete ([0-9]{1,18})\r\n"
)


def usual_command(data: bytes, body_bytes_max: int) -> ParsedCommand | None:
    """The command if these bytes are exactly one common command; None: they must be read line by line."""
    found = _USUAL.match(data)
    if found is None:
        return None
    end, last = found.end(), found.lastindex
    if last == 4:
        length = int(found[4])
        if length > body_bytes_max or len(data) != end + length + 2 or data[-2:] != b"\r\n":
            return None
        return ParsedCommand("put", (int(found[1]), int(found[2]), int(found[3])), "", data[end:-2])
    if len(data) != end:
        return None
    if last is None:
        return ParsedCommand("reserve")
    return ParsedCommand("reserve-with-timeout" if last == 5 else "delete", (int(found[last]),))


def read_line(line: bytes) -> tuple[ParsedCommand, BodyHeader | None] | None:
    """The command of a line (without CR LF), and the header of its body; None: there is no such verb.

    Raises BadFormat.
    """
    if b"\0" in line:
        raise BadFormat
    for beginning, verb, read in _ROWS.get(line[:1], ()):
        if line.startswith(beginning):
            return read(verb, line[len(beginning):])
    return None


def numbers(text: bytes, *limits: int, rest: bool = False) -> tuple[tuple[int, ...], bytes]:
    """Parse as many numbers as there are limits; return them and the rest, which must be empty unless `rest`.

    Raises BadFormat.
    """
    found = []
    for limit in limits:
        match = _NUMBER.match(text)
        if match is None or len(match[1]) > 30 or (number := int(match[1])) > limit:
            raise BadFormat
        found.append(number)
        text = text[match.end():]
    if text and not rest:
        raise BadFormat
    return tuple(found), text


def tube_name(text: bytes) -> str:
    """The name of a tube; raises BadFormat."""
    if len(text) > NAME_BYTES_MAX or NAME.fullmatch(text) is None:
        raise BadFormat
    return text.decode("ascii")


_Read = Callable[[str, bytes], tuple[ParsedCommand, BodyHeader | None]]
_Row = tuple[bytes, str, _Read]


def _bare(verb: str, rest: bytes) -> tuple[ParsedCommand, BodyHeader | None]:
    if rest:
        raise BadFormat
    return ParsedCommand(verb), None


def _quit(verb: str, rest: bytes) -> tuple[ParsedCommand, BodyHeader | None]:
    return ParsedCommand(verb), None


def _put(verb: str, rest: bytes) -> tuple[ParsedCommand, BodyHeader | None]:
    (priority, delay, ttr, length), rest = numbers(rest, U32_MAX, U32_MAX, U32_MAX, U32_MAX, rest=True)
    return ParsedCommand(verb, (priority, delay, ttr)), BodyHeader(length, clean=not rest)


def _numbers(*limits: int, rest: bool = False) -> _Read:
    def read(verb: str, text: bytes) -> tuple[ParsedCommand, BodyHeader | None]:
        return ParsedCommand(verb, numbers(text, *limits, rest=rest)[0]), None

    return read


def _tube(verb: str, rest: bytes) -> tuple[ParsedCommand, BodyHeader | None]:
    return ParsedCommand(verb, name=tube_name(rest)), None


def _pause(verb: str, rest: bytes) -> tuple[ParsedCommand, BodyHeader | None]:
    match = _PAUSE.fullmatch(rest)
    if match is None:
        raise BadFormat
    seconds, _ = numbers(match[2], U32_MAX)
    return ParsedCommand(verb, seconds, tube_name(match[1])), None


def _kick(verb: str, rest: bytes) -> tuple[ParsedCommand, BodyHeader | None]:
    match = _BOUND.match(rest)
    if match is None or int(match[2]) > U64_MAX:
        raise BadFormat
    count = int(match[2])
    return ParsedCommand(verb, (U64_MAX + 1 - count if match[1] == b"-" and count else count,)), None


# In the order in which beanstalkd compares them.
_TABLE: list[_Row] = [
    (b"put ", "put", _put),
    (b"peek ", "peek", _numbers(U64_MAX)),
    (b"peek-ready", "peek-ready", _bare),
    (b"peek-delayed", "peek-delayed", _bare),
    (b"peek-buried", "peek-buried", _bare),
    (b"reserve-with-timeout ", "reserve-with-timeout", _numbers(WAIT_S_MAX, rest=True)),
    (b"reserve-job ", "reserve-job", _numbers(U64_MAX)),
    (b"reserve", "reserve", _bare),
    (b"delete ", "delete", _numbers(U64_MAX)),
    (b"release ", "release", _numbers(U64_MAX, U32_MAX, U32_MAX)),
    (b"bury ", "bury", _numbers(U64_MAX, U32_MAX)),
    (b"kick ", "kick", _kick),
    (b"kick-job ", "kick-job", _numbers(U64_MAX)),
    (b"touch ", "touch", _numbers(U64_MAX)),
    (b"stats-job ", "stats-job", _numbers(U64_MAX)),
    (b"stats-tube ", "stats-tube", _tube),
    (b"stats", "stats", _bare),
    (b"use ", "use", _tube),
    (b"watch ", "watch", _tube),
    (b"ignore ", "ignore", _tube),
    (b"list-tubes-watched", "list-tubes-watched", _bare),
    (b"list-tube-used", "list-tube-used", _bare),
    (b"list-tubes", "list-tubes", _bare),
    (b"quit", "quit", _quit),
    (b"pause-tube", "pause-tube", _pause),
]
_ROWS: dict[bytes, list[_Row]] = {}
for _row in _TABLE:
    _ROWS.setdefault(_row[0][:1], []).append(_row)

# Those that `stats` counts, in its order.
COUNTED = (
    "put", "peek", "peek-ready", "peek-delayed", "peek-buried", "reserve", "reserve-with-timeout", "delete", "release",
    "use", "watch", "ignore", "bury", "kick", "touch", "stats", "stats-job", "stats-tube", "list-tubes",
    "list-tube-used", "list-tubes-watched", "pause-tube",
)
