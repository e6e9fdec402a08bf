"""Events and messages: SUBSCRIBE, the lines that follow it, and NOTIFY."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, get_args

from sockpq._protocol import arguments
from sockpq._protocol.arguments import UINT64_MAX, Data
from sockpq._protocol.command import Command, Repeat, call, single
from sockpq._protocol.reader import LINE, Reader, as_number, as_signed, as_text, expect, number_of
from sockpq.errors import BadArguments
from sockpq.model import Event, EventType

MESSAGE_BYTES_MAX = 1 << 20
TYPES: tuple[EventType, ...] = get_args(EventType)


class Began(NamedTuple):
    """The server has answered the subscription; `seq`: the number of the newest event."""

    seq: int


class Gap(NamedTuple):
    """Events of these numbers may be missing."""

    first: int
    last: int


Heard = Event | Began | Gap


@call(retry=True)
def notify(channel: str, data: Data = b"") -> Command[int]:
    """Send a message to all current subscribers to `"MSG"` of this channel; returns how many, as far as known.

    Delivered at most once, up to 1 MiB, and not stored: later subscribers do not get it.
    """
    body = arguments.body(data, MESSAGE_BYTES_MAX)
    line = f"NOTIFY {arguments.name(channel, 'channel')} {len(body)}"
    return single(line, number_of, Repeat.IF_ASKED, data=body, needs=("notify",))


def words_of(types: EventType | Iterable[EventType], names: str | Iterable[str] | None) -> str:
    """Return the arguments of SUBSCRIBE. Raises TypeError and BadArguments."""
    wanted = [types] if isinstance(types, str) else list(types)
    for one in wanted:
        if one not in TYPES:
            raise BadArguments(f"there is no type of events {one!r}; there are {', '.join(TYPES)}")
    if not wanted:
        raise BadArguments("name a type of events")
    if names is None:
        return "|".join(wanted)
    known = [_name(one) for one in ([names] if isinstance(names, str) else names)]
    if not known:
        raise BadArguments("names is empty: leave it out to hear of all")
    return f"{'|'.join(wanted)} {'|'.join(known)}"


def _name(name: str) -> str:
    if isinstance(name, str) and name.endswith("*"):
        return f"{arguments.name(name[:-1], 'name')}*" if name != "*" else name
    return arguments.name(name, "name")


def subscribe(words: str, after: int | None, heard: list[Heard]) -> Command[None]:
    """Subscribe; everything received on the connection from then on goes into `heard`. The command never ends."""
    start = "" if after is None else f" FROM {after}"
    return Command(f"SUBSCRIBE {words}{start}\r\n".encode(), b"", lambda: _listen(heard), Repeat.FREELY)


def _listen(heard: list[Heard]) -> Reader[None]:
    while True:
        text = as_text((yield LINE))
        if not text.startswith("250 "):
            heard.append(Began(number_of(text)))
            continue
        _, number, kind, *words = text.split(" ")
        data = b""
        if kind == "MSG":
            expect(len(words) == 2, f"not an event: {text[:200]!r}")
            data = yield as_number(words[1], MESSAGE_BYTES_MAX)
        heard.append(_event(as_number(number), kind, words, data))


def _event(seq: int, kind: str, words: list[str], data: bytes) -> Event | Gap:
    if kind == "GAP":
        expect(len(words) == 2, "not a gap")
        return Gap(as_number(words[0]), as_number(words[1], UINT64_MAX))
    priority = number = None
    name = words[1] if kind == "LEADER" and len(words) > 1 else words[0] if words else ""
    if kind in ("PUT", "TAKE", "DONE", "LATER"):
        expect(len(words) == (2 if kind == "PUT" else 3), f"not an event: {kind} {words}")
        priority = as_signed(words[1])
    if kind in ("TAKE", "DONE", "LATER", "DEAD"):
        expect(len(words) == 3, f"not an event: {kind} {words}")
        number = as_number(words[2])
    elif kind in ("EXPIRED", "PROGRESS", "CANCEL"):     # CANCEL may have a reason
        expect(len(words) == 3 or (kind == "CANCEL" and len(words) == 2), f"not an event: {kind} {words}")
        number = as_number(words[1])
    return Event(seq, kind, name, priority, number, tuple(words), data)
