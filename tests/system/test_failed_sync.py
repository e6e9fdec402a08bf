"""A sync fails: the node ends at once and never acknowledges what it could not sync; the others go on."""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from devcluster.cluster import LocalCluster, say
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.storage import page_cache
from sockpqd.cluster.storage.disk import Disk, SyncFailed, passes
from tests.system import failing_disk
from tests.system.failing_disk import MARKER
from tests.system.load import Producer, check, drain
from tests.system.test_kill import wait_for_progress
from tests.waiting import until
from tests.wire import Broken, Wire

PATIENCE_S = 60.0           # a safety limit: on a quiet machine it is over within one second


class FailingDisks(LocalCluster):
    """A cluster whose nodes have disks that can be made to fail."""

    def wrapper(self, name: str) -> Sequence[str]:
        return sys.executable, "-m", failing_disk.__name__


def fail_syncs(cluster: LocalCluster, name: str, folder: str = "journal") -> Path:
    """Let the syncs of files in this folder fail from now on; removing the returned file mends the disk."""
    marker = cluster.data_dir(name) / folder / MARKER
    marker.touch()
    return marker


def wait_for_end(cluster: LocalCluster, name: str) -> None:
    """Wait for the process to end by itself, with 75 (a restart reads what is really there) and a reason."""
    until(lambda: not cluster.running(name), lambda: cluster.logs(name)[-2000:])
    assert cluster.terminate(name) == 75
    cluster.wait_until_logged(name, "the node stopped itself: SyncFailed: [Errno 5] Input/output error")
    assert "Traceback" not in cluster.logs(name)


def test_what_cannot_be_synced_is_never_acknowledged() -> None:
    with FailingDisks(1) as cluster:
        with Wire(cluster.server(cluster.wait_for_leader()), PATIENCE_S) as wire:
            for number in range(20):
                assert wire.say("PUT load 0 2", b"%02d" % number) == "200 OK"
            marker = fail_syncs(cluster, "n1")
            with pytest.raises(Broken, match="closed"):
                wire.say("PUT load 0 5", b"never")
        wait_for_end(cluster, "n1")
        marker.unlink()
        cluster.restart("n1")
        bodies = drain(cluster)
        assert bodies[:20] == [b"%02d" % number for number in range(20)]
        assert bodies[20:] in ([], [b"never"])      # nobody knows


@pytest.mark.parametrize("leads", [False, True], ids=["follower", "leader"])
def test_a_node_whose_disk_fails_leaves_the_others_at_work(leads: bool) -> None:
    with FailingDisks(3) as cluster:
        producers = [Producer(cluster.servers, f"p{k}") for k in range(3)]
        for producer in producers:
            producer.start()
        wait_for_progress(producers)
        leader = cluster.wait_for_leader()
        victim = leader if leads else next(name for name in cluster.names if name != leader)
        marker = fail_syncs(cluster, victim)
        wait_for_end(cluster, victim)
        wait_for_progress(producers, 200)
        marker.unlink()
        cluster.restart(victim)
        cluster.wait_until_level()
        for producer in producers:
            producer.finish()
        check(producers, drain(cluster))


def test_a_snapshot_that_cannot_be_synced_is_given_up_and_the_node_goes_on() -> None:
    with FailingDisks(1) as cluster:
        server = cluster.server(cluster.wait_for_leader())
        producer = Producer(cluster.servers, "p")
        producer.start()
        wait_for_progress([producer])
        fail_syncs(cluster, "n1", "snapshots")
        assert say(server, "CLUSTER SNAPSHOT", 60.0) == "503 Busy"
        cluster.wait_until_logged("n1", "could not be written: SyncFailed: [Errno 5] Input/output error")
        assert [path.name for path in (cluster.data_dir("n1") / "snapshots").iterdir()] == [MARKER]
        wait_for_progress([producer])
        producer.finish()
        check([producer], drain(cluster))


class FullForAMoment:
    """A real file system on a device that may run out of space: a sync fails, and its bytes can still be read.

    `folder` is in that file system.
    """

    def __init__(self, root: Path) -> None:
        self.folder, self._below = root / "mounted", root / "below"
        self._filler = self._below / "filler"
        self._end = contextlib.ExitStack()
        for folder in (self.folder, self._below):
            folder.mkdir()
        try:
            self._mount("-t", "tmpfs", "-o", "size=40m", "tmpfs", str(self._below))
            image = self._below / "image"
            with image.open("wb") as file:
                file.truncate(200 << 20)
            run("mkfs.ext4", "-q", "-E", "nodiscard", str(image))
            device = run("losetup", "--find", "--show", str(image))
            self._end.callback(run, "losetup", "--detach", device)
            self._mount(device, str(self.folder))
        except BaseException:
            self.close()
            raise

    def _mount(self, *arguments: str) -> None:
        run("mount", *arguments)
        self._end.callback(run, "umount", "--lazy", arguments[-1])     # a test that failed has files open

    def fill(self) -> None:
        """Use up the space of the device."""
        with self._filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            for size in (1 << 16, 1 << 12):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(size))

    def free(self) -> None:
        """Give the device space again."""
        self._filler.unlink()

    def close(self) -> None:
        """Remove everything that was set up."""
        self._end.close()


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE_S).stdout.strip()


@pytest.fixture
def full(tmp_path: Path) -> Iterator[FullForAMoment]:
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.skip("a file system on a loop device needs root")
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("there is no mkfs.ext4")
    try:
        device = FullForAMoment(tmp_path)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no file system on a loop device: {error.stderr.strip()}")
    yield device
    device.close()


def failed_frame(full: FullForAMoment) -> Path:
    """A journal with five entries, and a sixth one whose sync has failed; its process has ended."""
    folder = full.folder / "journal"
    journal = Journal.open(folder, segment_bytes=1 << 20)
    for index in range(1, 6):
        journal.add(b"entry %d" % index + bytes(range(256)) * 16, index, 1)
        journal.sync()
    full.fill()
    journal.add(b"entry 6" + bytes(range(256)) * 64, 6, 1)
    with pytest.raises(SyncFailed, match="No space left on device") as failed:
        journal.sync()
    assert not passes(failed.value)
    full.free()
    journal.close()
    return folder


def test_the_next_process_believes_nothing_that_is_only_in_the_page_cache(full: FullForAMoment) -> None:
    folder = failed_frame(full)
    with (folder / "journal-00000001").open("rb") as file:
        os.fdatasync(file.fileno())                 # succeeds: to Linux all is written
        assert b"entry 6" in file.read()
    journal = Journal.open(folder, segment_bytes=1 << 20)
    assert (journal.last_index, journal.durable_index) == (5, 5)
    journal.add(b"another", 6, 2)
    journal.sync()
    journal.close()
    Disk().trust(folder, ["journal-00000001"])
    journal = Journal.open(folder, segment_bytes=1 << 20)
    assert (journal.last_index, journal.entry(6)) == (6, (b"another", 6, 2))
    journal.close()


def test_nor_what_another_program_keeps_there(full: FullForAMoment) -> None:
    folder = failed_frame(full)
    with (folder / "journal-00000001").open("rb") as file:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            assert b"entry 6" in mapped[:]
            journal = Journal.open(folder, segment_bytes=1 << 20)
            assert page_cache.resident(file.fileno())
            assert (journal.last_index, journal.durable_index) == (5, 5)
            assert b"entry 6" not in mapped[:]
        journal.add(b"another", 6, 2)
        journal.sync()
        journal.close()
