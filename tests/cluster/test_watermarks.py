"""The marks of memory and disk."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from pathlib import Path

import pytest

from sockpqd.cluster.metrics import watermarks as marks_module
from sockpqd.cluster.metrics.process_memory import OBJECT_BYTES, UsedMemory, resident_bytes, small_objects
from sockpqd.cluster.metrics.watermarks import WatermarkMonitor, Watermarks, free_bytes

MIB = 1 << 20


def test_memory_above_its_mark_is_told_once_and_until_it_is_well_below(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    marks = Watermarks(100 * MIB, 0)
    told = []
    for memory, reached in [(99, False), (100, False), (101, True), (99, True), (96, True), (95, False), (99, False)]:
        marks.update(0, memory * MIB, 0)
        assert marks.reached is reached
        told.append(len(caplog.records))
    assert told == [0, 0, 1, 1, 1, 2, 2]
    begun, ended = caplog.records
    assert (begun.levelname, ended.levelname) == ("WARNING", "INFO")
    assert "limits.memory_mark" in begun.message
    assert "more memory" in begun.message


def test_a_disk_below_its_minimum_is_told_once_and_until_there_is_well_more(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    marks = Watermarks(0, 100 * MIB)
    for free, reached in [(101, False), (100, False), (99, True), (101, True), (104, True), (105, False), (101, False)]:
        marks.update(1, 1, free * MIB)
        assert (marks.disk_reached, marks.reached) == (reached, reached)
    begun, ended = caplog.records
    assert (begun.levelname, ended.levelname) == ("WARNING", "INFO")
    assert "limits.disk_free_bytes_min" in begun.message
    assert "Free disk space" in begun.message


def test_what_is_written_between_two_measurements_is_not_free_any_more() -> None:
    written = 100
    marks = Watermarks(0, 0, lambda: 50, lambda: written)
    marks.update(0, 0, 1000, 5000)
    assert (marks.free_bytes, marks.disk_free_bytes, marks.disk_bytes) == (1000, 1050, 5000)
    written = 400
    assert marks.free_bytes == 700
    written = 2000
    assert marks.free_bytes == 0
    marks.update(0, 0, 900, 5000)
    assert marks.free_bytes == 900


def test_marks_of_zero_are_never_reached() -> None:
    marks = Watermarks(0, 0)
    marks.update(1 << 60, 1 << 60, 0)
    assert not marks.reached


def test_what_is_seen_is_that_of_this_process_and_this_disk(tmp_path: Path) -> None:
    assert 5 * MIB < resident_bytes() < 100_000 * MIB
    assert small_objects() > 10_000
    status = os.statvfs(tmp_path)
    assert 0 <= free_bytes(tmp_path) <= status.f_blocks * status.f_frsize


def test_a_disk_that_does_not_answer_does_not_stop_the_loop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    answered, asked, hangs = threading.Event(), threading.Event(), threading.Event()

    def hang(directory: Path) -> int:
        if hangs.is_set():
            asked.set()
            answered.wait(60)
        return 7

    monkeypatch.setattr(marks_module, "free_bytes", hang)
    monkeypatch.setattr(marks_module, "LOOK_S", 0.01)

    async def watched() -> None:
        marks = Watermarks(0, 0)
        watch = WatermarkMonitor(tmp_path, marks, asyncio.get_running_loop())
        watch.start()
        assert marks.disk_free_bytes == 7
        marks.disk_free_bytes = 0
        hangs.set()
        while not asked.is_set():
            await asyncio.sleep(0.001)      # the loop turns
        answered.set()
        while not marks.disk_free_bytes:
            await asyncio.sleep(0.001)
        watch.stop()

    asyncio.run(asyncio.wait_for(watched(), 60))


def test_memory_is_given_back_while_its_mark_is_reached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trimmed = threading.Event()
    monkeypatch.setattr(marks_module, "_memory_returner", lambda: trimmed.set)
    monkeypatch.setattr(marks_module, "LOOK_S", 0.005)

    async def watched() -> None:
        marks = Watermarks(0, 0)
        watch = WatermarkMonitor(tmp_path, marks, asyncio.get_running_loop())
        watch.start()
        await asyncio.sleep(0.05)
        assert not trimmed.is_set()
        marks.memory_mark_bytes = 1
        while not trimmed.is_set():
            await asyncio.sleep(0.001)
        watch.stop()

    asyncio.run(asyncio.wait_for(watched(), 60))


def test_what_freed_objects_leave_is_not_in_use() -> None:
    used = UsedMemory()
    assert used.bytes(100 * MIB, 1_000_000) == 100 * MIB
    assert used.bytes(200 * MIB, 2_000_000) == 200 * MIB
    assert used.bytes(200 * MIB, 500_000) == 200 * MIB - 1_500_000 * OBJECT_BYTES
    assert used.bytes(200 * MIB, 1_500_000) == 200 * MIB - 500_000 * OBJECT_BYTES
    assert used.bytes(201 * MIB, 2_000_000) == 201 * MIB


def test_what_was_returned_is_not_counted_twice() -> None:
    used = UsedMemory()
    used.bytes(200 * MIB, 2_000_000)
    assert used.bytes(180 * MIB, 1_000_000) == 180 * MIB - (1_000_000 * OBJECT_BYTES - 20 * MIB)
    assert used.bytes(50 * MIB, 1_000_000) == 50 * MIB
    assert used.bytes(1 * MIB, 0) == 1 * MIB


def test_memory_that_grows_beside_what_is_free_is_in_use() -> None:
    used = UsedMemory()
    used.bytes(200 * MIB, 2_000_000)
    assert used.bytes(211 * MIB, 100) == 211 * MIB
