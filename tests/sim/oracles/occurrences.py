"""Counts what happened in a run: operations and their replies, options, events, repeated requests, ends of sessions.

They judge nothing. They say what a campaign has exercised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache

from sockpqd.core import Batch, Event, Operation, Reply, Request, RequestMismatch, RequestTooOld, Results
from tests.core.model.model import Model

REFUSED = RequestTooOld | RequestMismatch


class Occurrences:
    """Counts in `seen`; is called for each entry before and after `model` executes it."""

    def __init__(self, model: Model, seen: Counter[str]) -> None:
        self._model = model
        self._seen = seen
        self._bound: dict[int, int] = {}                        # the sessions before the entry, with their bound jobs
        self._answered: set[tuple[int, int, int]] = set()       # by session, number and part

    def comes(self) -> None:
        """Remember what the entry may end."""
        self._bound = {one.number: len(self._model.taken(one.number)) for one in self._model.sessions.all}

    def applied(self, operations: Iterable[Operation], replies: Iterable[Reply], events: Iterable[Event]) -> None:
        """Count the operations that were executed, events, and sessions that have ended."""
        for operation, reply in zip(operations, replies, strict=False):
            word = type(reply).__name__
            if isinstance(operation, Request):
                self._seen[f"Request {word}"] += 1
                request = operation.session, operation.number, operation.part
                if request in self._answered and not isinstance(reply, REFUSED):
                    self._seen[f"{word} again"] += 1
                self._answered.add(request)
                operation = operation.operation
            self._count(operation, word)
            replies_of = reply.replies if isinstance(reply, Results) else (reply,)
            self._seen.update(f"reply {type(one).__name__}" for one in replies_of)
            if isinstance(operation, Batch):
                for part in operation.operations:
                    self._count(part, f"in {word}")
        self._seen.update(f"event {event.type}" for event in events)
        for number in self._bound.keys() - {one.number for one in self._model.sessions.all}:
            self._seen["sessions that ended"] += 1
            self._seen["bound jobs returned"] += self._bound[number]

    def _count(self, operation: Operation, word: str) -> None:
        name = type(operation).__name__
        self._seen[f"{name} {word}"] += 1
        self._seen.update(
            f"{name}.{field}" for field, default in _defaults(type(operation)) if getattr(operation, field) != default)


@cache
def _defaults(kind: type[Operation]) -> list[tuple[str, object]]:
    """Return the options of an operation, with their default values."""
    defaults = kind.__struct_defaults__
    return list(zip(kind.__struct_fields__[-len(defaults):], defaults, strict=True)) if defaults else []
