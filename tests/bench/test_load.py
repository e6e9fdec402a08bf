"""The benchmark programs run, and what they print adds up."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sockpq import Client

from bench.cluster import LocalCluster
from bench.wire import CYCLES, Figures, LoadConnection

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with LocalCluster(nodes=1) as cluster:
        yield ",".join(cluster.servers)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("workload", list(CYCLES))
def test_a_workload_counts_what_was_answered(servers: str, workload: str) -> None:
    with Client(servers) as client:
        before = client.total("load").jobs
    ended = run("bench.load", workload, "--servers", servers, "--seconds", "0.5", "--connections", "5",
                "--pipeline", "3", "--jobs", "100")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    answered = {step: int(count) for step, count in re.findall(r"^(PUT|GET|DONE) +(\d+)", ended.stdout, re.MULTILINE)}
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
    assert ended.returncode == 1
    assert "serves" in ended.stdout
    ended = run("bench.load", "put", "--servers", "x:y")
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr


def test_a_failover_is_measured() -> None:
    ended = run("bench.failover", "--trials", "1", "--writers", "1")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert re.search(r"^median \d+ ms, p95 \d+ ms, max \d+ ms, [01] of 1 within", ended.stdout, re.MULTILINE)
    assert ", 0 lost" in ended.stdout


class Wire:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True


def connected(workload: str, pipeline: int) -> tuple[LoadConnection, Wire, Figures]:
    figures = Figures()
    connection = LoadConnection(CYCLES[workload], pipeline, b"PUT q 0 0\r\n", b"GET q\r\n", figures, lambda: None)
    wire = Wire()
    connection.connection_made(wire)    # type: ignore[arg-type]
    connection.start()
    return connection, wire, figures


def test_each_answer_lets_one_cycle_go_on() -> None:
    connection, wire, figures = connected("getdone", 2)
    assert wire.written == b"GET q\r\n" * 2
    wire.written = b""
    for byte in b"200 OK q 7 0 6\r\n\r\n200 ":      # a body that looks like an answer, byte by byte
        connection.data_received(bytes([byte]))
    assert wire.written == b"DONE 7\r\n"
    connection.data_received(b"404 Queue Empty\r\n200 OK FINQ\r\n")
    assert wire.written == b"DONE 7\r\nGET q\r\n"       # the empty one ends, the done one begins anew
    assert figures.cycles == 1
    assert figures.problems == {"GET: 404 Queue Empty": 1}


def test_a_job_taken_is_done_also_at_the_end() -> None:
    connection, wire, _ = connected("getdone", 1)
    connection.end()
    connection.data_received(b"200 OK q 7 0 0\r\n")
    assert wire.written.endswith(b"DONE 7\r\n")
    assert not wire.closed
    connection.data_received(b"200 OK\r\n")
    assert wire.closed


def test_a_lost_connection_is_a_problem() -> None:
    connection, _, figures = connected("put", 3)
    connection.data_received(b"200 OK\r\n500 Offline Mode\r\n")
    connection.connection_lost(None)
    assert figures.problems == {"PUT: 500 Offline Mode": 1, "connection lost": 3}
    assert len(figures.latencies_us["PUT"]) == 1
