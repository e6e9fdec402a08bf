"""The fixtures of Dramatiq's own tests, made by SockpqBroker: stands in for their conftest.py."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dramatiq
import pytest
from dramatiq import Middleware, QueueNotFound, Worker
from dramatiq.rate_limits import backends as limits
from dramatiq.results import backends as results
from sockpq import Client
from sockpq_dramatiq import SockpqBroker, SockpqResults

logging.basicConfig(level=logging.INFO)
SERVERS = os.environ["SERVERS"]
PATIENCE = 20.0
# They expect that threads meet within 10 ms, or that five messages take at most 0.5 s.
TIMED = (
    "test_barriers_can_block", "test_groups_execute_jobs_in_parallel", "test_groups_execute_inner_groups",
)
# How long to sleep instead, by how long tests do: 0.1 s to let the worker "set the result" (less than actors of these
# tests differ by), and 1 ms until a message has reached the worker, which from a queue in memory it has at once.
SETTLED_S = {0.1: 0.6, 0.001: 0.3}
REJECTED_S = 0.05       # a rejection is announced before it is executed


class Recorder(Middleware):
    """Remembers what was rejected, as StubBroker does."""

    def before_nack(self, broker: Any, message: Any) -> None:
        """Remember a rejected message with its error."""
        broker.dead_letters_by_queue[message.queue_name].append(
            (message, message._exception or Exception("Message failed with unknown error")))


class RecordingBroker(SockpqBroker):
    """Has what the tests ask of StubBroker: `dead_letters`, and a join() that raises errors of actors."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.dead_letters_by_queue: dict[str, list[tuple[Any, BaseException]]] = defaultdict(list)
        self.add_middleware(Recorder())

    @property
    def dead_letters(self) -> list[Any]:
        """All messages that were rejected."""
        return [message for found in self.dead_letters_by_queue.values() for message, _ in found]

    def join(self, queue_name: str, *, timeout: int | None = None, fail_fast: bool = True) -> None:
        """Wait for the queue, then raise the error of the first rejected message."""
        if queue_name not in self.get_declared_queues():
            raise QueueNotFound(queue_name)
        super().join(queue_name, timeout=timeout)
        end = time.monotonic() + REJECTED_S
        while fail_fast and time.monotonic() < end and not self.dead_letters_by_queue[queue_name]:
            time.sleep(0.01)
        if fail_fast:
            for _, error in self.dead_letters_by_queue[queue_name]:
                raise error from None


class PatientTime:
    """The module time for tests that take a busy machine for a fault: its clock is slow, and it settles for longer."""

    def __init__(self, patience: float) -> None:
        self._patience = patience

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def monotonic(self) -> float:
        """Return the time of a clock that goes `patience` times as slowly."""
        return time.monotonic() / self._patience

    def sleep(self, seconds: float) -> None:
        """Sleep, and for longer where a test gives the worker time to do something."""
        waits = threading.current_thread() is threading.main_thread()
        time.sleep(SETTLED_S.get(seconds, seconds) if waits else seconds)


@pytest.fixture(autouse=True)
def _patient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if hasattr(request.module, "time"):
        timed = request.node.name.split("[")[0] in TIMED
        monkeypatch.setattr(request.module, "time", PatientTime(PATIENCE if timed else 1.0))


@pytest.fixture(scope="session")
def empty() -> bytes:
    """The state of a cluster without jobs."""
    with Client(SERVERS) as client:
        return client.snapshot()


@pytest.fixture
def stub_broker(empty: bytes) -> Iterator[RecordingBroker]:
    with Client(SERVERS, sessions=False) as client:
        client.clone(empty)
    broker = RecordingBroker(SERVERS)
    broker.emit_after("process_boot")
    dramatiq.set_broker(broker)
    yield broker
    broker.flush_all()
    broker.close()


@pytest.fixture
def stub_worker(stub_broker: RecordingBroker) -> Iterator[Worker]:
    worker = Worker(stub_broker, worker_timeout=100, worker_threads=32)
    worker.start()
    yield worker
    worker.stop()


@pytest.fixture
def result_backend() -> Iterator[SockpqResults]:
    with Client(SERVERS) as client:
        yield SockpqResults(client)


@pytest.fixture
def redis_broker(stub_broker: RecordingBroker) -> RecordingBroker:
    return stub_broker


@pytest.fixture
def rabbitmq_broker(stub_broker: RecordingBroker) -> RecordingBroker:
    return stub_broker


@pytest.fixture
def redis_worker(stub_worker: Worker) -> Worker:
    return stub_worker


@pytest.fixture
def rabbitmq_worker(stub_worker: Worker) -> Worker:
    return stub_worker


@pytest.fixture
def redis_result_backend(result_backend: SockpqResults) -> SockpqResults:
    return result_backend


@pytest.fixture
def stub_result_backend() -> Any:
    return results.StubBackend()


@pytest.fixture
def result_backends(result_backend: SockpqResults) -> dict[str, Any]:
    return {"stub": result_backend, "redis": result_backend}


@pytest.fixture
def rate_limiter_backend() -> Any:
    return limits.StubBackend()


@pytest.fixture
def rate_limiter_backends(rate_limiter_backend: Any) -> dict[str, Any]:
    return {"stub": rate_limiter_backend}


@pytest.fixture
def info_logging() -> Iterator[None]:
    logger = logging.getLogger()
    logger.setLevel(logging.INFO)
    yield
    logger.setLevel(logging.DEBUG)


@pytest.fixture
def start_cli() -> Iterator[Any]:
    started: list[subprocess.Popen[bytes]] = []

    def run(broker_module: str, *, extra_args: list[str] | None = None, **options: Any) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dramatiq", broker_module, *(extra_args or [])]
        started.append(subprocess.Popen(command, **{"bufsize": 0, **options}))
        return started[-1]

    yield run
    for one in started:
        one.terminate()
        one.wait()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out tests that say nothing about another broker, each with its reason."""
    lines = [line.partition("  ") for line in Path(os.environ["SKIPS"]).read_text().splitlines()]
    skips = {name: why.strip() for name, _, why in lines if name and not name.startswith("#")}
    for item in items:
        plain = item.name.split("[")[0]
        for name, why in skips.items():
            if plain == name or item.nodeid.startswith(f"tests/{name}"):
                item.add_marker(pytest.mark.skip(reason=why))
