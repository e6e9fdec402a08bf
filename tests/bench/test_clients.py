"""The benchmark of client libraries runs with ours, and its table shows medians and ratios."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sockpq.testing import Server

from bench.clients.__main__ import main
from bench.clients.drivers import DRIVERS
from bench.clients.servers import DURABLE, PeerServers, ServersError
from bench.clients.table import CASES
from bench.clients.table import main as table


def test_tasks_are_put_and_worked_off(tmp_path: Path) -> None:
    record = tmp_path / "record"
    with Server() as server:
        words = ["sockpq", "--address", server.address, "--tasks", "30", "--record", str(record)]
        done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    figures = json.loads(record.read_text())
    assert figures["put"]["tasks"] == figures["work"]["tasks"] == 30
    assert figures["work"]["per_second"] > 0


def test_every_library_has_cases_and_says_how_durable_it_is() -> None:
    assert set(CASES) == set(DURABLE) == set(DRIVERS)


def test_servers_that_end_are_told_with_what_they_said(tmp_path: Path) -> None:
    folder = tmp_path / "servers"
    folder.mkdir()
    servers = PeerServers(folder)
    try:
        servers.start("one", ["sh", "-c", "echo no such option; exit 1"])
        with pytest.raises(ServersError, match="no such option"):
            servers.wait(lambda: False, "one")
    finally:
        servers.close()
    assert not folder.exists()


def test_the_table_has_medians_and_ratios(tmp_path: Path) -> None:
    record, document = tmp_path / "record", tmp_path / "document"
    runs = [("pika", 100.0), ("sockpq", 90.0), ("sockpq", 120.0), ("sockpq", 150.0)]
    record.write_text("".join(json.dumps(figures(library, rate)) + "\n" for library, rate in runs))
    document.write_text("a\n<!-- clients -->\nold\n<!-- /clients -->\nb\n")
    done = CliRunner().invoke(table, ["--rounds", "0", "--record", str(record), "--into", str(document)])
    assert done.exit_code == 0, done.output
    lines = document.read_text().splitlines()
    assert "| 1, 1 | sockpq | 120 | 5 | 120 | 5 | 1.20 |" in lines
    assert "| 1, 1 | pika | 100 | 5 | 100 | 5 | 1.00 |" in lines
    assert "old" not in lines
    assert sum(line.startswith("* ") for line in lines) == 2


def figures(library: str, rate: float) -> dict[str, Any]:
    step = {"tasks": 1, "per_second": rate, "cpu_us": 5.0}
    return {"library": library, "processes": 1, "prefetch": 1, "asyncio": False, "size": 100, "put": step, "work": step}
