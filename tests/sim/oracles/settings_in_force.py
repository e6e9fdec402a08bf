"""What was set for queues and for the cluster, as far as it decides what becomes of a job."""

from __future__ import annotations

from typing import NamedTuple

from core import (
    CloneBegin,
    CloneChunk,
    CloneEnd,
    Configure,
    ConfigureQueue,
    ConfigureQueueWith,
    CreateQueue,
    CreateQueueWith,
    DeleteQueue,
    Get,
    Operation,
    Then,
)


class Rule(NamedTuple):
    """Of one queue; 0 stands for no limit."""

    expire_ms: int = 0
    then: Then = Then.LATER
    tries: int = 0
    dead: str | None = None


class Rules:
    """Fed with operations that were executed."""

    def __init__(self) -> None:
        self.expire_default = Then.LATER
        self.grace_ms: int | None = None
        self._queues: dict[str, Rule] = {}
        self._known: dict[bytes, dict[str, Rule]] = {}      # what the bytes used in CLONEs say
        self._clone = b""
        self.keepers: set[str] = set()      # queues in which keys of finished jobs were ever to be remembered

    def executed(self, operation: Operation) -> None:
        """Settings come with an operation on queues, or with a CLONE."""
        match operation:
            case CreateQueue() | ConfigureQueue() | CreateQueueWith() | ConfigureQueueWith():
                self._change(operation)
            case DeleteQueue():
                self._queues.pop(operation.queue, None)
            case Configure():
                if operation.expire_default is not None:
                    self.expire_default = operation.expire_default
                self.grace_ms = self.grace_ms if operation.grace_ms is None else operation.grace_ms
            case CloneBegin():
                self._clone = b""
            case CloneChunk():
                self._clone += operation.data
            case CloneEnd():
                self._queues = dict(self._known.get(self._clone, {}))

    def cloned(self, data: bytes) -> None:
        """A client took this snapshot now."""
        self._known[data] = dict(self._queues)

    def _change(self, operation: CreateQueue | ConfigureQueue | CreateQueueWith | ConfigureQueueWith) -> None:
        change, rule = operation.change, self.of(operation.queue)
        if change.expire_ms is not None:
            rule = rule._replace(expire_ms=change.expire_ms, then=change.then)
        if change.tries is not None:
            rule = rule._replace(tries=change.tries, dead=change.dead)
        self._queues[operation.queue] = rule
        if change.keep_ms:
            self.keepers.add(operation.queue)

    def of(self, queue: str) -> Rule:
        """What holds for a queue."""
        return self._queues.get(queue, Rule())

    def dead_queue(self, queue: str) -> str:
        """Where its dead jobs wait."""
        return self.of(queue).dead or f"{queue}_dead"

    def lease(self, get: Get, queue: str) -> tuple[int | None, Then]:
        """How long a job of the queue is given, None: for ever; and what follows then."""
        expire_ms, then, rule = get.expire_ms, get.then, self.of(queue)
        if expire_ms is None and rule.expire_ms:
            expire_ms, then = rule.expire_ms, rule.then
        return expire_ms or None, self.expire_default if then is Then.DEFAULT else then
