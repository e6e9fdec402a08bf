"""Tasks while a database cannot be reached."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connections
from sockpq_django.api import TaskResultStatus
from sockpq_django.backend import SockpqBackend
from sockpq_django.testing import run_tasks
from sockpq_django.work import processing

from tests.django.conftest import Configure
from tests.django.shop import tasks

pytestmark = pytest.mark.usefixtures("databases")


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A database, "away", that cannot be opened until this folder is there."""
    folder = tmp_path / "folder"
    given = {"ENGINE": "django.db.backends.sqlite3", "NAME": folder / "db.sqlite3"}
    monkeypatch.setitem(connections.settings, "away", {**connections.settings["default"], **given})
    yield folder
    connections["away"].close()
    del connections["away"]


def test_a_task_waits_for_its_database(backend: SockpqBackend, away: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def wait(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            away.mkdir()

    monkeypatch.setattr(processing, "sleep", wait)
    monkeypatch.setattr(type(tasks.note), "call", _ask_what_is_away)
    result = tasks.note.enqueue("x")
    assert backend.run() == 4
    result.refresh()
    assert (result.status, result.attempts, result.errors) == (TaskResultStatus.SUCCESSFUL, 1, [])
    assert pauses == [processing.OUTAGE_PAUSE_S] * 3


def test_an_error_of_a_database_that_answers_counts(memory: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    memory()
    result = tasks.note.enqueue("x")
    monkeypatch.setattr(type(tasks.note), "call", _lose_the_connection)
    assert run_tasks() == 1
    result.refresh()
    assert (result.status, result.errors[0].exception_class) == (TaskResultStatus.FAILED, OperationalError)


def _ask_what_is_away(task: Any, *args: Any, **kwargs: Any) -> None:
    with connections["away"].cursor() as cursor:
        cursor.execute("SELECT 1")


def _lose_the_connection(task: Any, *args: Any, **kwargs: Any) -> None:
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT 1")
    raise OperationalError("server closed the connection unexpectedly")
