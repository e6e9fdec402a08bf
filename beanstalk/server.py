"""State shared by the connections of one server: counters, tubes, and ended connections that others wait for."""

from __future__ import annotations

import os
import platform
import resource
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Protocol

from msgspec import Struct

from sockpqd.beanstalk import answers
from sockpqd.beanstalk.calls import Sums, TubeFigures
from sockpqd.beanstalk.commands import COUNTED
from sockpqd.beanstalk.limits import BODY_BYTES_MAX, PER_PIECE
from sockpqd.beanstalk.reservations import Reservations
from sockpqd.beanstalk.tubes import TubeUse
from sockpqd.beanstalk.turns import Turns, UnboundedTurns

VERSION = "1.13"            # of beanstalkd, whose protocol this is


class ServedClient(Protocol):
    """A connection as the server sees it."""

    producer: bool          # it has put a job
    worker: bool            # it has reserved one, or tried to
    waiting: bool           # it waits for one now
    held: Reservations

    def go_on(self) -> None:
        """Execute commands of connections that were held up."""

    def hang_up(self) -> None:
        """Close the connection; its jobs go back at once."""


class Roll(Struct, gc=False):
    """The totals of all connections."""

    producers: int = 0
    workers: int = 0
    waiting: int = 0
    timeouts: int = 0


class BeanstalkdServer:
    """One listener. `instance`: the id that it reports, of letters and digits."""

    def __init__(
        self, instance: str, *, body_bytes_max: int = BODY_BYTES_MAX, now: Callable[[], float] = time.monotonic,
        draining: Callable[[], bool] = lambda: False, turns: Turns | None = None,
    ) -> None:
        """`draining`: whether jobs are refused, for `stats`. `now`: a clock in seconds. `turns`: a scheduler."""
        self.turns = turns or UnboundedTurns()
        self.instance = instance
        self.body_bytes_max = body_bytes_max
        self.now = now
        self.draining = draining
        self.tubes = TubeUse(self.turns)
        self.connections: dict[ServedClient, None] = {}
        self.counts = dict.fromkeys(COUNTED, 0)
        self.jobs = 0
        self._connections_total = 0
        self._timeouts = 0              # of connections that have ended
        self._began = now()
        self.leaving: set[ServedClient] = set()           # connections whose jobs are on their way back
        self._held_up: dict[ServedClient, None] = {}

    def enter(self, connection: ServedClient) -> None:
        """Register and count a new connection."""
        self.connections[connection] = None
        self._connections_total += 1

    def count(self, verb: str) -> None:
        """Count a well-formed command of this verb, for `stats`."""
        if verb in self.counts:
            self.counts[verb] += 1

    # ---- the end of connections

    def begin_leaving(self, connection: ServedClient) -> None:
        """Block other connections until the jobs of an ended one are back."""
        self.leaving.add(connection)

    def stays(self, connection: ServedClient) -> None:
        """Stop blocking the others: the connection has commands left, but its client does not read the answers."""
        self.leaving.discard(connection)
        self._let_go_on()

    def left(self, connection: ServedClient) -> None:
        """Unblock the other connections: the jobs of this one are back, or it had none."""
        if self.connections.pop(connection, connection) is None:
            self._timeouts += connection.held.timeouts
        self._held_up.pop(connection, None)
        self.leaving.discard(connection)
        self._let_go_on()

    def _let_go_on(self) -> None:
        if not self.leaving:
            held_up, self._held_up = self._held_up, {}
            for other in held_up:
                other.go_on()

    def hang_up(self) -> None:
        """Close all connections: the server ends."""
        for connection in list(self.connections):
            connection.hang_up()

    def holds_up(self, connection: ServedClient) -> bool:
        """Return whether the connection must wait for the end of others; if so, its `go_on` is called afterwards."""
        if not self.leaving or connection in self.leaving:
            return False
        self._held_up[connection] = None
        return True

    # ---- figures

    def tube_figures(self, tube: str, found: TubeFigures) -> dict[str, int | str]:
        """Return the figures for stats-tube.

        The counters of a queue are dropped when it has no jobs; a tube's live on while a connection uses it. So the
        greater of the two is right.
        """
        use, counts = self.tubes, self.tubes.counts(tube)
        return {
            "name": answers.quoted(tube),
            "current-jobs-urgent": found.urgent,
            "current-jobs-ready": found.ready,
            "current-jobs-reserved": found.reserved,
            "current-jobs-delayed": found.delayed,
            "current-jobs-buried": found.buried,
            "total-jobs": max(found.total, counts.jobs),
            "current-using": use.using[tube],
            "current-watching": use.watching[tube],
            "current-waiting": use.waiting[tube],
            "cmd-delete": max(found.deletes, counts.deletes),
            "cmd-pause-tube": max(found.pauses, counts.pauses),
            "pause": found.pause_s,
            "pause-time-left": found.pause_left_s,
        }

    def count_all(self, roll: Roll) -> Iterator[None]:
        """Add up the figures of all connections, in pieces."""
        now = self.now()
        roll.timeouts += self._timeouts
        left = iter(list(self.connections))
        while piece := list(islice(left, PER_PIECE)):
            for connection in piece:
                connection.held.pass_by(now)
                roll.producers += connection.producer
                roll.workers += connection.worker
                roll.waiting += connection.waiting
                roll.timeouts += connection.held.timeouts
            yield

    def figures(self, sums: Sums, roll: Roll) -> dict[str, int | str]:
        """Return the figures for stats. Counters are this server's own, since its start; it has no binlog."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "current-jobs-urgent": sums.urgent,
            "current-jobs-ready": sums.ready,
            "current-jobs-reserved": sums.reserved,
            "current-jobs-delayed": sums.delayed,
            "current-jobs-buried": sums.buried,
            **{f"cmd-{verb}": count for verb, count in self.counts.items()},
            "job-timeouts": roll.timeouts,
            "total-jobs": self.jobs,
            "max-job-size": self.body_bytes_max,
            "current-tubes": sums.tubes,
            "current-connections": len(self.connections),
            "current-producers": roll.producers,
            "current-workers": roll.workers,
            "current-waiting": roll.waiting,
            "total-connections": self._connections_total,
            "pid": os.getpid(),
            "version": answers.quoted(VERSION),
            "rusage-utime": f"{used.ru_utime:.6f}",
            "rusage-stime": f"{used.ru_stime:.6f}",
            "uptime": int(self.now() - self._began),
            "binlog-oldest-index": 0,
            "binlog-current-index": 0,
            "binlog-records-migrated": 0,
            "binlog-records-written": 0,
            "binlog-max-size": 10_485_760,
            "draining": "true" if self.draining() else "false",
            "id": self.instance,
            "hostname": answers.quoted(platform.node()),
            "os": answers.quoted(platform.version()),
            "platform": answers.quoted(platform.machine()),
        }
