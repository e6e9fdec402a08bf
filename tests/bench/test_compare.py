"""The comparison with other systems, with a generator that only pretends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bench.compare import __main__ as compare
from bench.compare.generator import Generator, GeneratorError, descendants
from bench.compare.table import lines
from bench.compare.workloads import WORKLOADS

PRETENDS = """#!{python}
import json, sys
with open({calls!r}, "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[2] == "pc":
    sys.exit("no connection")
print(json.dumps({{"rate": 1000.0, "srv_us_op": 50.0, "put_us": [1, 2], "dlv_us": [800, 2000], "puts": 1}}))
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


def test_medians_spread_and_ratios_are_told() -> None:
    runs = {"put-1": {"sockpq": [run(300, 2), run(100, 4), run(200, 3)], "rabbit": [run(100, 6)]},
            "delivery": {"sockpq": [run(1000, 1)], "rabbit": [run(500, 2)]}}
    text = list(lines(runs, {"on": "2026-01-01", "python": "3.11.2 (optimized)"}))
    assert text[2] == (
        "| PUT, 1 connection | 200/s (100 to 300) | 3.0 (2.0 to 4.0) | **2.00**, CPU 0.50 | 100/s (100 to 100)"
        " | 6.0 (6.0 to 6.0) |")
    assert text[3].startswith(
        "| PUT to delivery at 100 a second | p50 1.00 ms, p99 2.00 ms | 1.0 (1.0 to 1.0) | p50 2.00, CPU 0.50 |")
    assert text[-1] == "Measured on 2026-01-01, python 3.11.2 (optimized)."
    assert len({line.count("|") for line in text[:4]}) == 1


def test_what_a_worker_needs_is_put_before(program: Path) -> None:
    Generator(program, "sockpq", ["h:1", "h:2"], 1.0).run(WORKLOADS["work-10"])
    fill, consume = calls(program)
    assert fill[:4] == ["sockpq", "fill", "-h", "h:1,h:2"]
    assert consume[1] == "consume"
    assert fill[fill.index("--count") + 1] == consume[consume.index("--preload") + 1] == "30000"


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
    options = ["--systems", "sockpq", "--workloads", "put-1,delivery", "--rounds", "1", "--seconds", "0.1"]
    result = CliRunner().invoke(
        compare.main, ["--generator", str(program), *options, "--record", str(record), "--into", str(document)])
    assert result.exit_code == 0, result.output
    assert [call[1] for call in calls(program)] == ["produce", "latency"]
    pids = calls(program)[0][calls(program)[0].index("--pids") + 1].split(",")
    assert len(pids) >= 3
    text = document.read_text()
    assert "| PUT, 1 connection | 1,000/s (1,000 to 1,000) | 50.0 (50.0 to 50.0) |" in text
    assert "µs for a sync" in text
    assert "old" not in text
    again = CliRunner().invoke(compare.main, ["--from", str(record)])
    assert again.output.strip() in text


@pytest.mark.parametrize(("options", "message"), [
    ([], "give --generator"), (["--generator", __file__, "--systems", "kafka"], "there is no kafka"),
])
def test_wrong_options_are_refused(options: list[str], message: str) -> None:
    result = CliRunner().invoke(compare.main, options)
    assert result.exit_code == 2
    assert message in result.output
