"""Clients ask for everything there is, and so that a run can end."""

from __future__ import annotations

import random
from typing import Any, get_args

from sockpqd.core import (
    Atomic,
    Batch,
    CloneChunk,
    Done,
    Get,
    Place,
    Put,
    PutWith,
    Requested,
)
from tests.sim.clients.random_commands import FAR_MS, QUEUES, RandomCommands

DRAWN = 8000
CLOCK_MS = 10_000


class OneClient:
    """The part of a Client that RandomCommands needs."""

    clock_ms = CLOCK_MS
    queues = QUEUES
    passing = True
    ended = True

    def __init__(self) -> None:
        self.bodies = 0

    def place(self) -> Place:
        return Place("a", 1)

    def queue_of_dead(self, queue: str) -> str:
        return queue

    def number(self) -> int:
        return 3

    def ended_number(self) -> int:
        return 4

    def held(self) -> int:
        return 1

    def release(self) -> int:
        return 2

    def body(self) -> bytes:
        self.bodies += 1
        return b"%d" % self.bodies

    def put(self, *, new_item: bool) -> Put:
        return Put("a", 0, self.body(), None if new_item else "i", new_item)


def drawn() -> list[Requested]:
    client: Any = OneClient()
    wishes = RandomCommands(client, random.Random(1))
    return [wishes.draw() for _ in range(DRAWN)]


def parts(operations: list[Requested]) -> list[Any]:
    return [part for one in operations for part in (one.operations if isinstance(one, Batch) else (one,))]


def test_all_that_a_request_can_carry_is_asked_for() -> None:
    others = {Put, Get, Done, CloneChunk}     # a client asks for them as it always did
    assert {type(one) for one in drawn()} | others == set(get_args(Requested))
    assert {type(part) for one in drawn() if isinstance(one, Batch) for part in one.operations} == set(get_args(Atomic))


def test_no_two_jobs_have_the_same_data() -> None:
    operations = parts(drawn())
    puts = [one.put if isinstance(one, PutWith) else one for one in operations]
    bodies = [getattr(one, "data", None) for one in puts]
    given = [body for body in bodies if body is not None]
    assert len(given) > DRAWN / 4
    assert len(set(given)) == len(given)


def test_no_two_jobs_wait_for_each_other() -> None:
    waiting = [one for one in parts(drawn()) if isinstance(one, PutWith) and one.after]
    assert waiting
    assert not any(one.put.item or one.put.new_item for one in waiting)


def test_what_is_put_for_tomorrow_has_a_key() -> None:
    timed = [one for one in parts(drawn()) if isinstance(one, PutWith) and one.when]
    far = [one for one in timed if (one.when.at_ms or 0) >= FAR_MS]
    assert far
    assert all(one.key for one in far)
