"""The times of syncs that make a node's loop wait for its disk, and those that do not."""

from __future__ import annotations

from sockpqd.cluster.limits import (
    BACKGROUND_SYNC_BYTES,
    BRISK_SYNC_S,
    SLOW_BACKGROUND_SYNC_BYTES,
    SLOW_SYNC_S,
    SLUGGISH_SYNC_S,
    STALLED_SYNC_S,
)
from sockpqd.cluster.sync_pace import SyncPace

OFTEN = 40                      # syncs, after which the average is what each of them took
FAST_S = SLOW_SYNC_S / 5


def after(*times_s: float) -> SyncPace:
    pace = SyncPace()
    for seconds in times_s:
        pace.took(seconds)
    return pace


def test_a_disk_is_fast_before_it_was_measured() -> None:
    assert after().background_bytes == BACKGROUND_SYNC_BYTES


def test_one_stall_among_fast_syncs_changes_little() -> None:
    assert not after(*[FAST_S] * OFTEN, 10.0).sluggish
    assert after(*[FAST_S] * OFTEN, 10.0, 10.0, 10.0).sluggish


def test_the_loop_does_not_wait_for_the_sync_after_a_stall() -> None:
    assert after(*[FAST_S] * OFTEN, STALLED_SYNC_S).background_bytes == 0
    assert after(*[FAST_S] * OFTEN, STALLED_SYNC_S / 2).background_bytes > 0
    assert after(*[FAST_S] * OFTEN, STALLED_SYNC_S, *[FAST_S] * OFTEN).background_bytes == BACKGROUND_SYNC_BYTES


def test_the_slower_a_disk_the_smaller_the_frames_that_go_to_the_thread() -> None:
    assert after(*[0.9 * SLOW_SYNC_S] * OFTEN).background_bytes == BACKGROUND_SYNC_BYTES
    assert after(*[1.1 * SLOW_SYNC_S] * OFTEN).background_bytes == SLOW_BACKGROUND_SYNC_BYTES
    assert after(*[0.9 * SLUGGISH_SYNC_S] * OFTEN).background_bytes == SLOW_BACKGROUND_SYNC_BYTES
    assert after(*[1.1 * SLUGGISH_SYNC_S] * OFTEN).background_bytes == 0


def test_a_disk_between_the_thresholds_stays_what_it_was() -> None:
    between = [(BRISK_SYNC_S + SLUGGISH_SYNC_S) / 2] * OFTEN
    assert not after(*between).sluggish
    assert after(*[2 * SLUGGISH_SYNC_S] * OFTEN, *between).sluggish
    assert not after(*[2 * SLUGGISH_SYNC_S] * OFTEN, *between, *[FAST_S] * OFTEN).sluggish
