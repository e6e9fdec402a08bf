"""The programs of docs/OUTBOX.md and of the distribution's README do what they say; the page has every option."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import click
from sockpq import Client
from sockpq.testing import Server
from sockpq_outbox import Relay
from sockpq_outbox.metrics import _Page
from sockpq_outbox.program.main import main
from sockpq_outbox.relay.statistics import Statistics

from tests.outbox.crash.shops import Direct
from tests.waiting import until

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/OUTBOX.md").read_text("utf-8")
README = (ROOT / "integrations/outbox/README.md").read_text("utf-8")
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)


def run(program: str, folder: Path, server: Server) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env={**os.environ, "SOCKPQ_SERVERS": server.address}, timeout=200,
        capture_output=True, text=True, check=False,
    )


def test_the_programs_of_the_page(own_server: Server, sqlite_file: Path) -> None:
    own_server.empty()
    put, work = PYTHON.findall(PAGE)
    assert f"/{sqlite_file.name}" in put
    done = run(put, sqlite_file.parent, own_server)
    assert done.returncode == 0, done.stderr
    with Relay(f"sqlite:///{sqlite_file}", own_server.address), Client(own_server.address) as client:
        until(lambda: client.total("mail").jobs == 1)
    done = run(work.replace("wait=5", "wait=0.1"), sqlite_file.parent, own_server)
    assert done.returncode == 0, done.stderr
    connection = sqlite3.connect(sqlite_file)
    assert connection.execute("SELECT customer FROM sent").fetchall() == [("ann",)]
    connection.close()


def test_the_program_of_the_readme(own_server: Server, postgres_url: str) -> None:
    own_server.empty()
    with Direct(postgres_url) as direct:
        direct.execute("CREATE TABLE orders (customer TEXT)")
        direct.execute("CREATE TABLE sent (customer TEXT)")
    (program,) = PYTHON.findall(README)
    program = program.replace("postgresql:///shop", postgres_url).replace("expire=60", "expire=60, wait=3")
    with Relay(postgres_url, own_server.address):
        done = run(program, ROOT, own_server)
    assert done.returncode == 0, done.stderr
    with Direct(postgres_url) as direct:
        assert direct.execute("SELECT customer FROM sent") == [("ann",)]


def test_the_page_has_every_option_and_metric() -> None:
    context = click.Context(main)
    for name in main.list_commands(context):
        assert f"pqoutbox {name}" in PAGE, name
    relay = main.get_command(context, "relay")
    assert relay is not None
    for parameter in relay.params:
        for option in parameter.opts:
            assert option == "--verbose" or not option.startswith("--") or f"`{option}`" in PAGE, option
    for family in _Page(Statistics()).collect():
        name = family.name.removeprefix("sockpq_outbox")
        name += "_total" if family.type == "counter" else ""
        assert f"`sockpq_outbox{name}`" in PAGE or f"`{name}`" in PAGE, name
