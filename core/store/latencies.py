"""Measures how long jobs wait and run, for a sample of the hand-outs. Local to this node, not part of the state."""

from __future__ import annotations

OFF = -1                        # a mask for which no hand-out is measured
STEPS = 64                      # the last one has what is longer than 25 days
STARTED_MAX = 100_000           # jobs that run, and are measured: 10 MB

# A histogram for each queue: the number of jobs by the step of their duration (`step_of`).
Latencies = dict[str, list[int]]


def step_of(ms: int) -> int:
    """Return the step of a duration: step n ends below 2 to the power of n/2 milliseconds."""
    return min((ms * ms).bit_length(), STEPS - 1)


class LatencyMeter:
    """Counts the times from the place of a job to its hand-out, and from there to the end of the hand-out.

    A hand-out is measured if its id has none of the bits of `mask`. `started`: the open hand-outs measured, with their
    replicated times.
    """

    __slots__ = ("mask", "ran", "started", "waited")

    def __init__(self) -> None:
        self.mask = OFF
        self.started: dict[int, int] = {}
        self.waited: Latencies = {}
        self.ran: Latencies = {}

    def taken(self, number: int, queue: str, now_ms: int, place_ms: int) -> None:
        """Record a hand-out that is to be measured."""
        if len(self.started) < STARTED_MAX:
            self.started[number] = now_ms
        _count(self.waited, queue, now_ms - place_ms)

    def ended(self, number: int, queue: str, now_ms: int) -> None:
        """Record the end of a hand-out in `started`."""
        _count(self.ran, queue, now_ms - self.started.pop(number))

    def take(self, mask: int) -> tuple[Latencies, Latencies]:
        """Return how long jobs waited and ran since the last call; `mask` applies from now on."""
        waited, ran = self.waited, self.ran
        self.waited, self.ran, self.mask = {}, {}, mask
        return waited, ran


def _count(found: Latencies, queue: str, ms: int) -> None:
    counts = found.get(queue)
    if counts is None:
        counts = found[queue] = [0] * STEPS
    counts[step_of(max(0, ms))] += 1
