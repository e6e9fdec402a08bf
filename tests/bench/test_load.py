"""The benchmark programs run, and what they print adds up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sockpq import Client

from bench.load import CYCLES
from bench.reports.recording import read
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
    ended = run("bench.failover", "--trials", "1", "--writers", "1", "--record", str(recorded))
    assert ended.exit_code == 0, ended.stdout + ended.stderr
    assert re.search(r"^median \d+ ms, p95 \d+ ms, max \d+ ms, [01] of 1 within", ended.stdout, re.MULTILINE)
    assert ", 0 lost" in ended.stdout
    (record,) = read([recorded])
    assert f"median {record.rows[0]['median_ms']} ms" in ended.stdout
    assert [round(gap) for _, gap in record.curves["gaps"]] == [record.rows[0]["max_ms"]]
