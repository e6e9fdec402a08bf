"""`pqctl bench`, against real nodes and against servers that fail."""

from __future__ import annotations

import json
import signal
import threading
from array import array

import pytest
from sockpq import Client

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.actions.benchmark.drain import drain
from sockpqd.pqctl.actions.benchmark.load import LoadPart
from sockpqd.pqctl.actions.benchmark.load import run as run_part
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, UNREACHED
from tests.client.faults import Fault
from tests.client.memory_cluster import MemoryCluster
from tests.pqctl.running import ask, run, start
from tests.waiting import until


def test_three_parts_with_rates_and_percentiles_and_an_empty_queue_afterwards(
    nodes: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    with Client(nodes.servers) as client:
        client.put("mine", b"stays")
        code, told = ask(capsys, nodes.servers[:1], "bench", "--seconds", "0.3", "--connections", "4", "--size", "10")
        assert code == DONE
        assert list(told) == ["queue", "connections", "size", "left", "parts"]
        assert (told["connections"], told["size"], told["left"]) == (4, 10, 0)
        assert told["queue"].startswith("pqctl-bench-")
        assert [part["part"] for part in told["parts"]] == ["put", "get+done", "put+get+done"]
        for part in told["parts"]:
            assert list(part) == [
                "part", "jobs", "errors", "error", "seconds", "jobs_per_s", "client_cpu_s", "latency_ms"]
            assert part["jobs"] > 0
            assert part["errors"] == 0
            assert part["jobs_per_s"] == pytest.approx(part["jobs"] / part["seconds"])
            latencies = list(part["latency_ms"].values())
            assert latencies == sorted(latencies)
        total = client.total()
        assert (total.queues, total.jobs, total.running) == (1, 1, 0)     # only the one that is not its own
        client.get("mine", expire=30).done()                              # type: ignore[union-attr]


def test_people_are_told_that_the_client_is_measured_too(
    nodes: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "--servers", nodes.servers[0], "bench", "--seconds", "0.1", "--connections", "1")
    head, columns, *rows, last = out.splitlines()
    assert (code, len(rows)) == (DONE, 3)
    assert head.startswith("queue pqctl-bench-")
    assert head.endswith(": 1 connection, bodies of 100 bytes")
    assert columns.split("  ")[0] == "per job"
    assert last.startswith("This client is measured too: it kept ")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_it_leaves_nothing_behind(nodes: LocalCluster, number: int, code: int) -> None:
    process = start("--servers", nodes.servers[0], "bench", "--seconds", "60")
    with Client(nodes.servers) as client:
        until(lambda: client.total().jobs >= 10)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors.strip()) == (code, "")
        total = client.total()
        assert (total.queues, total.jobs, total.running) == (0, 0, 0)


def test_a_queue_is_drained_of_waiting_and_running_jobs_and_no_other_is_touched(
    nodes: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sockpqd.pqctl.actions.benchmark.drain.BATCH", 10)
    with Client(nodes.servers) as client:
        client.put_many("own", [b"x"] * 100)
        client.put("other", b"waiting")
        client.put("other", b"running")
        for queue in ("own", "own", "other"):
            assert client.get(queue, expire=3600)       # as if the answers had been lost
        assert drain(client, "own") == 0
        assert client.total("own").queues == 0
        totals = client.total("other")
        assert (totals.jobs, totals.running) == (1, 1)
        assert drain(client, "other") == 0


def test_what_cannot_be_drained_is_not_called_gone(cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sockpqd.pqctl.actions.benchmark.drain.PAUSE_S", 0.01)
    with Client(cluster.addresses, timeout=0.2) as client:
        client.put("own", b"x")
        cluster.lead(None)
        assert drain(client, "own") is None


def test_jobs_nobody_can_count_are_not_called_one(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sockpqd.pqctl.actions.benchmark.load.drain", lambda *_: None)
    arguments = ("--servers", cluster.addresses[0], "bench", "--seconds", "0.1", "--connections", "1")
    code, out, err = run(capsys, *arguments, "--json")
    told = json.loads(out)
    assert (code, told["left"]) == (REFUSED, None)
    assert err == f"it is unknown how many jobs are left in queue {told['queue']}: " \
                  f"`pqctl queue stat {told['queue']}`\n"


def test_without_a_leader_it_does_not_begin(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.lead(None)
    assert ask(capsys, cluster.addresses, "bench", "--timeout", "0.3")[0] == UNREACHED
    assert cluster.executed == []


def test_calls_that_fail_are_counted_and_told(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.servers[0].fail("PUT", Fault.TOO_LARGE, Fault.TOO_LARGE)
    arguments = ("bench", "--seconds", "0.2", "--connections", "1")
    code, told = ask(capsys, cluster.addresses, *arguments)
    put = told["parts"][0]
    assert (code, put["errors"], told["left"]) == (REFUSED, 2, 0)
    assert "413" in put["error"]
    cluster.servers[0].fail("PUT", Fault.TOO_LARGE)
    code, out, _ = run(capsys, "--servers", cluster.addresses[0], *arguments)
    assert code == REFUSED
    assert "put: 1 failed, the first one: " in out


def test_percentiles_are_those_of_the_nearest_rank() -> None:
    part = LoadPart("x", latencies_s=array("d", [number / 1000 for number in range(1, 201)]))
    assert [part.percentile_ms(percent) for percent in (50, 90, 99, 100)] == pytest.approx([100, 180, 198, 200])
    assert LoadPart("x", latencies_s=array("d", [0.007])).percentile_ms(50) == pytest.approx(7)
    assert LoadPart("x").percentile_ms(50) is None


def test_a_part_ends_when_nothing_is_left_or_the_limit_is_reached() -> None:
    lock, left = threading.Lock(), [10]

    def work() -> bool:
        with lock:
            left[0] -= 1
            return left[0] >= 0

    part = LoadPart("x")
    run_part(part, work, 60, connections=3)
    assert len(part.latencies_s) == 10
    part = LoadPart("x")
    run_part(part, lambda: True, 60, connections=3, jobs_max=5)
    assert len(part.latencies_s) == 15
