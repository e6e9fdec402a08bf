"""Rows at equal steps of time, of which the newest are kept, and rows of a coarser step made of them."""

from __future__ import annotations

from math import isnan, nan

from hypothesis import given
from hypothesis import strategies as st

from sockpqd.gateway.samples.course import QUEUE_FIELDS, STEPS, Field, FigureSeries
from sockpqd.gateway.samples.kept_queues import KEPT_MAX
from sockpqd.gateway.samples.ring import Ring, merged

FIELDS = (Field("rate"), Field("longest", greatest=True))
NOW_S = 1_800_000_000       # a multiple of all steps


def known(ring: Ring, first: int, end: int) -> list[float | None]:
    """Return the first figure of each row, None for NaN."""
    return [None if isnan(value) else value for value in ring.column(0, first, end)]


def test_a_ring_keeps_the_newest_rows_and_what_was_left_out_is_missing() -> None:
    ring = Ring(1, 4, 1)
    assert known(ring, 10, 12) == [None, None]
    for number in (10, 11, 13):
        ring.put(number, [float(number)])
    assert known(ring, 9, 15) == [None, 10, 11, None, 13, None]
    ring.put(14, [14.0])
    assert known(ring, 9, 15) == [None, None, 11, None, 13, 14]


def test_a_clock_that_jumps_begins_a_new_ring_and_small_steps_back_do_not() -> None:
    ring = Ring(1, 4, 1)
    for number in (10, 11, 12, 11):
        ring.put(number, [float(number) + (number == 11)])
    assert known(ring, 9, 14) == [None, 10, 12, 12, None]
    for jump in (1000, 3):
        ring.put(jump, [1.0])
        assert known(ring, jump - 3, jump + 2) == [None, None, None, 1, None]
    assert known(ring, 999, 1001) == [None, None]


def test_rows_are_merged_to_means_or_greatest_values_of_what_is_known() -> None:
    assert merged([1.0, 3.0, nan], greatest=False) == 2.0
    assert [merged([1.0, 3.0, *more], greatest=True) for more in ([], [nan])] == [3.0, 3.0]
    assert isnan(merged([nan, nan], greatest=False))


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.integers(0, 50), st.integers(1, 30))
def test_a_column_is_what_was_written_last(numbers: list[int], first: int, count: int) -> None:
    ring, model, newest = Ring(1, 7, 2), dict[int, float](), 0
    for at, number in enumerate(numbers):
        ring.put(number, [0.0, float(at)])
        if not newest - 7 < number < newest + 7:
            model, newest = {}, number
        newest = max(newest, number)
        model[number] = float(at)
    expected = [model.get(number) if newest - 7 < number else None for number in range(first, first + count)]
    found = ring.column(1, first, first + count)
    assert [None if isnan(value) else value for value in found] == expected


def test_coarser_rows_are_made_of_finer_ones() -> None:
    course = FigureSeries(FIELDS)
    for second in range(700):
        course.add(NOW_S + second, [float(second % 10), float(second)])
    tens = course.window(NOW_S + 699, 3600, 1000)
    assert tens.step_s == 10
    assert tens.times[-1] == NOW_S + 680            # the step that has begun is not over
    assert tens.values["rate"][-3:] == [4.5, 4.5, 4.5]
    assert tens.values["longest"][-3:] == [669, 679, 689]
    week = course.window(NOW_S + 699, 86400, 1000)
    assert (week.step_s, week.times[-1], len(week.times)) == (300, NOW_S + 300, 288)
    assert week.values["longest"][-3:] == [None, 299, 599]
    assert course.now() == {"rate": 9.0, "longest": 699.0}


def test_a_window_is_of_the_finest_ring_that_goes_so_far_and_has_no_more_rows_than_asked_for() -> None:
    course = FigureSeries(FIELDS)
    for second in range(600):
        course.add(NOW_S + second, [1.0, float(second)])
    assert course.window(NOW_S + 599, 600, 1000).values["longest"] == [float(second) for second in range(600)]
    few = course.window(NOW_S + 599, 600, 60)
    assert (few.step_s, len(few.times), few.values["longest"][-1]) == (10, 60, 599)
    assert course.window(NOW_S + 599, 7 * 86400, 10_000).step_s == 300
    assert len(course.window(NOW_S + 599, 365 * 86400, 100).times) <= 100


def test_a_week_of_the_cluster_and_of_all_kept_queues_has_room_in_64_mib() -> None:
    each = sum(ring.values.buffer_info()[1] * 4 for ring in FigureSeries(QUEUE_FIELDS, STEPS[:2]).rings)
    assert each * KEPT_MAX + (4 << 20) < 64 << 20
