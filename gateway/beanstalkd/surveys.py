"""Reads data of any length on the client's own node: the names of all tubes, and the totals of their jobs.

The state is read in pieces, each in a turn of its own (gateway/server/hub.py), and is not sent between nodes: a
follower reads its own state, once that is as new as the leader's was when the client asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from sockpqd.beanstalk import CallFailure, Result, calls
from sockpqd.gateway.beanstalkd.services import NodeServices, Principal
from sockpqd.gateway.limits import LINES_PER_PIECE

LOOK_S = 0.005                  # how often the state is compared with the index
LOOKS_MAX = 2000

Pieces = Iterator[None]         # goes on with each piece; returns the result


class SurveyReader:
    """Reads one survey; `done` is called once, perhaps before `begin` returns."""

    def __init__(
        self, services: NodeServices, principal: Principal, call: calls.Survey,
        done: Callable[[Result | CallFailure], None],
    ) -> None:
        self._services = services
        self._machine = services.cluster.machine
        self._principal = principal
        self._call = call
        self._done: Callable[[Result | CallFailure], None] | None = done
        self._result: Result = None
        self._looks = 0
        self._seen: tuple[str, ...] = ("",)         # prefixes of the names that the user may see

    def begin(self, index: int) -> None:
        """Read the state as it is after this entry of the log, or later."""
        if self._done is None:
            return
        if self._machine.index < index:
            self._looks += 1
            if self._looks > LOOKS_MAX:             # this node hears nothing of the others
                self._end(CallFailure.GONE)
            else:
                asyncio.get_running_loop().call_later(LOOK_S, self.begin, index)
            return
        if self._services.access.required:
            rights = self._principal.guard(self._services).rights
            if rights is None:
                self._end(CallFailure.FORBIDDEN)
                return
            self._seen = rights.seen
        pieces = self._names() if type(self._call) is calls.ListTubes else self._sums()
        if self._machine.total(None).queues + len(self._beside) <= LINES_PER_PIECE:
            for _ in pieces:
                pass
            self._end(self._result)
        else:
            self._services.do_piece(lambda: self._go_on(pieces))

    def cancel(self) -> None:
        self._end(None)

    def _go_on(self, pieces: Pieces) -> bool:
        if self._done is None:
            return False
        if next(pieces, self) is self:
            self._end(self._result)
        else:
            self._services.do_piece(lambda: self._go_on(pieces))
        return True

    def _end(self, result: Result | CallFailure) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(result)

    @property
    def _beside(self) -> tuple[str, ...]:
        return self._call.beside if isinstance(self._call, calls.Totals) else ()

    # ---- what is read

    def _names(self) -> Pieces:
        names: dict[str, None] = {}
        for piece in _portions(self._machine.all_queue_names()):
            names.update(dict.fromkeys([name for name in piece if name.startswith(self._seen) and self._jobs(name)]))
            yield
        self._result = calls.Names(tuple(names))

    def _sums(self) -> Pieces:
        """Use the maintained totals of all jobs, or count the jobs for a user who may not see all queues."""
        if "" not in self._seen:
            yield from self._sums_of_seen()
            return
        found = self._machine.sums()
        tubes = found.queues
        for piece in _portions(self._machine.names_with_buried()):
            tubes += sum([not self._machine.unfinished(name) for name in piece])
            yield
        for piece in _portions(self._beside):
            tubes += sum([not self._jobs(name) for name in piece])
            yield
        self._result = calls.Sums(found.urgent, found.ready, found.running, found.delayed, found.buried, tubes)

    def _sums_of_seen(self) -> Pieces:
        ready = reserved = delayed = buried = urgent = 0
        tubes: set[str] = set()
        for piece in _portions(self._machine.all_queue_names()):
            for name in piece:
                if name in tubes:
                    continue
                counts = self._machine.counts(name) if name.startswith(self._seen) else None
                if counts is not None and self._jobs(name):
                    ready += counts.ready
                    reserved += counts.running
                    delayed += counts.delayed
                    buried += counts.buried
                    urgent += self._machine.urgent(name)
                    tubes.add(name)
            yield
        for piece in _portions(self._beside):
            tubes.update(piece)
            yield
        self._result = calls.Sums(urgent, ready, reserved, delayed, buried, len(tubes))

    def _jobs(self, name: str) -> bool:
        """Return whether the queue has jobs, in any state but dead."""
        counts = self._machine.counts(name)
        return counts is not None and bool(counts.ready or counts.delayed or counts.running or counts.buried)


def _portions(names: Iterable[str]) -> Iterator[list[str]]:
    left = iter(names)
    while portion := list(islice(left, LINES_PER_PIECE)):
        yield portion
