"""The pause after failures: its length, that it is remembered, and what the program does meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from sockpqd.gateway.process import restarts
from sockpqd.gateway.process.restarts import Restarts
from tests.gateway.helpers.program import PATIENCE_S, SOCKPQD, Dev, sockpqd
from tests.gateway.helpers.service_manager import Ear


class Clock:
    """Unix time that the test sets."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def fail(file: Path, clock: Clock, times: int) -> list[float]:
    """Let the process fail this often; returns the pauses before the starts that follow."""
    pauses = []
    for _ in range(times):
        Restarts(file, clock).failed()
        pauses.append(Restarts(file, clock).pause_s())
        clock.now += pauses[-1]
    return pauses


def test_each_failure_in_a_row_doubles_the_pause_up_to_a_minute(tmp_path: Path) -> None:
    assert fail(tmp_path / "restarts", Clock(), 9) == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_a_first_start_does_not_wait(tmp_path: Path) -> None:
    assert Restarts(tmp_path / "restarts").pause_s() == 0


def test_the_pause_is_counted_from_the_failure_whatever_is_done_to_the_clock(tmp_path: Path) -> None:
    file, clock = tmp_path / "restarts", Clock()
    fail(file, clock, 3)
    clock.now -= 2.5
    assert Restarts(file, clock).pause_s() == 2.5
    clock.now -= 86_400
    assert Restarts(file, clock).pause_s() == 4
    clock.now += 2 * 86_400
    assert Restarts(file, clock).pause_s() == 0


@pytest.mark.parametrize("content", [b"", b"x", b"1", b"\xff\xff 1", b"-5 1", b"1 2 3"])
def test_a_file_that_makes_no_sense_is_no_reason_to_wait(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "restarts").write_bytes(content)
    assert Restarts(tmp_path / "restarts", Clock()).pause_s() == 0


def test_what_cannot_be_written_is_no_second_failure(tmp_path: Path) -> None:
    Restarts(tmp_path / "missing" / "restarts").failed()


def test_the_file_keeps_its_length_so_that_a_full_disk_has_room_for_it(tmp_path: Path) -> None:
    file, clock = tmp_path / "restarts", Clock()
    fail(file, clock, 1)
    length, inode = file.stat().st_size, file.stat().st_ino
    fail(file, clock, 20)
    assert (file.stat().st_size, file.stat().st_ino) == (length, inode)


def test_failures_are_counted_anew_after_a_healthy_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restarts, "HEALTHY_S", 0.01)
    file, clock = tmp_path / "restarts", Clock()
    fail(file, clock, 5)
    looks: list[bool] = []

    async def live() -> None:
        node = Restarts(file, clock)
        assert node.failures == 5

        def healthy() -> bool:
            looks.append(len(looks) == 3)       # not before a leader is known
            return looks[-1]
        node.reset_when(healthy)
        async with asyncio.timeout(PATIENCE_S):
            while node.failures:
                await asyncio.sleep(0.005)
        node.stop()

    asyncio.run(live())
    assert looks == [False, False, False, True]
    assert fail(file, clock, 1) == [1]


def failed_before(folder: Path, failures: int) -> None:
    """Return a node's directory in which failures are remembered; the last is so late that nothing of its pause is
    over.
    """
    file = folder / "sockpqd-dev" / "restarts"
    file.parent.mkdir()
    file.write_text(f"{failures} {time.time() + 3600}\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_whoever_waits_says_so_and_stops_at_once_when_it_is_told(tmp_path: Path, number: signal.Signals) -> None:
    failed_before(tmp_path, 7)
    ear = Ear(str(tmp_path / "notify"))
    process = subprocess.Popen(
        [SOCKPQD, "--dev"], cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        env={**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")},
    )
    try:
        status, extension = ear.hear()
        assert status == "STATUS=starts in 60 s, after 7 failures in a row"
        assert int(extension.removeprefix("EXTEND_TIMEOUT_USEC=")) > 60e6
        process.send_signal(signal.SIGHUP)              # is no reason to end
        process.send_signal(number)
        assert process.wait(30) == 0                    # and not after a minute
    finally:
        process.kill()
        process.wait()
        ear.close()


def test_the_node_starts_after_the_pause(tmp_path: Path) -> None:
    begun = time.time()
    failed_before(tmp_path, 1)
    node = Dev(tmp_path)
    try:
        assert time.time() - begun >= 1
        assert "this node has failed 1 times in a row" in node.log.read_text()
    finally:
        node.process.kill()
        node.process.wait()
        assert node.process.stdout is not None
        node.process.stdout.close()


def test_an_end_that_a_restart_can_cure_is_75_and_counts(tmp_path: Path) -> None:
    (tmp_path / "sockpqd-dev").mkdir()
    (tmp_path / "sockpqd-dev" / "snapshots").write_text("this is no directory")
    run = sockpqd("--dev", folder=tmp_path)
    assert run.returncode == 75, run.stderr
    assert "Traceback" not in run.stderr
    assert Restarts(tmp_path / "sockpqd-dev" / "restarts").failures == 1
