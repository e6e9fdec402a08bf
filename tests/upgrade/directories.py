"""Data directories that older programs left behind: how they are made, packed and unpacked.

    python tests/upgrade/directories.py NAME     makes data/NAME.tar.xz and data/NAME.json with the program of this
                                                 environment, or with the one that PYTHONPATH names

The directory belongs to a lone node n1 which was killed: two snapshots, the journal behind the older one over several
segments, jobs put before, between and behind the snapshots. NAME.json says what must be found in it.
"""

from __future__ import annotations

import contextlib
import functools
import json
import random
import sys
import tarfile
import time
from collections.abc import Iterator
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import IO, Any, Literal

import sockpq

from devcluster.cluster import LocalCluster, say
from tests.waiting import until

DATA = Path(__file__).parent / "data"
BLOCK_BYTES = 64 << 10
BALLAST = bytes(8 << 20)        # zeros: they fill journals and vanish when they are packed
LEASE_MAX_S = 100 * 365 * 86400
LEASE_S = 600                   # has ended when the directory is used again, unless the clock there is wrong
SETTLED_S = 3.0                 # after so long an idle node has written down that everything is committed

Waiting = tuple[int, int, str | None, str]      # -priority, place, item, data


class Load:
    """Makes jobs and keeps its own list of those that wait and those that run."""

    def __init__(self, client: sockpq.Client, seed: int) -> None:
        self.waiting: dict[str, list[Waiting]] = {}
        self.running: list[dict[str, Any]] = []
        self._client = client
        self._rng = random.Random(seed)
        self._numbers = count(1)

    def put(self) -> None:
        """Put a job into one of three queues, perhaps of an item."""
        number, rng = next(self._numbers), self._rng
        queue, priority = rng.choice(("mail", "print", "scan")), rng.choice((-7, 0, 0, 0, 1, 5, 2**63 - 1))
        data, asked = f"job {number} of {queue}", rng.choice((None, None, "order", "new"))
        new = asked == "new"
        item = self._client.put(queue, data.encode(), priority, None if new else asked, new).item
        self._wait(queue, priority, item, data)

    def _wait(self, queue: str, priority: int, item: str | None, data: str) -> None:
        self.waiting.setdefault(queue, []).append((-priority, next(self._numbers), item, data))
        self.waiting[queue].sort(key=lambda job: job[:2])

    def take(self, lease_s: int | None, then: Literal["later", "done"] = "later") -> None:
        """Take the first job of some queue; with a lease of None or 0 without limit."""
        queue = self._rng.choice([queue for queue, jobs in self.waiting.items() if jobs])
        job = self._client.get(queue, expire=lease_s, then=then if lease_s else None)
        rank, _, item, data = self.waiting[queue].pop(0)
        assert job is not None
        assert (job.priority, job.item, job.data) == (-rank, item, data.encode())
        self.running.append({
            "id": job.id, "queue": queue, "priority": -rank, "item": item, "data": data, "lease_s": lease_s or 0,
            "then": then,
        })

    def end(self) -> None:
        """Finish some running job, or return it."""
        job = self.running.pop(self._rng.randrange(len(self.running)))
        if self._rng.random() < 0.5:
            self._client.done(job["id"])
        else:
            self._client.later(job["id"])
            self._wait(job["queue"], job["priority"], job["item"], job["data"])

    def work(self, commands: int) -> None:
        """Do all of it, repeatedly; most jobs stay."""
        for _ in range(commands):
            self.put()
            if self._rng.random() < 0.4:
                self.take(self._rng.choice((None, 0, LEASE_MAX_S)), self._rng.choice(("later", "done")))
            if len(self.running) > 4:
                self.end()
        for then in ("later", "done"):
            self.take(LEASE_S, then)        # type: ignore[arg-type]


