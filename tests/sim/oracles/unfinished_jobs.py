"""The jobs that have not ended, as the history tells of them.

A job is known by its data: no two have the same, but those that one PUT has brought into several queues.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sockpqd.core import Handed, Then
from tests.sim.oracles.deadlines import Deadline
from tests.sim.world.trace import Violation


@dataclass(eq=False, slots=True)
class Run:
    """A hand-out. `session`: the one that it is bound to. `handed`: what its client would be told now."""

    life: Life
    lease: Deadline
    lease_ms: int | None
    then: Then
    session: int | None
    handed: Handed


@dataclass(eq=False, slots=True)
class Life:
    """A job that was put.

    `loose`: its queue, key and attempts are not known for sure (nor is what a failed hand-out would make of it).
    """

    body: bytes
    queue: str | None           # None: nobody can know
    run: int | None = None      # the id under which it runs
    key: str | None = None
    tries: int | None = None
    attempts: int = 0
    at_ms: int | None = None    # the time it was put for
    not_before_ms: int = 0      # it must not be handed out before; 0: it never had to wait
    ttl_ms: int | None = None
    fades_ms: int | None = None     # nothing was promised about it from then on, unless it was handed out before
    every_ms: int | None = None
    lease_ms: int | None = None     # of those who take it without EXPIRE; 0: no limit, None: what its queue says
    origin: str | None = None   # of a dead one: the queue that it comes from
    burial: int = 0             # it lies buried in its queue, as the n-th; 0: it does not
    kept_key: str | None = None     # which it has then, and others may have meanwhile
    unsure: bool = False        # it may have ended: an operation ended some of several
    loose: bool = False

    def may_be_gone(self, clock_ms: int) -> bool:
        """Could it have ended, without a fault?"""
        return self.run is None and (self.unsure or (self.fades_ms is not None and self.fades_ms <= clock_ms))

    def __str__(self) -> str:
        return short(self.body)


class UnfinishedJobs:
    """All of them. `blind`: a CLONE has replaced them, and nothing is known of most any more."""

    def __init__(self) -> None:
        self.blind = False
        self._living: dict[bytes, list[Life]] = {}
        self._ended: set[bytes] = set()
        self._loose: set[tuple[str, str]] = set()       # keys of which nobody knows who has them

    def __iter__(self) -> Iterator[Life]:
        return iter([life for copies in self._living.values() for life in copies])

    def begin(self, *copies: Life) -> None:
        """A job is there, in one queue or in several."""
        self._check_new(copies[0].body)
        self._living[copies[0].body] = list(copies)

    def rename(self, life: Life, body: bytes | None) -> None:
        """It has other data from now on, unless None is given."""
        if body is not None and body != life.body:
            self._check_new(body)
            self.end(life)
            life.body = body
            self._living[body] = [life]

    def _check_new(self, body: bytes) -> None:
        if (body in self._living or body in self._ended) and not self.blind:
            raise Violation(f"{short(body)} is put twice")

    def end(self, life: Life) -> None:
        """It is no more."""
        copies = self._living.get(life.body, [])
        if life in copies:
            copies.remove(life)
        if not copies:
            self._living.pop(life.body, None)
        self._ended.add(life.body)

    def forget(self) -> None:
        """All were replaced."""
        self.blind = True
        self._living.clear()

    def of(self, body: bytes, queue: str, clock_ms: int) -> Life | None:
        """The job with these data that is handed out of this queue.

        If several could be it, one that is known to be here: the others may still be anywhere.
        """
        copies = self._living.get(body, [])
        if len(copies) < 2:
            return copies[0] if copies else None
        could = [life for life in copies if life.run is None and life.queue in (queue, None) and not life.burial]
        due = [life for life in could if life.not_before_ms <= clock_ms]
        if len(could) > 1:
            for life in could:
                self.loosen(life, queue)
                life.unsure, life.not_before_ms = True, 0
        here = [life for life in due or could if life.queue == queue]
        return (here or due or could or copies)[0]

    def fate(self, body: bytes) -> str:
        """What became of a job that is not there."""
        return "has ended" if body in self._ended else "was never put"

    # Keys

    def holder(self, queue: str, key: str | None) -> Life | None:
        """The job of the queue that has this key."""
        if key is None or self.vague(queue, key):
            return None
        return next((life for life in self if life.key == key and life.queue == queue), None)

    def vague(self, queue: str, key: str) -> bool:
        """Can nobody say who has this key?"""
        return self.blind or (queue, key) in self._loose

    def claim(self, life: Life, queue: str, clock_ms: int) -> None:
        """The job comes into a queue in which its key must not be taken."""
        other = self.holder(queue, life.key)
        if other is not None and other is not life:
            if not other.may_be_gone(clock_ms):
                raise Violation(f"{life} and {other} both have key {life.key} of queue {queue}")
            self.end(other)
        life.queue = queue

    def give_up_key(self, life: Life, queue: str, clock_ms: int) -> None:
        """The job comes into a queue in which it loses its key if that is taken."""
        other = self.holder(queue, life.key)
        if life.key is not None and other is not None and other is not life:
            if other.may_be_gone(clock_ms):
                self._loose.add((queue, life.key))      # and if it is, this one keeps its key
            else:
                life.key = None
        life.queue = queue

    def loosen(self, life: Life, *queues: str) -> None:
        """Nobody can say where the job is, one of these queues or its own."""
        for queue in (*queues, life.queue):
            if life.key is not None and queue is not None:
                self._loose.add((queue, life.key))
        life.loose = True

    def doubt(self, key: str) -> None:
        """Something was done to one of those of whom nobody knows whether they have this key."""
        for life in self:
            if life.run is None and (life.loose or life.key == key):
                life.unsure = life.loose = True
                life.not_before_ms = 0


def short(body: bytes) -> str:
    """Data for a reader."""
    return body.rstrip(b"\0").decode(errors="replace")
