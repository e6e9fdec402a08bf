"""The grammar of the commands on one job, selected by id, key, place or number: CHANGE, DELETE, MOVE, PEEK.

The length of the data is the last word of the line, after DATA, so that the data can be found even behind a malformed
line.
"""

from __future__ import annotations

from sockpqd.core import (
    AnySelector,
    Change,
    Delete,
    JobState,
    Move,
    Number,
    Place,
    Selector,
)
from sockpqd.gateway.limits import BATCH_JOBS_MAX
from sockpqd.gateway.protocol.arguments import (
    JOB_ID,
    JOB_NUMBER,
    ArgumentError,
    between,
    key,
    name,
    unsigned,
)
from sockpqd.gateway.protocol.command import Command, Words
from sockpqd.gateway.protocol.grammar.jobs import PRI
from sockpqd.gateway.protocol.grammar.parts.bodies import with_option
from sockpqd.gateway.protocol.grammar.parts.options import WHEN, Option, one_of, read_options
from sockpqd.gateway.protocol.reasons import shown

STATES = {
    b"READY": JobState.READY, b"DELAYED": JobState.DELAYED, b"RUNNING": JobState.RUNNING, b"DEAD": JobState.DEAD,
    b"BURIED": JobState.BURIED,
}

_DATA = {b"DATA": Option("length", unsigned, data=True)}
_MOVE = {**PRI, **WHEN, **_DATA}
CHANGE_OPTIONS = {**_MOVE, b"IS": Option("item", name), b"NOITEM": Option("item")}

_PEEK = {b"COUNT": Option("count", between(1, BATCH_JOBS_MAX)), b"SEQ": Option("seq")}
_state = one_of(STATES)
_SELECTORS = b"KEY", b"SEQ", b"NUMBER"
_PLACE = "the place of a job must be"


def _selector(words: Words) -> tuple[AnySelector, int]:
    """Parse <id>, KEY <queue> <key>, SEQ <queue> <n> or NUMBER <n>; return the selector and the position after it."""
    if len(words) > 3 and words[1] == b"KEY":
        return Selector(queue=name(words[2]), key=key(words[3])), 4
    if len(words) > 3 and words[1] == b"SEQ":
        return Place(name(words[2]), unsigned(words[3], _PLACE)), 4
    if len(words) > 2 and words[1] == b"NUMBER":
        return Number(unsigned(words[2], JOB_NUMBER)), 3
    if len(words) < 2 or words[1] in _SELECTORS:
        raise ArgumentError("a job is its id, KEY <queue> <key>, SEQ <queue> <n> or NUMBER <n>")
    return Selector(unsigned(words[1], JOB_ID)), 2


def _behind_selector(words: Words) -> int:
    """Return the position after the selector, whether it is well-formed or not."""
    return {b"KEY": 4, b"SEQ": 4, b"NUMBER": 3}.get(words[1], 2) if len(words) > 1 else 1


CHANGE_DATA = with_option(CHANGE_OPTIONS, _behind_selector)
MOVE_DATA = with_option(_MOVE, lambda words: 3)


def change(words: Words) -> Command:
    """CHANGE of the selected job, with the changes."""
    selector, at = _selector(words)
    found = read_options(words, at, CHANGE_OPTIONS)
    length = found.pop("length", None)
    if found.get("item") is True:
        found["item"], found["no_item"] = None, True
    return Command(Change(selector, **found), length)


def move(words: Words) -> Command:
    """MOVE <id> <queue> with options."""
    if len(words) < 3:
        raise ArgumentError("MOVE takes the id of a job, and a queue")
    found = read_options(words, 3, _MOVE)
    length = found.pop("length", None)
    return Command(Move(unsigned(words[1], JOB_ID), name(words[2]), **found), length)


def delete(words: Words) -> Command:
    """DELETE the selected job; by its number with UNTAKEN, unless it runs."""
    selector, end = _selector(words)
    if isinstance(selector, Number) and words[end:] == [b"UNTAKEN"]:
        return Command(Delete(selector, unless_running=True))
    if end != len(words):
        if words[end:] == [b"UNTAKEN"]:
            raise ArgumentError("UNTAKEN goes with NUMBER")
        raise ArgumentError(f"DELETE takes one job, {shown(words[end])} is too much")
    return Command(Delete(selector))


def peek(words: Words) -> Command | None:
    """PEEK at one job. Arguments: its selector."""
    match words[1:]:
        case [_] | [b"KEY" | b"SEQ", _, _]:
            return Command(arguments=(_selector(words)[0],))
        case [b"NUMBER", number] if number.isdigit():
            return Command(arguments=(_selector(words)[0],))
    return None


def job_stat(words: Words) -> Command:
    """JOB STAT NUMBER <n>. Arguments: the selector."""
    if len(words) != 3 or words[1] != b"NUMBER":
        raise ArgumentError("JOB STAT takes NUMBER and the number of a job")
    return Command(arguments=(_selector(words)[0],))


def peek_queue(words: Words) -> Command:
    """PEEK at the first jobs of a queue. Arguments: queue, state, count; with SEQ True, to tell their places."""
    if len(words) < 3 or (words[1] in _SELECTORS and words[2] not in STATES):
        raise ArgumentError("PEEK takes <id>, KEY <queue> <key>, SEQ <queue> <n>, NUMBER <n> or <queue> <state>")
    queue, state = name(words[1]), _state(words[2])
    found = read_options(words, 3, _PEEK)
    places = (True,) if "seq" in found else ()
    return Command(arguments=(queue, state, found.get("count", 1), *places))
