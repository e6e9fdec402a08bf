"""Celery's workers in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from celery import Celery

from tests.waiting import until

ROOT = Path(__file__).parents[2]


@contextmanager
def worker(app: Celery, log: Path, *arguments: str, session_ttl: float = 3) -> Iterator[subprocess.Popen[bytes]]:
    """A worker of celery_project.py on the broker of this app; ready when it says so.

    Its tasks go back `session_ttl` seconds after it was killed, or when a busy machine holds it up for so long.
    """
    with log.open("ab") as out:
        started = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "tests.kombu.celery_project", "worker", "--loglevel", "info", "-n",
             f"{log.stem}@h", *arguments],
            cwd=ROOT, env={**os.environ, "CELERY_URL": app.conf.broker_url, "SESSION_TTL": str(session_ttl),
                           "PYTHONUNBUFFERED": "1"},
            stdout=out, stderr=out, start_new_session=True,
        )
    try:
        until(lambda: b" ready." in log.read_bytes(), lambda: log.read_text())
        yield started
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()
