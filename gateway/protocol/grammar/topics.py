"""Parses the commands of TOPIC: each function reads the words of one."""

from __future__ import annotations

from sockpqd.core import BindQueue, UnbindQueue
from sockpqd.gateway.protocol.arguments import ArgumentError, name, pattern, prefix
from sockpqd.gateway.protocol.command import Command, Words


def _binding(words: Words) -> tuple[str, str, str | None]:
    """Parse <topic> <queue> [PATTERN <p>]."""
    match words[1:]:
        case [topic, queue]:
            return name(topic), name(queue), None
        case [topic, queue, b"PATTERN", its_pattern]:
            return name(topic), name(queue), pattern(its_pattern)
    raise ArgumentError(f"TOPIC {words[0].decode()} takes a topic, a queue, and perhaps PATTERN <pattern>")


def bind(words: Words) -> Command:
    """TOPIC BIND <topic> <queue> [PATTERN <p>]."""
    return Command(BindQueue(*_binding(words)))


def unbind(words: Words) -> Command:
    """TOPIC UNBIND <topic> <queue> [PATTERN <p>]."""
    return Command(UnbindQueue(*_binding(words)))


def topic_list(words: Words) -> Command:
    """TOPIC LIST [<prefix>*]. Arguments: the prefix, "" for all."""
    if len(words) > 2 or (len(words) == 2 and not words[1].endswith(b"*")):
        raise ArgumentError("TOPIC LIST takes a prefix: mail*")
    return Command(arguments=(prefix(words[1]) if len(words) == 2 else "",))


def delete(words: Words) -> Command:
    """TOPIC DELETE <topic>."""
    if len(words) != 2:
        raise ArgumentError("TOPIC DELETE takes a topic")
    return Command(UnbindQueue(name(words[1]), None))
