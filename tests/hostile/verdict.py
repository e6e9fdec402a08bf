"""The verdict on an attack, every reason why it was not held off, and the table of all attacks."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise

from msgspec import Struct, field

from tests.hostile.attack import MIB, Attack, Bounds
from tests.hostile.ordinary import Report, unusual

COLUMNS = ("attack", "held", "p50", "p50 before", "longest gap", "back after", "memory before", "memory", "notes")
TEXT_CHARACTERS = 160


class Outcome(Struct):
    """The outcome of one attack."""

    attack: str
    left_out: str = ""                  # why it could not be made here
    reasons: list[str] = field(default_factory=list)    # why it was not held off
    p50_before_ms: float | None = None
    p50_ms: float | None = None
    gap_s: float | None = None
    back_s: float | None = None
    rss_before_bytes: int = 0
    rss_bytes: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def held(self) -> bool:
        """True if the attack was made and held off."""
        return not self.left_out and not self.reasons


def p50_ms(report: Report, begin_s: float, end_s: float) -> float | None:
    """The median time to an answer of the commands sent during the attack; None when there was no answer."""
    times = [ms for sent, ms in report.commands if begin_s <= sent < end_s]
    return statistics.median(times) if times else None


def gap_s(ended_s: Iterable[float], begin_s: float, end_s: float) -> float:
    """The longest time between two cycles that ended, or from one to the edge of these times."""
    points = [begin_s, *(moment for moment in ended_s if begin_s < moment < end_s), end_s]
    return max(after - before for before, after in pairwise(points))


def judge(outcome: Outcome, attack: Attack, report: Report, begin_s: float) -> None:
    """Add every objection to the figures of this outcome, and to the errors the client got since `begin_s`."""
    bounds, add = attack.bounds, outcome.reasons.append
    if outcome.p50_ms is None:
        add("the ordinary client got no answer")
    elif outcome.p50_ms > bounds.p50_ms:
        add(f"p50 {outcome.p50_ms:.1f} ms > {bounds.p50_ms:g} ms")
    if outcome.gap_s is not None and outcome.gap_s > bounds.gap_s:
        add(f"gap {outcome.gap_s:.1f} s > {bounds.gap_s:g} s")
    if outcome.back_s is None:
        add("not all nodes came back")
    elif outcome.back_s > bounds.back_s:
        add(f"back after {outcome.back_s:.1f} s > {bounds.back_s:g} s")
    outcome.reasons += _memory(outcome, bounds)
    errors = unusual([one for one in report.errors if one[0] >= begin_s], attack.excused)
    outcome.reasons += [f"{times} times {error}" for error, times in errors.most_common(3)]


def _memory(outcome: Outcome, bounds: Bounds) -> list[str]:
    reasons = []
    if bounds.rss_mb is not None and outcome.rss_bytes > bounds.rss_mb * MIB:
        reasons.append(f"memory {outcome.rss_bytes // MIB} MiB > {bounds.rss_mb} MiB")
    grown = outcome.rss_bytes - outcome.rss_before_bytes
    if bounds.growth_mb is not None and grown > bounds.growth_mb * MIB:
        reasons.append(f"memory grew by {grown // MIB} MiB > {bounds.growth_mb} MiB")
    return reasons


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a line for each attack, in Markdown."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    for one in outcomes:
        if one.left_out:
            cells = [one.attack, "left out", "", "", "", "", "", "", one.left_out]
        else:
            notes = [*one.reasons, *one.notes]
            cells = [one.attack, "yes" if one.held else "**no**", _figure(one.p50_ms, "ms"),
                     _figure(one.p50_before_ms, "ms"), _figure(one.gap_s, "s"), _figure(one.back_s, "s"),
                     f"{one.rss_before_bytes // MIB} MiB", f"{one.rss_bytes // MIB} MiB",
                     "; ".join(note[:TEXT_CHARACTERS] for note in notes)]
        lines.append("| " + " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in cells) + " |")
    return "\n".join(lines)


def _figure(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:.1f} {unit}"
