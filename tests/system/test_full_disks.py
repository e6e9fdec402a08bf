"""Disks are filled from outside, under load, and there is room again: all of them, or a small one of a follower."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import sockpq

from devcluster.cluster import LocalCluster
from devcluster.node import NodeError
from tests.system.load import Producer, check, drain
from tests.system.test_kill import wait_for_progress
from tests.wire import Broken, Wire

DISK = "256m"
BODY = os.urandom(200_000)
NAMES = [f"{number:03}" + "x" * 247 for number in range(200)]
LEASE_S = 5
ANSWER_S = 2.0
PATIENCE_S = 120.0          # workers must fill what is reserved, which takes them long on a slow machine
AGAIN_S = 30.0              # all should serve again within 5 s, on a machine that has nothing else to do
LIMITS: dict[str, dict[str, str | int | bool]] = {"limits": {"disk_free_bytes_min": 8 << 20}}
LARGE = os.urandom(4 << 20)
WAITING = 25                # large jobs that wait all the time,
COME_AND_GO = 45            # and those that come and go meanwhile: more than the small disk has room for
LOOK_S = 2.0
ONE_DISK = "300m"
ONE_LIMITS: dict[str, dict[str, str | int | bool]] = {"limits": {"disk_free_bytes_min": 1 << 20, "hot_bytes": 1}}


class SmallDisks(LocalCluster):
    """A cluster of which `small` nodes have a file system of their own for their data."""

    def __init__(
        self, disks: Path, small: tuple[str, ...] = ("n1", "n2", "n3"),
        config: dict[str, dict[str, str | int | bool]] = LIMITS,
    ) -> None:
        super().__init__(3, config)
        self.disks = disks
        self.small = small
        self._filling = threading.Event()
        self._filler = threading.Thread()

    def environment(self, name: str) -> Mapping[str, str]:
        return {"SOCKPQD_NODE_DATA_DIR": str(self.disks / name / "data")} if name in self.small else {}

    def fill(self) -> None:
        """Leave no byte free on any disk, and take freed space as soon as there is some."""
        self._filling.clear()
        self._filler = threading.Thread(target=self._fill, daemon=True)
        self._filler.start()

    def _fill(self) -> None:
        with contextlib.ExitStack() as stack:
            files = [
                stack.enter_context((self.disks / name / "filler").open("wb", buffering=0)) for name in self.small
            ]
            while not self._filling.wait(0.02):
                for file in files:
                    with contextlib.suppress(OSError):
                        while True:
                            file.write(bytes(1 << 20))

    def stop(self) -> dict[str, int | None]:
        self._filling.set()
        return super().stop()

    def ballast_bytes(self, name: str) -> int:
        file = self.disks / name / "data" / "ballast"
        return file.stat().st_size if file.exists() else 0

    def make_room(self) -> None:
        """Free all that was taken."""
        self._filling.set()
        self._filler.join()
        for name in self.small:
            (self.disks / name / "filler").unlink()


@contextlib.contextmanager
def mounted(place: Path, names: tuple[str, ...], size: str) -> Iterator[None]:
    """Mount file systems of this size, in folders with these names."""
    if os.geteuid() != 0:
        pytest.skip("mounting small file systems needs root")
    with contextlib.ExitStack() as stack:
        for name in names:
            folder = place / name
            folder.mkdir()
            done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True)
            if done.returncode != 0:
                pytest.skip(f"cannot mount a tmpfs here: {done.stderr.decode()}")
            stack.callback(subprocess.run, ["umount", "-l", folder], check=True)
        yield


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SmallDisks]:
    with mounted(tmp_path, ("n1", "n2", "n3"), DISK), SmallDisks(tmp_path) as running:
        yield running


@pytest.fixture
def one_small(tmp_path: Path) -> Iterator[SmallDisks]:
    """A cluster of which n3 has a small disk."""
    with mounted(tmp_path, ("n3",), ONE_DISK), SmallDisks(tmp_path, ("n3",), ONE_LIMITS) as running:
        yield running


class Worker(threading.Thread):
    """Puts and takes large jobs by the client library, in a session; a job that it has taken goes back."""

    def __init__(self, servers: list[str]) -> None:
        super().__init__(daemon=True)
        self._servers = servers
        self.stopping = threading.Event()
        self.rounds = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            with sockpq.Client(self._servers, timeout=1.0) as client:
                while not self.stopping.is_set():
                    with contextlib.suppress(sockpq.SockpqError):       # refused, or nobody knows
                        client.put("large", BODY, timeout=0.1)
                    with contextlib.suppress(sockpq.SockpqError):
                        self._work(client)
        except BaseException as error:
            self.error = error

    def _work(self, client: sockpq.Client) -> None:
        for _ in range(20):
            job = client.get(["large", *NAMES], expire=60)      # large in the log, and takes no room for a job
            if job is not None:
                client.later(job)
            self.rounds += 1

    def finish(self) -> None:
        self.stopping.set()
        self.join(PATIENCE_S)
        assert self.error is None


def say(cluster: SmallDisks, line: str, data: bytes = b"") -> list[str]:
    """Send this to the node that serves; returns no words when there is none, or it closes."""
    leader = cluster.leader()
    if leader is None:
        return []
    try:
        with Wire(cluster.direct(leader), ANSWER_S) as wire:
            return wire.say(line, data).split()
    except Broken:
        return []


def until(condition: object, what: str, cluster: SmallDisks, patience_s: float = PATIENCE_S) -> float:
    """Wait for a condition; returns how long it took."""
    assert callable(condition)
    begun = time.monotonic()
    while not condition():
        waited_s = time.monotonic() - begun
        assert waited_s < patience_s, f"{what}: {[cluster.logs(name)[-1500:] for name in cluster.names]}"
        time.sleep(0.05)
    return time.monotonic() - begun


def nobody_serves(cluster: SmallDisks) -> bool:
    """Return whether no node serves for a while, not only during an election."""
    for _ in range(30):
        if cluster.leader() is not None:
            return False
        time.sleep(0.1)
    return True


def test_full_disks_end_nothing_and_all_serve_again_when_there_is_room(cluster: SmallDisks) -> None:
    cluster.wait_for_leader()
    producers = [Producer(cluster.servers, f"p{number}") for number in range(2)]
    workers = [Worker(cluster.servers) for _ in range(3)]
    for producer in producers:
        producer.start()
    wait_for_progress(producers)
    until(lambda: all(cluster.ballast_bytes(name) >= 64 << 20 for name in cluster.names), "no ballast", cluster)
    assert say(cluster, "PUT held 0 1", b"x") == ["200", "OK"]
    cluster.fill()
    for worker in workers:
        worker.start()
    until(lambda: say(cluster, "PUT mark 0 1", b"x") == ["503", "Busy"], "no job is refused", cluster)
    held = say(cluster, f"GET held EXPIRE {LEASE_S}")
    stopped_s = until(lambda: nobody_serves(cluster), "the reserve is not kept", cluster)

    cluster.kill("n2")
    cluster.restart("n2", wait=False)
    time.sleep(LEASE_S + 1)                 # the lease would be over
    assert cluster.leader() is None
    assert all(cluster.running(name) for name in cluster.names)

    cluster.make_room()
    took_s = until(lambda: say(cluster, "PUT mark 0 1", b"x") == ["200", "OK"], "nobody serves", cluster, AGAIN_S)
    print(f"stopped serving after {stopped_s:.1f} s, served again after {took_s:.1f} s")
    if held[:2] == ["200", "OK"] and stopped_s < LEASE_S:       # the lease was not over when serving stopped
        assert say(cluster, f"DONE {held[3]}")[:2] == ["200", "OK"]
    wait_for_progress(producers)
    cluster.wait_until_level()
    for worker in workers:
        worker.finish()
    for producer in producers:
        producer.finish()
    for name in cluster.names:
        assert cluster.running(name)
        assert "stopped itself" not in cluster.logs(name)
        assert "Traceback" not in cluster.logs(name)
    check(producers, drain(cluster))


class LargeJobs:
    """Puts and takes large jobs at the node that serves, one after the other.

    On a loaded machine another node may come to serve. Then a command is repeated: a job may be there twice, or remain
    with nobody.
    """

    def __init__(self, cluster: SmallDisks) -> None:
        self._cluster = cluster
        self._wire: Wire | None = None

    def _say(self, line: str, data: bytes = b"") -> tuple[list[str], bytes]:
        """Send a command until a node executes it; returns the words of the answer, and the job with them."""
        until_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                if self._wire is None:
                    self._wire = Wire(self._cluster.direct(large_leader(self._cluster)), 60.0)
                words = self._wire.say(line, data).split()
                if words[0] not in ("500", "503"):
                    follows = line.startswith("GET") and words[0] == "200"
                    return words, self._wire.exactly(int(words[5])) if follows else b""
                why = words
            except Broken as error:
                why = [str(error)]
            self.close()
            assert time.monotonic() < until_s, (line, why)
            time.sleep(0.1)

    def put(self) -> None:
        assert self._say(f"PUT large 0 {len(LARGE)}", LARGE)[0] == ["200", "OK"]

    def done(self) -> bool:
        """Take a job and end it; returns False if there is none."""
        words, body = self._say("GET large EXPIRE 600")
        if words[0] == "404":
            return False
        assert body == LARGE
        assert self._say(f"DONE {words[3]}")[0][0] in ("200", "404")    # 404: it is repeated
        return True

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None


def large_leader(cluster: SmallDisks) -> str:
    """Wait until a node with a large disk serves, to which the small one hands over; returns its name."""
    while (leader := cluster.wait_for_leader()) == "n3":
        assert cluster.say("n3", "CLUSTER TRANSFER n1", 60.0)
    return leader


def test_a_follower_with_a_small_disk_does_not_stay_behind_an_empty_cluster(one_small: SmallDisks) -> None:
    cluster = one_small
    jobs = LargeJobs(cluster)
    for _ in range(WAITING):
        jobs.put()
    for number in range(COME_AND_GO):
        if number == COME_AND_GO - 10:
            cluster.fill()
        jobs.put()
        assert jobs.done()
    cluster.make_room()
    while jobs.done():
        pass
    until(lambda: level(cluster), "n3 stays behind", cluster)
    assert cluster.running("n3")
    assert "Traceback" not in cluster.logs("n3")
    assert "is short of room" in cluster.logs("n3")

    def given_up() -> bool:
        """Return whether it is so. The last snapshot but one keeps its pages, so more jobs must cause another one."""
        if page_bytes(cluster) < 100 << 20:
            return True
        jobs.put()
        assert jobs.done()
        time.sleep(0.5)
        return False

    until(given_up, "the pages of jobs that are done stay", cluster)
    jobs.close()


def level(cluster: SmallDisks) -> bool:
    """Return whether all nodes are level soon; the small one may have to give up its files, as a unit lets it."""
    if not cluster.running("n3"):
        assert "RejoinNeeded" in cluster.logs("n3")
        cluster.restart("n3", wait=False)
    with contextlib.suppress(NodeError):
        cluster.wait_until_level(LOOK_S)
        return True
    return False


def page_bytes(cluster: SmallDisks) -> int:
    """Return the size of the page files on the small disk."""
    total = 0
    for path in (cluster.disks / "n3" / "data" / "pages").glob("pages-*"):
        with contextlib.suppress(FileNotFoundError):        # given up since
            total += path.stat().st_blocks * 512
    return total
