"""The Celery project of test_celery.py: its URL is in the environment."""

from __future__ import annotations

import os
import time
from pathlib import Path

from celery import Celery

URL = os.environ.get("CELERY_URL", "sockpq://127.0.0.1:1")

app = Celery("tests.kombu.celery_project", broker=URL, backend=URL.split(";")[0])
app.conf.task_acks_late = True
app.conf.broker_transport_options = {"session_ttl": 3}


@app.task
def add(x: int, y: int) -> int:
    return x + y


@app.task
def total(numbers: list[int]) -> int:
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
