"""Calls to the queue and their results: the interface between this package and the backend that executes them.

Calls and results are plain values that can be encoded and sent to another node. Times are in seconds, as in the
protocol. A `handle` stands for one reservation; its value is opaque to all but the backend.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Protocol

from msgspec import Struct


class CallFailure(IntEnum):
    """The reason why a call was not executed."""

    NOT_FOUND = 0           # there is no such job or tube, or it is not in a state that allows it
    DRAINING = 1            # no more jobs are accepted
    OUT_OF_MEMORY = 2       # there is no room at the moment
    FORBIDDEN = 3           # the user may not do that
    GONE = 4                # nobody can say what has become of it: the connection must be closed


class PutJob(Struct, array_like=True, tag=1, frozen=True, gc=False):
    """Add a job. Result: NumberResult."""

    tube: str
    priority: int
    delay_s: int
    ttr_s: int
    body: bytes


class Reserve(Struct, array_like=True, tag=2, frozen=True, gc=False):
    """Hand out the first job of the tubes, by priority and then by id.

    `wait_s`: how long to wait for one; 0: not at all, None: without end. Results: Reserved; None: there was none.
    """

    tubes: tuple[str, ...]
    wait_s: float | None = 0


class ReserveJob(Struct, array_like=True, tag=3, frozen=True, gc=False):
    """Hand out this job, unless it is reserved. Result: Reserved."""

    number: int


class DeleteJob(Struct, array_like=True, tag=4, frozen=True, gc=False):
    """Delete a job that is reserved under `handle`, or not reserved at all.

    Result: None if it was reserved under the handle, otherwise Names with its tube.
    """

    number: int
    handle: int | None = None


class Release(Struct, array_like=True, tag=5, frozen=True, gc=False):
    """Give a reserved job back. Result: None."""

    handle: int
    priority: int
    delay_s: int


class Bury(Struct, array_like=True, tag=6, frozen=True, gc=False):
    """Set a reserved job aside. Result: None."""

    handle: int
    priority: int


class TouchJob(Struct, array_like=True, tag=7, frozen=True, gc=False):
    """Restart the time to run of a reserved job. Result: None."""

    handle: int


class Peek(Struct, array_like=True, tag=8, frozen=True, gc=False):
    """Show a job. Result: Found."""

    number: int


class PeekFirst(Struct, array_like=True, tag=9, frozen=True, gc=False):
    """Show the first job of the tube that is "ready", "delayed" or "buried". Result: Found."""

    tube: str
    state: str


class KickTube(Struct, array_like=True, tag=10, frozen=True, gc=False):
    """Make up to `count` buried jobs of the tube ready, or delayed ones if none is buried. Result: NumberResult."""

    tube: str
    count: int


class KickJob(Struct, array_like=True, tag=11, frozen=True, gc=False):
    """Make this buried or delayed job ready. Result: None."""

    number: int


class Pause(Struct, array_like=True, tag=12, frozen=True, gc=False):
    """Hand out nothing of the tube for this time; 0 ends a pause. Result: None.

    One that is not `known` fails with NOT_FOUND, and is a call at all so that the audit log has it.
    """

    tube: str
    seconds: int
    known: bool = True


class JobStats(Struct, array_like=True, tag=13, frozen=True, gc=False):
    """Ask for the figures of a job. Result: JobFigures."""

    number: int


class TubeStats(Struct, array_like=True, tag=14, frozen=True, gc=False):
    """Show the figures of a tube. Result: TubeFigures, all 0 for an unknown tube."""

    tube: str


class ListTubes(Struct, array_like=True, tag=15, frozen=True, gc=False):
    """List the tubes that have jobs. Result: Names."""


class Totals(Struct, array_like=True, tag=16, frozen=True, gc=False):
    """Add up all tubes. Result: Sums. `beside`: further tubes to count although they have no jobs."""

    beside: tuple[str, ...] = ()


class GiveBack(Struct, array_like=True, tag=17, frozen=True, gc=False):
    """The connection has ended: its reserved jobs go back to their places. Result: None.

    `undelivered`: jobs it was never sent, whose hand-out does not count.
    """

    handles: tuple[int, ...]
    undelivered: tuple[int, ...] = ()


Change = PutJob | Reserve | ReserveJob | DeleteJob | Release | Bury | TouchJob | KickTube | KickJob | Pause | GiveBack
Lookup = Peek | PeekFirst | JobStats | TubeStats        # small results, which can be sent to another node
Survey = ListTubes | Totals                                 # of all tubes
Call = Change | Lookup | Survey


class NumberResult(Struct, array_like=True, tag=101, frozen=True, gc=False):
    """A number: the id of a new job, or a count."""

    number: int


class Reserved(Struct, array_like=True, tag=102, frozen=True, gc=False):
    """A job that was handed out, for `ttr_s` seconds from now on."""

    number: int
    handle: int
    tube: str
    ttr_s: float
    body: bytes


class Found(Struct, array_like=True, tag=103, frozen=True, gc=False):
    """The result of a Peek: a job."""

    number: int
    body: bytes


class JobFigures(Struct, array_like=True, tag=104, frozen=True, gc=False):
    """Figures for stats-job. `state`: "ready", "delayed", "reserved" or "buried"; `left_s`: until that ends."""

    number: int
    tube: str
    state: str
    priority: int
    age_s: int
    delay_s: int
    ttr_s: int
    left_s: int
    reserves: int
    timeouts: int
    releases: int
    buries: int
    kicks: int


class TubeFigures(Struct, array_like=True, tag=105, frozen=True, gc=False):
    """Figures of the queue for stats-tube. `urgent`: ready jobs of a priority below 1024."""

    urgent: int = 0
    ready: int = 0
    reserved: int = 0
    delayed: int = 0
    buried: int = 0
    total: int = 0
    deletes: int = 0
    pauses: int = 0
    pause_s: int = 0
    pause_left_s: int = 0
    exists: bool = False        # it has jobs, or was distinguished otherwise


class Names(Struct, array_like=True, tag=106, frozen=True, gc=False):
    """Result: the names of some tubes."""

    names: tuple[str, ...]


class Sums(Struct, array_like=True, tag=107, frozen=True, gc=False):
    """Jobs of all tubes, and how many tubes there are."""

    urgent: int = 0
    ready: int = 0
    reserved: int = 0
    delayed: int = 0
    buried: int = 0
    tubes: int = 0


Result = NumberResult | Reserved | Found | JobFigures | TubeFigures | Names | Sums | None
Done = Callable[[Result | CallFailure], None]


class Backend(Protocol):
    """Executes the calls of one connection, one at a time."""

    def execute(self, call: Call, done: Done) -> None:
        """Execute a call; `done` is called once with its result, perhaps before this returns."""

    def cancel(self) -> None:
        """Make the call end soon: a Reserve with None, or with a job handed out in the meantime; others, if they
        take long, with None, and perhaps partly executed."""

    def leave(self) -> None:
        """Release the backend of a connection that has ended; no more calls follow."""
