"""The projects of docs/DJANGO.md and the README, made as the pages say, on SQLite; with a worker and a relay."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import django
import pytest
from sockpq.testing import Server

from tests.django.conftest import ALL
from tests.waiting import PATIENCE_S, eventually

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/DJANGO.md"
README = ROOT / "integrations/django/README.md"
BIN = str(Path(sys.executable).parent)
COUNTS = """
SELECT (SELECT COUNT(*) FROM orders_order), (SELECT COUNT(DISTINCT order_id) FROM orders_receipt),
       (SELECT COUNT(*) FROM orders_receipt)
"""


ON_COMMIT = """
def on_commit(order):
    from django.db import transaction
"""


def indented(text: str) -> str:
    """The text as the body of a function."""
    return textwrap.indent(text, "    ")


def blocks(page: Path) -> list[str]:
    """The Python of a page, for the version of Django that is here and its servers."""
    found = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    if django.VERSION < (6, 0):
        found = [text.replace("django.tasks", "django_tasks") for text in found]
    return found


class Project:
    """A project as the page makes it."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder = folder
        self._environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
        self._server = server
        self.run([f"{BIN}/django-admin", "startproject", "shop", "."])
        self.run([sys.executable, "manage.py", "startapp", "orders"])
        self.write("orders/models.py", blocks(PAGE)[1])

    def settings(self, text: str) -> None:
        """Add to the settings, with this server, and without PostgreSQL."""
        text = text.replace("127.0.0.1:11361", self._server.address)
        text = re.sub(r"^DATABASES = .*\n", "", text, flags=re.MULTILINE)
        more = "" if django.VERSION >= (6, 0) else 'INSTALLED_APPS += ["django_tasks"]\n'
        path = self.folder / "shop/settings.py"
        path.write_text(f"{path.read_text()}\n{text}\n{more}")

    def write(self, path: str, text: str) -> None:
        """Write a file of the project."""
        (self.folder / path).write_text(text)

    def run(self, line: list[str], given: str = "") -> str:
        """Run a command to its end; returns what it prints."""
        done = subprocess.run(
            line, cwd=self.folder, env=self._environment, input=given, capture_output=True, text=True,
            timeout=PATIENCE_S, check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def manage(self, program: str, *commands: str) -> str:
        """Run commands of manage.py, and then a program as its shell does, in one process; returns what they print."""
        lines = [
            "import os, django", 'os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"', "django.setup()",
            "from django.core.management import call_command",
            *(f"call_command(*{command.split()!r}, verbosity=0)" for command in commands), program,
        ]
        return self.run([sys.executable, "-W", "error", "-"], "\n".join(lines))

    @contextmanager
    def worker(self) -> Iterator[None]:
        """Run `manage.py sockpq_worker --relay -c 1`, and end it by SIGTERM."""
        line = [sys.executable, "manage.py", "sockpq_worker", "--relay", "-c", "1"]
        with (self.folder / "log").open("wb") as log, subprocess.Popen(
            line, cwd=self.folder, env=self._environment, stdout=log, stderr=log,
        ) as program:
            try:
                yield
                program.send_signal(signal.SIGTERM)
                assert program.wait(PATIENCE_S) == 0, self.log()
            finally:
                program.kill()

    def counts(self) -> tuple[int, int, int]:
        """Return the numbers of orders, of orders with a receipt, and of receipts."""
        with closing(sqlite3.connect(self.folder / "db.sqlite3", timeout=PATIENCE_S)) as database:
            orders, with_receipt, receipts = database.execute(COUNTS).fetchone()
            return orders, with_receipt, receipts

    def log(self) -> str:
        """Return what the worker and the relay have printed."""
        return (self.folder / "log").read_text("utf-8", "replace")


@pytest.fixture
def project(server: Server, tmp_path: Path) -> Project:
    return Project(tmp_path, server)


def test_a_stranger_has_a_receipt_for_each_committed_order_and_none_for_others(project: Project) -> None:
    settings, _, tasks, orders, result, on_commit, once, test_settings, test = blocks(PAGE)
    project.settings(settings)
    project.write("orders/tasks.py", f"{tasks}\n{once}")
    with project.worker():                  # which waits for the tables
        until_successful = "import time\nwhile not result.is_finished:\n    time.sleep(0.1)\n    result.refresh()"
        printed = project.manage("\n".join([orders, until_successful, result]), "makemigrations orders", "migrate")
        assert printed.startswith("SUCCESSFUL 67 "), printed
        assert eventually(lambda: project.counts() == (67, 67, 67)), (project.counts(), project.log())
    relayed = [json.loads(line) for line in project.log().splitlines() if "relaying with the ledger" in line]
    assert [line["logger"] for line in relayed] == ["sockpq.outbox"]        # in the format of the worker's lines
    project.write("shop/test_settings.py", test_settings)
    project.write("orders/tests.py", f"{test}\n        on_commit(order)\n\n{ON_COMMIT}{indented(on_commit)}")
    project.run([sys.executable, "manage.py", "test", "--settings", "shop.test_settings"])


@pytest.mark.skipif(not ALL, reason="the README's project: in `make test-frameworks`")
def test_the_readme(project: Project) -> None:
    settings, tasks, orders = blocks(README)
    project.settings(f'INSTALLED_APPS += ["orders"]\n{settings}')
    project.write("orders/tasks.py", tasks)
    project.manage(orders, "makemigrations orders", "migrate")
    with project.worker():
        assert eventually(lambda: "sending 1" in project.log()), project.log()
    assert project.counts() == (1, 1, 1)
