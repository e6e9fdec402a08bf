"""The statistics of a client: counts and latencies."""

from __future__ import annotations

from typing import NamedTuple


class CallStats(NamedTuple):
    """All calls of one command, with their repetitions; for blocking commands the time includes the wait for a job."""

    calls: int = 0
    failed: int = 0
    seconds: float = 0.0        # all together
    longest_s: float = 0.0

    @property
    def mean_s(self) -> float:
        """The mean of the latencies, in seconds."""
        return self.seconds / self.calls if self.calls else 0.0


class Stats(NamedTuple):
    """The result of Client.stats(). `calls`: by the command's word in the protocol, "PUT", "GETB", ..

    `retries`: attempts that failed and were followed by another one; `connects`: connections that were opened for
    calls; `leader_changes`: how often another server was found to serve.
    """

    calls: dict[str, CallStats]
    retries: int
    connects: int
    leader_changes: int


class Counters:
    """Counts, from any number of threads; a count may be lost when two write it at the same moment."""

    def __init__(self) -> None:
        self.retries = 0
        self.connects = 0
        self.leader_changes = 0
        self._calls: dict[bytes, list[float]] = {}

    def called(self, line: bytes, seconds: float, ok: bool) -> None:
        """Count a call with this line that took `seconds`."""
        verb = line.split(None, 1)[0]
        entry = self._calls.get(verb)
        if entry is None:
            entry = self._calls.setdefault(verb, [0, 0, 0.0, 0.0])
        entry[0] += 1
        if not ok:
            entry[1] += 1
        entry[2] += seconds
        if seconds > entry[3]:
            entry[3] = seconds

    def snapshot(self) -> Stats:
        """Return the counts since the start, by verb, with times in seconds."""
        calls = {
            verb.decode(): CallStats(int(count), int(failed), seconds, longest)
            for verb, (count, failed, seconds, longest) in list(self._calls.items())
        }
        return Stats(calls, self.retries, self.connects, self.leader_changes)
