"""The lines of GET, GETB and GETBE.

Keywords share positions with names (a queue may be called EXPIRE), so every word is judged by its position with one
word of look-ahead; the grammar then has no ambiguity.
"""

from __future__ import annotations

from msgspec import Struct

from core import Get, Pick, Then
from gateway.limits import BATCH_JOBS_MAX
from gateway.protocol import requests
from gateway.protocol.arguments import ArgumentError, between, milliseconds, name, queues
from gateway.protocol.grammar.heads import Words
from gateway.protocol.grammar.options import EXPIRE, POLICIES, THEN, Option, one_of, read_options

_OPTIONS = {
    b"EXPIRE": EXPIRE,
    b"IS": Option("item", name),
    b"COUNT": Option("count", between(1, BATCH_JOBS_MAX)),
    b"WITHIN": Option("within_ms", milliseconds),
    b"BY": Option("policy", one_of(POLICIES)),
    b"META": Option("meta"),
    b"BOUND": Option("bound"),
}


class _Asked(Struct, gc=False, frozen=True):
    """What a line with words that the original does not know asks for."""

    get: Get | Pick
    within_ms: int | None
    bound: bool


def get(words: Words) -> Get | Pick | requests.Bound:
    asked = _hand_out(words)
    if type(asked) is Get:
        return asked
    assert isinstance(asked, _Asked)
    if asked.within_ms is not None:         # it does not wait
        raise ArgumentError
    return requests.Bound(asked.get) if asked.bound else asked.get


def getb(words: Words) -> requests.BlockingGet | requests.Bound:
    return _blocking(words, until_finished=False)


def getbe(words: Words) -> requests.BlockingGet | requests.Bound:
    return _blocking(words, until_finished=True)


def _blocking(words: Words, until_finished: bool) -> requests.BlockingGet | requests.Bound:
    asked = _hand_out(words)
    if isinstance(asked, Get):
        return requests.BlockingGet(asked, until_finished)
    blocking = requests.BlockingGet(asked.get, until_finished, asked.within_ms)
    return requests.Bound(blocking) if asked.bound else blocking


def _hand_out(words: Words) -> Get | _Asked:
    """What is asked for: a plain Get as long as no other words are there, for those are in every other line.

    Words that the original does not know are read behind explicit queues only, of which `*` means any: so no
    line of the original changes its meaning.
    """
    count = len(words)
    if count == 1:
        return Get(None)
    first = words[1]
    if _is_limit(first) and not (first == b"EXPIRE" and (count == 2 or _is_option(words[2]))):
        expire_ms, then, end = lease(words, 1)
        if end != count:
            raise ArgumentError
        return Get(None, expire_ms, then)
    names = None if first == b"*" else queues(first)
    if count == 2:
        return Get(names)
    if _is_limit(words[2]):
        expire_ms, then, end = lease(words, 2)
        if end == count:
            return Get(names, expire_ms, then)
        if end == count - 1 and words[end] == b"BOUND":         # as workers ask with a session
            return _Asked(Get(names, expire_ms, then), None, True)
    return _with_options(names, words)


def _with_options(names: tuple[str, ...] | None, words: Words) -> _Asked:
    found = read_options(words, 2, _OPTIONS)
    get = Get(names, found.get("expire_ms"), found.get("then", Then.DEFAULT), found.get("item"))
    count, policy, meta = found.get("count"), found.get("policy"), "meta" in found
    picks = count is not None or policy is not None or meta
    return _Asked(Pick(get, count, policy, meta) if picks else get, found.get("within_ms"), "bound" in found)


def _is_option(word: bytes) -> bool:
    return word in _OPTIONS or word.startswith(b"EXPIRE=")


def _is_limit(word: bytes) -> bool:
    return word == b"EXPIRE" or word.startswith(b"EXPIRE=")


def lease(words: Words, at: int) -> tuple[int | None, Then, int]:
    """[EXPIRE <sec> [THEN (DONE|LATER|DEAD)]] from position `at`, and where it ends; EXPIRE=<sec> is read too."""
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
    if at + 1 == count or words[at + 1] not in THEN:
        raise ArgumentError
    return expire_ms, THEN[words[at + 1]], at + 2
