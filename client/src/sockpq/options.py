"""The options of PUT and GET beyond the original's, and how the protocol writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypedDict

from sockpq._protocol import arguments
from sockpq._protocol.arguments import EXPIRE_S_MAX, INT64_MAX
from sockpq.errors import BadArguments

Data = bytes | bytearray | memoryview
OnDuplicate = Literal["fail", "ignore", "replace"]
Policy = Literal["random", "priority"]

UNIX_S_MAX = 253_402_300_799        # the end of the year 9999
TRIES_MAX = 1_000_000
KEY = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
WORD = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


class PutOptions(TypedDict, total=False):
    """What put() takes as well; times in seconds.

    `delay`: not before so long from now; or `at`: this Unix time. `ttl`: removed when nobody took it that long after.
    `every`: DONE makes it active again after this period, until it is deleted. `after`: an item, or several: not before
    these have no unfinished job. `key`: its name in its queue; when an unfinished job has it `on_duplicate` says what
    happens: "fail" (JobExists), "ignore", or "replace". `tries`: after so many hand-outs without DONE it is dead.
    """

    delay: float | None
    at: float | None
    ttl: float | None
    every: float | None
    after: str | Iterable[str] | None
    key: str | None
    on_duplicate: OnDuplicate | None
    tries: int | None


class GetOptions(TypedDict, total=False):
    """What get() takes as well.

    `item`: only jobs of this one. `meta`: tell the attempt, key and times in the job's `meta`. `policy`: which of
    several queues: "random", or "priority" for that of the greatest priority; the cluster has a default.
    """

    item: str | None
    meta: bool
    policy: Policy | None


class LaterOptions(TypedDict, total=False):
    """What later() takes as well.

    `delay`, `at`: active then. `priority`: its new one. `first`: to its old place. `yielded`: a slice of the work is
    over, and that is no failure: the attempt is not counted.
    """

    delay: float | None
    at: float | None
    priority: int | None
    first: bool
    yielded: bool


class MoveOptions(TypedDict, total=False):
    """What move() takes as well: other data, another priority, and when it is active."""

    data: Data | None
    priority: int | None
    delay: float | None
    at: float | None


class ChangeOptions(MoveOptions, total=False):
    """What change() changes; what is not given stays. `no_item` takes its item away."""

    item: str | None
    no_item: bool


def put_options(
    *,
    delay: float | None = None,
    at: float | None = None,
    ttl: float | None = None,
    every: float | None = None,
    after: str | Iterable[str] | None = None,
    key: str | None = None,
    on_duplicate: OnDuplicate | None = None,
    tries: int | None = None,
) -> str:
    """The end of a PUT line: " DELAY 5 KEY a1"; see PutOptions."""
    text = when(delay, at)
    if ttl is not None:
        text += f" TTL {_positive(ttl, 'ttl')}"
    if every is not None:
        text += f" EVERY {_positive(every, 'every')}"
    if after is not None:
        text += f" AFTER {_items(after)}"
    if key is not None:
        text += f" KEY {as_key(key)}"
    if on_duplicate is not None:
        if key is None:
            raise BadArguments("on_duplicate needs key: it says what happens when a job has that")
        if on_duplicate not in ("fail", "ignore", "replace"):
            raise BadArguments(f"on_duplicate is 'fail', 'ignore' or 'replace', not {on_duplicate!r}")
        text += f" ONDUP {on_duplicate.upper()}"
    if tries is not None:
        text += f" TRIES {arguments.integer(tries, 'tries', 1, TRIES_MAX)}"
    return text


def get_options(item: str | None, meta: bool, policy: str | None) -> str:
    """The end of a GET line, but for COUNT and WITHIN; see GetOptions."""
    text = "" if item is None else f" IS {arguments.name(item, 'item')}"
    if policy is not None:
        if policy not in ("random", "priority"):
            raise BadArguments(f"policy is 'random' or 'priority', not {policy!r}")
        text += f" BY {policy.upper()}"
    return text + " META" if arguments.switch(meta, "meta") else text


def when(delay: float | None, at: float | None) -> str:
    """" DELAY 5", " AT 1795130000", or nothing."""
    if delay is None and at is None:
        return ""
    if delay is not None and at is not None:
        raise BadArguments("delay counts from now, at is a time: not both")
    if delay is not None:
        return f" DELAY {arguments.seconds(delay, 'delay', 0, EXPIRE_S_MAX)}"
    assert at is not None
    return f" AT {arguments.seconds(at, 'at', 0, UNIX_S_MAX)}"


def within(wait: float) -> str:
    """" WITHIN 5"; at least a millisecond, at most what the protocol has as the longest time."""
    return f" WITHIN {arguments.seconds(min(arguments.span(wait, 'wait'), EXPIRE_S_MAX), 'wait', 0, EXPIRE_S_MAX)}"


def ranked(priority: int | None) -> str:
    """" PRI 5", or nothing."""
    if priority is None:
        return ""
    return f" PRI {arguments.integer(priority, 'priority', -INT64_MAX - 1, INT64_MAX)}"


def as_key(value: str) -> str:
    """`value`, when it may be a job's key."""
    return _matching(KEY, value, "a key is 1 to 128 of A-Z a-z 0-9 _ . : -")


def as_word(value: str) -> str:
    """`value`, when it may be a reason."""
    return _matching(WORD, value, "a reason is 1 to 64 of A-Z a-z 0-9 _ . : -")


def _matching(pattern: re.Pattern[str], value: str, rule: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{rule.partition(' is ')[0]} must be a string, not {type(value).__name__}")
    match = pattern.fullmatch(value)
    if not match:
        raise BadArguments(f"{value!r}: {rule}")
    return match[0]


def _items(value: str | Iterable[str]) -> str:
    items = (value,) if isinstance(value, str) else tuple(dict.fromkeys(value))
    if not items:
        raise BadArguments("after names at least one item")
    return "|".join(arguments.name(item, "item") for item in items)


def _positive(value: float, what: str) -> str:
    return arguments.seconds(arguments.span(value, what), what, 0, EXPIRE_S_MAX)
