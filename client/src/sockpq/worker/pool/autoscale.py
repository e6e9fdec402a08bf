"""Computes the number of children that a pool should have. No IO; the time is given."""

from __future__ import annotations

from sockpq.errors import BadArguments

KEEPALIVE_S = 30.0


class Autoscaler:
    """Grows a pool to min(reserved, most), shrinks it to max(reserved, least) when it has not grown for `keepalive`.

    With most == least the size is fixed. `now` is a monotonic clock; the keepalive counts from the pool's start.
    """

    def __init__(self, most: int, least: int, now: float, keepalive: float = KEEPALIVE_S) -> None:
        self.keepalive = keepalive
        self._grown_at = now
        self.most = self.least = 0
        self.set_bounds(most, least)

    def set_bounds(self, most: int | None = None, least: int | None = None) -> None:
        """Set new bounds; one that is not given stays, unless the other one passes it. Raises BadArguments."""
        if most is not None and least is not None and least > most:
            raise BadArguments(f"the minimum of {least} children is above the maximum of {most}")
        if (most is not None and most < 1) or (least is not None and least < 0):
            raise BadArguments("the minimum of children must be 0 or more, the maximum 1 or more")
        most = max(self.most, least or 0) if most is None else most
        self.least = min(self.least, most) if least is None else least
        self.most = most

    def target(self, reserved: int, size: int, now: float, may_grow: bool = True) -> int:
        """Return how many children there should be instead of `size`; `reserved`: jobs that the pool holds.

        Called for each message and every second. `may_grow`: the memory share allows more children; the minimum is kept
        in any case.
        """
        if size > self.most:
            return self.most
        wanted = max(min(reserved, self.most), self.least) if may_grow else self.least
        if wanted > size:
            self._grown_at = now
            return wanted
        wanted = max(reserved, self.least)
        if wanted < size and now - self._grown_at > self.keepalive:
            return wanted
        return size
