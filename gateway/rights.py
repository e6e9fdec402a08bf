"""A user's rights (spec/access 3): put, get, queue, item, group and admin, each for all names or those with a prefix.

A right is a tuple of prefixes, so that `queue.startswith(rights.put)` is the whole check; the prefix "" stands for all
names, an empty tuple for none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from sockpqd.gateway.limits import RIGHTS_MAX

KINDS = ("put", "get", "queue", "admin", "item", "group")
OF_QUEUES = KINDS[:4]
NONE = "-"

_RIGHT = re.compile(r"(put|get|queue|admin|item|group)(?::([A-Za-z0-9_.+/;$()@][A-Za-z0-9_.+/;$():@-]{0,254})?\*)?")


class Rights(Struct, frozen=True):
    """The rights of one user. `admin` for all queues implies all other rights.

    `seen`: the union of those for queues; `item`: the user's items, by default those of `put`; `own_item`: only items
    named by an explicit `item` right. `group`: the groups that PUT may name; none: any.
    """

    text: str                       # as written
    put: tuple[str, ...] = ()
    get: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()
    admin: tuple[str, ...] = ()
    item: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    own_item: tuple[str, ...] = ()


def of_words(words: Iterable[str]) -> Rights:
    """Parse rights given as words like `put:mail*` or `get`; raises ValueError with the reason."""
    prefixes: dict[str, dict[str, None]] = {kind: {} for kind in KINDS}
    granted: dict[str, None] = {}
    for word in words:
        match = _RIGHT.fullmatch(word)
        if match is None:
            kinds = "put, get, queue, item, group or admin"
            raise ValueError(f"{word!r} is not a right: use {kinds}, with or without :PREFIX*")
        kind, prefix = match[1], match[2] or ""
        prefixes[kind][prefix] = None
        granted[f"{kind}:{prefix}*" if prefix else kind] = None
    if len(granted) > RIGHTS_MAX:
        raise ValueError(f"a user has at most {RIGHTS_MAX} rights")
    if "" in prefixes["admin"]:
        prefixes = {kind: {"": None} for kind in KINDS}
    seen = dict.fromkeys(prefix for kind in OF_QUEUES for prefix in prefixes[kind])
    put, get, queue, admin, item, group = (tuple(prefixes[kind]) for kind in KINDS)
    return Rights(",".join(granted) or NONE, put, get, queue, admin, item or put, tuple(seen), group, item)


def of_text(text: str) -> Rights:
    """Parse rights given as `put:mail*,get`, or as `-` for none; raises ValueError."""
    return of_words(() if text == NONE else text.split(","))


def of_log(text: str) -> Rights:
    """Parse rights from the log, ignoring words that only a newer version understands."""
    return of_words([word for word in text.split(",") if _RIGHT.fullmatch(word)])
