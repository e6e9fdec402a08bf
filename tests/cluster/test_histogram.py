"""Counts in buckets."""

from __future__ import annotations

from sockpqd.cluster import Histogram


def test_each_value_is_counted_in_the_first_bucket_that_is_not_below_it() -> None:
    histogram = Histogram((0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 1.0, 3.0):
        histogram.observe(value)
    assert histogram.counts == [2, 2, 1]
    assert histogram.total == 4.65
