"""Chooses the group of a job that enters a queue with GROUPBY (spec/fair 7)."""

from __future__ import annotations

import re

from sockpqd.core.ops.jobs import PutWith
from sockpqd.core.ops.queues import GroupBy
from sockpqd.core.ops.settings import QueueSettings
from sockpqd.core.store.body import Data, bytes_of
from sockpqd.core.store.headers import header_value

# A word that GROUP takes, or the name of a queue.
_GROUP = re.compile(r"[A-Za-z0-9_.:-]{1,64}|[A-Za-z0-9_.+/;$()][A-Za-z0-9_.+/;$():@-]{0,254}")


def group_of_put(settings: QueueSettings | None, operation: PutWith, item: str | None) -> str | None:
    """Return the group of this Put's job in a queue with these settings; None: the queue's name. `item`: the job's."""
    if settings is None or settings.group_by is GroupBy.PUT:
        return operation.group
    if settings.group_by is GroupBy.USER:
        return _group(operation.user)
    return group_in(settings, None, item, operation.put.data, operation.head)


def group_in(settings: QueueSettings | None, group: str | None, item: str | None, data: Data, head: int) -> str | None:
    """Return the group that a job of `group` gets when it moves from another queue into one with these settings."""
    if settings is None or settings.group_by in (GroupBy.PUT, GroupBy.USER):
        return group
    if settings.group_by is GroupBy.ITEM:
        return _group(item)
    value = header_value(bytes_of(data)[:max(head, 0)], settings.group_header) if head else None
    return _group(value)


def _group(word: str | None) -> str | None:
    """Return the group of this name; None if it is not the name of a group."""
    return None if word is None or _GROUP.fullmatch(word) is None else word
