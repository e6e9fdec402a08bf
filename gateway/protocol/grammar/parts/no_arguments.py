"""The grammar of verbs without arguments."""

from __future__ import annotations

from gateway.protocol.arguments import ArgumentError
from gateway.protocol.command import Command, Words


def alone(words: Words) -> Command:
    """A verb without arguments."""
    if len(words) != 1:
        raise ArgumentError
    return Command()
