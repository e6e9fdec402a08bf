"""The grammar of the commands on running jobs: DONE, LATER, TOUCH, BURY; and of KICK."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from sockpqd.core import (
    ERROR_BYTES_MAX,
    Done,
    End,
    How,
    Kick,
    Later,
    Number,
    Place,
    Touch,
)
from sockpqd.gateway.limits import BATCH_JOBS_MAX
from sockpqd.gateway.protocol.arguments import (
    JOB_ID,
    JOB_NUMBER,
    PLACE,
    SIGNED_MAX,
    ArgumentError,
    WrongWord,
    between,
    milliseconds,
    name,
    plain_word,
    signed,
    unsigned,
)
from sockpqd.gateway.protocol.command import Command, UsualLine, Words
from sockpqd.gateway.protocol.grammar.parts.bodies import with_option
from sockpqd.gateway.protocol.grammar.parts.options import (
    EXPIRE,
    FEEDBACK,
    WHEN,
    Option,
    Table,
    read_options,
    unknown_option,
)
from sockpqd.gateway.protocol.reasons import suggestion
from sockpqd.gateway.protocol.responses import TOO_LARGE

PRI = {b"PRI": Option("priority", signed)}

RAN = {b"RAN": Option("ran_ms", milliseconds)}

_ERROR = {b"ERROR": Option("length", unsigned, data=True)}

LATER_OPTIONS = {
    **WHEN,
    **PRI,
    b"FIRST": Option("first"),
    b"YIELD": Option("yielded"),
    b"REASON": Option("reason", plain_word),
    **FEEDBACK,
    **RAN,
    **_ERROR,
}
_BURY = {**PRI, b"HERE": Option("here"), b"REASON": Option("reason", plain_word), **_ERROR}
LATER_ERROR = with_option(LATER_OPTIONS, lambda words: 2)
BURY_ERROR = with_option(_BURY, lambda words: 2)
_DONE = {
    b"LAST": Option("last"), b"REASON": Option("reason", plain_word), **FEEDBACK, **RAN,
    b"RESULT": Option("length", unsigned, data=True),
}
DONE_DATA = with_option(_DONE, lambda words: 2)
_TOUCH = {b"EXPIRE": EXPIRE}
_TOUCH_ONE = {**_TOUCH, **RAN, b"PROGRESS": Option("progress", between(0, 100))}
_WITH_ONE_ID = {
    word: f"{word.decode()} goes with one id, not with several" for word in (b"RAN", b"PROGRESS")
}


def done(words: Words) -> Command | None:
    """DONE <id> [LAST] [RAN <sec>] [SLOW | SLEEP <sec>] [REASON <word>] [RESULT <length>].

    Arguments: the reason if given, for the server's log.
    """
    count = len(words)
    if count == 2:
        return Command(Done(unsigned(words[1], JOB_ID)))
    if count < 3:
        raise ArgumentError("DONE takes the id of a job, or several")
    if words[2] not in _DONE:
        return None
    number, found = unsigned(words[1], JOB_ID), read_options(words, 2, _DONE)
    reason, length = found.pop("reason", None), found.pop("length", None)
    end = _end(number, How.DONE, found) if found or length is not None else Done(number)
    told = () if reason is None else (reason,)
    if length is None:
        return Command(end, arguments=told)
    return Command(end, length, field="text", spare=True, arguments=told)


USUAL_DONE = UsualLine(
    re.compile(rb"DONE ([0-9]{1,19})\r?\n").match, lambda found, data: Command(Done(int(found[1]))),
)


def _end(number: int, how: How, found: dict[str, Any]) -> End:
    feedback, sleep_ms = found.pop("feedback", (None, 0))
    return End(number, how, feedback=feedback, sleep_ms=sleep_ms, **found)


def done_many(words: Words) -> Command:
    """DONE <id> <id> .."""
    return Command(End(_ids(words, _DONE), How.DONE))


def later(words: Words) -> Command | None:
    """LATER <id>, with or without options."""
    count = len(words)
    if count == 2:
        return Command(Later(unsigned(words[1], JOB_ID)))
    if count < 3:
        raise ArgumentError("LATER takes the id of a job, or several")
    if words[2].isdigit():
        return None
    number, found = unsigned(words[1], JOB_ID), read_options(words, 2, LATER_OPTIONS)
    if "first" in found and "when" in found:        # contradictory: its old place, and another one
        raise ArgumentError(f"FIRST and {'AT' if b'AT' in words[2:] else 'DELAY'} exclude each other")
    return _with_error(found, lambda: _end(number, How.LATER, found))


def _with_error(found: dict[str, Any], end: Callable[[], End], told: tuple[str, ...] = ()) -> Command:
    """The command that ends a hand-out; with ERROR its text is yet to arrive. `told`: its arguments."""
    length = found.pop("length", None)
    if length is None:
        return Command(end(), arguments=told)
    answer = TOO_LARGE if length > ERROR_BYTES_MAX else None
    return Command(end(), length, field="text", spare=True, arguments=told, answer=answer)


def later_many(words: Words) -> Command:
    """LATER <id> <id> .. [FIRST]."""
    if words[-1] == b"FIRST":
        return Command(End(_ids(words[:-1]), How.LATER, first=True))
    return Command(End(_ids(words, LATER_OPTIONS), How.LATER))


def _ids(words: Words, options: Table = MappingProxyType({})) -> tuple[int, ...]:
    """Parse ids up to the end of the line; `options` are those that only a line with one id may have."""
    if len(words) - 1 > BATCH_JOBS_MAX:
        raise ArgumentError(f"more than {BATCH_JOBS_MAX} ids")
    try:
        return tuple(map(unsigned, words[1:]))
    except WrongWord as error:
        word = error.word or b""
        if word in options:
            raise ArgumentError(f"{word.decode()} goes with one id, not with several") from None
        if suggestion(word, options):
            raise unknown_option(word, options) from None
        raise WrongWord(error.wanted, word, JOB_ID) from None


def touch(words: Words) -> Command | None:
    """TOUCH <id> [EXPIRE <sec> [THEN ..]] [RAN <sec>] [PROGRESS <0 to 100>]."""
    if len(words) < 2:
        raise ArgumentError("TOUCH takes the id of a job, or several")
    if len(words) > 2 and words[2].isdigit():
        return None
    return Command(Touch(unsigned(words[1], JOB_ID), **read_options(words, 2, _TOUCH_ONE)))


def touch_many(words: Words) -> Command:
    """TOUCH <id> <id> .. [EXPIRE <sec> [THEN ..]]."""
    end = next((at for at, word in enumerate(words) if at and not word.isdigit()), len(words))
    return Command(Touch(_ids(words[:end]), **read_options(words, end, _TOUCH, _WITH_ONE_ID)))


def bury(words: Words) -> Command:
    """BURY <id> [PRI <priority>] [HERE] [REASON <word>] [ERROR <length>]; PRI only with HERE.

    Arguments: the reason if given, also for the server's log.
    """
    if len(words) < 2:
        raise ArgumentError("BURY takes the id of a job")
    number, found = unsigned(words[1], JOB_ID), read_options(words, 2, _BURY)
    reason = found.get("reason")
    told = () if reason is None else (reason,)
    if "priority" in found and "here" not in found:
        raise ArgumentError("PRI goes with HERE")
    return _with_error(found, lambda: End(number, How.BURY, **found), told)


def kick_place(words: Words) -> Command | None:
    """KICK JOB SEQ <queue> <n>."""
    if words[2:3] != [b"SEQ"]:
        return None
    if len(words) != 5:
        raise ArgumentError("KICK JOB SEQ takes the queue in which the job lies, and the number of its place")
    return Command(Kick("", 1, selector=Place(name(words[3]), unsigned(words[4], PLACE))))


def kick_number(words: Words) -> Command:
    """KICK JOB NUMBER <n> [ENDED]."""
    ended = len(words) == 5 and words[4] == b"ENDED"
    if len(words) != 4 + ended:
        raise ArgumentError("KICK JOB NUMBER takes the number of a job, and perhaps ENDED")
    return Command(Kick("", 1, selector=Number(unsigned(words[3], JOB_NUMBER)), ended=ended))


def kick(words: Words) -> Command | None:
    """KICK <queue> <count> [HERE]."""
    if words[1:2] == [b"JOB"] and words[2:3] in ([b"NUMBER"], [b"SEQ"]):
        return None
    if len(words) == 4 and words[3] == b"HERE":
        return Command(Kick(name(words[1]), _kicked(words[2]), here=True))
    if len(words) != 3:
        raise ArgumentError("KICK takes a queue, a count and perhaps HERE")
    return Command(Kick(name(words[1]), _kicked(words[2])))


_kicked = between(1, SIGNED_MAX)
