"""Disks that fail, disks without the space they promise, and programs that are altered."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.cluster import say
from tests.chaos.machines import disks, faulty_disk, thin_disks
from tests.chaos.machines.cluster import ProxiedCluster
from tests.chaos.machines.faulty_disk import FaultyDisk

PROGRAM = """
import os, sys, time
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for line in sys.stdin:
    begun, said = time.monotonic(), "done"
    try:
        if line == "sync\\n":
            os.fdatasync(file)
        elif line == "sync all\\n":
            os.fsync(file)
        else:
            os.pwritev(file, [b"x"], 0)
    except OSError as error:
        said = str(error.errno)
    print(said, time.monotonic() - begun, flush=True)
"""


class Process:
    """A process on a faulty disk that executes commands."""

    def __init__(self, folder: Path) -> None:
        self.disk = FaultyDisk(folder / "faults")
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, folder / "file"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **faulty_disk.environment(folder / "faults")})

    def do(self, what: str) -> tuple[str, float]:
        """Return the command's output, and how long it took."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        said, seconds = self._process.stdout.readline().split()
        return said, float(seconds)

    def end(self) -> None:
        """Wait until the process has ended."""
        self._process.communicate()


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    if not faulty_disk.can_build():
        pytest.skip("no cc: a C compiler builds the library that makes disks fail")
    process = Process(tmp_path)
    yield process
    process.end()


def test_so_many_calls_fail_as_they_are_told_and_then_none(process: Process) -> None:
    assert [process.do(what)[0] for what in ("sync", "write", "sync all")] == ["done"] * 3
    process.disk.fail("sync", errno.EIO, 2)
    assert [process.do(what)[0] for what in ("write", "sync", "sync all", "sync")] == ["done", "5", "5", "done"]
    process.disk.fail("write", errno.ENOSPC, 1)
    assert [process.do(what)[0] for what in ("sync", "write", "write")] == ["done", "28", "done"]
    assert process.disk.failed == 3
    process.disk.fail("write", errno.EIO, 50)
    assert process.do("write")[0] == "5"
    process.disk.heal()
    assert process.do("write")[0] == "done"


def test_syncs_take_their_time_while_they_are_told_to(process: Process) -> None:
    process.disk["delay_us"] = 200_000
    assert process.do("sync")[1] >= 0.2
    process.disk.heal()
    assert process.do("sync")[0] == "done"
    assert process.disk["syncs"] == 2


@pytest.fixture
def thin() -> Iterator[Path]:
    """A small disk that promises more space than it has."""
    if not thin_disks.can_mount():
        pytest.skip("a disk without space needs root, mkfs.ext4 and loop devices")
    with tempfile.TemporaryDirectory() as folder:
        point = Path(folder) / "n1"
        try:
            thin_disks.mount(point, 24)
            yield point
        finally:
            for one in (point, thin_disks.store_of(point)):
                subprocess.run(["umount", "-l", one], check=False, capture_output=True)


def test_a_thin_disk_forgets_what_it_could_not_sync_and_shows_it_until_then(thin: Path) -> None:
    path, store = thin / "file", thin_disks.store_of(thin)
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        os.posix_fallocate(file, 0, 1 << 20)
        os.pwrite(file, b"a" * 5000, 0)
        os.fdatasync(file)
        disks.fill(store)
        os.pwrite(file, b"b" * 20_000, 5000)        # not at the beginning of a page: no part of it may count for all
        with pytest.raises(OSError, match="No space left"):
            os.fdatasync(file)
        disks.empty(store)
        os.fdatasync(file)
        assert path.read_bytes()[:25_000] == b"a" * 5000 + b"b" * 20_000
    finally:
        os.close(file)
    thin_disks.let_forget(thin)
    kept = path.read_bytes()
    assert kept[:5000] == b"a" * 5000
    assert kept[8192:25_000] == bytes(25_000 - 8192)


def test_tls_is_between_the_nodes_only(toxiproxy_server: None) -> None:
    with ProxiedCluster(tls=True) as cluster:
        leader = cluster.wait_for_leader()
        assert say(cluster.server(leader), "PUT q 0 0", 60.0) == "200 OK"
        with tempfile.TemporaryFile() as nothing:
            told = subprocess.run(
                ["openssl", "s_client", "-connect", cluster.peer(leader), "-brief"], stdin=nothing, check=False,
                capture_output=True, text=True, timeout=60)
        assert "TLSv1.3" in told.stdout + told.stderr
    assert not cluster.folder.exists()
