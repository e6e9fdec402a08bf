"""The Celery project of test_celery.py: its URL, and its SESSION_TTL in seconds, are in the environment.

With DIES_BEFORE_BODY=file the worker that calls the body of a chord dies before, unless there is that file.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from celery import Celery
from sockpq_kombu.results.chords import Chords

URL = os.environ.get("CELERY_URL", "sockpq://127.0.0.1:1")

app = Celery("tests.kombu.celery_project", broker=URL, backend=URL.split(";")[0])
app.conf.task_acks_late = True
app.conf.broker_transport_options = {"session_ttl": float(os.environ.get("SESSION_TTL", 3))}


@app.task
def add(x: int, y: int) -> int:
    return x + y


@app.task
def total(numbers: list[int]) -> int:
    return sum(numbers)


@app.task
def write_total(numbers: list[int], file: str) -> int:
    """Leave a line outside for each call."""
    with Path(file).open("a") as out:
        out.write(f"{sum(numbers)}\n")
    return sum(numbers)


@app.task
def fail() -> None:
    raise ValueError("no")


@app.task(bind=True)
def note(self: object, file: str, number: int, seconds: float = 0.0) -> None:
    """Leave a line outside: the number, and whether this was delivered before."""
    time.sleep(seconds)
    again = self.request.delivery_info.get("redelivered")       # type: ignore[attr-defined]
    with Path(file).open("a") as out:
        out.write(f"{number} {int(bool(again))}\n")


@app.task
def hold(file: str) -> None:
    """Wait until there is such a file."""
    while not Path(file).exists():
        time.sleep(0.02)


@app.task(bind=True, max_retries=3)
def third_time(self: object) -> int:
    if self.request.retries < 2:        # type: ignore[attr-defined]
        raise self.retry(countdown=0.1)     # type: ignore[attr-defined]
    return int(self.request.retries)    # type: ignore[attr-defined]


if died := os.environ.get("DIES_BEFORE_BODY"):
    called = Chords.called

    def die_first(self: Chords, chord: str) -> Callable[[Any], object]:
        """Kill the whole worker; the next one finds the file."""
        if not Path(died).exists():
            Path(died).touch()
            os.killpg(0, signal.SIGKILL)
        return called(self, chord)

    Chords.called = die_first       # type: ignore[method-assign]
