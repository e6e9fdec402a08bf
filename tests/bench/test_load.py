"""The benchmark programs run, and what they print adds up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sockpq import Client

from bench.load.rates import CYCLES
from bench.reports.recording import read, written
from devcluster.cluster import LocalCluster
from tests.bench.running import run


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with LocalCluster(nodes=1) as cluster:
        yield ",".join(cluster.servers)


@pytest.mark.parametrize("workload", list(CYCLES))
def test_a_workload_counts_what_was_answered(servers: str, workload: str) -> None:
    with Client(servers) as client:
        before = client.total("load").jobs
    ended = run("bench.load", workload, "--servers", servers, "--seconds", "0.5", "--connections", "5",
                "--pipeline", "3", "--jobs", "100")
    assert ended.exit_code == 0, ended.stdout + ended.stderr
    answered = {step: int(count.replace(",", ""))
                for step, count in re.findall(r"^(PUT|GET|DONE) +([\d,]+)", ended.stdout, re.MULTILINE)}
    assert set(answered) == set(CYCLES[workload])
    assert all(answered.values())
    with Client(servers) as client:
        totals = client.total("load")
    assert totals.running == 0
    if workload == "put":
        assert totals.jobs == before + answered["PUT"]
    else:
        assert answered["GET"] == answered["DONE"]


def test_no_cluster_is_told_clearly() -> None:
    ended = run("bench.load", "put", "--servers", "127.0.0.1:1")
    assert ended.exit_code == 1
    assert "serves" in ended.stdout
    ended = run("bench.load", "put", "--servers", "x:y")
    assert ended.exit_code == 2
    assert "Traceback" not in ended.stderr


def test_a_failover_is_measured(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded.jsonl"
    ended = run("bench.load", "failover", "--trials", "1", "--writers", "1", "--record", str(recorded))
    assert ended.exit_code == 0, ended.stdout + ended.stderr
    (record,) = read([recorded])
    (row,) = record.rows
    assert row["lost"] == 0
    assert row["within_500_ms"] in {0, 1}
    told = ["trials", "median_ms", "p95_ms", "max_ms", "within_500_ms", "within_1500_ms", "lost"]
    assert [line.split() for line in ended.stdout.splitlines()].count([written(row[name]) for name in told]) == 1
    assert int(record.summary["acknowledged"] or 0) <= int(record.summary["waiting"] or 0)      # one may be put twice
    assert [round(gap) for _, gap in record.curves["gaps"]] == [record.rows[0]["max_ms"]]
