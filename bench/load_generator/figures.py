"""The measurements of a load: the latency of every command, when it was answered, and statistics of them."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

Value = str | int | float | None
Row = dict[str, Value]
Curve = list[list[float]]       # points
Note = Callable[[int, int], None]       # records a step by its begin and end, both of perf_counter_ns

PERCENTILES = (50.0, 90.0, 99.0, 99.9)
# For plots of a distribution, in which the last percent matters most.
CURVE_PERCENTILES = (0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.8, 99.9, 99.95, 99.99)


class LoadFigures:
    """The measurements of all connections of a run. A step is a command or another span of time: "PUT", "delivery"."""

    def __init__(self) -> None:
        self.latencies_us: defaultdict[str, array[int]] = defaultdict(lambda: array("Q"))
        self.answered_ns: defaultdict[str, array[int]] = defaultdict(lambda: array("Q"))    # of the same commands
        self.problems: Counter[str] = Counter()     # unexpected answers
        self.cycles = 0                             # completed cycles
        self._begun_ns = 0

    @property
    def commands(self) -> int:
        """The number of answered commands."""
        return sum(len(latencies) for step, latencies in self.latencies_us.items() if step.isupper())

    @property
    def last_ns(self) -> int:
        """The time of the last answer, or of the start."""
        return max((answered[-1] for answered in self.answered_ns.values() if answered), default=self._begun_ns)

    def begin(self, now_ns: int) -> None:
        """Note the start of the load."""
        self._begun_ns = now_ns

    def noter(self, step: str) -> Note:
        """A fast function that records the duration of a step; it is called for each command."""
        add_latency, add_answered = self.latencies_us[step].append, self.answered_ns[step].append

        def note(begun_ns: int, now_ns: int) -> None:
            add_latency((now_ns - begun_ns) // 1000)
            add_answered(now_ns)

        return note

    def latency(self, step: str, percentiles: Iterable[float] = PERCENTILES) -> Row:
        """The percentiles and the maximum in milliseconds, None without values: p50_ms, .., max_ms."""
        in_order = sorted(self.latencies_us[step])
        row: Row = {percentile_name(part): _ms(percentile(in_order, part)) for part in percentiles}
        return {**row, "max_ms": _ms(percentile(in_order, 100))}

    def distribution(self, step: str) -> Curve:
        """Points of percentile and milliseconds, for the percentiles that the number of values supports."""
        in_order = sorted(self.latencies_us[step])
        parts = [part for part in CURVE_PERCENTILES if len(in_order) * round(100_000 - part * 1000) >= 100_000]
        return [[part, in_order[_place(len(in_order), part)] / 1000] for part in [*parts, 100.0] if in_order]

    def windows(self, step: str, begun_ns: int, window_s: float) -> Curve:
        """For each window of time: its end in seconds, answers per second, p99 and maximum in ms."""
        groups: defaultdict[int, list[int]] = defaultdict(list)
        for answered_ns, latency_us in zip(self.answered_ns[step], self.latencies_us[step], strict=True):
            groups[int((answered_ns - begun_ns) / 1e9 / window_s)].append(latency_us)
        points = []
        for number in range(max(groups, default=-1) + 1):
            in_order = sorted(groups[number]) or [0]
            p99, greatest = in_order[_place(len(in_order), 99)], in_order[-1]
            points.append([(number + 1) * window_s, len(groups[number]) / window_s, p99 / 1000, greatest / 1000])
        return points


def percentile(in_order: Sequence[int], part: float) -> int | None:
    """The smallest value that `part` percent of the sorted values do not exceed; None if there are no values."""
    return in_order[_place(len(in_order), part)] if in_order else None


def percentile_name(part: float) -> str:
    """The name of a figure: p50_ms, p99_9_ms."""
    return f"p{part:g}_ms".replace(".", "_")


def _place(count: int, part: float) -> int:
    """Nearest rank: the smallest rank that covers `part` percent. Whole numbers, so that 99.9 of 1000 is the 999th."""
    return max(-(-count * round(part * 1000) // 100_000) - 1, 0)


def _ms(latency_us: int | None) -> float | None:
    return None if latency_us is None else latency_us / 1000
