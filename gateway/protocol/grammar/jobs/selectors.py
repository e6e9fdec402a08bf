"""The grammar of the commands on one job, selected by id, key, place or number: CHANGE, DELETE, MOVE, PEEK, AWAIT.

The length of the data is the last word of the line, after DATA, so that the data can be found even behind a malformed
line.
"""

from __future__ import annotations

from typing import Any

from sockpqd.core import (
    HEADERS_BYTES_MAX,
    AnySelector,
    Await,
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
    PLACE,
    ArgumentError,
    between,
    key,
    milliseconds,
    name,
    unsigned,
)
from sockpqd.gateway.protocol.command import Command, Words
from sockpqd.gateway.protocol.grammar.jobs.ends import PRI
from sockpqd.gateway.protocol.grammar.parts.bodies import with_option
from sockpqd.gateway.protocol.grammar.parts.options import WHEN, Option, one_of, read_options
from sockpqd.gateway.protocol.reasons import shown

STATES = {
    b"READY": JobState.READY, b"DELAYED": JobState.DELAYED, b"RUNNING": JobState.RUNNING, b"DEAD": JobState.DEAD,
    b"BURIED": JobState.BURIED,
}

_DATA = Option("length", unsigned, data=True)
_HEAD = Option("head", between(0, HEADERS_BYTES_MAX), behind=(b"DATA", _DATA), data=True)
_MOVE = {**PRI, **WHEN, b"HEAD": _HEAD, b"DATA": _DATA}
CHANGE_OPTIONS = {**_MOVE, b"IS": Option("item", name), b"NOITEM": Option("item")}

_SHOWN = {b"HEAD": Option("head"), b"LIFE": Option("life")}
_PEEK = {b"COUNT": Option("count", between(1, BATCH_JOBS_MAX)), b"SEQ": Option("seq"), **_SHOWN}
_WITHIN = {b"WITHIN": Option("within_ms", milliseconds)}
_state = one_of(STATES)
_SELECTORS = b"KEY", b"SEQ", b"NUMBER"


def _selector(words: Words) -> tuple[AnySelector, int]:
    """Parse <id>, KEY <queue> <key>, SEQ <queue> <n> or NUMBER <n>; return the selector and the position after it."""
    if len(words) > 3 and words[1] == b"KEY":
        return Selector(queue=name(words[2]), key=key(words[3])), 4
    if len(words) > 3 and words[1] == b"SEQ":
        return Place(name(words[2]), unsigned(words[3], PLACE)), 4
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
    if found.get("item") is True:
        found["item"], found["no_item"] = None, True
    head, length = _data_to_come(found)
    return Command(Change(selector, **found), length, head=head)


def move(words: Words) -> Command:
    """MOVE <id> <queue> with options."""
    if len(words) < 3:
        raise ArgumentError("MOVE takes the id of a job, and a queue")
    found = read_options(words, 3, _MOVE)
    head, length = _data_to_come(found)
    return Command(Move(unsigned(words[1], JOB_ID), name(words[2]), **found), length, head=head)


def _data_to_come(found: dict[str, Any]) -> tuple[int, int | None]:
    """Put placeholders for headers and data that will come; return the length of the headers and the total length."""
    head, length = found.pop("head", None), found.pop("length", None)
    if head is not None:
        found["headers"] = b""
    if length is not None:
        found["data"] = b""
        if head is not None and head > length:
            raise ArgumentError("HEAD is longer than the data, of which it is the beginning")
    return head or 0, head if length is None else length


def await_end(words: Words) -> Command:
    """AWAIT (NUMBER <n> | KEY <queue> <key>) [WITHIN <seconds>]."""
    if len(words) < 2 or words[1] not in (b"NUMBER", b"KEY"):
        raise ArgumentError("AWAIT takes NUMBER <n> or KEY <queue> <key>")
    selector, end = _selector(words)
    assert not isinstance(selector, Place)
    return Command(Await(selector), within_ms=read_options(words, end, _WITHIN).get("within_ms"))


