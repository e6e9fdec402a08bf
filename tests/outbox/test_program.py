"""The program `pqoutbox`: its commands, and the relay as a process."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sockpq import Client
from sockpq.testing import Server
from sockpq_outbox import outbox
from sockpq_outbox.metrics import serve
from sockpq_outbox.program.main import main
from sockpq_outbox.relay.statistics import Statistics
from sockpq_outbox.rows import Counts

from tests.waiting import until


@pytest.fixture
def client(own_server: Server) -> Iterator[Client]:
    own_server.empty()
    with Client(own_server.address) as client:
        yield client


def pqoutbox(*words: str, code: int = 0, **more: str) -> Result:
    result = CliRunner(env=more).invoke(main, [*words])
    assert result.exit_code == code, result.output
    return result


def put(path: Path, *texts: str, **options: object) -> None:
    connection = sqlite3.connect(path)
    for text in texts:
        outbox.put(connection, "mail", text, **options)     # type: ignore[call-overload]
    connection.commit()
    connection.close()


def test_tables_are_made_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    for _ in range(2):
        assert "are there" in pqoutbox("create-tables", url).output
    put(tmp_path / "new.db", "1")
    printed = pqoutbox("create-tables", "--print", url).output
    connection = sqlite3.connect(":memory:")
    connection.executescript(printed)
    connection.close()


def test_the_relay_runs_until_it_is_stopped(client: Client, own_server: Server, sqlite_file: Path) -> None:
    put(sqlite_file, "1")
    words = ("relay", f"sqlite:///{sqlite_file}", "--servers", own_server.address, "--metrics", "127.0.0.1:0")
    with subprocess.Popen(
        [sys.executable, "-m", "sockpq_outbox", *words], stderr=subprocess.PIPE, text=True,
    ) as program:
        try:
            until(lambda: client.total("mail").jobs == 1)
            program.send_signal(signal.SIGTERM)
            _, log = program.communicate(timeout=120)
        finally:
            program.kill()
    assert program.returncode == 0
    assert "relaying with the ledger sockpq.outbox.default" in log


def test_status_and_retries(sqlite_file: Path) -> None:
    put(sqlite_file, "1", "2", "3")
    connection = sqlite3.connect(sqlite_file)
    connection.execute("UPDATE sockpq_outbox SET batch = 'failed', error = 'JobExists: 409', failed = 5 WHERE id = 2")
    connection.commit()
    connection.close()
    url = f"sqlite:///{sqlite_file}"
    text = pqoutbox("status", url).output
    assert re.match(r"2 rows wait, the oldest for [\d.]+ s; 0 in a batch; 1 refused\n  mail: 2 waiting\n", text)
    assert text.endswith(": JobExists: 409\n")
    found = json.loads(pqoutbox("status", "--json", SOCKPQ_OUTBOX_DATABASE=url).output)
    assert (found["waiting"], found["failed"], found["queues"]) == (2, 1, {"mail": 2})
    assert found["failures"] == [{"id": 2, "queue": "mail", "failed": 5.0, "error": "JobExists: 409"}]
    assert pqoutbox("retry-failed", url, "--queue", "other").output == "0 rows wait again\n"
    assert pqoutbox("retry-failed", url).output == "1 row waits again\n"


def test_rows_of_the_past_are_forgotten(sqlite_file: Path) -> None:
    put(sqlite_file, "1", "2")
    url = f"sqlite:///{sqlite_file}"
    assert pqoutbox("forget-before", url, "5", "--yes").output == "0 rows removed\n"
    result = CliRunner().invoke(main, ["forget-before", url, "2126-01-01T00:00:00+00:00"], input="n\n")
    assert result.exit_code == 1
    assert pqoutbox("forget-before", url, "2126-01-01T00:00:00+00:00", "--yes").output == "2 rows removed\n"
    told = pqoutbox("forget-before", url, "soon", "--yes", code=2).output
    assert "'soon' is neither 2026-11-30T12:00:00+00:00 nor Unix time" in told


def test_mistakes_are_explained(own_server: Server, tmp_path: Path) -> None:
    assert "a database at oracle://" in pqoutbox("status", "oracle://x", code=1).output
    file = tmp_path / "empty.db"
    for command in ("status", "doctor", "retry-failed"):
        assert f"Error: there is no file {file}: " in pqoutbox(command, f"sqlite:///{file}", code=1).output
    relaying = pqoutbox("relay", f"sqlite:///{file}", "--servers", own_server.address, code=1)
    assert f"Error: there is no file {file}: `pqoutbox create-tables` would make it" in relaying.output
    assert not file.exists()            # SQLite would have made one of a mistyped name
    file.touch()
    for command in ("status", "doctor", "retry-failed"):
        told = pqoutbox(command, f"sqlite:///{file}", code=1).output
        assert "no such table" in told
        assert "`pqoutbox create-tables` makes it" in told
    assert "needs HOST:PORT" in pqoutbox("relay", "sqlite:///x.db", "--metrics", "90", code=2).output


def test_a_name_without_a_url_is_explained_where_there_is_no_django(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "django", None)
    monkeypatch.setitem(sys.modules, "django.db", None)
    told = pqoutbox("status", "shop.db", code=1).output
    assert "'shop.db' is no URL, such as postgresql://" in told
    assert "Traceback" not in told


def test_a_relay_without_tables_names_the_command_that_makes_them(own_server: Server, tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    file.touch()
    url = f"sqlite:///{file}"
    with subprocess.Popen(
        [sys.executable, "-m", "sockpq_outbox", "relay", url, "--servers", own_server.address, "--name", "new"],
        stderr=subprocess.PIPE, text=True,
    ) as program:
        try:
            assert program.stderr
            log = iter(program.stderr)
            assert next(line for line in log if "begins again" in line).endswith("`pqoutbox create-tables` makes it\n")
            pqoutbox("create-tables", url)
            assert any("relaying with the ledger" in line for line in log)
        finally:
            program.kill()


def test_the_doctor(client: Client, own_server: Server, sqlite_file: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{sqlite_file}"
    servers = ("--servers", own_server.address)
    missing = pqoutbox("doctor", f"sqlite:///{tmp_path / 'empty.db'}", *servers, code=1).output
    assert "pqoutbox create-tables" in missing
    assert "!! there is no ledger sockpq.outbox.default" in pqoutbox("doctor", url, *servers, code=1).output
    client.put("sockpq.outbox.default", "", key="ledger")
    assert "!! no relay holds the ledger" in pqoutbox("doctor", url, *servers, code=1).output
    held = client.get("sockpq.outbox.default", expire=60)
    assert held is not None
    assert pqoutbox("doctor", url, *servers).output == (
        "ok a relay holds the ledger sockpq.outbox.default\nok 0 rows wait\n")
    put(sqlite_file, "1", "2")
    connection = sqlite3.connect(sqlite_file)
    connection.execute("UPDATE sockpq_outbox SET created = created - 3600")
    connection.execute("UPDATE sockpq_outbox SET batch = 'failed' WHERE id = 2")
    connection.execute("INSERT INTO sockpq_outbox_relay VALUES ('sockpq.outbox.default', 'h', 'mine')")
    connection.commit()
    connection.close()
    client.queue_create("mail")
    client.queue_pause("mail", "in")
    text = pqoutbox("doctor", url, *servers, code=1).output
    assert "!! 1 row waits, the oldest for 36" in text
    assert "!! 1 row waits for mail: it is paused" in text
    assert "!! the cluster has refused 1 row for good" in text
    client.queue_delete("mail")
    assert "!! 1 row waits for mail: " in pqoutbox("doctor", url, *servers, code=1).output
    held.change(data="of_another h.1")
    assert "of the outbox of another database" in pqoutbox("doctor", url, *servers, code=1).output
    assert "the cluster does not answer" in pqoutbox("doctor", url, "--servers", "127.0.0.1:1", code=1).output


def test_metrics() -> None:
    statistics = Statistics(holds=True, counts=Counts(3, 2, 1, 0.0), blocked=("mail",))
    statistics.count(put=7, batches=2)
    server, _ = serve(statistics, "127.0.0.1", 0)
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics", timeout=60) as answer:
        page = answer.read().decode()
    server.shutdown()
    server.server_close()
    for line in ("waiting_rows 3.0", "claimed_rows 2.0", "failed_rows 1.0", "holds 1.0", "blocked_queues 1.0",
                 "put_jobs_total 7.0", "batches_total 2.0"):
        assert f"\nsockpq_outbox_{line}\n" in page
    assert float(re.findall(r"\nsockpq_outbox_lag_seconds (\S+)\n", page)[0]) > 1e9
