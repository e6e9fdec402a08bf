"""Snapshots that name pages of jobs, with the files of these, as a release writes them.

    .venv/bin/python -m tests.upgrade.paged level1      records data/paged/level1.tar.xz and level1.json

Recorded again only until the release; from then on what is recorded stays, and test_paged.py holds every later program
to it. level1.json says what must be found.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.paging.page_files import PageFiles
from sockpqd.cluster.snapshots.snapshot_store import SERIALIZING, SUCCESS, SnapshotStore
from sockpqd.cluster.storage.disk import Disk
from sockpqd.core import Due, Machine, Operation, Pager, Pages, Put, PutWith
from sockpqd.core.pages.pager import Stage
from tests.upgrade.directories import pack

PAGED = Path(__file__).parent / "data" / "paged"
STAGES = (Stage(100, 50, 20),)
READY, SHARED, DELAYED, LARGE = 1200, 600, 1200, 5
LARGE_BYTES = 5000


class Paged:
    """The files of a node without a log: its machine keeps as little as possible in memory."""

    def __init__(self, folder: Path) -> None:
        disk = Disk()
        self.pages = PageFiles(folder / "pages", disk)
        self.machine = Machine(None, lambda: Pager(Pages(self.pages), 0, STAGES))
        self.journal = Journal.open(folder / "journal", disk, segment_bytes=1 << 12)
        self.store = SnapshotStore.open(
            folder / "snapshots", disk, self.journal, self.machine, fork=False, clock=lambda: 0.0, pages=self.pages,
        )

    def do(self, operations: list[Operation]) -> None:
        """Apply these operations as the next entry, and page out what can be."""
        index = self.machine.index + 1
        if index > self.journal.last_index:
            self.journal.add(b"entry %d" % index, index, 1)
            self.journal.sync()
        self.machine.apply(index, 1_000_000 + index, index, operations)
        while self.machine.page_out():
            pass

    def write(self) -> None:
        """Write a snapshot, and wait until it is complete."""
        before, last = self.journal[-2:]
        self.store.serialize((None, last, before, set()), before[1])
        while (told := self.store.checkSerializing())[0] == SERIALIZING:
            pass
        assert told[0] == SUCCESS

    def found(self) -> dict[str, Any]:
        """Return figures of the state and its pages, to compare with those recorded."""
        pages = self.machine.pages
        assert pages is not None
        of_groups = self.machine.on_disk("shared").jobs
        return {
            "state": hashlib.sha256(b"".join(self.machine.snapshot())).hexdigest(),
            "jobs in pages": pages.jobs, "of them of groups": of_groups, "of them delayed": pages.indexed - of_groups,
            "bodies": pages.bodies.count,
        }

    def close(self) -> None:
        """Close snapshots and journal."""
        self.store.close()
        self.journal.close()


def make(folder: Path) -> dict[str, Any]:
    """Write the files; returns their contents."""
    node = Paged(folder)
    node.do([])
    node.do([Put(f"q{number % 2}", number % 3, b"job %d" % number) for number in range(READY)])
    node.do([
        PutWith(Put("shared", number % 2, b"job %d" % number), group=f"g{number % 3}") for number in range(SHARED)])
    node.do([
        PutWith(Put("later", 1, b"%d" % number), Due(10**9 * (number * 7 % 10 + 1)), group="g" if number % 4 else None)
        for number in range(DELAYED)])
    node.do([PutWith(Put("large", 0, bytes(LARGE_BYTES)), key=f"k{number}") for number in range(LARGE)])
    node.do([])
    node.write()
    found = node.found()
    node.close()
    return found


def main(name: str) -> None:
    """Make a data directory with pages, and record it as data/paged/NAME."""
    PAGED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        found = make(Path(folder))
        pack(Path(folder), PAGED / f"{name}.tar.xz")
    (PAGED / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
