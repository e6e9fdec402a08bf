"""Times in requests: seconds, ISO 8601 durations and dates; anything else is refused."""

from __future__ import annotations

from typing import Any

import pytest
from sockpq_http.values.times import moment, shown, span


@pytest.mark.parametrize(("given", "seconds"), [
    (0, 0), (1.5, 1.5), ("90", 90), ("0.25", 0.25), ("PT5M", 300), ("P1DT1H", 90_000), ("P2W", 1_209_600),
    ("PT0.5S", 0.5), ("PT1H2M3S", 3723),
])
def test_a_span_is_seconds_or_a_duration(given: Any, seconds: float) -> None:
    assert span(given) == seconds


@pytest.mark.parametrize("given", [
    -1, True, None, "", "P", "PT", "P1M", "P1Y", "5m", "PT-5M", float("nan"), float("inf"), 10**400, "\u0661", [],
    "PT5M ",
])
def test_what_is_no_span_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match=r"span|large"):
        span(given)


@pytest.mark.parametrize(("given", "unix"), [
    (0, 0), (1_700_000_000.5, 1_700_000_000.5), ("1700000000", 1_700_000_000),
    ("2023-11-14T22:13:20Z", 1_700_000_000), ("2023-11-14T23:13:20+01:00", 1_700_000_000),
])
def test_a_moment_is_unix_time_or_a_date(given: Any, unix: float) -> None:
    assert moment(given) == unix


@pytest.mark.parametrize("given", [
    -1, True, None, "", "soon", "2023-11-14T22:13:20", "1901-01-01T00:00:00Z", 10**20, 10**400, float("nan"), {},
])
def test_what_is_no_moment_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match=r"time|zone|large"):
        moment(given)


def test_answers_have_dates_in_utc() -> None:
    assert shown(1_700_000_000) == "2023-11-14T22:13:20Z"
    assert shown(None) is None
    assert shown(10.0**15) is None
    assert moment(shown(1_700_000_000)) == 1_700_000_000
