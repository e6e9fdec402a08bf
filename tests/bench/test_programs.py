"""Each benchmark in a tiny run: it ends, and what it tells and keeps adds up."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from sockpq import Client

from bench.load.find import PHASES
from bench.load.rates import CYCLES
from bench.load_generator.disturbances import DISTURBANCES
from bench.load_generator.jobs import Jobs
from bench.load_generator.prefill import fill
from bench.load_generator.target import Target
from bench.reports.recording import Record, read
from devcluster.cluster import LocalCluster
from tests.bench.running import run

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with LocalCluster(nodes=1) as cluster:
        yield ",".join(cluster.servers)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recorded") / "recorded.jsonl"


def measure(recorded: Path, load: str, *options: str) -> Record:
    """Run a named load that must end well; its record."""
    ended = run("bench.load", load, *options, "--record", recorded)
    assert ended.exit_code == 0, ended.stdout + ended.stderr
    record = read([recorded])[-1]
    assert record.program == load
    assert not record.problems
    return record


def left(servers: str) -> int:
    with Client(servers) as client:
        totals = client.total()
        return totals.jobs + totals.running


def test_each_program_can_be_run_by_its_name() -> None:
    texts = [path.read_text() for path in (ROOT / "bench").rglob("*.py")]
    programs = [text for text in texts if "@click.command" in text or "= click.Group(" in text]
    assert len(programs) > 15
    missing = [text[:80] for text in programs if 'if __name__ == "__main__":\n    main()\n' not in text]
    assert not missing


def test_each_load_can_be_run_by_its_name() -> None:
    files = {path.stem for path in (ROOT / "bench" / "load").glob("*.py") if "@load(" in path.read_text()}
    for name in {*files, *CYCLES, "fan"} - {"rates"}:
        assert run("bench.load", name, "--help").exit_code == 0, name
    assert run("bench.load", "none").exit_code == 2


def test_events(servers: str, recorded: Path) -> None:
    for options, rows in (
        (("cost", "--subscribers", "3", "--rate", "100", "--seconds", "1", "--rounds", "1"), 2),
        (("notify", "--seconds", "1"), 2), (("delay", "--rate", "200", "--seconds", "1"), 1),
    ):
        ended = run("bench.events", *options, "--servers", servers, "--record", recorded)
        assert ended.exit_code == 0, ended.stdout + ended.stderr
        record = read([recorded])[-1]
        assert (record.program, len(record.rows), record.problems) == (f"events {options[0]}", rows, {})
        if options[0] == "notify":
            sent, heard = record.rows[1]["sent"], record.rows[1]["heard_of_each"]
            assert sent == heard
        if options[0] == "cost":
            assert record.rows[0]["heard_per_second"] == 0
            assert float(record.rows[1]["heard_per_second"] or 0) > 0
    assert left(servers) == 0


def test_awaited(servers: str, recorded: Path) -> None:
    ended = run("bench.awaited", "--servers", servers, "--jobs", "3", "--waiting", "20", "--seconds", "1",
                "--record", recorded)
    assert ended.exit_code == 0, ended.stdout + ended.stderr
    record = read([recorded])[-1]
    assert (record.program, len(record.rows), record.problems) == ("awaited", 4, {})
    assert (record.rows[0]["count"], record.summary["waiting"]) == (3, 20)
    assert left(servers) == 0


def test_author(servers: str, recorded: Path) -> None:
    record = measure(recorded, "author", "--servers", servers, "--rounds", "2", "--jobs", "150", "--queues", "3",
                     "--connections", "4")
    assert record.cluster == "running before"
    assert "nodes" not in record.options
    assert "servers" not in record.options
    assert [waiting for waiting, _, _ in record.curves["PUT"]] == [0, 150]
    assert [waiting for waiting, _, _ in record.curves["GET + DONE"]] == [300, 150]
    assert [row["jobs"] for row in record.rows] == [300, 300]
    assert all(row["cpu_us_per_job"] is None for row in record.rows)
    assert left(servers) == 0


def test_fan(servers: str, recorded: Path) -> None:
    record = measure(recorded, "fan", "--servers", servers, "--many", "20", "--few", "2", "--jobs", "200",
                     "--repeat", "1")
    assert [(row["clients"], row["jobs"]) for row in record.rows] == [("2 + 2", 200), ("20 + 20", 200)]
    few, many = (row["jobs_per_second"] for row in record.rows)
    assert isinstance(few, float)
    assert isinstance(many, float)
    assert record.summary["ratio"] == pytest.approx(many / few, abs=0.001)
    assert left(servers) == 0


def test_more_connections_than_files_are_usual(servers: str) -> None:
    command = f"ulimit -Sn 64; exec {sys.executable} -m bench.load put --servers {servers} --seconds 0.2"
    ended = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    Target(servers, None).purge(["load"])


def test_handover(servers: str, recorded: Path) -> None:
    record = measure(recorded, "handover", "--servers", servers, "--producers", "3", "--workers", "5", "--jobs", "200")
    assert {row["step"]: row["answered"] for row in record.rows} == {
        "PUT": 200, "GETB": 200, "DONE": 200, "delivery": 200,
    }
    assert left(servers) == 0


def test_latency_and_the_processor_time_of_local_nodes(recorded: Path) -> None:
    record = measure(recorded, "latency", "--nodes", "1", "--rate", "200", "--seconds", "1", "--workers", "3")
    assert record.cluster == "1 local node"
    answered = {str(row["step"]): int(row["answered"] or 0) for row in record.rows}
    assert set(answered) == {"PUT", "delivery", "DONE", "sent late by"}
    assert len(set(answered.values())) == 1
    assert 100 <= answered["PUT"] <= 201
    cpu_us_per_job = record.summary["cpu_us_per_job"]
    assert isinstance(cpu_us_per_job, float)
    assert cpu_us_per_job > 0


def test_quiet(recorded: Path) -> None:
    record = measure(recorded, "quiet", "--nodes", "1", "--seconds", "1")
    assert [row["node"] for row in record.rows] == ["leader"]
    assert 0 < record.rows[0]["percent of a core"] == record.summary["all, percent of a core"]


def test_depth(recorded: Path) -> None:
    record = measure(recorded, "depth", "--nodes", "1", "--depths", "10,2500", "--jobs", "100", "--connections", "3",
                     "--hot-bytes", "100000", "--priorities", "2")
    assert [row["waiting"] for row in record.rows] == [10, 2500]
    for row in record.rows:
        for name, least, most in (
            ("memory_MB", 5, 5000), ("disk_MB", 0.1, 50_000), ("fill_per_second", 1, 1e9), ("snapshot_s", 0, 300),
            ("fill_small_PUT_max_ms", 0.01, 60_000), ("start_s", 0.01, 300),
            ("snapshot_small_PUT_max_ms", 0.01, 60_000),
        ):
            figure = row[name]
            assert isinstance(figure, float), name
            assert least < figure < most, name
    assert run("bench.load", "depth", "--depths", "10,5").exit_code == 2


@pytest.mark.parametrize("rate", ["300", "0"])
def test_tails(recorded: Path, rate: str) -> None:
    phases = list(DISTURBANCES) if rate == "300" else ["nothing"]
    seconds, puts = ("1.2", 100) if rate == "300" else ("0.3", 3)       # without a rate as many as the machine does
    record = measure(recorded, "tails", "--rate", rate, "--connections", "3", "--waiting", "1500", "--seconds", seconds,
                     "--away", "0.2", *(word for phase in phases for word in ("--only", phase)))
    assert [row["phase"] for row in record.rows] == phases == list(record.curves)
    for row in record.rows:
        assert isinstance(row["PUTs"], int)
        assert row["PUTs"] > puts


def test_find(recorded: Path) -> None:
    record = measure(recorded, "find", "--rate", "200", "--connections", "3", "--waiting", "1500", "--seconds", "0.3",
                     "--nodes", "2", "--searchers", "5")
    assert [row["phase"] for row in record.rows] == list(PHASES)
    for row in record.rows:
        assert isinstance(row["PUTs"], int)
        assert isinstance(row["searches"], int)
        assert row["PUTs"] > 20
        assert (row["searches"] >= 5) is (row["phase"] != "nothing")


@pytest.mark.skipif(not find_spec("matplotlib"), reason="no matplotlib: pip install -e '.[bench]'")
def test_pictures_of_what_the_document_tells(tmp_path: Path) -> None:
    kept = sorted((ROOT / "bench" / "results").glob("*.jsonl"))
    ended = run("bench.reports.plots", *kept, "--to", tmp_path / "once")
    assert ended.exit_code == 0, ended.stderr
    command = [sys.executable, "-m", "bench.reports.plots", *kept, "--to", tmp_path / "again"]
    subprocess.run(command, cwd=ROOT, check=True, timeout=120)
    once, again = ({path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()}
                   for folder in ("once", "again"))
    assert set(once) == {path.name for path in (ROOT / "docs" / "benchmarks").iterdir()}
    assert all(b"</svg>" in picture for picture in once.values())
    assert once == again        # or each drawing of the same data would be a change of the repository


@pytest.mark.parametrize(("count", "size"), [(2500, 10), (9, 5 << 20)])
def test_many_jobs_are_filled_in_whatever_their_size(servers: str, count: int, size: int) -> None:
    asyncio.run(fill(servers, Jobs(["filled"], size), count))
    with Client(servers) as client:
        assert client.total("filled").jobs == count
    Target(servers, None).purge(["filled"])
    assert left(servers) == 0


def test_jobs_that_are_refused_are_told() -> None:
    with LocalCluster(nodes=1, config={"limits": {"data_bytes_max": 50}}) as cluster:
        ended = run("bench.load", "depth", "--servers", cluster.servers[0], "--depths", "10", "--jobs", "1", "--size",
                    "51")
    assert ended.exit_code == 1
    assert "413 Data Too Large" in ended.stdout


def test_what_cannot_be_reached_is_told_clearly() -> None:
    ended = run("bench.load", "handover", "--servers", "127.0.0.1:1")
    assert ended.exit_code == 1
    assert "serves" in ended.stdout
    ended = run("bench.load", "handover", "--servers", "x:y")
    assert ended.exit_code == 2
    assert "Traceback" not in ended.stderr
