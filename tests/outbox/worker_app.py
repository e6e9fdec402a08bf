"""An app of pqworker's whose tasks work once, for test_worker.py."""

from __future__ import annotations

import os
import sqlite3

from sockpq import Job
from sockpq.worker import App, current_job
from sockpq_outbox import inbox

app = App()


def shop() -> sqlite3.Connection:
    """Open the database of the test."""
    return sqlite3.connect(os.environ["SHOP"], timeout=60)


@app.task("tasks")
def effect(text: str) -> None:
    """Make an effect once; the worker says DONE."""
    connection = shop()
    with inbox.once(connection, current_job()) as first:
        if first:
            connection.execute("INSERT INTO effects (text) VALUES (?)", (text,))
    connection.close()


@app.handler("raw")
def raw(job: Job) -> None:
    """Make an effect whose mark goes with the DONE, which is sent here."""
    connection = shop()
    with inbox.once(connection, job, exact=True) as first:
        if first:
            connection.execute("INSERT INTO effects (text) VALUES (?)", (job.text,))
    connection.close()
