"""Checks that no node answers from a lease after another node has begun to serve.

What a leader reads from its own state without asking others (404 for an empty queue, a grant of a pulse) is right only
as long as no other node can have changed it. That is what `holds_lease()` says, so it must be false everywhere else at
the moment in which a node begins to serve, and stay so: whatever happened to connections, within the permitted drift
of two clocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tests.sim.world.trace import Violation

if TYPE_CHECKING:
    from tests.sim.world.node import SimNode


class Leases:
    """The term that is served; `nodes`: all of the world."""

    def __init__(self, nodes: Iterable[SimNode]) -> None:
        self._nodes = nodes
        self._term = 0              # the last one in which a node began to serve,
        self._name = ""             # and that node

    def begins(self, node: SimNode) -> None:
        """Note that this node begins to serve."""
        term = node.up.replica.term
        if term > self._term:
            self._term, self._name = term, node.name
            for other in self._nodes:
                if other is not node:
                    self.judge(other)

    def judge(self, node: SimNode) -> None:
        """Check leases: a turn of this node has ended, it answers from its lease, or another one begins to serve."""
        driver = node.driver
        if driver is None or not driver.leadership.serving or driver.replica.term >= self._term:
            return
        if driver.leadership.holds_lease() and not node.clock.beyond:
            raise Violation(
                f"{node.name} holds its lease of term {driver.replica.term}, and {self._name} has begun to serve in"
                f" term {self._term}{node.world.describe()}"
            )
