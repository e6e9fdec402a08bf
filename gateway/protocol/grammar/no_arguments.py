"""Lines of one word."""

from __future__ import annotations

from gateway.protocol.arguments import ArgumentError
from gateway.protocol.command import Command, Words


def alone(words: Words) -> Command:
    """A verb that stands alone."""
    if len(words) != 1:
        raise ArgumentError
    return Command()
