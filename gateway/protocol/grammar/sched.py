"""The grammar of SCHED: fair shares among groups."""

from __future__ import annotations

from itertools import pairwise

from sockpqd.core import LEVEL_S_MAX, LEVELS_MAX, Configure, FairChange
from sockpqd.gateway.protocol.arguments import ArgumentError, WrongWord, between, milliseconds
from sockpqd.gateway.protocol.command import Command, Words
from sockpqd.gateway.protocol.grammar.groups import group
from sockpqd.gateway.protocol.grammar.parts.options import Option, read_options
from sockpqd.gateway.protocol.tokens import seconds

_threshold_s = between(0, LEVEL_S_MAX)


def _levels(word: bytes) -> tuple[int, ...]:
    parts = word.split(b"|")
    if len(parts) > LEVELS_MAX:
        raise ArgumentError(f"LEVELS takes at most {LEVELS_MAX} levels")
    levels = tuple(map(_threshold_s, parts))
    if len(levels) < 2 or levels[0] or any(after <= before for before, after in pairwise(levels)):
        raise WrongWord("at least two rising numbers of seconds from 0 on, like 0|60|600", word)
    return levels


def _seconds_from(least_ms: int, most_ms: int) -> Option:
    wanted = f"seconds from {seconds(least_ms)} to {seconds(most_ms)}"

    def read(word: bytes) -> int:
        value_ms = milliseconds(word)
        if not least_ms <= value_ms <= most_ms:
            raise WrongWord(wanted, word)
        return value_ms
    return Option("", read)


SETTINGS = {
    b"LEVELS": Option("thresholds_s", _levels),
    b"CAP": Option("cap_ms", _seconds_from(1000, 86_400_000).read),
    b"MULTIPLIER": Option("multiplier", between(1, 100)),
    b"GROUPKEEP": Option("keep_ms", _seconds_from(0, 86_400_000).read),
}


def sched_group(words: Words) -> Command:
    """SCHED GROUP <group>, a word of PUT's GROUP or the name of a queue. Arguments: the group."""
    if len(words) != 2:
        raise ArgumentError("SCHED GROUP takes a group, or a queue")
    return Command(arguments=(group(words[1]),))


def sched_settings(words: Words) -> Command | None:
    """SCHED CONFIG without settings: show them."""
    return Command() if len(words) == 1 else None


def sched_config(words: Words) -> Command:
    """SCHED CONFIG with settings: change them."""
    return Command(Configure(fair=FairChange(**read_options(words, 1, SETTINGS))))
