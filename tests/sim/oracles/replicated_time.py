"""Checks the promises of replicated time (spec/clock 1.2) against the true time, which no node knows.

The wall clocks of some nodes are set now and then; the other nodes' clocks are nearly right. Then

* replicated time is not ahead of the true time by more than the median of the clocks may be: AT is not early;
* between two entries no more of it has passed than of the true time, but for the slewing and a second: leases and
  delays are not short. That ends where the cluster forgets: a majority of processes of which none has received the
  time since its start has only its clocks and the log, and may find that it was behind. So does a leader
  for whom the median may be a clock that was set: there are too many of them. And where time began behind, as one of
  only two clocks was, a later leader may set it forward by that amount.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from sockpqd.core import Entry, Lead
from tests.sim.world.events import UNIX_MS, Events
from tests.sim.world.trace import Violation

if TYPE_CHECKING:
    from tests.sim.world.node import SimNode

STEADY_DRIFT = 0.0002           # so much faster or slower machines count by themselves
SLEW = 0.0005                   # what is promised
FASTER = 1 + SLEW + STEADY_DRIFT
SHORT_MS = 1000
BLUR_MS = 100                   # what is known of other clocks is two seconds old at most, and monotonic ones drift
ANYTHING_MS = 1 << 50


class TimePromises:
    """Fed with entries when they are stamped, and when they are applied. `wrong`: whose clocks are set."""

    def __init__(self, events: Events, wrong: Collection[str]) -> None:
        self._events = events
        self._wrong = wrong
        # seed -> true time in ms, does a leadership begin, and is all forgotten then
        self._stamped: dict[int, tuple[float, bool, bool]] = {}
        self._started: dict[str, float] = {}                # processes that run
        self._informed: set[str] = set()                        # those that have received replicated time
        self._ahead_ms = 0.0                                # so far the median may have been ahead
        self._slowest_ms: float | None = None               # replicated time less the true time that passed, at least
        self._behind_ms = 0.0                               # so far time was behind when it began

    # Processes

    def started(self, name: str) -> None:
        """Note the start of a process."""
        self._started[name] = self._now_ms()
        self._informed.discard(name)

    def ended(self, name: str) -> None:
        """Note the end of a process."""
        self._started.pop(name, None)
        self._informed.discard(name)

    def applied(self, name: str, seed: int) -> None:
        """Note an entry that a node executes: it gives it the time, if it was stamped a moment ago."""
        if seed in self._stamped and self._stamped[seed][0] > self._started.get(name, ANYTHING_MS):
            self._informed.add(name)

    def take_over(self, other: TimePromises) -> None:
        """Note that the time of another cluster is taken over, whose leases get a grace: a copy was promoted.

        That one's time may be ahead of the true time because of its own clocks.
        """
        self._ahead_ms = max(self._ahead_ms, other._ahead_ms)
        self._slowest_ms = None

    def _now_ms(self) -> float:
        return UNIX_MS + self._events.now * 1000

    # Entries

    def launched(self, node: SimNode, entry: Entry) -> None:
        """Note that a leader has stamped an entry."""
        forgotten = False
        leads = isinstance(entry.operations[0], Lead)
        if leads:
            quorum = node.up.transport.quorum
            voters = sorted(quorum.voters)
            alone = len(voters) == 1
            errors_ms = [self._error_ms(node.world.nodes[name], alone=alone) for name in voters]
            median_ms = worst_median(errors_ms, quorum.majority)
            self._ahead_ms = max(self._ahead_ms, median_ms)
            forgotten = (
                sum(name not in self._informed for name in voters) >= quorum.majority
                or (voters[0] in self._wrong if alone else median_ms == ANYTHING_MS)
            )
        self._stamped[entry.seed] = self._now_ms(), leads, forgotten
        self._informed.add(node.name)

    def _error_ms(self, node: SimNode, *, alone: bool) -> float:
        if node.name in self._wrong and not alone:
            return ANYTHING_MS
        return node.clock.wall_ms() - self._now_ms()

    def committed(self, seed: int, clock_ms: int) -> None:
        """Note an entry that is applied for the first time; `clock_ms`: replicated time then."""
        true_ms, leads, forgotten = self._stamped[seed]
        passed_ms = FASTER * (true_ms - UNIX_MS)
        early_ms = clock_ms - (UNIX_MS + passed_ms + self._ahead_ms)
        if early_ms > BLUR_MS:
            raise Violation(f"replicated time is {early_ms:.0f} ms further ahead than the median of clocks ever was")
        slow_ms = clock_ms - passed_ms
        if self._slowest_ms is None or forgotten:
            self._slowest_ms = slow_ms
            self._behind_ms = max(0.0, true_ms - clock_ms)
        short_ms = slow_ms - self._slowest_ms
        if leads and 0 < short_ms <= self._behind_ms + SHORT_MS:
            self._slowest_ms = slow_ms
            self._behind_ms = max(0.0, self._behind_ms - short_ms)
        elif short_ms > SHORT_MS:
            raise Violation(f"leases are {short_ms:.0f} ms short")
        self._slowest_ms = min(self._slowest_ms, slow_ms)


def worst_median(errors_ms: list[float], majority: int) -> float:
    """Return how far the median of the clocks of a majority, of an even number the lower, can be ahead."""
    falling = sorted(errors_ms, reverse=True)
    return max(falling[count // 2] for count in range(majority, len(falling) + 1))
