"""What was set for queues and for the cluster, as far as it decides what becomes of a job."""

from __future__ import annotations

from typing import NamedTuple

from sockpqd.core import (
    BindQueue,
    CloneBegin,
    CloneChunk,
    CloneEnd,
    Configure,
    ConfigureQueue,
    CreateQueue,
    DeleteQueue,
    DeleteTopic,
    Get,
    Operation,
    Overflow,
    Then,
    UnbindQueue,
)
from tests.sim.oracles.bindings import Bindings


class Rule(NamedTuple):
    """Of one queue; 0 stands for no limit."""

    expire_ms: int = 0
    then: Then = Then.LATER
    tries: int = 0
    dead: str | None = None
    capacity: int = 0
    drops: bool = False             # the oldest job when it is full
    ttl_ms: int = 0
    idle_ms: int = 0
    session: int | None = None      # it goes with this one
    backoff_ms: int = 0             # after a first attempt that fails
    backoff_max_ms: int = 0


class Rules:
    """Fed with operations that were executed."""

    def __init__(self) -> None:
        self.expire_default = Then.LATER
        self.grace_ms: int | None = None
        self._queues: dict[str, Rule] = {}
        self.topics = Bindings()
        self._known: dict[bytes, tuple[dict[str, Rule], Bindings]] = {}     # what the bytes used in CLONEs say
        self._clone = b""
        self.keepers: set[str] = set()      # queues in which keys of finished jobs were ever to be remembered

    def executed(self, operation: Operation) -> None:
        """Settings come with an operation on queues, or with a CLONE."""
        match operation:
            case CreateQueue() | ConfigureQueue():
                self._change(operation)
            case DeleteQueue():
                self.remove(operation.queue)
            case BindQueue() | UnbindQueue() | DeleteTopic():
                self.topics.executed(operation)
            case Configure():
                if operation.expire_default is not None:
                    self.expire_default = operation.expire_default
                self.grace_ms = self.grace_ms if operation.grace_ms is None else operation.grace_ms
            case CloneBegin():
                self._clone = b""
            case CloneChunk():
                self._clone += operation.data
            case CloneEnd():
                queues, topics = self._known.get(self._clone, ({}, Bindings()))
                self._queues = {name: rule._replace(session=None) for name, rule in queues.items()}
                self.topics = topics.copy()

    def cloned(self, data: bytes) -> None:
        """A client took this snapshot now."""
        self._known[data] = dict(self._queues), self.topics.copy()

    def remove(self, queue: str) -> None:
        """The queue is no more."""
        self._queues.pop(queue, None)
        self.topics.remove(queue)

    def bound(self, session: int) -> list[str]:
        """The queues that go with a session."""
        return [name for name, rule in self._queues.items() if rule.session == session]

    def _change(self, operation: CreateQueue | ConfigureQueue) -> None:
        change, rule = operation.change, self.of(operation.queue)
        if change.expire_ms is not None:
            rule = rule._replace(expire_ms=change.expire_ms, then=change.then)
        if change.tries is not None:
            rule = rule._replace(tries=change.tries, dead=change.dead)
        if change.capacity is not None:
            rule = rule._replace(capacity=change.capacity)
        if change.ttl_ms is not None:
            rule = rule._replace(ttl_ms=change.ttl_ms)
        if change.idle_ms is not None:
            rule = rule._replace(idle_ms=change.idle_ms)
        if change.backoff_ms is not None:
            rule = rule._replace(backoff_ms=change.backoff_ms, backoff_max_ms=change.backoff_max_ms or 0)
        if change.overflow is not None:
            rule = rule._replace(drops=change.overflow is Overflow.DROPOLDEST)
        if isinstance(operation, CreateQueue) and operation.session is not None:
            rule = rule._replace(session=operation.session)
        self._queues[operation.queue] = rule
        if change.keep_ms:
            self.keepers.add(operation.queue)

    def of(self, queue: str) -> Rule:
        """What holds for a queue."""
        return self._queues.get(queue, Rule())

    def dead_queue(self, queue: str) -> str:
        """Where its dead jobs wait."""
        return self.of(queue).dead or f"{queue}_dead"

    def lease(self, get: Get, queue: str, own_ms: int | None) -> tuple[int | None, Then]:
        """How long a job of the queue is given, None: for ever; and what follows. `own_ms`: the job's own lease."""
        expire_ms, then, rule = get.expire_ms, get.then, self.of(queue)
        if expire_ms is None:
            expire_ms = rule.expire_ms if own_ms is None else own_ms
            then = rule.then if rule.expire_ms else Then.DEFAULT
        return expire_ms or None, self.expire_default if then is Then.DEFAULT else then
