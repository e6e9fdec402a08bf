"""At the default mark of memory there is room for the snapshot: in a control group that has no more than that."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import devcluster.node
from devcluster.cluster import LocalCluster
from tests.wire import Wire

LIMIT_BYTES = 240 << 20
AT_ONCE = 1000              # jobs
JOBS_MAX = 2_000_000
HOT_BYTES = 10 << 20
PAGED_JOBS = 400_000        # without that the mark would be reached long before
PATIENCE_S = 120.0
GROUPS = Path("/sys/fs/cgroup")


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of this test with LIMIT_BYTES of memory, of version 1 or 2."""
    if os.geteuid() != 0:
        pytest.skip("making a control group needs root")
    first = (GROUPS / "memory").is_dir()
    folder = (GROUPS / "memory" if first else GROUPS) / f"sockpqd-test-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / ("memory.limit_in_bytes" if first else "memory.max")).write_text(str(LIMIT_BYTES))
    except OSError as error:
        with contextlib.suppress(OSError):
            folder.rmdir()
        pytest.skip(f"no control group can be made here: {error}")
    yield folder
    folder.rmdir()


def run_in(group: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start nodes in the group."""
    program = tmp_path / "sockpqd"
    sockpqd = Path(sys.executable).parent / "sockpqd"
    program.write_text(f'#!/bin/sh\necho $$ > "{group}/cgroup.procs"\nexec "{sockpqd}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(devcluster.node, "program", lambda: program)


def test_a_node_at_its_mark_survives_its_own_snapshot(
    group: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_in(group, tmp_path, monkeypatch)
    with LocalCluster(1) as cluster:
        with Wire(cluster.server(cluster.wait_for_leader()), PATIENCE_S) as wire:
            puts = b"q 0 20\r\n%s" % bytes(20) * AT_ONCE
            jobs, answer = 0, ""
            while answer != "503 Busy":
                assert jobs < JOBS_MAX
                answer = wire.say(f"PUTS {AT_ONCE}", puts)
                if answer == f"200 OK {AT_ONCE}":
                    jobs += sum(wire.line() == "200 OK" for _ in range(AT_ONCE))
            assert jobs > 50_000
            cluster.wait_until_logged("n1", "limits.memory_mark")
            assert wire.say("CLUSTER SNAPSHOT").startswith("200 OK "), cluster.logs("n1")[-2000:]
        assert cluster.running("n1")
        assert "killed by signal" not in cluster.logs("n1")


def test_with_jobs_on_the_disk_more_fit_and_a_snapshot_as_well(
    group: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_in(group, tmp_path, monkeypatch)
    with LocalCluster(1, {"limits": {"hot_bytes": HOT_BYTES}}) as cluster:
        with Wire(cluster.server(cluster.wait_for_leader()), PATIENCE_S) as wire:
            puts = b"q 0 20\r\n%s" % bytes(20) * AT_ONCE
            for _ in range(PAGED_JOBS // AT_ONCE):
                assert wire.say(f"PUTS {AT_ONCE}", puts) == f"200 OK {AT_ONCE}"
                for _ in range(AT_ONCE):
                    assert wire.line() == "200 OK"
        answer = cluster.say("n1", "CLUSTER SNAPSHOT", PATIENCE_S)
        assert answer is not None
        assert answer.startswith("200 OK"), cluster.logs("n1")[-2000:]
        assert (cluster.say("n1", "TOTAL", PATIENCE_S) or "").split()[4] == str(PAGED_JOBS)
        assert "limits.memory_mark" not in cluster.logs("n1")
