"""Memory in use, and sizes as people write them."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from sockpq import BadArguments
from sockpq.worker.pool.memory import MemoryShare, share_of, size_bytes, used_share


def test_the_used_share_is_that_of_the_machine_or_of_the_container(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable: 600 kB\n")
    assert used_share(meminfo, tmp_path) == pytest.approx(0.4)
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("900\n")
    (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 200\n")
    assert used_share(meminfo, tmp_path) == pytest.approx(0.7)
    (tmp_path / "memory.max").write_text("max\n")
    assert used_share(meminfo, tmp_path) == pytest.approx(0.4)
    assert used_share(tmp_path / "none", tmp_path / "none") == 0
    assert 0 < used_share() < 1


def test_growth_stops_at_the_share() -> None:
    assert MemoryShare(0.6, lambda: 0.59).may_grow()
    assert not MemoryShare(0.6, lambda: 0.6).may_grow()
    assert MemoryShare(None, lambda: 1.0).may_grow()


def test_that_growth_has_stopped_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    used = [0.7]
    memory = MemoryShare(0.6, lambda: used[0])
    with caplog.at_level(logging.INFO, "sockpq.worker"):
        memory.report(3, 9, is_short=False)
        for _ in range(3):
            memory.report(3, 9, is_short=True)
        memory.report(3, 9, is_short=False)        # a child is idle for a moment
        memory.report(3, 9, is_short=True)
        used[0], memory._seen_at = 0.5, -1.0
        memory.report(3, 9, is_short=True)
        memory.report(3, 9, is_short=True)
    assert [record.getMessage() for record in caplog.records] == [
        "the pool stays at 3 of 9 children: 70% of the memory is used, and with --memory-share 60% it does not grow "
        "above that",
        "the pool may grow again: 50% of the memory is used",
    ]


def test_sizes_and_shares() -> None:
    assert [size_bytes(text) for text in ("200M", "1.5G", "10k", "7", "1GiB")] == [
        200 * 2**20, 3 * 2**29, 10_240, 7, 2**30,
    ]
    assert share_of("60%") == 0.6
    for wrong in ("", "M", "-1M", "x", "0"):
        with pytest.raises(BadArguments):
            size_bytes(wrong)
    for wrong in ("60", "0%", "101%", "x%"):
        with pytest.raises(BadArguments):
            share_of(wrong)
