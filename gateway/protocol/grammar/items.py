"""Parses the commands of ITEM: each function reads the words of one."""

from __future__ import annotations

from sockpqd.core import HOLD_MS_MAX, HOLD_MS_MIN, CancelItem, HoldItem, HoldThen, RetryItem
from sockpqd.gateway.protocol.arguments import ArgumentError, WrongWord, milliseconds, name, plain_word, prefix
from sockpqd.gateway.protocol.command import Command, Words
from sockpqd.gateway.protocol.grammar.parts.options import Option, one_of, read_options
from sockpqd.gateway.protocol.tokens import seconds

HOLD_MS = 600_000           # without EXPIRE


def _hold_ms(word: bytes) -> int:
    duration_ms = milliseconds(word)
    if not HOLD_MS_MIN <= duration_ms <= HOLD_MS_MAX:
        raise WrongWord(f"{seconds(HOLD_MS_MIN)} to {seconds(HOLD_MS_MAX)} seconds", word)
    return duration_ms


_THEN = {then.name.encode(): then for then in HoldThen}
_HOLD_OPTIONS = {b"EXPIRE": Option("expire_ms", _hold_ms, behind=(b"THEN", Option("then", one_of(_THEN))))}
_CANCEL_OPTIONS = {b"REASON": Option("reason", plain_word)}


def stat(words: Words) -> Command:
    """ITEM STAT <item>. Arguments: the item."""
    return Command(arguments=(_only_item(words),))


def hold(words: Words) -> Command:
    """ITEM HOLD (<item> | NEW) [EXPIRE <seconds> [THEN (CANCEL|RELEASE)]]."""
    if len(words) < 2:
        raise ArgumentError("ITEM HOLD takes an item, or NEW")
    item = None if words[1] == b"NEW" else name(words[1])
    options = read_options(words, 2, _HOLD_OPTIONS)
    return Command(HoldItem(item, options.get("expire_ms", HOLD_MS), options.get("then", HoldThen.CANCEL)))


def release(words: Words) -> Command:
    """ITEM RELEASE <item>."""
    return Command(HoldItem(_only_item(words), None))


def cancel(words: Words) -> Command:
    """ITEM CANCEL <item> [REASON <word>]."""
    if len(words) < 2:
        raise ArgumentError("ITEM CANCEL takes an item")
    return Command(CancelItem(name(words[1]), **read_options(words, 2, _CANCEL_OPTIONS)))


def retry(words: Words) -> Command:
    """ITEM RETRY <item>."""
    return Command(RetryItem(_only_item(words)))


def _only_item(words: Words) -> str:
    if len(words) != 2:
        raise ArgumentError(f"ITEM {words[0].decode().upper()} takes an item")
    return name(words[1])


def list_(words: Words) -> Command:
    """ITEM LIST [<prefix>*] [HELD]. Arguments: the prefix, "" for all; whether only those that are held are listed."""
    held = len(words) > 1 and words[-1] == b"HELD"
    named = words[1:-1] if held else words[1:]
    if len(named) > 1 or (named and not named[0].endswith(b"*")):
        raise ArgumentError("ITEM LIST takes a prefix and HELD: order_* HELD")
    return Command(arguments=(prefix(named[0]) if named else "", held))
