"""The grammar of GET, GETB and GETBE.

Keywords share positions with names (a queue can be called EXPIRE), so every word is interpreted by its position with
one word of look-ahead, which makes the grammar unambiguous.
"""

from __future__ import annotations

import re
from typing import Any

from sockpqd.core import Get, GetWith, Then
from sockpqd.gateway.limits import BATCH_JOBS_MAX
from sockpqd.gateway.protocol.arguments import (
    JOB_NUMBER,
    NAME,
    ArgumentError,
    WrongWord,
    between,
    milliseconds,
    name,
    queues,
    unsigned,
)
from sockpqd.gateway.protocol.command import Command, UsualLine, Words
from sockpqd.gateway.protocol.grammar.parts.options import (
    EXPIRE,
    OF_LISTS,
    POLICIES,
    THEN,
    Option,
    one_of,
    read_options,
)

OPTIONS = {
    b"EXPIRE": EXPIRE,
    b"IS": Option("item", name),
    b"COUNT": Option("count", between(1, BATCH_JOBS_MAX)),
    b"WITHIN": Option("within_ms", milliseconds),
    b"BY": Option("policy", one_of(POLICIES)),
    b"META": Option("meta"),
    b"HEAD": Option("head"),
    b"LIFE": Option("life"),
    b"BOUND": Option("bound"),
}


_OF_NUMBER = {word: OPTIONS[word] for word in (b"EXPIRE", b"META", b"HEAD", b"LIFE", b"BOUND")}


def get_number(words: Words) -> Command:
    """GET NUMBER <n> [EXPIRE <sec> [THEN ..]] [META [LIFE]] [HEAD] [BOUND]."""
    found = read_options(words, 3, _OF_NUMBER)
    bound, shown = found.pop("bound", False), _shown(found)
    return Command(GetWith(Get(None, **found), number=unsigned(words[2], JOB_NUMBER), **shown), bound=bound)


def _shown(found: dict[str, Any]) -> dict[str, Any]:
    """Take out the options that select what else is shown of the jobs."""
    shown = {word: True for word in ("meta", "head", "life") if found.pop(word, False)}
    if "life" in shown and "meta" not in shown:
        raise ArgumentError("LIFE is a part of META")
    return shown


def get(words: Words) -> Command | None:
    """GET [<queues> ..]."""
    if len(words) < 3:
        return _hand_out(words)
    if words[1] == b"NUMBER" and words[2].isdigit():
        return None
    command = _hand_out(words)
    if command.within_ms is not None:       # it does not wait
        raise ArgumentError("WITHIN is for GETB and GETBE: GET does not wait")
    return command


def getb(words: Words) -> Command:
    """GETB: like GET, but blocks; WITHIN is allowed."""
    return _hand_out(words)


def _usual(found: re.Match[bytes], data: bytes) -> Command:
    return Command(Get(queues(found[1]), None if found[2] is None else int(found[2]) * 1000))


# One queue, and perhaps a lease in whole seconds.
_USUAL = rb" (%s)(?: EXPIRE ([0-9]{1,9}))?\r?\n" % NAME
USUAL_GET = UsualLine(re.compile(b"GET" + _USUAL).match, _usual)
USUAL_GETB = UsualLine(re.compile(b"GETB" + _USUAL).match, _usual)


def getbe(words: Words) -> Command:
    """GETBE: like GETB, but ends when no unfinished jobs are left."""
    command = _hand_out(words)
    command.until_finished = True
    return command


def _hand_out(words: Words) -> Command:
    """Parse the arguments into a Get, or into a GetWith if there are options that need one.

    Options unknown to the original are only recognized after explicit queues, where `*` means any, so that every line
    of the original keeps its meaning.
    """
    count = len(words)
    if count == 1:
        return Command(Get(None))
    first = words[1]
    if first.startswith(b"EXPIRE") and _begins_lease(words, count):
        expire_ms, then, end = lease(words, 1)
        if end != count:
            raise ArgumentError("options stand behind queues: GET * ..")
        return Command(Get(None, expire_ms, then))
    names = None if first == b"*" else queues(first)
    if count == 2:
        return Command(Get(names))
    if words[2] == b"EXPIRE" or _is_limit(words[2]):
        expire_ms, then, end = lease(words, 2)
        if end == count:
            return Command(Get(names, expire_ms, then))
        if end == count - 1 and words[end] == b"BOUND":         # the common form of workers with a session
            return Command(Get(names, expire_ms, then), bound=True)
    return _with_options(names, words)


def _with_options(names: tuple[str, ...] | None, words: Words) -> Command:
    found = read_options(words, 2, OPTIONS)
    get = Get(names, found.get("expire_ms"), found.get("then", Then.DEFAULT), found.get("item"))
    count, policy, shown = found.get("count"), found.get("policy"), _shown(found)
    if names is None and policy in OF_LISTS:
        raise ArgumentError(f"BY {policy.name} is for named queues, not for *")
    picks = count is not None or policy is not None or bool(shown)
    return Command(
        GetWith(get, count, policy, **shown) if picks else get,
        within_ms=found.get("within_ms"), bound="bound" in found,
    )


def _begins_lease(words: Words, count: int) -> bool:
    """Return whether the first argument begins a lease, rather than being a queue named EXPIRE."""
    if words[1] == b"EXPIRE":
        return count > 2 and not _is_option(words[2])
    return _is_limit(words[1])


def _is_option(word: bytes) -> bool:
    return word in OPTIONS or word.startswith(b"EXPIRE=")


def _is_limit(word: bytes) -> bool:
    return word == b"EXPIRE" or word.startswith(b"EXPIRE=")


def lease(words: Words, at: int) -> tuple[int | None, Then, int]:
    """Parse [EXPIRE <sec> [THEN (DONE|LATER|DEAD)]], or EXPIRE=<sec>, at position `at`; returns also where it ends."""
    count = len(words)
    if at == count:
        return None, Then.DEFAULT, at
    try:
        if words[at] == b"EXPIRE" and at + 1 < count:
            expire_ms, at = milliseconds(words[at + 1]), at + 2
        elif words[at].startswith(b"EXPIRE="):
            expire_ms, at = milliseconds(words[at][7:]), at + 1
        else:
            raise ArgumentError("EXPIRE wants a value behind it")
    except WrongWord as error:
        raise WrongWord(error.wanted, error.word, "EXPIRE wants") from None
    if at == count or words[at] != b"THEN":
        return expire_ms, Then.DEFAULT, at
    if at + 1 == count or words[at + 1] not in THEN:
        raise ArgumentError("THEN wants DONE, LATER or DEAD")
    return expire_ms, THEN[words[at + 1]], at + 2
