"""The lines of the commands on running jobs: DONE, LATER, TOUCH, BURY; and of KICK and CLONE."""

from __future__ import annotations

from core import Bury, Done, DoneAll, DoneLast, Kick, Later, LaterAll, LaterWith, Touch
from gateway.limits import BATCH_JOBS_MAX
from gateway.protocol import requests
from gateway.protocol.arguments import SIGNED_MAX, ArgumentError, between, name, plain_word, signed, unsigned
from gateway.protocol.grammar.heads import CloneHead, Words
from gateway.protocol.grammar.options import EXPIRE, WHEN, Option, read_options

PRI = {b"PRI": Option("priority", signed)}

_LATER = {**WHEN, **PRI, b"FIRST": Option("first"), b"YIELD": Option("yielded")}
_TOUCH = {b"EXPIRE": EXPIRE}


def done(words: Words) -> Done | DoneAll | DoneLast:
    count = len(words)
    if count == 2:
        return Done(unsigned(words[1]))
    if count < 3:
        raise ArgumentError
    if words[2] != b"LAST":
        return DoneAll(_ids(words))
    if count > 3:
        raise ArgumentError
    return DoneLast(unsigned(words[1]))


def later(words: Words) -> Later | LaterAll | LaterWith:
    count = len(words)
    if count == 2:
        return Later(unsigned(words[1]))
    if count < 3:
        raise ArgumentError
    if words[2].isdigit():
        return LaterAll(_ids(words))
    number, found = unsigned(words[1]), read_options(words, 2, _LATER)
    if "first" in found and "when" in found:        # its old place, and another one
        raise ArgumentError
    return LaterWith(number, **found)


def _ids(words: Words) -> tuple[int, ...]:
    if len(words) - 1 > BATCH_JOBS_MAX:
        raise ArgumentError
    return tuple(map(unsigned, words[1:]))


def touch(words: Words) -> Touch:
    if len(words) < 2:
        raise ArgumentError
    return Touch(unsigned(words[1]), **read_options(words, 2, _TOUCH))


def bury(words: Words) -> Bury | requests.BuryRequest:
    match words[1:]:
        case [number]:
            return Bury(unsigned(number))
        case [number, b"REASON", reason]:
            return requests.BuryRequest(Bury(unsigned(number)), plain_word(reason))
    raise ArgumentError


def kick(words: Words) -> Kick:
    if len(words) != 3:
        raise ArgumentError
    return Kick(name(words[1]), _kicked(words[2]))


_kicked = between(1, SIGNED_MAX)


def clone(words: Words) -> CloneHead:
    if len(words) != 2:
        raise ArgumentError
    return CloneHead(requests.CloneStart(unsigned(words[1])))
