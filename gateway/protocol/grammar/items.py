"""The grammar of ITEM."""

from __future__ import annotations

from sockpqd.core import RetryItem
from sockpqd.gateway.protocol.arguments import ArgumentError, name, prefix
from sockpqd.gateway.protocol.command import Command, Words


def stat(words: Words) -> Command:
    """ITEM STAT <item>. Arguments: the item."""
    if len(words) != 2:
        raise ArgumentError("ITEM STAT takes an item")
    return Command(arguments=(name(words[1]),))


def retry(words: Words) -> Command:
    """ITEM RETRY <item>."""
    if len(words) != 2:
        raise ArgumentError("ITEM RETRY takes an item")
    return Command(RetryItem(name(words[1])))


def list_(words: Words) -> Command:
    """ITEM LIST [<prefix>*]. Arguments: the prefix, "" for all."""
    if len(words) > 2 or (len(words) == 2 and not words[1].endswith(b"*")):
        raise ArgumentError("ITEM LIST takes a prefix: order_*")
    return Command(arguments=(prefix(words[1]) if len(words) == 2 else "",))