def delete(words: Words) -> Command:
    """DELETE the selected job; with UNTAKEN (by number) unless it runs; with ENDED the record of it."""
    selector, end = _selector(words)
    if isinstance(selector, Number) and words[end:] == [b"UNTAKEN"]:
        return Command(Delete(selector, unless_running=True))
    if isinstance(selector, Number) and words[end:] == [b"ENDED"]:
        return Command(Delete(selector, ended=True))
    if end != len(words):
        if words[end:] in ([b"UNTAKEN"], [b"ENDED"]):
            raise ArgumentError(f"{words[end].decode()} goes with NUMBER")
        raise ArgumentError(f"DELETE takes one job, {shown(words[end])} is too much")
    return Command(Delete(selector))


def peek(words: Words) -> Command | None:
    """PEEK at one job. Arguments: its selector; whether HEAD is given, and LIFE, if any is."""
    if _names_one(words):
        return Command(arguments=(_selector(words)[0],))
    for count in range(1, min(len(_SHOWN), len(words) - 2) + 1):
        one, shown = words[:-count], words[-count:]
        if len({*shown} & {*_SHOWN}) == count and _names_one(one):
            return Command(arguments=(_selector(one)[0], b"HEAD" in shown, *((True,) if b"LIFE" in shown else ())))
    return None


def peek_ended(words: Words) -> Command | None:
    """PEEK NUMBER <n> ENDED: one job, even when it has ended. Arguments: the number; whether HEAD, LIFE are given."""
    match words[1:]:
        case [b"NUMBER", number, b"ENDED", *_] if number.isdigit():
            found = read_options(words, 4, _SHOWN)
            return Command(arguments=(Number(unsigned(number, JOB_NUMBER)), "head" in found, "life" in found))
    return None


def peek_result(words: Words) -> Command | None:
    """PEEK NUMBER <n> RESULT. Arguments: the number."""
    match words[1:]:
        case [b"NUMBER", number, b"RESULT"] if number.isdigit():
            return Command(arguments=(Number(unsigned(number, JOB_NUMBER)),))
    return None


def _names_one(words: Words) -> bool:
    match words[1:]:
        case [_] | [b"KEY" | b"SEQ", _, _]:
            return True
        case [b"NUMBER", number]:
            return number.isdigit()
    return False


def peek_error(words: Words) -> Command | None:
    """PEEK <job> ERROR. Arguments: its selector."""
    match words[1:]:
        case [number, b"ERROR"] | [b"NUMBER", number, b"ERROR"] if number.isdigit():
            return Command(arguments=(_selector(words)[0],))
        case [b"KEY" | b"SEQ", _, _, b"ERROR"]:
            return Command(arguments=(_selector(words)[0],))
    return None


def job_stat(words: Words) -> Command:
    """JOB STAT NUMBER <n>. Arguments: the selector."""
    if len(words) != 3 or words[1] != b"NUMBER":
        raise ArgumentError("JOB STAT takes NUMBER and the number of a job")
    return Command(arguments=(_selector(words)[0],))


def peek_queue_ended(words: Words) -> Command | None:
    """PEEK at the jobs of a queue that have ended. Arguments: queue, count; whether SEQ, HEAD, LIFE are given."""
    if len(words) < 3 or words[2] != b"ENDED":
        return None
    found = read_options(words, 3, _PEEK)
    return Command(arguments=(name(words[1]), found.get("count", 1), "seq" in found, "head" in found, "life" in found))


def peek_queue(words: Words) -> Command:
    """PEEK at the first jobs of a queue. Arguments: queue, state, count; whether SEQ, HEAD, LIFE are given."""
    if len(words) < 3 or (words[1] in _SELECTORS and words[2] not in STATES):
        raise ArgumentError("PEEK takes <id>, KEY <queue> <key>, SEQ <queue> <n>, NUMBER <n> or <queue> <state>")
    queue, state = name(words[1]), _state(words[2])
    found = read_options(words, 3, _PEEK)
    shown = ["seq" in found, "head" in found, "life" in found]
    while shown and not shown[-1]:
        shown.pop()
    return Command(arguments=(queue, state, found.get("count", 1), *shown))
