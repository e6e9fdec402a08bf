"""The grammar of GROUP, and of the settings of queues that concern their groups."""

from __future__ import annotations

from sockpqd.core import (
    GROUP_PER_MS_MAX,
    GROUP_PER_MS_MIN,
    GROUP_RATE_MAX,
    GROUP_WEIGHT_MAX,
    ConfigureGroup,
    DeleteGroup,
    GroupBy,
)
from sockpqd.gateway.limits import SETTING_MAX
from sockpqd.gateway.protocol.arguments import (
    ArgumentError,
    WrongWord,
    between,
    header_name,
    milliseconds,
    name,
    plain_word,
    positive_ms,
    prefix,
)
from sockpqd.gateway.protocol.command import Command, Words
from sockpqd.gateway.protocol.grammar.parts.options import Option, one_of, or_off, read_options
from sockpqd.gateway.protocol.tokens import seconds


def group(word: bytes) -> str:
    """Parse the name of a group: a word of PUT's GROUP, or the name of a queue."""
    try:
        return plain_word(word)
    except ArgumentError:
        return name(word)


def _per_ms(word: bytes) -> int:
    per_ms = milliseconds(word)
    if not GROUP_PER_MS_MIN <= per_ms <= GROUP_PER_MS_MAX:
        raise WrongWord(f"seconds from {seconds(GROUP_PER_MS_MIN)} to {seconds(GROUP_PER_MS_MAX)}", word)
    return per_ms


def rate(field: str, per: str) -> Option:
    """The option `<n> PER <seconds>` that sets these two fields."""
    return Option(field, or_off(between(1, GROUP_RATE_MAX)), behind=(b"PER", Option(per, _per_ms)))


def check_rate(word: str, value: int | None, per_ms: int | None) -> None:
    """Refuse a rate without its time, and a time without a rate."""
    if bool(value) != (per_ms is not None):
        raise ArgumentError(f"{word} takes <n> PER <seconds>, or OFF")


_GROUP_BY = {b"USER": GroupBy.USER, b"HEAD": GroupBy.HEAD, b"ITEM": GroupBy.ITEM, b"OFF": GroupBy.PUT}
OF_QUEUES = {
    b"GROUPORDER": Option("group_order", one_of({b"ON": True, b"OFF": False})),
    b"GROUPLIMIT": Option("group_limit", or_off(between(0, SETTING_MAX))),
    b"GROUPRATE": rate("group_rate", "group_per_ms"),
    b"GROUPBY": Option(
        "group_by", one_of(_GROUP_BY), second=("group_header", header_name), alone=(b"USER", b"ITEM", b"OFF"),
    ),
}
SETTINGS = {
    b"LIMIT": Option("limit", or_off(between(0, SETTING_MAX))),
    b"RATE": rate("rate", "per_ms"),
    b"WEIGHT": Option("weight", or_off(between(1, GROUP_WEIGHT_MAX), 1)),
}


def group_settings(words: Words) -> Command | None:
    """GROUP CONFIG <group>: show its settings. Arguments: the group."""
    return one_group(words) if len(words) == 2 else None


def group_config(words: Words) -> Command:
    """GROUP CONFIG <group> with settings: change them."""
    if len(words) < 2:
        raise ArgumentError("GROUP CONFIG takes a group, and its settings")
    found = read_options(words, 2, SETTINGS)
    check_rate("RATE", found.get("rate"), found.get("per_ms"))
    return Command(ConfigureGroup(group(words[1]), **found))


def group_pause(words: Words) -> Command:
    """GROUP PAUSE <group> [FOR <seconds>]."""
    match words[1:]:
        case [one]:
            return Command(ConfigureGroup(group(one), paused=True))
        case [one, b"FOR", length]:
            return Command(ConfigureGroup(group(one), paused=True, pause_ms=positive_ms(length)))
    raise ArgumentError("GROUP PAUSE takes a group, and perhaps FOR <seconds>")


def group_resume(words: Words) -> Command:
    """GROUP RESUME <group>."""
    return Command(ConfigureGroup(one_group(words).arguments[0], paused=False))


def group_delete(words: Words) -> Command:
    """GROUP DELETE <group>."""
    return Command(DeleteGroup(one_group(words).arguments[0]))


def one_group(words: Words) -> Command:
    """A verb followed by a group. Arguments: the group."""
    if len(words) != 2:
        raise ArgumentError(f"{words[0].decode()} takes a group")
    return Command(arguments=(group(words[1]),))


def group_list(words: Words) -> Command:
    """GROUP LIST [<prefix>*]. Arguments: the prefix, "" for all."""
    if len(words) > 2 or (len(words) == 2 and not words[1].endswith(b"*")):
        raise ArgumentError("GROUP LIST takes a prefix: customer_*")
    return Command(arguments=(prefix(words[1]) if len(words) == 2 else "",))
