"""A full disk: jobs are refused, work goes on, and the node recovers by itself when there is space again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.cluster import LocalCluster
from tests.system.test_operation import PlainClient
from tests.waiting import until

BODY = bytes(1 << 20)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 160 MB, of which 60 are taken by a file named `filler`."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", tmp_path], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a tmpfs here: {mounted.stderr.decode()}")
    try:
        (tmp_path / "filler").write_bytes(bytes(60 << 20))
        yield tmp_path
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)


def put(client: PlainClient) -> str:
    return " ".join(client.say(f"PUT q 0 {len(BODY)}", BODY))


def test_a_full_disk_refuses_jobs_only_and_heals(small_disk: Path) -> None:
    with LocalCluster(1, {"limits": {"disk_free_bytes_min": 0}}, directory=small_disk) as cluster:
        cluster.wait_for_leader()
        client = PlainClient(cluster.servers)
        answers = [put(client) for _ in range(100)]
        taken = answers.index("503 Busy")
        assert answers[:taken] == ["200 OK"] * taken
        assert set(answers[taken:]) == {"503 Busy"}
        assert taken > 10
        for _ in range(50):         # what removes jobs goes on
            words = client.say("GET q EXPIRE 60")
            assert words[:2] == ["200", "OK"]
            assert client.wire.exactly(len(BODY)) == BODY
            assert client.say(f"LATER {words[3]}") == ["200", "OK"]
        assert put(client) == "503 Busy"
        (small_disk / "filler").unlink()
        until(lambda: put(client) == "200 OK", lambda: cluster.logs("n1")[-2000:])
        assert cluster.running("n1")
        assert client.say("TOTAL q")[4] == str(taken + 1)
        client.wire.close()
