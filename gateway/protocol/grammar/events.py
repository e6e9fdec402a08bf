"""The grammar of SUBSCRIBE and NOTIFY."""

from __future__ import annotations

from msgspec import Struct

from sockpqd.core import EVENT_TYPES
from sockpqd.gateway.events.filters import MSG, Filter
from sockpqd.gateway.limits import EVENT_NAMES_MAX
from sockpqd.gateway.protocol.arguments import LENGTH, ArgumentError, name, prefix, unsigned
from sockpqd.gateway.protocol.command import Command, Words
from sockpqd.gateway.protocol.reasons import shown, suggestion_or_all

TYPES = {event_type.encode(): event_type for event_type in (*EVENT_TYPES, MSG)}


_SUBSCRIBE = "SUBSCRIBE takes types, names if not all, and FROM with a number"


def subscribe(words: Words) -> Command:
    """SUBSCRIBE <types> [<names>] [FROM <seq>]. Arguments: the filter, and the number or None.

    FROM as the last word is a name.
    """
    if len(words) not in (2, 3, 4, 5):
        raise ArgumentError(_SUBSCRIBE)
    after = None
    if len(words) > 3:
        if words[-2] != b"FROM":
            raise ArgumentError(_SUBSCRIBE)
        after, words = unsigned(words[-1], "FROM wants"), words[:-2]
    types = read_types(words[1])
    names, prefixes = read_names(words[2]) if len(words) > 2 else ((), ())
    return Command(arguments=(Filter(types, names, prefixes), after))


class Message(Struct, frozen=True):
    """A message of NOTIFY, which is not an operation of the log."""

    channel: str
    data: bytes = b""


def notify(words: Words) -> Command:
    """NOTIFY <channel> <length>."""
    if len(words) != 3:
        raise ArgumentError("NOTIFY takes a channel and a length")
    return Command(Message(name(words[1])), length=unsigned(words[2], LENGTH))


def read_types(word: bytes) -> tuple[str, ...]:
    """Parse types like `FINQ|FINI`, each of which counts once."""
    types = dict.fromkeys(word.split(b"|"))
    for one in types:
        if one not in TYPES:
            raise ArgumentError(f"no type of events {shown(one)}{suggestion_or_all(one, TYPES)}")
    return tuple([TYPES[one] for one in types])


def read_names(word: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Parse names and prefixes like `mail|order_*`; `*` alone stands for all names."""
    words = word.split(b"|")
    if len(words) > EVENT_NAMES_MAX:
        raise ArgumentError(f"more than {EVENT_NAMES_MAX} names")
    names = dict.fromkeys(name(one) for one in words if not one.endswith(b"*"))
    prefixes = dict.fromkeys(prefix(one) for one in words if one.endswith(b"*"))
    return tuple(names), tuple(prefixes)
