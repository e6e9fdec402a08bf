"""The comparison with another system."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from bench.reports import others


def test_medians_are_compared() -> None:
    seen = (("rabbit", 100, 10.0), ("rabbit", 1000, 1000.0), ("rabbit", 200, 20.0), ("sockpq", 500, 5.0))
    runs = [{"work": "produce:1", "tag": tag, "rate": rate, "srv_us_op": cpu} for tag, rate, cpu in seen]
    row = next(line for line in others.lines(runs) if line.startswith("| PUT, 1 "))
    assert row == "| PUT, 1 connection | 200/s | 500/s | **2.50** | 1.6 | 20.0 | 5.0 | 0.25 | 500 µs |"
    assert not any("10 connections" in line for line in others.lines(runs)), "only what both did is told"


def test_latency_gaps_and_memory_are_told(tmp_path: Path) -> None:
    recorded, document = tmp_path / "runs.jsonl", tmp_path / "document.md"
    recorded.write_text("\n".join(json.dumps(run) for run in (
        {"work": "latency", "tag": "rabbit", "rate": 100, "srv_us_op": 1, "dlv_us": [800, 2100, 3000, 4000]},
        {"work": "latency", "tag": "sockpq", "rate": 100, "srv_us_op": 1, "dlv_us": [640, 1900, 3000, 4000]},
        {"work": "failover", "tag": "rabbit", "gap": 0.21},
        {"work": "failover", "tag": "sockpq", "gap": 0.1},
        {"work": "failover", "tag": "sockpq", "gap": 0.3},
        {"work": "memory", "tag": "rabbit", "rss_10s": [1242.0, 900.0]},
        {"work": "memory", "tag": "sockpq", "rss_10s": [300.0, 390.5]},
    )))
    document.write_text("before\n<!-- others -->\nold\n<!-- /others -->\nbehind\n")
    result = CliRunner().invoke(others.main, [str(recorded), "--into", str(document)])
    assert result.exit_code == 0, result.output
    text = document.read_text()
    assert "| 0.80 / 2.10 ms | 0.64 / 1.90 ms |" in text
    assert "| 0.21 s (worst 0.21) | 0.20 s (worst 0.30) |" in text
    assert "| 1,242 MB | 390 MB |" in text
    assert "old" not in text
    assert text.startswith("before")
    assert text.endswith("behind\n")
