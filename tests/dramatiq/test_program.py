"""The programs of Dramatiq: processes that it forks, and greenlets."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from dramatiq import Message
from sockpq import Client, Number
from sockpq.testing import Server

from tests.waiting import PATIENCE_S, until

TASKS = """
import os, time
import dramatiq
from sockpq_dramatiq import Abort, SockpqBroker

broker = SockpqBroker("ADDRESS")
dramatiq.set_broker(broker)

@dramatiq.actor(max_retries=0)
def meet():
    broker.client.put("met", str(os.getpid()))
    while broker.client.queue_stat("met")["ready"] < 2:
        time.sleep(0.02)
    broker.client.put("left", b"")

@dramatiq.actor
def long():
    broker.client.put("begun", b"")
    try:
        while True:
            time.sleep(0.02)
    except Abort:
        broker.client.put("aborted", b"")
"""


@contextmanager
def program(name: str, folder: Path, server: Server, *options: str, prefetch: int) -> Iterator[None]:
    """Run a program of Dramatiq's with this actor; it must end well."""
    server.empty()
    (folder / "tasks.py").write_text(TASKS.replace("ADDRESS", server.address))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [Path(sys.executable).with_name(name), "tasks", *options], cwd=folder, stdout=log, stderr=log,
            env={**os.environ, "PYTHONPATH": str(folder), "dramatiq_queue_prefetch": str(prefetch)},
        )
    try:
        yield
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0, (folder / "log").read_text()
    finally:
        process.kill()
        process.wait()


def met(client: Client) -> list[str]:
    """Send two messages whose actors wait for each other; returns the processes that ran them."""
    for _ in range(2):
        client.put("default", Message("default", "meet", (), {}, {}).encode())
    until(lambda: client.total("left").jobs == 2)
    until(lambda: client.total("default").running == 0)
    return [job.text for job in client.peek_queue("met", count=2)]


def test_two_processes_share_the_work(own_server: Server, own_client: Client, tmp_path: Path) -> None:
    with program("dramatiq", tmp_path, own_server, "-p", "2", "-t", "1", prefetch=1):
        assert len(set(met(own_client))) == 2


@pytest.mark.skipif(importlib.util.find_spec("gevent") is None, reason="no gevent")
def test_greenlets_share_the_work_and_are_interrupted(own_server: Server, own_client: Client, tmp_path: Path) -> None:
    with program("dramatiq-gevent", tmp_path, own_server, "-p", "1", "-t", "2", prefetch=2):
        assert len(set(met(own_client))) == 1
        stored = own_client.put("default", Message("default", "long", (), {}, {}).encode(), number=True)
        until(lambda: own_client.total("begun").jobs)
        assert stored.number is not None
        own_client.delete(Number(stored.number))
        until(lambda: own_client.total("aborted").jobs)