def make(name: str) -> None:
    """Make a directory; see the head of this file."""
    with LocalCluster(1, config={"raft": {"failover_grace_ms": 0}}) as cluster:
        data_dir, server = cluster.data_dir("n1"), cluster.server("n1")
        with sockpq.Client(cluster.servers) as client:
            load = Load(client, 1)
            for snapshots in (1, 2):
                load.work(60)
                _fill_the_journal(client, data_dir, snapshots)
            load.work(160)
        time.sleep(SETTLED_S)           # the end of the client's session is executed as well
        answer = say(server, "CLUSTER HASH", 2.0)
        assert answer is not None
        index, value = answer.split()[2:]
        cluster.kill("n1")
        names = sorted(path.name for path in (data_dir / "snapshots").iterdir())
        assert len(names) == 2, names
        description = {
            "made by sockpqd": version("sockpqd"), "node": "n1", "applied": int(index), "hash": value,
            "snapshots": names, "journal": sorted(path.name for path in (data_dir / "journal").glob("journal-*")),
            "waiting": {queue: [[-rank, item, data] for rank, _, item, data in jobs]
                        for queue, jobs in sorted(load.waiting.items())},
            "running": sorted(load.running, key=lambda job: int(job["id"])),
        }
        pack(data_dir, DATA / f"{name}.tar.xz")
    (DATA / f"{name}.json").write_text(json.dumps(description, indent=1) + "\n", "utf-8")


def _fill_the_journal(client: sockpq.Client, data_dir: Path, snapshots: int) -> None:
    """Wait until the node has written its next snapshot by itself."""
    def written() -> int:
        return len(list((data_dir / "snapshots").glob("snapshot-????????????????")))

    for _ in range(300):           # a node waits ten seconds and more between two snapshots
        client.put("ballast", BALLAST)
        job = client.get("ballast", expire=LEASE_MAX_S)
        assert job is not None
        job.done()
        time.sleep(0.2)
        if written() == snapshots:
            return
    raise RuntimeError("the node writes no snapshot")


def start_in_vain(cluster: LocalCluster, name: str) -> tuple[int | None, str]:
    """Start a node that must end by itself; returns its exit code and output."""
    before = len(cluster.logs(name))
    cluster.restart(name, wait=False)
    until(lambda: not cluster.running(name), lambda: cluster.logs(name))
    return cluster.terminate(name), cluster.logs(name)[before:]


def pack(directory: Path, archive: Path) -> None:
    """Compress everything in a directory."""
    with tarfile.open(archive, "w:xz", preset=9) as tar:
        for path in sorted(directory.rglob("*")):
            tar.add(path, path.relative_to(directory).as_posix(), recursive=False, filter=_nobody)


def _nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Reset the owner and time of an entry of the archive, so that two archives are equal."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


@contextlib.contextmanager
def stopped_node(name: str, **raft: int) -> Iterator[LocalCluster]:
    """A cluster of n1 alone with the packed data directory of this name; the caller restarts it.

    `raft`: settings of the section of that name.
    """
    with LocalCluster(1, config={"raft": {"failover_grace_ms": LEASE_S * 1000, **raft}}) as cluster:
        cluster.kill("n1")
        cluster.wipe("n1")
        unpack(DATA / f"{name}.tar.xz", cluster.data_dir("n1"))
        yield cluster


def unpack(archive: Path, directory: Path) -> None:
    """Restore the directory. Blocks of zeros become holes, so that it takes little space and time."""
    directory.mkdir(parents=True)
    for name, size, blocks in _contents(archive):
        path = directory / name
        if blocks is None:
            path.mkdir()
            continue
        with path.open("wb") as target:
            for position, block in blocks:
                target.seek(position)
                target.write(block)
            target.truncate(size)


@functools.cache
def _contents(archive: Path) -> list[tuple[str, int, list[tuple[int, bytes]] | None]]:
    """Return name, size and blocks that are not zeros of each file; no blocks are a folder's. Most of it is zeros."""
    contents: list[tuple[str, int, list[tuple[int, bytes]] | None]] = []
    with tarfile.open(archive, "r:xz") as tar:
        for member in tar:
            source = tar.extractfile(member)
            contents.append((member.name, member.size, None if source is None else list(_blocks(source))))
    return contents


def _blocks(source: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    zeros = bytes(BLOCK_BYTES)
    position = 0
    while block := source.read(BLOCK_BYTES):
        if block != zeros[:len(block)]:
            yield position, block
        position += len(block)


if __name__ == "__main__":
    make(sys.argv[1])
