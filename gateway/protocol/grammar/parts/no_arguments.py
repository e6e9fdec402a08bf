"""The grammar of verbs without arguments."""

from __future__ import annotations

from sockpqd.gateway.protocol.arguments import ArgumentError
from sockpqd.gateway.protocol.command import Command, Words


def alone(words: Words) -> Command:
    """A verb without arguments."""
    if len(words) != 1:
        raise ArgumentError(f"{words[0].upper().decode()} takes no arguments")
    return Command()
