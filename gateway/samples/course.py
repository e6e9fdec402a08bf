"""The course of one subject's figures: seconds for 10 minutes, ten seconds for 6 hours, five minutes for 7 days."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import isnan

from msgspec import Struct

from sockpqd.gateway.samples.ring import Ring, Row, merged

# Seconds from one row to the next, and how many rows: 10 minutes, 6 hours, 7 days.
STEPS = ((1, 600), (10, 2160), (300, 2016))
SHORT = STEPS[:2]       # of a queue


class Field(Struct, frozen=True):
    """A figure. `greatest`: rows are merged by their maximum, not their mean."""

    name: str
    greatest: bool = False


# Of the measured hand-outs, in seconds: the waiting times of their jobs, and their durations.
LATENCY_FIELDS = (Field("wait_p50"), Field("wait_p95"), Field("run_p50"), Field("run_p95"))
# Jobs per second: that came, were handed out, done, put back (LATER, or the end of a lease) and died; and jobs that
# wait, that run, and the seconds that the oldest READY one has been waiting.
QUEUE_FIELDS = (
    Field("put"), Field("taken"), Field("done"), Field("failed"), Field("died"), Field("waiting"), Field("running"),
    Field("oldest", greatest=True), *LATENCY_FIELDS,
)


class FigureRows(Struct, frozen=True):
    """Rows of a course: the Unix time of each, and the values of each field, None where nothing is known."""

    step_s: int
    times: list[int]
    values: dict[str, list[float | None]]


class FigureSeries:
    """The rows of one subject in rings; a coarser ring is filled from the finer one before it."""

    __slots__ = ("fields", "first_s", "last_s", "rings")

    def __init__(self, fields: Sequence[Field], steps: Sequence[tuple[int, int]] = STEPS) -> None:
        self.fields = fields
        self.rings = [Ring(step_s, rows, len(fields)) for step_s, rows in steps]
        self.first_s = 0                # Unix time of the first row, and of the last one; 0: there is none
        self.last_s = 0

    def add(self, now_s: int, row: Row) -> None:
        """Add the row of this second of Unix time."""
        for finer, coarser in zip(self.rings, self.rings[1:], strict=False):
            number = self.last_s // coarser.step_s
            if self.last_s and now_s // coarser.step_s != number:       # the step of the last row is over
                first, end = (at * coarser.step_s // finer.step_s for at in (number, number + 1))
                coarser.put(number, [
                    merged(finer.column(place, first, end), greatest=field.greatest)
                    for place, field in enumerate(self.fields)
                ])
        self.rings[0].put(now_s, row)
        self.last_s = now_s
        if not 0 < self.first_s <= now_s:                   # it is the first one, or the clock was set back
            self.first_s = now_s

    def now(self) -> dict[str, float | None]:
        """Return the newest row by field."""
        ring = self.rings[0]
        return {
            field.name: _known(ring.column(place, ring.newest, ring.newest + 1)[0])
            for place, field in enumerate(self.fields)
        }

    def known_s(self, now_s: int) -> int:
        """Return for how many seconds there have been rows, 0 without any."""
        return max(0, now_s - self.first_s) if self.first_s else 0

    def window(self, now_s: int, span_s: int, rows_max: int, names: Collection[str] = ()) -> FigureRows:
        """Return the rows of the last `span_s` seconds, at most `rows_max`, from the finest ring that reaches that far.

        If none does, the coarsest ring is used. More rows than `rows_max` are merged. `names`: of fields, all by
        default.
        """
        ring = next((one for one in self.rings if one.step_s * one.rows >= span_s), self.rings[-1])
        each = -(-span_s // (ring.step_s * rows_max))
        step_s = ring.step_s * each
        end = (now_s // step_s + (ring.step_s == 1)) * each     # a step that is not over has no row yet
        first = end - -(-span_s // step_s) * each
        values = {}
        for place, field in enumerate(self.fields):
            if not names or field.name in names:
                column: Sequence[float] = ring.column(place, first, end)
                if each > 1:
                    column = [merged(column[at:at + each], greatest=field.greatest)
                              for at in range(0, len(column), each)]
                values[field.name] = [_known(value) for value in column]
        return FigureRows(step_s, [at * ring.step_s for at in range(first, end, each)], values)


def _known(value: float) -> float | None:
    return None if isnan(value) else value
