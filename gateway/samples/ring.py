"""A ring of rows: figures at equal steps of time, of which the newest are kept.

A row has its number, the Unix time divided by the step. Rows that were never written are NaN.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from math import isnan, nan

Row = Sequence[float]


class Ring:
    """`rows` rows of `width` figures, one each `step_s` seconds; 4 bytes for each figure."""

    __slots__ = ("newest", "rows", "step_s", "values", "width")

    def __init__(self, step_s: int, rows: int, width: int) -> None:
        self.step_s = step_s
        self.rows = rows
        self.width = width
        self.newest = 0                 # number of the newest row; 0: there is none
        self.values = array("f", [nan]) * (rows * width)

    def put(self, number: int, row: Row) -> None:
        """Write the row of this number. Rows left out since the newest one become NaN."""
        if not self.newest - self.rows < number < self.newest + self.rows:     # also when the clock was set back
            self.values = array("f", [nan]) * (self.rows * self.width)
            self.newest = number
        while self.newest < number:
            self.newest += 1
            self._write(self.newest, [nan] * self.width)
        self._write(number, row)

    def column(self, place: int, first: int, end: int) -> array[float]:
        """Return one figure of the rows from number `first` up to, not including, `end`: NaN where there is none."""
        known, after = max(first, self.newest - self.rows + 1), min(end, self.newest + 1)
        if known >= after:
            return array("f", [nan]) * (end - first)
        begin, stop = known % self.rows, (after - 1) % self.rows + 1
        column = self.values[begin * self.width + place:(stop if begin < stop else self.rows) * self.width:self.width]
        if begin >= stop:               # it goes on at the beginning of the ring
            column += self.values[place:stop * self.width:self.width]
        missing = array("f", [nan])
        return missing * (known - first) + column + missing * (end - after)

    def _write(self, number: int, row: Row) -> None:
        at = number % self.rows * self.width
        self.values[at:at + self.width] = array("f", row)


def merged(values: Sequence[float], *, greatest: bool) -> float:
    """Return one value for several: the mean of those that are not NaN, or the greatest of them."""
    total = sum(values)
    if isnan(total):
        values = [value for value in values if value == value]
        if not values:
            return nan
        total = sum(values)
    return max(values) if greatest else total / len(values)
