"""The cost of command lines is measured, and that of frames with the same content."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.reports.recording import read
from sockpqd.gateway.commands.catalog import VERBS
from sockpqd.gateway.limits import Limits
from sockpqd.gateway.protocol.parser import Parser
from tests.gateway.protocol import line_costs


def test_lines_are_measured_beside_frames(tmp_path: Path) -> None:
    path = tmp_path / "recorded.jsonl"
    ended = CliRunner().invoke(line_costs.main, ["--blocks", "1", "--record", str(path)])
    assert ended.exit_code == 0, ended.output
    (record,) = read([path])
    assert [row["command"] for row in record.rows] == ["PUT", "GET", "DONE"]
    for row in record.rows:
        assert 0 < float(row["frames_opcodes"] or 0) < float(row["lines_opcodes"] or 0), row


@pytest.mark.parametrize("case", line_costs.CASES, ids=lambda case: case.name)
def test_both_framings_read_the_same_command(case: line_costs.Framed) -> None:
    parser = Parser(Limits(), VERBS)
    parser.feed(case.line)
    command = parser.next()
    assert command is not None
    assert command.operation == case.operation_of(case.frame)
