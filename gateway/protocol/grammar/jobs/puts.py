"""The grammar of PUT and PUTS.

NEW, IS and WAIT are where the original protocol has them, followed by the options. Keywords share positions with names,
so every word is interpreted by its position.
"""

from __future__ import annotations

import re
from typing import Any

from sockpqd.core import (
    DEDUP_MS_MAX,
    DEDUP_MS_MIN,
    DURATION_MS_MAX,
    HEADERS_BYTES_MAX,
    Dedup,
    Get,
    OnDup,
    Put,
    PutWith,
    ToQueues,
    ToTopic,
    Until,
)
from sockpqd.gateway.limits import AFTER_ITEMS_MAX, BATCH_JOBS_MAX, SETTING_MAX, SPREAD_QUEUES_MAX
from sockpqd.gateway.protocol.arguments import (
    LENGTH,
    NAME,
    PRIORITY,
    ArgumentError,
    WrongWord,
    between,
    key,
    milliseconds,
    name,
    plain_word,
    positive_ms,
    queues,
    routing_key,
    signed,
    unsigned,
)
from sockpqd.gateway.protocol.command import Command, UsualLine, Words
from sockpqd.gateway.protocol.grammar.jobs.take import lease
from sockpqd.gateway.protocol.grammar.parts.options import WHEN, Option, one_of, read_options
from sockpqd.gateway.protocol.tokens import seconds


def _items(word: bytes) -> tuple[str, ...]:
    if word.count(b"|") >= AFTER_ITEMS_MAX:
        raise ArgumentError(f"AFTER takes at most {AFTER_ITEMS_MAX} items")
    return queues(word)         # item names follow the same rules


_UNTIL = {until.name.encode(): until for until in Until}
_ON_DUP = {b"FAIL": OnDup.FAIL, b"IGNORE": OnDup.IGNORE, b"REPLACE": OnDup.REPLACE}

def _dedup_ms(word: bytes) -> int:
    duration_ms = milliseconds(word)
    if not DEDUP_MS_MIN <= duration_ms <= DEDUP_MS_MAX:
        raise WrongWord(f"{seconds(DEDUP_MS_MIN)} to {seconds(DEDUP_MS_MAX)} seconds", word)
    return duration_ms


OPTIONS = {
    b"KEY": Option("key", key, behind=(b"ONDUP", Option("on_dup", one_of(_ON_DUP)))),
    **WHEN,
    b"EVERY": Option("every_ms", positive_ms),
    b"TTL": Option("ttl_ms", lambda word: milliseconds(word) or DURATION_MS_MAX),    # 0: none
    b"GROUP": Option("group", plain_word),
    b"TRIES": Option("tries", between(1, SETTING_MAX)),
    b"AFTER": Option("after", _items, behind=(b"WHEN", Option("until", one_of(_UNTIL)))),
    b"WITHIN": Option("within_ms", milliseconds),
    b"NUMBER": Option("number"),
    b"LEASE": Option("lease_ms", milliseconds),
    b"HEAD": Option("head", between(0, HEADERS_BYTES_MAX)),
    b"DEDUP": Option("dedup", key, second=("dedup_ms", _dedup_ms)),
}


_SPREAD_OPTIONS = {word: option for word, option in OPTIONS.items() if word not in (b"WITHIN", b"NUMBER", b"LEASE")}
_TOPIC_OPTIONS = {**_SPREAD_OPTIONS, b"ROUTE": Option("route", routing_key)}

# The reasons why words that are valid elsewhere are not allowed at their positions.
_ELSEWHERE = {
    b"IS": "IS stands directly behind the length",
    b"NEW": "NEW stands directly behind the length",
    b"WAIT": "WAIT stands behind NEW or IS <item>, before all options",
    b"ROUTE": "ROUTE is for jobs put to a topic: PUT @topic",
    b"EXPIRE": "EXPIRE is for WAIT; a job's own lease is LEASE, its lifetime TTL",
}
_ELSEWHERE_OF_MANY = {
    **_ELSEWHERE,
    b"WAIT": "a job for several queues cannot have WAIT",
    b"WITHIN": "a job for several queues cannot have WITHIN",
    b"NUMBER": "a job for several queues cannot have NUMBER",
    b"LEASE": "a job for several queues cannot have LEASE",
}


_AFTER_ITSELF = "AFTER cannot name the job's own item"


def put(words: Words) -> Command | None:
    """PUT without WAIT."""
    count = len(words)
    if count < 4:
        raise ArgumentError("PUT takes a queue, a priority and a length")
    try:
        queue = name(words[1])
    except ArgumentError:           # several queues, or a topic: rare
        return _spread(words)
    if count == 4:
        return Command(Put(queue, signed(words[2], PRIORITY), b""), unsigned(words[3], LENGTH))
    priority, length = signed(words[2], PRIORITY), unsigned(words[3], LENGTH)
    item, new_item, at = _item(words)
    if 4 < at < count and words[at] == b"WAIT":
        return None
    return _with_options(Command(Put(queue, priority, b"", item, new_item), length), words, at)


