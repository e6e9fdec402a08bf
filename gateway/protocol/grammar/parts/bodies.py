"""The kinds of data that follow lines, and where their length is found in a malformed line.

If data follow only with an option, a malformed line is read like a valid one: from the left, a known option takes its
value, and any other word is taken by itself. Data follow if the second-to-last word is such an option.
"""

from __future__ import annotations

from collections.abc import Callable

from sockpqd.gateway.protocol.arguments import ArgumentError, unsigned
from sockpqd.gateway.protocol.command import BodyRule, Words
from sockpqd.gateway.protocol.grammar.parts.options import Table


def length_at(words: Words, at: int) -> int | None:
    """Return the length in the word at this position, None if it is malformed or missing."""
    try:
        return unsigned(words[at]) if at < len(words) else None
    except ArgumentError:
        return None


def with_option(table: Table, begin: Callable[[Words], int]) -> BodyRule:
    """Return the rule for lines that may end with an option of this table that has data.

    `begin`: where the options begin.
    """
    def length(words: Words) -> int | None:
        at, last = begin(words), len(words) - 2
        while at < last:
            option = table.get(words[at])
            second = option is not None and option.second is not None and words[at + 1] not in option.alone
            at += 1 if option is None or option.read is None else 2 + second
        option = table.get(words[at]) if at == last else None
        if option is not None and option.data:
            return length_at(words, last + 1)
        if b"DATA" not in table or b"DATA" not in words[1:]:
            return 0
        return length_at(words, last + 1 if words[last] == b"DATA" else len(words))     # DATA counts in any place

    return BodyRule(length, optional=True)


def _of_sync(words: Words) -> int | None:
    return length_at(words, 4) if len(words) > 1 and words[1].upper() == b"PUT" else 0


MESSAGE = BodyRule(lambda words: length_at(words, 2))       # of NOTIFY
JOB = BodyRule(lambda words: length_at(words, 3))           # the data of a new job
OF_MAP = BodyRule(lambda words: length_at(words, 2))        # of MAP SET
OF_PULSE = BodyRule(lambda words: length_at(words, 2))      # of PULSE SET
JOBS = BodyRule(lambda words: None)                         # argument lines with their data
SNAPSHOT = BodyRule(lambda words: length_at(words, 1))      # in pieces
OF_SYNC = BodyRule(_of_sync)                                # only SYNC PUT has data
