"""A release that follows: this one with a further command, POKE, which came with feature level 2.

    python -m tests.upgrade.next_release sockpqd --config FILE

It runs the program of this environment in this process, after it has added an operation with its handler, verb and word
of CAPS at the places where a release would: in the tables of core and gateway and in the union of operations. No line
of the product knows of that. Everything else is the same, so this shows what levels do and not what else a release may
change.

    POKE <queue>    puts a job with the data "poked": 200 OK
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec
from msgspec import Struct

from sockpqd.core import Put, levels
from sockpqd.core.handlers import cost, dispatch
from sockpqd.core.handlers.jobs.put import put
from sockpqd.core.ops import entry
from sockpqd.core.ops.replies import Reply
from sockpqd.core.state import State
from sockpqd.gateway.auth import permissions as may
from sockpqd.gateway.commands import catalog, write
from sockpqd.gateway.main import main as sockpqd
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.arguments import ArgumentError, name
from sockpqd.gateway.protocol.command import Command, Kind, Row, Words
from sockpqd.gateway.server.hub import Hub

LEVEL = 2


class Poke(Struct, array_like=True, tag=999, gc=False, frozen=True):
    """Puts a job."""

    queue: str


class Entry(Struct, array_like=True, frozen=True):
    """An entry as this release reads it."""

    format: int
    now_ms: int
    seed: int
    operations: list[entry.Operation | Poke]


def poke(state: State, operation: Poke, seed: int) -> Reply:
    """The handler."""
    return put(state, Put(operation.queue, 0, b"poked"), seed)


def poke_line(words: Words) -> Command:
    """The grammar."""
    if len(words) != 2:
        raise ArgumentError("it takes a queue")
    return Command(Poke(name(words[1])))


def add() -> None:
    """Make this process the next release, before it runs the program."""
    changed: Any = levels
    changed.FEATURE_LEVEL = LEVEL
    dispatch.EXECUTE[Poke] = poke
    dispatch.COSTS[Poke] = cost.on_queue
    dispatch.LEVELS[Poke] = LEVEL
    reading: Any = entry
    reading._decoder = msgspec.msgpack.Decoder(Entry)
    verbs = catalog.verbs(Row(b"POKE", poke_line, may.queue, write.proposed, Kind.LOGGED, 1))
    serving: Any = Hub.__init__
    serving.__defaults__ = (*serving.__defaults__[:-1], verbs)
    responses.FEATURES[LEVEL] = (b"poke",)


def main() -> Any:
    """As the console script of the program, whose arguments are behind its name."""
    add()
    del sys.argv[0]
    return sockpqd()


if __name__ == "__main__":
    sys.exit(main())
