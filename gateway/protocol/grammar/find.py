"""The grammar of FIND, and of the cursors at the end of its answers.

A cursor is a letter for the section of a queue, the place there in hexadecimal numbers, and the name of the queue.
"""

from __future__ import annotations

import re

from sockpqd.core import (
    ENDED_LENGTHS,
    HEADER_VALUE_BYTES_MAX,
    LENGTHS,
    EndState,
    FindPlace,
    JobState,
    Section,
    Wanted,
)
from sockpqd.gateway.limits import FOUND_DEFAULT, FOUND_MAX
from sockpqd.gateway.protocol.arguments import (
    NAME,
    ArgumentError,
    WrongWord,
    between,
    header_name,
    key,
    name,
    plain_word,
    queues,
    unix_ms,
)
from sockpqd.gateway.protocol.command import Command, Words
from sockpqd.gateway.protocol.grammar.parts.options import Option, one_of, read_options

_STATES: dict[bytes, JobState | EndState] = {
    state.name.encode(): state for state in (
        JobState.READY, JobState.DELAYED, JobState.RUNNING, JobState.DEAD, JobState.BURIED, *EndState,
    )
}
_state = one_of(_STATES)
_ENCODED = re.compile(rb"(?:[!-$&-~]|%[0-9A-Fa-f]{2})+")
_HEX = rb"-?[0-9a-f]{1,16}"
_LETTERS = {
    Section.READY: "R", Section.DELAYED: "D", Section.RUNNING: "U", Section.BURIED: "B", Section.ENDED: "E",
    Section.OVER: "O",
}
_SECTIONS = {letter.encode(): section for section, letter in _LETTERS.items()}
_CURSOR = re.compile(rb"([RDUBEO])((?:%(hex)s(?:,%(hex)s)*)?):(%(name)s)" % {b"hex": _HEX, b"name": NAME})
_CURSOR_BYTES_MAX = 512


def _states(word: bytes) -> frozenset[JobState | EndState]:
    """Parse READY|DELAYED and the like."""
    return frozenset(map(_state, word.split(b"|")))


def _header_value(word: bytes) -> bytes:
    """Parse a value in which %20 is a space; % alone is the empty one."""
    if word == b"%":
        return b""
    if _ENCODED.fullmatch(word) is None:
        raise WrongWord("a percent-encoded value, or % for the empty one", word)
    value = re.sub(rb"%(..)", lambda found: bytes.fromhex(found[1].decode()), word)
    if len(value) > HEADER_VALUE_BYTES_MAX:
        raise WrongWord(f"a value of at most {HEADER_VALUE_BYTES_MAX} bytes", word)
    return value


def _key_prefix(word: bytes) -> str:
    if not word.endswith(b"*"):
        raise WrongWord("the beginning of keys, like mail*", word)
    return key(word[:-1]) if len(word) > 1 else ""


def _cursor(word: bytes) -> FindPlace:
    found = _CURSOR.fullmatch(word) if len(word) <= _CURSOR_BYTES_MAX else None
    if found is not None:
        section, place = _SECTIONS[found[1]], tuple(int(one, 16) for one in found[2].split(b",") if one)
        lengths = ENDED_LENGTHS if section is Section.ENDED else (LENGTHS.get(section, 0),) * 2
        if not place or lengths[0] <= len(place) <= lengths[1]:
            return FindPlace(found[3].decode(), section, place)
    raise WrongWord("what followed NEXT", word)


def cursor(place: FindPlace) -> str:
    """Format a place as the word that FROM takes."""
    return f"{_LETTERS[place.section]}{','.join(f'{one:x}' for one in place.place)}:{place.queue}"


OPTIONS = {
    b"STATE": Option("states", _states),
    b"HEAD": Option("header_name", header_name, second=("header_value", _header_value)),
    b"KEY": Option("key_prefix", _key_prefix),
    b"IS": Option("item", name),
    b"GROUP": Option("group", plain_word),
    b"REASON": Option("reason", plain_word),
    b"SINCE": Option("since_ms", unix_ms),
    b"UNTIL": Option("until_ms", unix_ms),
    b"COUNT": Option("count", between(1, FOUND_MAX)),
    b"FROM": Option("place", _cursor),
}


def find(words: Words) -> Command:
    """FIND (<queues> | *). Arguments: the queues, None for all; the properties; the count; the place to start from."""
    if len(words) < 2:
        raise ArgumentError("FIND takes queues, or *")
    chosen = None if words[1] == b"*" else queues(words[1])
    found = read_options(words, 2, OPTIONS)
    count, place = found.pop("count", FOUND_DEFAULT), found.pop("place", None)
    if "header_name" in found:
        found["head"] = found.pop("header_name").encode(), found.pop("header_value")
    return Command(arguments=(chosen, Wanted(**found), count, place))
