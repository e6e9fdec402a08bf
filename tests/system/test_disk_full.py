"""A full disk: jobs are refused, work goes on, and the node recovers by itself when there is space again."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.cluster import LocalCluster
from tests.system.test_operation import PlainClient

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


def put(client: PlainClient) -> bytes:
    return b" ".join(client.say(b"PUT q 0 %d\r\n%s" % (len(BODY), BODY)))


def test_a_full_disk_refuses_jobs_only_and_heals(small_disk: Path) -> None:
    with LocalCluster(1, {"limits": {"disk_free_bytes_min": 0}}, directory=small_disk) as cluster:
        cluster.wait_for_leader()
        client = PlainClient(cluster.servers)
        answers = [put(client) for _ in range(100)]
        taken = answers.index(b"503 Busy")
        assert answers[:taken] == [b"200 OK"] * taken
        assert set(answers[taken:]) == {b"503 Busy"}
        assert taken > 10
        for _ in range(50):         # what removes jobs goes on
            words = client.say(b"GET q EXPIRE 60\r\n")
            assert words[:2] == [b"200", b"OK"]
            left = len(BODY)
            while left:
                left -= len(client.stream.read(left))
            assert client.say(b"LATER %s\r\n" % words[3]) == [b"200", b"OK"]
        assert put(client) == b"503 Busy"
        (small_disk / "filler").unlink()
        until = time.monotonic() + 30
        while put(client) != b"200 OK":
            assert time.monotonic() < until, cluster.logs("n1")[-2000:]
            time.sleep(0.1)
        assert cluster.running("n1")
        assert client.say(b"TOTAL q\r\n")[4] == b"%d" % (taken + 1)
        client.close()
