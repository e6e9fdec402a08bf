"""The benchmarks of the state machine alone, in tiny runs, and what they count."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from bench.core import choices, plain_gets
from bench.core.loads import CoreDriver, opcodes
from bench.reports.recording import read
from sockpqd.core import Get, Policy, Put

ROOT = Path(__file__).parents[2]


def test_a_choice_among_many_queues_costs_at_most_three_times_that_among_few(tmp_path: Path) -> None:
    path = tmp_path / "recorded.jsonl"
    ended = CliRunner().invoke(choices.main, ["--many", "1000", "--choices", "50", "--record", str(path)])
    (record,) = read([path])
    policies = [policy.name for policy in Policy if policy is not Policy.PLACE]
    assert [row["policy"] for row in record.rows][:8] == policies
    for row in record.rows:
        assert 0 < float(row["opcodes_ratio"] or 0) <= choices.RATIO_MAX, row
        assert row["opcodes_of_10"]
        assert row["CPU_us_of_1,000"]
    assert ended.exit_code in (0, 1)
    assert "FAIR, groups in one queue" in ended.output


def test_a_tree_costs_as_much_as_itself(tmp_path: Path) -> None:
    path = tmp_path / "recorded.jsonl"
    ended = CliRunner().invoke(plain_gets.main, ["--before", str(ROOT), "--rounds", "1", "--record", str(path)])
    assert ended.exit_code == 0, ended.output
    (record,) = read([path])
    assert {row["command"] for row in record.rows} == {*plain_gets.GETS, "PUT", "DONE"}
    assert {row["opcodes_ratio"] for row in record.rows} == {1.0}
    ended = CliRunner().invoke(plain_gets.main, ["--before", str(tmp_path), "--rounds", "1"])
    assert ended.exit_code == 1
    assert "it has no sockpqd/core" in ended.output


def test_instructions_are_counted_and_are_always_the_same() -> None:
    def count(operations: int) -> int:
        driver = CoreDriver()
        driver.do(*[Put("q", 0, b"")] * 100)
        entry = driver.entry(*[Get(("q",))] * operations)
        return opcodes(lambda: driver.machine.apply(*entry))

    assert count(1) == count(1)
    assert 300 < (count(51) - count(1)) / 50 < 1000
