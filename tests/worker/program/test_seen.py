"""Observing a worker: metrics, the live view, log lines, heartbeats."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
import urllib.error
import urllib.request
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from sockpq import BadArguments, Client
from sockpq.aio import Client as AsyncClient
from sockpq.model import WorkerBounds
from sockpq.worker import App
from sockpq.worker.failures import JsonLines, TextLines
from sockpq.worker.outcome import Outcome
from sockpq.worker.pool.pool import Pool
from sockpq.worker.pool.settings import PoolSettings
from sockpq.worker.program import metrics, progress
from sockpq.worker.program.heartbeat import Heartbeat
from sockpq.worker.program.log_handler import _wants_colours
from sockpq.worker.program.main import keep

from tests.client.real_server import RealServer
from tests.worker.pool.fake_children import FakeChildren


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        text: str = answer.read().decode()
    return text


class FakePool:
    """The part of a pool that a heartbeat steers."""

    busy = 1

    def __init__(self) -> None:
        self.size = 4
        self.told: list[Any] = []

    def set_bounds(self, most: int | None, least: int | None) -> None:
        if most == 0:
            raise BadArguments("no")
        self.told.append((most, least))

    def pause(self, paused: bool = True) -> None:
        self.told.append(f"pause {paused}")

    def stop(self) -> None:
        self.told.append("stop")


def test_wishes_are_followed_when_they_change() -> None:
    pool = FakePool()
    beat = Heartbeat(pool, "w")
    for most, least, state in (
        (None, None, "run"), (5, 2, "run"), (5, 2, "run"), (5, 2, "pause"), (5, 2, "run"), (0, 0, "run"),
        (7, None, "stop"),
    ):
        beat.follow(WorkerBounds(most, least, state))
    assert pool.told == [(5, 2), "pause True", "pause False", (7, None), "stop"]


def test_a_wish_is_heard_at_once_and_not_only_with_the_next_heartbeat() -> None:
    async def main() -> None:
        with RealServer() as server, Client(server.address) as operator:
            pool = FakePool()
            async with AsyncClient(server.address, session_ttl=15) as voice:
                beats = asyncio.create_task(Heartbeat(pool, "w").run(voice, period=3600))
                async with asyncio.timeout(60):
                    while not (operator.workers() and server.do(lambda cluster: "WORKER" in cluster.recorded)):
                        await asyncio.sleep(0.01)
                    operator.worker_set("w", state="pause")
                    while pool.told != ["pause True"]:
                        await asyncio.sleep(0.01)
                    operator.worker_set("w", most=7)
                    while pool.told[1:] != [(7, None)]:
                        await asyncio.sleep(0.01)
                beats.cancel()
                await asyncio.gather(beats, return_exceptions=True)

    asyncio.run(main())


def test_a_name_of_another_worker_is_told_once_and_taken_when_it_is_free(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        pool = FakePool()
        with RealServer() as server, Client(server.address) as operator:
            async with AsyncClient(server.address) as voice, AsyncClient(server.address) as dead:
                await dead.worker_beat("w", 1, 1)
                told = asyncio.create_task(Heartbeat(pool, "w").run(voice, period=0.02))
                async with asyncio.timeout(60):
                    while "a worker of the name w is there already" not in caplog.text:
                        await asyncio.sleep(0.01)
                    for _ in range(10):
                        await asyncio.sleep(0.02)
                        assert [(one.name, one.slots) for one in operator.workers()] == [("w", 1)]
                    await dead.close()                      # and its session
                    while [one.slots for one in operator.workers()] != [4]:
                        await asyncio.sleep(0.01)
                    operator.worker_set("w", state="pause")
                    while pool.told != ["pause True"]:
                        await asyncio.sleep(0.01)
                told.cancel()
                await asyncio.gather(told, return_exceptions=True)

    asyncio.run(main())
    assert caplog.text.count("is there already") == 1
    assert "--name of its own" in caplog.text


def test_heartbeats_go_on_after_a_fault_which_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        pool = FakePool()
        with RealServer() as server, Client(server.address) as operator:
            async with AsyncClient(server.address) as voice:
                pool.size = None                          # type: ignore[assignment]
                beats = asyncio.create_task(keep(lambda: Heartbeat(pool, "w").run(voice, period=0.05), pause_s=0.05))
                async with asyncio.timeout(60):
                    while "a fault of the worker itself" not in caplog.text:
                        await asyncio.sleep(0.01)
                    pool.size = 4
                    while not operator.workers():
                        await asyncio.sleep(0.01)
                beats.cancel()
                await asyncio.gather(beats, return_exceptions=True)

    asyncio.run(main())
    assert "TypeError" in caplog.text


def test_metrics() -> None:
    async def main() -> None:
        with RealServer() as server, Client(server.address) as client:
            app = App(server.address)
            app.handler("q")(lambda job: None)
            children = FakeChildren()
            pool = Pool(app, PoolSettings(most=2, least=2, prefetch=1), children=children.spawner())
            listening = metrics.MetricsServer(pool)
            await listening.start("127.0.0.1", 0)
            work = asyncio.create_task(pool.run())
            client.put_many("q", [b"1", b"2", b"3"])
            async with asyncio.timeout(60):
                while len(children.busy) < 2:
                    await asyncio.sleep(0.01)
                children.busy[0].end(Outcome("done", run_s=0.02))
                while len(children.seen) < 3:
                    await asyncio.sleep(0.01)
            url = "http://{}:{}".format(*listening.place)
            text = await asyncio.to_thread(lambda: read(f"{url}/metrics"))
            found = {
                (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
                for family in text_string_to_metric_families(text) for sample in family.samples
            }
            assert found["sockpq_worker_jobs_total", "done", "q"] == 1
            assert found["sockpq_worker_run_seconds_count", "q"] == 1
            assert found["sockpq_worker_run_seconds_bucket", "0.05", "q"] == 1
            assert found["sockpq_worker_run_seconds_bucket", "0.01", "q"] == 0
            assert found["sockpq_worker_children",] == found["sockpq_worker_children_busy",] == 2
            assert found["sockpq_worker_jobs_held",] == 2
            assert found["sockpq_worker_queue_oldest_seconds", "q"] >= 0
            with pytest.raises(urllib.error.HTTPError, match="404") as refused:
                await asyncio.to_thread(read, f"{url}/other")
            refused.value.close()
            screen = Console(width=120, record=True)
            screen.print(progress.picture(pool, 2.0))
            shown = screen.export_text()
            assert "RUN  2 of 2 children busy (2), 2 held  1 done  0.5 jobs/s" in shown
            assert "running for" in shown
            listening.close()
            pool.halt()
            await work

    asyncio.run(main())


def test_a_place_that_is_taken_or_none_is_told() -> None:
    with pytest.raises(BadArguments):
        metrics.check("nonsense")
    assert metrics.check("127.0.0.1:9100") == ("127.0.0.1", 9100)

    async def main() -> None:
        app = App()
        app.handler("q")(lambda job: None)
        pool = Pool(app, PoolSettings(), children=FakeChildren().spawner())
        one, two = metrics.MetricsServer(pool), metrics.MetricsServer(pool)
        await one.start("127.0.0.1", 0)
        with pytest.raises(BadArguments, match="--metrics 127"):
            await two.start(*one.place)
        one.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("missing", "check"), [("prometheus_client", lambda: metrics.check("h:1")), ("rich", progress.check)],
    ids=["metrics", "progress"],
)
def test_without_the_extra_it_is_told_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, missing: str, check: Any
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(BadArguments, match=r"of the extra sockpq\[worker\]: pip install "):
        check()


def test_log_lines() -> None:
    record = logging.LogRecord("sockpq.worker", logging.WARNING, "f", 1, "a job failed", (), None)
    record.fields = {"queue": "q", "traceback": "line\nline"}
    line = JsonLines().format(record)
    assert "\n" not in line
    told = json.loads(line)
    assert (told["message"], told["queue"], told["level"]) == ("a job failed", "q", "WARNING")
    text = TextLines().format(record)
    assert text.endswith("a job failed queue=q\nline\nline")
    record.fields = {"error_message": "\x1b[2J", "key": None}
    assert TextLines().format(record).endswith("a job failed error_message=\\x1b[2J")


def test_text_is_coloured_by_its_level_on_a_terminal_that_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def coloured(level: int) -> str:
        record = logging.LogRecord("sockpq.worker", level, __file__, 1, "a job", (), None)
        record.fields = {"traceback": "in f"}
        return TextLines(coloured=True).format(record)

    assert re.fullmatch("\x1b\\[31m.* ERROR a job\x1b\\[0m\n\x1b\\[2min f\x1b\\[0m", coloured(logging.ERROR))
    assert coloured(logging.DEBUG).startswith("\x1b[32m")
    assert not coloured(logging.INFO).startswith("\x1b")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert _wants_colours()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not _wants_colours()
