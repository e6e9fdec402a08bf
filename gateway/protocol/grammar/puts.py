"""The lines of PUT and PUTS.

NEW, IS and WAIT stand where the original has them; behind them come the options. Keywords share positions with names,
so every word is judged by its position.
"""

from __future__ import annotations

from typing import Any

from core import Get, OnDup, Put, PutWith
from gateway.limits import AFTER_ITEMS_MAX, BATCH_JOBS_MAX, SETTING_MAX
from gateway.protocol import requests
from gateway.protocol.arguments import (
    ArgumentError,
    between,
    key,
    milliseconds,
    name,
    positive_ms,
    queues,
    signed,
    unsigned,
)
from gateway.protocol.grammar.heads import DataHead, PutHead, PutsHead, Words
from gateway.protocol.grammar.options import WHEN, Option, one_of, read_options
from gateway.protocol.grammar.take import lease


def _items(word: bytes) -> tuple[str, ...]:
    if word.count(b"|") >= AFTER_ITEMS_MAX:
        raise ArgumentError
    return queues(word)         # their names are of one kind


_ON_DUP = {b"FAIL": OnDup.FAIL, b"IGNORE": OnDup.IGNORE, b"REPLACE": OnDup.REPLACE}

_OPTIONS = {
    b"KEY": Option("key", key, behind=(b"ONDUP", Option("on_dup", one_of(_ON_DUP)))),
    **WHEN,
    b"EVERY": Option("every_ms", positive_ms),
    b"TTL": Option("ttl_ms", lambda word: milliseconds(word) or None),      # 0: no limit, as everywhere
    b"TRIES": Option("tries", between(1, SETTING_MAX)),
    b"AFTER": Option("after", _items),
    b"WITHIN": Option("within_ms", milliseconds),
}


def put(words: Words) -> PutHead | DataHead:
    count = len(words)
    if count < 4:
        raise ArgumentError
    queue, priority, length = name(words[1]), signed(words[2]), unsigned(words[3])
    if count == 4:
        return PutHead(length, queue, priority, None, False, None)
    item, new_item, wait, at = None, False, None, 4
    if words[4] == b"NEW":
        new_item, at = True, 5
    elif words[4] == b"IS" and count > 5:
        item, at = name(words[5]), 6
    if at < count and words[at] == b"WAIT" and at > 4:
        wait, at = _wait(words, at, item)
    if at == count:
        return PutHead(length, queue, priority, item, new_item, wait)
    found = read_options(words, at, _OPTIONS)
    return DataHead(length, _with_options(Put(queue, priority, b"", item, new_item), wait, found))


def _wait(words: Words, at: int, item: str | None) -> tuple[Get, int]:
    """WAIT <oq> [lease] from position `at`, and where it ends.

    It is for the item of the PUT also where that has a name: so nothing is handed out when the PUT is refused.
    """
    count = len(words)
    if at + 1 == count:
        raise ArgumentError
    queue = (name(words[at + 1]),)
    at += 2
    if at == count or (words[at] != b"EXPIRE" and not words[at].startswith(b"EXPIRE=")):
        return Get(queue, item=item, item_of_put=True), at
    expire_ms, then, at = lease(words, at)
    return Get(queue, expire_ms, then, item, item_of_put=True), at


def _with_options(put: Put, wait: Get | None, found: dict[str, Any]) -> PutWith | requests.PutWait:
    within_ms = found.pop("within_ms", None)
    if (wait is None and within_ms is not None) or (put.item is not None and put.item in found.get("after", ())):
        raise ArgumentError
    with_options: Put | PutWith = PutWith(put, **found) if found else put
    if wait is not None:
        return requests.PutWait(with_options, wait, within_ms)
    assert isinstance(with_options, PutWith)
    return with_options


def puts(words: Words) -> PutsHead:
    if len(words) != 2:
        raise ArgumentError
    return PutsHead(_count(words[1]))


_count = between(1, BATCH_JOBS_MAX)
