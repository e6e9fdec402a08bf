"""The destinations of log lines: a full pipe that is waited for, a file for the audit log, and that file moved away."""

from __future__ import annotations

import errno
import json
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sockpqd.gateway import audit
from sockpqd.gateway.config import ConfigError, Log
from sockpqd.gateway.process import log_writer
from sockpqd.gateway.process.log_writer import LINES_MAX
from sockpqd.gateway.process.logs import Logs
from tests.waiting import PATIENCE_S, eventually, until

log = logging.getLogger("sockpqd.test")


def started(descriptor: int, settings: Log) -> Logs:
    logs = Logs(settings, "n1", descriptor)
    logs.start()
    return logs


def messages(path: Path) -> list[str]:
    return [json.loads(line)["message"] for line in path.read_text().splitlines()]


def test_with_wait_no_line_is_lost_and_who_logs_waits(pipe: tuple[int, int]) -> None:
    logs = started(pipe[1], Log(when_full="wait"))
    count = 3 * LINES_MAX
    done = threading.Event()

    def write() -> None:
        for number in range(count):
            log.warning("line %d %s", number, "x" * 100)
        done.set()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    assert not done.wait(0.5)
    got = b""
    while got.count(b"\n") < count:
        got += os.read(pipe[0], 1 << 16)
    assert done.wait(60)
    writer.join()
    logs.close()
    assert logs.lines_lost == 0
    assert [json.loads(line)["message"].split()[1] for line in got.splitlines()] == [str(one) for one in range(count)]


def test_with_wait_a_reader_that_went_away_is_not_waited_for(pipe: tuple[int, int]) -> None:
    os.close(pipe[0])
    logs = started(pipe[1], Log(when_full="wait"))
    for _ in range(2 * LINES_MAX):
        log.warning("nobody will ever read this")
    logs.close()
    assert logs.lines_lost >= 2 * LINES_MAX


@pytest.mark.parametrize(("when_full", "lost"), [("drop", 1), ("wait", 0)])
def test_a_full_disk_loses_lines_or_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when_full: str, lost: int,
) -> None:
    full, tried, write = [True], [], os.write

    def as_on_a_full_disk(descriptor: int, data: memoryview) -> int:
        tried.append(bytes(data))
        if full[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(log_writer, "RETRY_S", 0.01)
    with (tmp_path / "log").open("wb") as file:
        logs = started(file.fileno(), Log(when_full=when_full))
        monkeypatch.setattr(log_writer.os, "write", as_on_a_full_disk)
        log.warning("first")
        until(lambda: tried)
        until(lambda: when_full == "wait" or logs.lines_lost)
        full[0] = False
        log.warning("second")
        logs.close()
    assert logs.lines_lost == lost
    got = messages(tmp_path / "log")
    told = "1 line of the log was lost: standard error was not read in time"
    assert got == ([told, "second"] if lost else ["first", "second"])


@pytest.mark.parametrize("full", [False, True])
def test_lines_that_wait_are_written_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, full: bool,
) -> None:
    """In a flood each write waits until the loop is not busy. Lines of a write that fails are lost, each counted."""
    writing, go_on, writes, write = threading.Event(), threading.Event(), [], os.write

    def slow(descriptor: int, data: memoryview) -> int:
        writes.append(bytes(data).count(b"\n"))
        writing.set()
        assert go_on.wait(PATIENCE_S)
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    with (tmp_path / "log").open("wb") as file:
        logs = started(file.fileno(), Log(when_full="drop"))
        monkeypatch.setattr(log_writer.os, "write", slow)
        log.warning("first")
        assert writing.wait(PATIENCE_S)
        for number in range(10):
            log.warning("line %d", number)
        go_on.set()
        until(lambda: sum(writes) == 11 and logs.lines_lost == (11 if full else 0))
        assert writes == [1, 10]
        logs.close()
    assert messages(tmp_path / "log") == ([] if full else ["first", *(f"line {number}" for number in range(10))])


