"""The lines of the commands on jobs.

Keywords share positions with names (a queue may be called EXPIRE), so every word is judged by its position with one
word of look-ahead; the grammar then has no ambiguity (A13).
"""

from __future__ import annotations

from core import Done, Get, Later, Then
from gateway import requests
from gateway.grammar.heads import CloneHead, PutHead, Words
from gateway.values import ArgumentError, milliseconds, name, queues, signed, unsigned


def put(words: Words) -> PutHead:
    count = len(words)
    if count < 4:
        raise ArgumentError
    queue, priority, length = name(words[1]), signed(words[2]), unsigned(words[3])
    if count == 4:
        return PutHead(length, queue, priority, None, False, None)
    if words[4] == b"NEW":
        item, tail = None, 5
    elif words[4] == b"IS" and count > 5:
        item, tail = name(words[5]), 6
    else:
        raise ArgumentError
    return PutHead(length, queue, priority, item, item is None, _wait(words, tail, item))


def _wait(words: Words, at: int, item: str | None) -> Get | None:
    """[WAIT <oq> [lease]] from position `at` to the end of the line."""
    if at == len(words):
        return None
    if words[at] != b"WAIT" or at + 1 == len(words):
        raise ArgumentError
    expire_ms, then, end = _lease(words, at + 2)
    if end != len(words):
        raise ArgumentError
    return Get((name(words[at + 1]),), expire_ms, then, item, item is None)


def _hand_out(words: Words) -> tuple[Get, bool]:
    """What a GET asks for, and whether it is bound.

    Words that the original does not know are read behind explicit queues only, of which `*` means any (EXTENSIONS.md
    0.2): so no line of the original changes its meaning.
    """
    if len(words) == 1:
        return Get(None), False
    first = words[1]
    if _is_limit(first) and not (first == b"EXPIRE" and (len(words) == 2 or _is_option(words[2]))):
        expire_ms, then, end = _lease(words, 1)
        if end != len(words):
            raise ArgumentError
        return Get(None, expire_ms, then), False
    return _options(words, None if first == b"*" else queues(first))


def _options(words: Words, names: tuple[str, ...] | None) -> tuple[Get, bool]:
    """[lease] [BOUND] behind the queues, in any order, each at most once."""
    if len(words) == 2:
        return Get(names), False
    lease: tuple[int | None, Then] | None = None
    bound, at = False, 2
    while at < len(words):
        if words[at] == b"BOUND" and not bound:
            bound, at = True, at + 1
        elif lease is None:
            expire_ms, then, at = _lease(words, at)
            lease = expire_ms, then
        else:
            raise ArgumentError
    return Get(names) if lease is None else Get(names, *lease), bound


def _is_option(word: bytes) -> bool:
    return _is_limit(word) or word == b"BOUND"


def _is_limit(word: bytes) -> bool:
    return word == b"EXPIRE" or word.startswith(b"EXPIRE=")


_THEN = {b"DONE": Then.DONE, b"LATER": Then.LATER}


def _lease(words: Words, at: int) -> tuple[int | None, Then, int]:
    """[EXPIRE <sec> [THEN (DONE|LATER)]] from position `at`, and where it ends; EXPIRE=<sec> is read as well (A16)."""
    count = len(words)
    if at == count:
        return None, Then.DEFAULT, at
    if words[at] == b"EXPIRE" and at + 1 < count:
        expire_ms, at = milliseconds(words[at + 1]), at + 2
    elif words[at].startswith(b"EXPIRE="):
        expire_ms, at = milliseconds(words[at][7:]), at + 1
    else:
        raise ArgumentError
    if at == count or words[at] != b"THEN":
        return expire_ms, Then.DEFAULT, at
    if at + 1 == count or words[at + 1] not in _THEN:
        raise ArgumentError
    return expire_ms, _THEN[words[at + 1]], at + 2


def get(words: Words) -> Get | requests.Bound:
    get, bound = _hand_out(words)
    return requests.Bound(get) if bound else get


def _blocking(words: Words, until_finished: bool) -> requests.BlockingGet | requests.Bound:
    get, bound = _hand_out(words)
    blocking = requests.BlockingGet(get, until_finished)
    return requests.Bound(blocking) if bound else blocking


def getb(words: Words) -> requests.BlockingGet | requests.Bound:
    return _blocking(words, until_finished=False)


def getbe(words: Words) -> requests.BlockingGet | requests.Bound:
    return _blocking(words, until_finished=True)


def done(words: Words) -> Done:
    if len(words) != 2:
        raise ArgumentError
    return Done(unsigned(words[1]))


def later(words: Words) -> Later:
    if len(words) != 2:
        raise ArgumentError
    return Later(unsigned(words[1]))


def clone(words: Words) -> CloneHead:
    if len(words) != 2:
        raise ArgumentError
    return CloneHead(requests.CloneStart(unsigned(words[1])))
