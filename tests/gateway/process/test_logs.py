"""Log lines: their form, that they never wait, and that the last one arrives."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sockpqd.gateway.config import Log
from sockpqd.gateway.process.log_writer import LINES_MAX
from sockpqd.gateway.process.logs import MESSAGE_CHARACTERS_MAX, JsonFormatter, Logs, TextFormatter

log = logging.getLogger("sockpqd.test")


def record(message: str, *arguments: object, **more: Any) -> logging.LogRecord:
    made = log.makeRecord("sockpqd", logging.WARNING, "file", 1, message, arguments, None)
    made.created, made.msecs = 1_700_000_000.123, 123.0
    made.__dict__.update(more)
    return made


def failure() -> Any:
    try:
        raise ValueError("a\nb\x1b[31m")
    except ValueError:
        return sys.exc_info()


def test_a_json_line_has_time_level_logger_node_message_and_fields() -> None:
    line = JsonFormatter("n1").format(record("%d of %s", 3, "7", fields={"count": 3, "path": Path("/x")}))
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.123Z", "level": "warning", "logger": "sockpqd", "node": "n1",
        "message": "3 of 7", "count": 3, "path": "/x",
    }


def test_a_text_line_has_them_in_one_line() -> None:
    line = TextFormatter().format(record("hello"))
    assert re.fullmatch(r"2023-11-1\d \d\d:\d\d:20,123 WARNING sockpqd: hello", line)


@pytest.mark.parametrize("formatter", [JsonFormatter("n1"), TextFormatter()])
def test_an_exception_is_told_with_its_traceback_and_nothing_steers_the_terminal(formatter: logging.Formatter) -> None:
    line = formatter.format(record("it failed", exc_info=failure()))
    assert "Traceback" in line
    assert "ValueError" in line
    assert "\x1b" not in line


@pytest.mark.parametrize("formatter", [JsonFormatter("n1"), TextFormatter()])
def test_what_comes_from_the_network_cannot_forge_a_line_and_is_cut(formatter: logging.Formatter) -> None:
    line = formatter.format(record("%s", "n2\r\n2023 INFO forged\x1b[2J\u202e\u2028\x00" + "x" * 10_000))
    assert line.isprintable()
    assert len(line) < MESSAGE_CHARACTERS_MAX + 300


def started(descriptor: int, **settings: str) -> Logs:
    logs = Logs(Log(**settings), "n1", descriptor)
    logs.start()
    return logs


def lines(read: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in os.read(read, 1 << 20).decode().splitlines()]


def test_lines_arrive_in_order_above_the_level(pipe: tuple[int, int]) -> None:
    logs = started(pipe[1], level="warning")
    log.info("no")
    for number in range(10):
        log.warning("line %d", number)
    logs.close()
    assert [line["message"] for line in lines(pipe[0])] == [f"line {number}" for number in range(10)]
    assert logs.lines_lost == 0


def test_a_pipe_nobody_reads_stops_nobody_and_the_loss_is_told(pipe: tuple[int, int]) -> None:
    logs = started(pipe[1])
    begun = time.monotonic()
    for number in range(3 * LINES_MAX):
        log.warning("line %d %s", number, "x" * 100)
    assert time.monotonic() - begun < 60         # it would be for ever
    lost = logs.lines_lost
    assert LINES_MAX // 2 < lost < 3 * LINES_MAX
    got = b""
    while got.count(b"\n") < 3 * LINES_MAX - lost:
        got += os.read(pipe[0], 1 << 16)
    log.warning("there is room again")
    logs.close()
    told, last = lines(pipe[0])
    assert told["lost"] == lost
    assert f"{lost} lines of the log were lost" in told["message"]
    assert last["message"] == "there is room again"


def test_the_end_does_not_wait_for_a_pipe_nobody_reads(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sockpqd.gateway.process.log_writer.FLUSH_S", 0.05)
    logs = started(pipe[1])
    for _ in range(LINES_MAX):
        log.warning("x" * 1000)
    logs.close()
    got = 0
    while got < LINES_MAX:          # let the writer, which hangs in the pipe, come to its end
        got += os.read(pipe[0], 1 << 16).count(b"\n")


def test_a_reader_that_went_away_is_no_error(pipe: tuple[int, int]) -> None:
    os.close(pipe[0])
    logs = started(pipe[1])
    log.warning("nobody reads this")
    logs.close()
    assert logs.lines_lost == 1


def test_a_descriptor_that_does_not_block_gets_every_line(pipe: tuple[int, int]) -> None:
    os.set_blocking(pipe[1], False)
    logs = started(pipe[1])
    for number in range(1000):
        log.warning("line %d %s", number, "x" * 200)
    got = b""
    while got.count(b"\n") < 1000:
        got += os.read(pipe[0], 1 << 16)
    logs.close()
    assert logs.lines_lost == 0
    assert b"line 999 " in got.splitlines()[-1]


PROGRAM = """
import asyncio, logging, sys, threading
from sockpqd.gateway.config import Log
from sockpqd.gateway.process.logs import Logs
import atexit
logs = Logs(Log(), "n1")
logs.start()
atexit.register(logs.close)
{}
"""


@pytest.mark.parametrize(
    ("code", "status", "level"),
    [
        ("raise ValueError('deep')", 1, "critical"),
        ("thread = threading.Thread(target=lambda: 1 / 0); thread.start(); thread.join()", 0, "error"),
        ("loop = asyncio.new_event_loop(); loop.call_exception_handler({'message': 'loop'}); loop.close()", 0, "error"),
        ("logging.critical('last'); sys.exit(70)", 70, "critical"),
    ],
)
def test_whatever_ends_a_process_is_its_last_line(code: str, status: int, level: str) -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM.format(code)], capture_output=True, text=True, check=False)
    assert ended.returncode == status, ended.stderr
    line = json.loads(ended.stderr.splitlines()[-1])
    assert (line["level"], line["node"]) == (level, "n1")
