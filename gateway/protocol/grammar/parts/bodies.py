"""The kinds of data that follow lines, and where their length is found in a malformed line."""

from __future__ import annotations

from sockpqd.gateway.protocol.arguments import ArgumentError, unsigned
from sockpqd.gateway.protocol.command import BodyRule, Words


def length_at(words: Words, at: int) -> int | None:
    """Return the length in the word at this position, None if it is malformed or missing."""
    try:
        return unsigned(words[at]) if at < len(words) else None
    except ArgumentError:
        return None


def _behind_data(words: Words) -> int | None:
    if b"DATA" not in words[1:]:
        return 0
    return length_at(words, len(words) - 1 if words[-2] == b"DATA" else len(words))


def _of_sync(words: Words) -> int | None:
    return length_at(words, 4) if len(words) > 1 and words[1].upper() == b"PUT" else 0


MESSAGE = BodyRule(lambda words: length_at(words, 2))       # of NOTIFY
JOB = BodyRule(lambda words: length_at(words, 3))           # the data of a new job
OF_PULSE = BodyRule(lambda words: length_at(words, 2))      # of PULSE SET
OTHER_DATA = BodyRule(_behind_data)                         # optional: the line ends with DATA <length>
JOBS = BodyRule(lambda words: None)                         # argument lines with their data
SNAPSHOT = BodyRule(lambda words: length_at(words, 1))      # in pieces
OF_SYNC = BodyRule(_of_sync)                                # only SYNC PUT has data
