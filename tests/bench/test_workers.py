"""The benchmark of worker programs runs with ours; the programs of all are programs."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from sockpq.testing import Server

from bench.workers.__main__ import draw, main
from bench.workers.running import WorkerRun
from bench.workers.systems import SYSTEMS


@pytest.mark.parametrize("name", SYSTEMS)
def test_each_program_is_one(name: str) -> None:
    tree = ast.parse(SYSTEMS[name].program())
    assert {"noop", "millisecond", "sleeping", "put"} <= {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef)
    }


def test_tasks_are_counted(tmp_path: Path) -> None:
    record = tmp_path / "record"
    with Server() as server:
        words = ["pqworker", "--place", server.address, "--tasks", "200", "--record", str(record)]
        done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    told = json.loads(record.read_text())
    assert told == json.loads(done.output)
    assert 0 < told["tasks"] <= 200
    # The clock of CPU time ticks in hundredths: the few tasks that may be left after warming up can take none.
    assert told["cpu_us"] >= 0


def test_cpu_time_of_the_worker_is_read(tmp_path: Path) -> None:
    with Server() as server, WorkerRun(SYSTEMS["pqworker"], server.address, tmp_path, 1) as run:
        run.put("noop", 1)
        run.start()
        run.wait(lambda: run.over() == 1, 60)
        # An interpreter that has begun and imported its tasks took more than a tick.
        assert run.cpu_s() > 0


def test_a_burst_is_drawn(tmp_path: Path) -> None:
    draw([(0.0, 3), (3.0, 10), (40.0, 3)], 3.0, tmp_path / "burst.png")
    assert (tmp_path / "burst.png").stat().st_size > 1000
