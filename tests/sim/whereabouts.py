"""Where each job is, told by the history: it waits, runs under an id, or has ended. Jobs are known by their data.

No two jobs have the same data. So a PUT that was executed twice shows when its second job is handed out, which happens
at the latest when the queues are drained: then the first one runs, or has ended.
"""

from __future__ import annotations

from collections.abc import Iterator

from core import Done, Get, Handed, Later, NotFound, Reply, Return, Then
from tests.sim.deadlines import Deadline
from tests.sim.trace import Violation

WAITS, ENDED = "waits", "has ended"


class Run:
    """A hand-out. `session`: the one that it is bound to."""

    __slots__ = ("body", "lease", "session", "then")

    def __init__(self, body: bytes, lease: Deadline, then: Then, session: int | None) -> None:
        self.body = body
        self.lease = lease
        self.then = then
        self.session = session


class Whereabouts:
    """Of all jobs. `blind`: a CLONE has replaced them, and nothing is known of them any more."""

    def __init__(self) -> None:
        self.blind = False
        self.expire_default = Then.LATER
        self.running: dict[int, Run] = {}
        self._place: dict[bytes, str] = {}
        self._issued: set[int] = set()

    def put(self, body: bytes) -> None:
        """A job was stored."""
        if body in self._place:
            raise Violation(f"{_short(body)} is put twice")
        self._place[body] = WAITS

    def hand(self, get: Get, handed: Handed, clock_ms: int) -> None:
        """A job was handed out, not for the second time to a repeated request."""
        if handed.id in self._issued:
            raise Violation(f"id {handed.id} is handed out twice")
        self._issued.add(handed.id)
        place = self._place.get(handed.data, "was never put")
        if place != WAITS and not self.blind:
            raise Violation(f"{_short(handed.data)} is handed out as {handed.id}, and {place}")
        self._place[handed.data] = f"runs as {handed.id}"
        limited = get.expire_ms is not None and get.expire_ms > 0
        lease = Deadline(clock_ms + (get.expire_ms or 0) if limited else None)
        then = self.expire_default if get.then is Then.DEFAULT else get.then
        self.running[handed.id] = Run(handed.data, lease, then, get.session)

    def stop(self, operation: Done | Later | Return, reply: Reply) -> None:
        """Somebody says that he will not work on a job any more."""
        run = self.running.get(operation.id)
        unsure = self.blind and run is None
        if (run is None) != isinstance(reply, NotFound) and not unsure:
            raise Violation(f"{operation} is answered {reply}, and the job {'does not run' if run is None else 'runs'}")
        if run is not None and not isinstance(reply, NotFound):
            self.leave(operation.id, ENDED if isinstance(operation, Done) else WAITS)

    def leave(self, number: int, place: str) -> None:
        """A hand-out is over."""
        self._place[self.running.pop(number).body] = place

    def end_lease(self, number: int) -> None:
        """The lease of a hand-out is over."""
        run = self.running.get(number)
        if run is not None:
            self.leave(number, ENDED if run.then is Then.DONE else WAITS)

    def bound(self, session: int) -> list[int]:
        """Ids of the jobs bound to a session."""
        return [number for number, run in self.running.items() if run.session == session]

    def deadlines(self) -> Iterator[tuple[int, Deadline]]:
        """Of all leases."""
        return ((number, run.lease) for number, run in self.running.items())

    def forget(self) -> None:
        """A CLONE has replaced all jobs; ids are not used again all the same."""
        self.blind = True
        self.running.clear()

    def left(self) -> dict[bytes, str]:
        """Where all jobs are that have not ended, as far as one knows."""
        return {} if self.blind else {body: place for body, place in self._place.items() if place != ENDED}


def _short(body: bytes) -> str:
    return body.rstrip(b"\0").decode(errors="replace")
