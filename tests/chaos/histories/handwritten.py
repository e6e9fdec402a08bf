"""Histories written by hand, for the checker's own tests. Times are in seconds."""

from __future__ import annotations

from typing import Any, Self

from msgspec.structs import replace

from tests.chaos.checker import Facts, check
from tests.chaos.workload.history import (
    Command,
    Cut,
    Done,
    Finished,
    Get,
    Handed,
    History,
    Later,
    Outcome,
    Put,
    Record,
)

OK, UNKNOWN, REFUSED = Outcome.OK, Outcome.UNKNOWN, Outcome.NOT_EXECUTED


def ns(seconds: float) -> int:
    """Convert seconds to the history's clock."""
    return round(seconds * 1e9)


class Written:
    """A history to which each method adds one record with the given start and end."""

    def __init__(self) -> None:
        self.history = History()
        self._puts: dict[str, Put] = {}

    def _add(self, command: Command, start: float, end: float | None, **rest: Any) -> Self:
        client = f"c{len(self.history.records)}"
        record = Record(client, command, ns(start), None if end is None else ns(end), OK, "n1")
        self.history.add(replace(record, **rest))
        return self

    def put(
        self, body: str, start: float, end: float | None, queue: str = "q", priority: int = 0, item: str | None = None,
        **rest: Any,
    ) -> Self:
        """Record a PUT of this body."""
        self._puts[body] = Put(body, queue, priority, item)
        return self._add(self._puts[body], start, end, **rest)

    def get(self, body: str, number: int, start: float, end: float, get: Get | None = None, **rest: Any) -> Self:
        """Record a GET that returned this job."""
        put = self._puts.get(body, Put(body, "q", 0))
        handed = Handed(number, put.queue, put.priority, body, put.item)
        return self._add(get or Get((put.queue,)), start, end, **{"handed": handed, **rest})

    def ask(self, get: Get, start: float, end: float | None, **rest: Any) -> Self:
        """Record a GET that returned none."""
        return self._add(get, start, end, **rest)

    def done(self, number: int, start: float, end: float | None, said: str = "FINQ", **rest: Any) -> Self:
        """Record a DONE of this id."""
        finished = Finished("FINQ" in said, "FINI" in said)
        return self._add(Done(number), start, end, **{"finished": finished, **rest})

    def later(self, number: int, start: float, end: float | None, **rest: Any) -> Self:
        """Record a LATER of this id."""
        return self._add(Later(number), start, end, **rest)

    def cut(self, node: str, start: float, end: float) -> Self:
        """Record that this node reached no majority."""
        self.history.cuts.append(Cut(node, ns(start), ns(end)))
        return self

    def broken(self, **facts: Any) -> list[str]:
        """Return the rules that the checker finds broken."""
        return sorted({violation.rule for violation in check(self.history, Facts(**facts))})
