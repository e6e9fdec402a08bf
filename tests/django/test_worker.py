"""The worker: pqworker with this project, in processes."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sockpq_django
from django.conf import settings
from django.core.management import CommandError, call_command
from sockpq import Client
from sockpq.testing import Server
from sockpq.worker.program.log_handler import log_format_of
from sockpq_django.api import TaskResultStatus
from sockpq_django.backend import SockpqBackend
from sockpq_django.management.commands.sockpq_worker import (
    APP,
    FORWARDED,
    environment_of,
    run_both,
    worker_line,
)

from tests.django.conftest import ALL, Configure
from tests.django.shop import tasks
from tests.django.shop.models import Effect
from tests.waiting import PATIENCE_S, until

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("tables")


class Worker:
    """`manage.py sockpq_worker -c 1` with this pool, of a project that has these databases."""

    def __init__(self, server: Server, folder: Path, pool: str) -> None:
        environment = {
            **os.environ, "DJANGO_SETTINGS_MODULE": "tests.django.shop.settings", "SHOP_SERVERS": server.address,
            "SHOP_FOLDER": str(Path(settings.DATABASES["default"]["NAME"]).parent),
        }
        line = [sys.executable, "-m", "django", "sockpq_worker", "-c", "1", "--", "--pool", pool]
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self.program = subprocess.Popen(line, cwd=ROOT, env=environment, stdout=log, stderr=log)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        self.program.kill()
        self.program.wait()

    def ends(self) -> None:
        """Send SIGTERM, and check that the program ends with 0."""
        self.program.send_signal(signal.SIGTERM)
        assert self.program.wait(PATIENCE_S) == 0, self._log.read_text("utf-8", "replace")


def ended(result: Any) -> bool:
    result.refresh()
    return bool(result.is_finished)


@pytest.mark.parametrize("pool", ["processes", *(
    pytest.param(pool, marks=pytest.mark.skipif(not ALL, reason="other pools: in `make test-frameworks`"))
    for pool in ("threads", "asyncio")
)])
def test_tasks_of_all_kinds(backend: SockpqBackend, server: Server, tmp_path: Path, pool: str) -> None:
    good, async_, effect = tasks.add.enqueue(1, 2), tasks.aadd.enqueue(1, 2), tasks.effect.enqueue("a")
    bad, stopped = tasks.fail.using(queue_name="mail").enqueue(), tasks.interrupted.enqueue()
    with Worker(server, tmp_path, pool) as worker:
        until(lambda: all(map(ended, (good, async_, effect, bad, stopped))))
        assert (good.return_value, async_.return_value, effect.return_value) == (3, 3, "a")
        assert Effect.objects.get().name == "a"
        assert (bad.status, bad.errors[0].exception_class) == (TaskResultStatus.FAILED, tasks.Strange)
        assert (stopped.status, stopped.attempts) == (TaskResultStatus.SUCCESSFUL, 1)
        assert (good.worker_ids[0].rpartition("-")[2] == str(worker.program.pid)) == (pool != "processes")
        worker.ends()


def test_a_child_that_dies_or_whose_task_is_cancelled(
    backend: SockpqBackend, server: Server, client: Client, tmp_path: Path
) -> None:
    with Worker(server, tmp_path, "processes") as worker:
        deadly = tasks.die.enqueue()
        until(lambda: ended(deadly))
        assert (deadly.status, deadly.attempts, deadly.worker_ids) == (TaskResultStatus.FAILED, 5, ["unknown"] * 5)
        assert deadly.errors[0].exception_class is sockpq_django.WorkerLost
        assert "signal 9" in deadly.errors[0].traceback
        long = tasks.sleep.enqueue(3600)
        until(lambda: tasks.sleep.get_result(long.id).status == TaskResultStatus.RUNNING)
        assert sockpq_django.cancel(long.id)
        until(lambda: client.running() == [])
        after = tasks.add.enqueue(2, 3)             # by the child that takes the place of the interrupted one
        until(lambda: ended(after))
        worker.ends()


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


# Runs two programs, as `manage.py sockpq_worker --relay` does, that write their numbers and wait.
TWO_PROGRAMS = """
import os, sys
from sockpq_django.management.commands.sockpq_worker import run_both
program = [sys.executable, "-c", "import os, time; os.write(1, b'%d\\\\n' % os.getpid()); time.sleep(3600)"]
run_both(program, program, dict(os.environ))
"""


def test_both_programs_end_when_their_parent_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", TWO_PROGRAMS], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        try:
            pids = [int(parent.stdout.readline()) for _ in range(2)]
        finally:
            parent.kill()
        ended, _, _ = select.select([parent.stdout], [], [], PATIENCE_S)     # when neither has it open any more
        if not ended:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
        assert ended


@pytest.mark.parametrize(("options", "form"), [
    ([], "auto"), (["--log-format", "text"], "text"), (["--log-format=json"], "json"), (["--nonsense"], "auto"),
])
def test_the_relay_beside_a_worker_logs_in_its_format(options: list[str], form: str, backend: SockpqBackend) -> None:
    assert log_format_of(worker_line(backend, None, None, options)[1:]) == form


def test_the_format_in_the_file_of_the_worker_is_that_of_the_relay(backend: SockpqBackend, tmp_path: Path) -> None:
    file = tmp_path / "worker.toml"
    file.write_text('log-format = "text"\n')
    assert log_format_of(worker_line(backend, None, None, ["--config", str(file)])[1:]) == "text"


# Django's own configuration of logging with DEBUG, in a program whose root logger writes to standard error.
DEBUG_LINES = """
import logging
logging.basicConfig(level=logging.INFO, format="root %(message)s")
from django.conf import settings
from django.utils.log import configure_logging
settings.configure(DEBUG=True)
configure_logging("logging.config.dictConfig", {})
from sockpq_django.operations.logs import log_once
logging.getLogger("django.tasks").info("before")
log_once()
logging.getLogger("django.tasks").info("after")
"""


def test_with_debug_a_line_of_django_is_printed_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DEBUG_LINES], capture_output=True, text=True, timeout=PATIENCE_S, check=True,
    )
    assert sorted(done.stderr.split("\n")) == ["", "before", "root after", "root before"]


def test_without_another_log_the_lines_of_django_stay() -> None:
    lines = "\n".join(line for line in DEBUG_LINES.splitlines() if "basicConfig" not in line)
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert done.stderr.split() == ["before", "after"]
