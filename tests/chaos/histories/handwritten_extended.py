"""Histories of extended commands, written by hand. Times are in seconds."""

from __future__ import annotations

from typing import Any, Self

from tests.chaos.histories.handwritten import OK, Written
from tests.chaos.workload.history import (
    Cascade,
    Command,
    Copies,
    DoneMany,
    GetMany,
    Handed,
    LaterMany,
    Move,
    PutOff,
    Puts,
    PutWith,
    Touch,
    TouchMany,
)


class WrittenExtended(Written):
    """A history to which each method adds one record; `queues` of a GET are its jobs' queues, its lease is a
    second.
    """

    def __init__(self) -> None:
        super().__init__()
        self._wishes: dict[str, PutWith] = {}

    def wish(self, body: str, start: float, end: float | None, *, good: bool = True, **rest: Any) -> Self:
        """Record a PUT of this body with `queue`, `delay_ms`, `key`, `group`, if given."""
        named = {name: rest.pop(name) for name in ("queue", "delay_ms", "key", "priority", "group") if name in rest}
        put = self._wishes[body] = PutWith(body, **{"queue": "q", **named})
        return self._say(put, start, end, (good,), **rest)

    def wishes(self, bodies: str, start: float, end: float, *good: bool, **rest: Any) -> Self:
        """Record a PUTS of jobs with names of one letter."""
        puts = tuple(PutWith(body, "q") for body in bodies)
        self._wishes |= {put.body: put for put in puts}
        return self._say(Puts(puts), start, end, good or (True,) * len(puts), **rest)

    def took(
        self, start: float, end: float, *, queue: str = "", attempt: int = 1, group: str | None = None,
        number: int | None = None, **ids: int,
    ) -> Self:
        """Record a GET COUNT that returned these bodies under these ids, with these numbers."""
        given = []
        for body, job in ids.items():
            put = self._wishes.get(body, PutWith(body, "q"))
            given.append(Handed(job, queue or put.queue, put.priority, body, None, attempt, group, number))
        queues = tuple({handed.queue for handed in given})
        self._add(GetMany(queues, 1000), start, end, given=tuple(given))
        return self

    def by_number(
        self, asked: int, start: float, end: float, *, missing: bool = False, number: int | None = None, **ids: int
    ) -> Self:
        """Record a GET NUMBER that returned this body under this id, or nothing."""
        given = tuple(Handed(job, "q", 0, body, None, 1, None, number) for body, job in ids.items())
        return self._add(GetMany(("q",), 1000, 1, number=asked), start, end, given=given, missing=missing)

    def ended(self, start: float, end: float, **ids: bool) -> Self:
        """Record a DONE of several ids; i1=True: it was found."""
        numbers = tuple(int(name[1:]) for name in ids)
        return self._say(DoneMany(numbers), start, end, tuple(ids.values()))

    def backs(self, start: float, end: float, **ids: bool) -> Self:
        """Record a LATER .. FIRST of several ids; i1=True: it was found."""
        numbers = tuple(int(name[1:]) for name in ids)
        return self._say(LaterMany(numbers), start, end, tuple(ids.values()))

    def touches(self, number: int, expire_ms: int, start: float, end: float) -> Self:
        """Record a TOUCH .. EXPIRE of several ids, one of which exists."""
        return self._say(TouchMany((number,), expire_ms), start, end, (True,))

    def off(
        self, number: int, delay_ms: int, start: float, end: float, good: bool = True, **rest: Any
    ) -> Self:
        """Record a LATER .. DELAY."""
        return self._say(PutOff(number, delay_ms), start, end, (good,), **rest)

    def touch(
        self, number: int, expire_ms: int, start: float, end: float, good: bool = True, **rest: Any
    ) -> Self:
        """Record a TOUCH .. EXPIRE."""
        return self._say(Touch(number, expire_ms), start, end, (good,), **rest)

    def move(self, number: int, queue: str, start: float, end: float, delay_ms: int = 0, **rest: Any) -> Self:
        """Record a successful MOVE of this job, between these times in seconds."""
        return self._say(Move(number, queue, delay_ms), start, end, (True,), **rest)

    def cascade(
        self, number: int, bodies: str, start: float, end: float | None, *, good: bool = True, **rest: Any
    ) -> Self:
        """Record a transaction of a DONE of this id and PUTs of these bodies into "next"."""
        puts = tuple(PutWith(body, "next") for body in bodies)
        self._wishes |= {put.body: put for put in puts}
        return self._say(Cascade(number, puts), start, end, (good,), **rest)

    def copy(self, body: str, queues: str, start: float, end: float | None, **rest: Any) -> Self:
        """Record one PUT of this body into queues with names of one letter: the jobs are called "A_p", "A_q"."""
        puts = tuple(PutWith(f"{body}_{queue}", queue) for queue in queues)
        self._wishes |= {put.body: put for put in puts}
        return self._say(Copies(puts), start, end, (True,), **rest)

    def _say(self, command: Command, start: float, end: float | None, good: tuple[bool, ...], **rest: Any) -> Self:
        known = rest.get("outcome", OK) is OK
        self._add(command, start, end, **{"good": good if known else (), **rest})
        return self