USUAL_PUT = UsualLine(
    re.compile(rb"PUT (%s) (-?[0-9]{1,18}) ([0-9]{1,18})\r?\n" % NAME).match,
    lambda found, data: Command(Put(found[1].decode("ascii"), int(found[2]), data)),
)


def _spread(words: Words) -> Command:
    """PUT <q>|<q>|.., or PUT @<topic> .. [ROUTE <key>]: the same job into several queues."""
    first, topic = words[1], words[1].startswith(b"@")
    priority, length = signed(words[2], PRIORITY), unsigned(words[3], LENGTH)
    item, new_item, at = (None, False, 4) if len(words) == 4 else _item(words)
    found = read_options(words, at, _TOPIC_OPTIONS if topic else _SPREAD_OPTIONS, _ELSEWHERE_OF_MANY)
    if new_item:
        raise ArgumentError("a job for several queues cannot have NEW")
    if found.get("until") is Until.FAILED:
        raise ArgumentError("a job for several queues cannot have WHEN FAILED")
    if found.pop("on_dup", OnDup.FAIL) is not OnDup.FAIL:
        raise ArgumentError("a job for several queues can only have ONDUP FAIL")
    if item in found.get("after", ()):
        raise ArgumentError(_AFTER_ITSELF)
    route = found.pop("route", "")
    put = Put("", priority, b"", item)
    if topic:
        return _begin_with_headers(Command(_put_with(put, found, ToTopic(name(first[1:]), route)), length))
    names = queues(first)
    if len(names) > SPREAD_QUEUES_MAX:
        raise ArgumentError(f"more than {SPREAD_QUEUES_MAX} queues")
    return _begin_with_headers(Command(_put_with(put, found, ToQueues(names)), length))


def put_wait(words: Words) -> Command:
    """PUT .. WAIT <oq> [lease]: `wait` is the Get proposed after the PUT.

    It asks for the item of the PUT even if that is named, so that nothing is handed out if the PUT is refused.
    """
    queue, priority, length = name(words[1]), signed(words[2], PRIORITY), unsigned(words[3], LENGTH)
    item, new_item, at = _item(words)
    count = len(words)
    if at + 1 == count:
        raise ArgumentError("WAIT wants the queue of the answer")
    other = (name(words[at + 1]),)
    at += 2
    if at == count or (words[at] != b"EXPIRE" and not words[at].startswith(b"EXPIRE=")):
        wait = Get(other, item=item, item_of_put=True)
    else:
        expire_ms, then, at = lease(words, at)
        wait = Get(other, expire_ms, then, item, item_of_put=True)
    return _with_options(Command(Put(queue, priority, b"", item, new_item), length, wait=wait), words, at)


def _item(words: Words) -> tuple[str | None, bool, int]:
    """Parse IS <item>, NEW, or neither; the last value is the position after it."""
    if words[4] == b"NEW":
        return None, True, 5
    if words[4] == b"IS" and len(words) > 5:
        return name(words[5]), False, 6
    return None, False, 4


def _with_options(command: Command, words: Words, at: int) -> Command:
    if at == len(words):
        return command
    found = read_options(words, at, OPTIONS, _ELSEWHERE)
    put = command.operation
    command.within_ms = found.pop("within_ms", None)
    if command.wait is None and command.within_ms is not None:
        raise ArgumentError("WITHIN is for PUT .. WAIT")
    if put.item is not None and put.item in found.get("after", ()):
        raise ArgumentError(_AFTER_ITSELF)
    if command.wait is not None and ("number" in found or "lease_ms" in found):
        raise ArgumentError(f"WAIT and {'NUMBER' if 'number' in found else 'LEASE'} exclude each other")
    if found.get("until") is Until.FAILED:
        _check_failed(command, found)
    if "number" in found and "every_ms" in found:
        raise ArgumentError("NUMBER and EVERY exclude each other")
    if found:
        command.operation = _put_with(put, found)
        _begin_with_headers(command)
    return command


def _check_failed(command: Command, found: dict[str, Any]) -> None:
    """Refuse the options that make no sense for a job that may never be queued (WHEN FAILED). Raises ArgumentError."""
    replaces = found.get("on_dup") is OnDup.REPLACE
    for word, there in (
        ("WAIT", command.wait is not None), ("NEW", command.operation.new_item), ("NUMBER", "number" in found),
        ("REPLACE", replaces),
    ):
        if there:
            raise ArgumentError(f"WHEN FAILED and {word} exclude each other")


def _put_with(put: Put, found: dict[str, Any], targets: ToQueues | ToTopic | None = None) -> PutWith:
    """The operation of a PUT with these options."""
    if "dedup" in found:
        found["dedup"] = Dedup(found["dedup"], found.pop("dedup_ms"))
    return PutWith(put, **found, targets=targets)


def _begin_with_headers(command: Command) -> Command:
    """Record the length of the headers at the start of a PUT's data."""
    command.head = command.operation.head
    if command.head > (command.length or 0):
        raise ArgumentError("HEAD is longer than the data, of which it is the beginning")
    return command


def puts(words: Words) -> Command:
    """PUTS <count>: the jobs follow."""
    if len(words) != 2:
        raise ArgumentError("PUTS takes the count of the jobs that follow")
    return Command(length=_count(words[1]))


_count = between(1, BATCH_JOBS_MAX)
