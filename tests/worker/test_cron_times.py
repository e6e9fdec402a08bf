"""Times of crontab lines: time zones, both changes of summer time, lines without a time."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from sockpq import BadArguments
from sockpq.worker.cron_times import NICKNAMES, check, next_time

BERLIN = "Europe/Berlin"


def times_between(line: str, tz: str, after: int, until: int, times_max: int) -> list[int]:
    """Return the times after `after` and not after `until`, at most this many."""
    found: list[int] = []
    at = next_time(line, tz, after)
    while at <= until and len(found) < times_max:
        found.append(at)
        at = next_time(line, tz, at)
    return found


def at(text: str, tz: str = BERLIN, fold: int = 0) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(tz), fold=fold).timestamp())


def told(times: list[int], tz: str = BERLIN) -> list[str]:
    return [datetime.fromtimestamp(one, ZoneInfo(tz)).strftime("%d %H:%M %z") for one in times]


def test_the_next_time_is_after_the_last() -> None:
    assert next_time("0 3 * * mon-fri", BERLIN, at("2026-11-20 03:00")) == at("2026-11-23 03:00")
    assert next_time("0 3 * * mon-fri", BERLIN, at("2026-11-20 02:59:59")) == at("2026-11-20 03:00")
    assert next_time("@daily", "UTC", 86_399) == 86_400
    assert next_time("*/7 * * * *", "UTC", 0) == 420
    assert next_time("0 0 29 2 *", "UTC", at("2025-01-01", "UTC")) == at("2028-02-29", "UTC")


def test_a_time_that_the_clock_does_not_show_runs_at_the_end_of_the_gap() -> None:
    times = times_between("30 2 * * *", BERLIN, at("2026-03-27 12:00"), at("2026-03-30 12:00"), 9)
    assert told(times) == ["28 02:30 +0100", "29 03:00 +0200", "30 02:30 +0200"]


def test_a_time_that_the_clock_shows_twice_runs_once() -> None:
    times = times_between("30 2 * * *", BERLIN, at("2026-10-24 12:00"), at("2026-10-26 12:00"), 9)
    assert told(times) == ["25 02:30 +0200", "26 02:30 +0100"]
    # Started in the second of the two hours: it ran before.
    assert told([next_time("30 2 * * *", BERLIN, at("2026-10-25 02:10", fold=1))]) == ["26 02:30 +0100"]


@pytest.mark.parametrize(
    ("begin", "expected"),
    [
        ("2026-03-29 01:20", ["29 01:30 +0100", "29 01:45 +0100", "29 03:00 +0200", "29 03:15 +0200"]),
        ("2026-10-25 02:40", ["25 02:45 +0200", "25 02:00 +0100", "25 02:15 +0100", "25 02:30 +0100"]),
    ],
)
def test_a_line_for_every_hour_goes_on_in_real_time(begin: str, expected: list[str]) -> None:
    times = times_between("*/15 * * * *", BERLIN, at(begin), at(begin) + 5 * 86_400, 4)
    assert told(times) == expected
    assert {later - earlier for earlier, later in pairwise(times)} == {900}


def test_minutes_that_begin_with_a_star_go_on_in_real_time_too() -> None:
    assert told(times_between("*/30 2 * * *", BERLIN, at("2026-03-28 02:15"), at("2026-03-31"), 9)) == [
        "28 02:30 +0100", "30 02:00 +0200", "30 02:30 +0200",
    ]
    assert told(times_between("*/30 2 * * *", BERLIN, at("2026-10-25 00:00"), at("2026-10-26"), 9)) == [
        "25 02:00 +0200", "25 02:30 +0200", "25 02:00 +0100", "25 02:30 +0100",
    ]


def test_lines_with_a_name() -> None:
    begin = at("2026-11-20 12:34", "UTC")
    for name, line in NICKNAMES.items():
        assert next_time(name, "UTC", begin) == next_time(line, "UTC", begin) > begin


def test_every_time_of_a_year_comes_once_and_in_order() -> None:
    for line, tz, count in (
        ("0 * * * *", BERLIN, 365 * 24), ("30 2 * * *", BERLIN, 365), ("30 1 * * *", "Australia/Lord_Howe", 365),
        ("15 * * * *", "Australia/Lord_Howe", 365 * 24),
    ):
        begin = at("2027-01-01", tz)
        times = times_between(line, tz, begin - 1, at("2028-01-01", tz) - 1, 10**6)
        assert times == sorted(set(times))
        assert abs(len(times) - count) <= (2 if line.startswith("15") else 0), line


@pytest.mark.parametrize(
    "line", ["", "x", "0 3 * *", "61 * * * *", "* * * * * *", "@never", "0 0 30 2 *", "0 0 * * mox"],
)
def test_what_is_no_line_is_refused(line: str) -> None:
    with pytest.raises(BadArguments, match=r"is not a crontab line|never comes"):
        check(line, "UTC")


def test_an_unknown_time_zone_is_refused() -> None:
    for zone in ("Mars/Base", "../etc", ""):
        with pytest.raises(BadArguments, match="no time zone"):
            check("0 0 * * *", zone)