def test_a_forked_child_does_not_wait_for_a_thread_that_it_does_not_have(pipe: tuple[int, int]) -> None:
    program = f"""
import logging, os, sys
from sockpqd.gateway.config import Log
from sockpqd.gateway.process.logs import Logs
logs = Logs(Log(when_full="wait"), "n1", {pipe[1]})
logs.start()
child = os.fork()
if child == 0:
    for _ in range({2 * LINES_MAX}):
        logging.warning("from the child")
    os._exit(7)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=False, timeout=120, pass_fds=pipe[1:])
    assert ended.returncode == 7


def test_the_audit_log_has_a_file_of_its_own_whatever_the_level(pipe: tuple[int, int], tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    logs = started(pipe[1], Log(level="error", audit_file=str(path)))
    audit.note("op", "127.0.0.1:5", "USER SET", "eva put", "200 OK")
    log.error("for the log")
    logs.close()
    assert messages(path) == ["user=op address=127.0.0.1:5 action=USER SET object='eva put' outcome='200 OK'"]
    assert [json.loads(line)["message"] for line in os.read(pipe[0], 1 << 16).splitlines()] == ["for the log"]
    assert path.stat().st_mode & 0o007 == 0


def test_after_the_file_was_moved_away_lines_go_to_a_new_one(pipe: tuple[int, int], tmp_path: Path) -> None:
    path, moved = tmp_path / "audit.log", tmp_path / "audit.log.1"
    logs = started(pipe[1], Log(audit_file=str(path)))
    audit.note(None, "a", "one", "", "")
    until(lambda: messages(path))
    path.rename(moved)
    audit.note(None, "a", "two", "", "")
    until(lambda: len(messages(moved)) == 2)
    logs.reopen()
    audit.note(None, "a", "three", "", "")
    logs.close()
    assert [message.split()[2] for message in messages(moved)] == ["action=one", "action=two"]
    assert [message.split()[2] for message in messages(path)] == ["action=three"]


def test_a_file_that_cannot_be_opened_anew_is_told_and_the_old_one_goes_on(
    pipe: tuple[int, int], tmp_path: Path,
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    logs = started(pipe[1], Log(audit_file=str(folder / "audit.log")))
    folder.rename(tmp_path / "moved")
    logs.reopen()
    audit.note(None, "a", "one", "", "")
    logs.close()
    assert "audit log continues in the old file" in os.read(pipe[0], 1 << 16).decode()
    assert len(messages(tmp_path / "moved" / "audit.log")) == 1


def test_a_file_that_cannot_be_opened_is_an_error_of_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"log.audit_file: .*/none/audit.log: No such file or directory"):
        Logs(Log(audit_file=str(tmp_path / "none" / "audit.log")), "n1")


def test_a_flood_of_other_lines_loses_none_of_the_audit_log(pipe: tuple[int, int]) -> None:
    logs = started(pipe[1], Log())
    for number in range(2 * LINES_MAX):
        log.warning("flood %d %s", number, "x" * 100)
    for number in range(50):
        audit.note(None, "a", "QUEUE DELETE", f"q{number}", "200 OK")
        log.warning("flood")
    assert not logs.audit_behind()
    got = b""
    while got.count(b"action=QUEUE DELETE") < 50:       # for ever, if one was lost
        got += os.read(pipe[0], 1 << 16)
    logs.close()
    assert logs.lines_lost > 0


def test_many_lines_of_the_audit_log_are_behind_until_they_are_written(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_writer, "STUCK_S", PATIENCE_S)
    logs = started(pipe[1], Log())
    for number in range(LINES_MAX):
        audit.note(None, "a", "QUEUE DELETE", f"q{number}", "x" * 100)
    assert logs.audit_behind()
    monkeypatch.setattr(log_writer, "STUCK_S", 0.0)
    assert not logs.audit_behind(), "nobody reads: operators must be able to act"
    monkeypatch.setattr(log_writer, "STUCK_S", PATIENCE_S)
    got = b""
    while got.count(b"\n") < LINES_MAX:
        got += os.read(pipe[0], 1 << 16)
    until(lambda: not logs.audit_behind())
    logs.close()
    assert logs.lines_lost == 0


def test_lines_lost_by_the_audit_log_count_too(
    pipe: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    logs = started(pipe[1], Log(audit_file="/dev/full"))
    audit.note(None, "a", "one", "", "")
    assert eventually(lambda: logs.lines_lost == 1)
    logs.close()
