"""The grammar of SUBSCRIBE and NOTIFY."""

from __future__ import annotations

from msgspec import Struct

from sockpqd.core import EVENT_TYPES
from sockpqd.gateway.events.filters import MSG, Filter
from sockpqd.gateway.limits import EVENT_NAMES_MAX
from sockpqd.gateway.protocol.arguments import ArgumentError, name, prefix, unsigned
from sockpqd.gateway.protocol.command import Command, Words

_TYPES = {event_type.encode(): event_type for event_type in (*EVENT_TYPES, MSG)}


def subscribe(words: Words) -> Command:
    """SUBSCRIBE <types> [<names>] [FROM <seq>]. Arguments: the filter, and the number or None.

    FROM with nothing behind it is a name.
    """
    if len(words) not in (2, 3, 4, 5):
        raise ArgumentError
    after = None
    if len(words) > 3:
        if words[-2] != b"FROM":
            raise ArgumentError
        after, words = unsigned(words[-1]), words[:-2]
    types = read_types(words[1])
    names, prefixes = read_names(words[2]) if len(words) > 2 else ((), ())
    return Command(arguments=(Filter(types, names, prefixes), after))


class Message(Struct, frozen=True):
    """A message of NOTIFY, which is no operation of the log."""

    channel: str
    data: bytes = b""


def notify(words: Words) -> Command:
    """NOTIFY <channel> <length>."""
    if len(words) != 3:
        raise ArgumentError
    return Command(Message(name(words[1])), length=unsigned(words[2]))


def read_types(word: bytes) -> tuple[str, ...]:
    """Parse types like `FINQ|FINI`, each of which counts once."""
    types = dict.fromkeys(_TYPES.get(one) for one in word.split(b"|"))
    if None in types:
        raise ArgumentError
    return tuple(one for one in types if one is not None)


def read_names(word: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Parse names and prefixes like `mail|order_*`; `*` alone stands for all names."""
    words = word.split(b"|")
    if len(words) > EVENT_NAMES_MAX:
        raise ArgumentError
    names = dict.fromkeys(name(one) for one in words if not one.endswith(b"*"))
    prefixes = dict.fromkeys(prefix(one) for one in words if one.endswith(b"*"))
    return tuple(names), tuple(prefixes)
