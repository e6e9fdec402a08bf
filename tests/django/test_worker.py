"""The worker: pqworker with this project, in processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sockpq_django
from django.conf import settings
from django.core.management import CommandError, call_command
from sockpq import Client
from sockpq.testing import Server
from sockpq_django.api import TaskResultStatus
from sockpq_django.backend import SockpqBackend
from sockpq_django.management.commands.sockpq_worker import (
    APP,
    FORWARDED,
    environment_of,
    run_both,
    worker_line,
)

from tests.django.conftest import Configure
from tests.django.shop import tasks
from tests.django.shop.models import Effect
from tests.waiting import until

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("tables")


@pytest.fixture
def worker(server: Server, backend: SockpqBackend, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`manage.py sockpq_worker -c 1`, of a project that has these databases."""
    environment = {
        **os.environ, "DJANGO_SETTINGS_MODULE": "tests.django.shop.settings", "SHOP_SERVERS": server.address,
        "SHOP_FOLDER": str(Path(settings.DATABASES["default"]["NAME"]).parent),
    }
    line = [sys.executable, "-m", "django", "sockpq_worker", "-c", "1", "--", "--pool", "processes"]
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(line, cwd=ROOT, env=environment, stderr=log) as program:
        yield program
        program.kill()


def ended(result: Any) -> bool:
    result.refresh()
    return bool(result.is_finished)


def test_a_worker_runs_tasks_in_a_process_of_its_own_and_ends_when_told(
    worker: subprocess.Popen[bytes], client: Client
) -> None:
    good, effect = tasks.add.enqueue(1, 2), tasks.effect.using(queue_name="mail").enqueue("a")
    bad, stopped = tasks.fail.enqueue(), tasks.interrupted.enqueue()
    long = tasks.sleep.enqueue(3600)
    until(lambda: all(map(ended, (good, effect, bad, stopped))))
    assert (good.return_value, effect.return_value, Effect.objects.get().name) == (3, "a", "a")
    assert bad.status == TaskResultStatus.FAILED
    assert (stopped.status, stopped.attempts) == (TaskResultStatus.SUCCESSFUL, 1)
    assert good.worker_ids[0].rpartition("-")[2] not in (str(worker.pid), str(os.getpid()))
    until(lambda: tasks.sleep.get_result(long.id).status == TaskResultStatus.RUNNING)
    assert sockpq_django.cancel(long.id)            # the child that runs it is interrupted
    until(lambda: client.running() == [])
    after = tasks.add.enqueue(2, 3)
    until(lambda: ended(after))
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(120) == 0


def test_the_line_of_pqworker(cluster: Configure) -> None:
    backend = cluster(PREFIX="shop.")
    line = worker_line(backend, "mail, queue-1", "3", ["--metrics", ":9090"])
    assert Path(line[0]).name == "pqworker"
    assert line[1:] == [
        APP, "--by", "priority", "--queues", "shop.mail,shop.queue-1", "--concurrency", "3", "--metrics", ":9090"]
    with pytest.raises(CommandError, match="has no queue nowhere"):
        worker_line(backend, "mail,nowhere", None, [])
    assert environment_of("default")["SOCKPQ_DJANGO_BACKEND"] == "default"


def test_what_cannot_be_worked_for_is_refused(cluster: Configure) -> None:
    cluster()
    with pytest.raises(CommandError, match="there are: default"):
        call_command("sockpq_worker", backend="other")
    with pytest.raises(CommandError, match="no OUTBOX"):
        call_command("sockpq_worker", relay=True)


def test_of_two_programs_the_end_of_one_is_the_end_of_both() -> None:
    before = {number: signal.getsignal(number) for number in FORWARDED}
    waits = [sys.executable, "-c", "import time; time.sleep(3600)"]
    try:
        assert run_both([sys.executable, "-c", "raise SystemExit(7)"], waits, dict(os.environ)) == 7
        assert run_both(waits, [sys.executable, "-c", "raise SystemExit(8)"], dict(os.environ)) == 8
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
