"""Quantiles of what histograms counted."""

from __future__ import annotations

from math import nan


def quantile(bounds: tuple[float, ...], counts: list[int], share: float) -> float:
    """Return the value below which this share of the counts lies, between two bounds by proportion; NaN: no counts."""
    wanted, passed = share * sum(counts), 0
    if not wanted:
        return nan
    for at, count in enumerate(counts):
        if count and passed + count >= wanted:
            low = bounds[at - 1] if at else 0.0
            high = bounds[at] if at < len(bounds) else bounds[-1]
            return low + (high - low) * (wanted - passed) / count
        passed += count
    return bounds[-1]
