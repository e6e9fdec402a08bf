"""The grammar of TOTAL and RUNLIST."""

from __future__ import annotations

from sockpqd.gateway.protocol.arguments import ArgumentError, name
from sockpqd.gateway.protocol.command import Command, Words


def total(words: Words) -> Command:
    """TOTAL [<queue>]. Arguments: the queue, None for all."""
    if len(words) > 2:
        raise ArgumentError("TOTAL takes one queue, or nothing")
    return Command(arguments=(name(words[1]) if len(words) == 2 else None,))


def runlist(words: Words) -> Command:
    """RUNLIST [DATA]. Arguments: whether to include data."""
    if len(words) > 2 or (len(words) == 2 and words[1] != b"DATA"):
        raise ArgumentError("RUNLIST takes DATA, or nothing")
    return Command(arguments=(len(words) == 2,))
