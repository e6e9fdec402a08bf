"""Lines that depend on the time of day, which transcripts cannot show."""

from __future__ import annotations

import pytest

from sockpqd.core import GroupSettings
from sockpqd.core.queries import GroupCounts
from sockpqd.gateway.protocol import listings


@pytest.mark.parametrize(("now_ms", "left_s"), [(0, 10), (1, 10), (1000, 9), (9_999, 1), (10_000, 0), (20_000, 0)])
def test_the_rest_of_a_groups_pause_is_rounded_up(now_ms: int, left_s: int) -> None:
    its = GroupSettings(paused=True, pause_ends_ms=10_000)
    assert dict(listings.settings_of_group(its, now_ms))["PAUSE_LEFT_S"] == str(left_s)
    line = listings.group_lines([("g", GroupCounts(0, 0, 0, its))], now_ms)
    assert line.endswith(f" PAUSED 1 PAUSE_LEFT_S {left_s}\r\n".encode())


@pytest.mark.parametrize("paused", [False, True])
def test_a_pause_without_an_end_has_no_rest(paused: bool) -> None:
    its = GroupSettings(paused=paused)
    assert dict(listings.settings_of_group(its, 5))["PAUSE_LEFT_S"] == "0"
