"""The comparison with other systems, with a generator that only pretends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bench.compare import __main__ as compare
from bench.compare.generator import Generator, GeneratorError, descendants
from bench.compare.table import lines
from bench.compare.workloads import WORKLOADS

PRETENDS = """#!{python}
import json, os, sys
with open({calls!r}, "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[2] == "pc":
    sys.exit("no connection")
with open({calls!r} + ".packets", "a") as packets:
    packets.write(os.environ.get("LG_SOCKPQ_PIPE", "0"))
rate = 0.0 if "100" in sys.argv[3:] and sys.argv[2] == "consume" else 1000.0
print(json.dumps({{
    "system": sys.argv[1], "rate": rate, "srv_us_op": 50.0, "put_us": [1, 2], "dlv_us": [800, 2000], "puts": 29999}}))
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "generator"
    path.write_text(PRETENDS.format(python=sys.executable, calls=str(tmp_path / "calls")))
    path.chmod(0o755)
    return path


def calls(program: Path) -> list[list[str]]:
    return [json.loads(line) for line in (program.parent / "calls").read_text().splitlines()]


def run(rate: float, cpu: float) -> dict[str, Any]:
    return {"rate": rate, "srv_us_op": cpu, "dlv_us": [rate, 2 * rate]}


def test_medians_spread_ratios_and_aims_are_told() -> None:
    runs = {"delivery": {"sockpq": [run(1000, 1)], "rabbit": [run(500, 2)]},
            "put-1": {"sockpq": [run(300, 2), run(100, 4), run(200, 3)], "rabbit": [run(100, 6)], "nats": [run(50, 5)]}}
    text = list(lines(runs, {"on": "2026-01-01", "python": "3.11.2 (optimized)"}))
    assert text[0] == "| workload | sockpqd | RabbitMQ | NATS | ratio to RabbitMQ | aim |"
    assert text[2:4] == [
        "| PUT to delivery at 100 a second | p50 1.00 ms, p99 2.00 ms | p50 0.50 ms, p99 1.00 ms |  | p50 **2.00**"
        " | p50 at most 1.4 |",
        "| PUT, 1 connection | 200/s (100 to 300) | 100/s (100 to 100) | 50/s (50 to 50) | **2.00** | 1.1 |"]
    assert text[7:9] == [
        "| PUT to delivery at 100 a second | 1.0 (1.0 to 1.0) | 2.0 (2.0 to 2.0) |  | 0.50 | at most 1.2 |",
        "| PUT, 1 connection | 3.0 (2.0 to 4.0) | 6.0 (6.0 to 6.0) | 5.0 (5.0 to 5.0) | 0.50 |  |"]
    assert text[-1] == "Measured on 2026-01-01, python 3.11.2 (optimized)."


def test_one_node_shows_what_replication_costs() -> None:
    runs = {"delivery": {"sockpq": [run(1000, 3)], "sockpq1": [run(500, 1)]},
            "put-1": {"sockpq": [run(100, 6), run(120, 6), run(140, 6)], "sockpq1": [run(240, 2)]}}
    text = list(lines(runs, {}))
    assert text[10:15] == [
        "| sockpqd | one node | three nodes | ratio | one node, CPU µs | three nodes, CPU µs | ratio |",
        "|---|--:|--:|--:|--:|--:|--:|",
        "| PUT to delivery at 100 a second | p50 0.50 ms | p50 1.00 ms | 2.00 | 1.0 | 3.0 | 3.00 |",
        "| PUT, 1 connection | 240/s | 120/s | 0.50 | 2.0 | 6.0 | 3.00 |", ""]
    assert "RabbitMQ" not in "".join(text)


def test_what_a_worker_needs_is_put_before(program: Path) -> None:
    Generator(program, "sockpq", ["h:1", "h:2"], 1.0, 2.0).run(WORKLOADS["work-10"])
    fill, consume = calls(program)
    assert fill[:4] == ["sockpq", "fill", "-h", "h:1,h:2"]
    assert consume[1] == "consume"
    assert fill[fill.index("--count") + 1] == "30000"
    assert consume[consume.index("--preload") + 1] == "29999"       # as many as there are
    assert consume[consume.index("--warm") + 1:][:3] == ["2.0", "--dur", "1.0"]


def test_a_rate_of_nothing_is_no_measurement(program: Path) -> None:
    with pytest.raises(GeneratorError, match="10 workers, 100 at once: nothing was done"):
        Generator(program, "sockpq", ["h:1"], 0.1).run(WORKLOADS["work-batches"])


def test_only_workers_of_single_jobs_send_one_packet_for_done_and_the_next(program: Path) -> None:
    Generator(program, "sockpq", ["h:1"], 0.1).run(WORKLOADS["work-1"])
    with pytest.raises(GeneratorError):
        Generator(program, "sockpq", ["h:1"], 0.1).run(WORKLOADS["work-batches"])
    assert (program.parent / "calls.packets").read_text() == "1110"


def test_a_generator_that_fails_says_why(program: Path) -> None:
    with pytest.raises(GeneratorError, match="sockpq pc: no connection"):
        Generator(program, "sockpq", ["h:1"], 1.0).run(WORKLOADS["both"])


def test_the_servers_are_all_that_was_started() -> None:
    child = subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        assert {child.pid, grandchild} <= set(descendants(os.getpid()))
        os.kill(grandchild, 9)
    finally:
        child.kill()
        child.communicate()


def test_our_nodes_are_measured_recorded_and_written_into_a_document(program: Path, tmp_path: Path) -> None:
    record, document = tmp_path / "runs.jsonl", tmp_path / "document.md"
    document.write_text("before\n<!-- compare -->\nold\n<!-- /compare -->\nbehind\n")
    options = ["--systems", "sockpq,sockpq1", "--workloads", "put-1,both,delivery", "--rounds", "1", "--seconds", "0.1"]
    result = CliRunner().invoke(
        compare.main, ["--generator", str(program), *options, "--record", str(record), "--into", str(document)])
    assert result.exit_code == 0, result.output
    assert [call[1] for call in calls(program)] == ["produce", "pc", "latency"] * 2
    assert [json.loads(line)["system"] for line in record.read_text().splitlines()] == ["sockpq"] * 2 + ["sockpq1"] * 2
    assert "left out: sockpq pc: no connection" in result.output
    pids = calls(program)[0][calls(program)[0].index("--pids") + 1].split(",")
    assert len(pids) >= 3
    text = document.read_text()
    assert "| PUT, 1 connection | 1,000/s (1,000 to 1,000) |" in text
    assert "| PUT, 1 connection | 50.0 (50.0 to 50.0) |" in text
    assert "syncs a second" in text
    assert f"versions sockpqd {version('sockpqd')}, disk" in text
    assert "old" not in text
    assert "50 producers" not in text
    assert "| PUT, 1 connection | 1,000/s | 1,000/s | 1.00 |" in text
    again = CliRunner().invoke(compare.main, ["--from", str(record)])
    assert again.output.strip() in text


@pytest.mark.parametrize(("options", "message"), [
    (["--generator", "/nowhere"], "`make build/generator` builds it"),
    (["--generator", __file__, "--systems", "kafka"], "there is no kafka"),
])
def test_wrong_options_are_refused(options: list[str], message: str) -> None:
    result = CliRunner().invoke(compare.main, options)
    assert result.exit_code == 2
    assert message in result.output
