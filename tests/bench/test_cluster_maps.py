"""The benchmarks of the map of clusters, in tiny runs."""

from __future__ import annotations

from pathlib import Path

from bench.core import cluster_maps
from bench.reports.recording import read
from sockpqd.core import MAP_BYTES_MAX, read_map
from tests.bench.running import run


def test_a_full_map_costs_a_put_few_instructions(tmp_path: Path) -> None:
    path = tmp_path / "recorded.jsonl"
    ended = run("bench.core.cluster_maps", "--blocks", "1", "--record", path)
    assert ended.exit_code == 0, ended.output
    (record,) = read([path])
    rows = {row["command"]: row for row in record.rows}
    assert list(rows) == list(cluster_maps.COMMANDS)
    for command, row in rows.items():
        without, small, full = (float(row[f"opcodes, {name}"] or 0) for name in cluster_maps.MAPS)
        assert 300 < without < 1500, row
        assert abs(full - small) < 30, row           # however many rules there are
        assert full - without < (200 if command == cluster_maps.NEW_NAMES else 60), row
    assert int(record.summary["rules"] or 0) > 3000


def test_the_maps_are_as_full_as_they_may_be() -> None:
    full = cluster_maps.full_map()
    assert MAP_BYTES_MAX - 30 < len(full) <= MAP_BYTES_MAX
    known = read_map(1, full, cluster_maps.OWN)
    assert (len(known.clusters), known.own, known.accepts("q0"), known.accepts("tenant32.x")) == (32, "c0", True, True)
    assert not known.accepts("tenant33.x")
    assert read_map(1, cluster_maps.small_map(), cluster_maps.OWN).own == "c0"


def test_two_clusters_share_the_jobs_of_one(tmp_path: Path) -> None:
    path = tmp_path / "recorded.jsonl"
    ended = run("bench.several_clusters", "--nodes", "1", "--rounds", "1", "--jobs", "800", "--record", path)
    assert ended.exit_code == 0, ended.output
    (record,) = read([path])
    assert [row["clusters"] for row in record.rows] == ["one, no map", "one of two with a map", "both with a map"]
    assert all(float(row["node_us"] or 0) > 0 for row in record.rows)
    assert record.summary.keys() == {"map_ratio", "two_ratio"}
