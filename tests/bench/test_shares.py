"""The measured shares, with fewer choices."""

from __future__ import annotations

from bench.core.shares import HELD, LIMITED, WEIGHTS, levels, limited, off_by, weights


def test_weights_and_levels_have_their_shares() -> None:
    assert off_by(weights(20_000, None), WEIGHTS) < 2
    for count in (2, 5):
        found = levels(3100, count)
        assert off_by(found, {f"level {level}": 2 ** (count - 1 - level) for level in range(count)}) < 1


def test_weights_and_limits_hold_at_once() -> None:
    found, most = limited(10_000)
    assert most == HELD - 1
    assert off_by(found, LIMITED) < 3           # of a few thousand


def test_what_is_missing_counts_as_nothing() -> None:
    assert off_by({"a": 100.0}, {"a": 1, "b": 1}) == 50
