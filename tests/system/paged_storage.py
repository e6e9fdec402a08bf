"""Measures the memory and time for waiting jobs on disk: the state machine and the storage of one node.

    python -m tests.system.paged_storage [--jobs 20000000] [--size 100] [--hot-bytes 64000000] [--directory DIR]

Jobs are put into ten queues, without a log and without clients; then a snapshot is written, another process loads it,
and takes jobs. All of it is below --directory, which needs room for the jobs once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from bench.load_generator.console import make_console
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.paging.page_files import PageFiles
from sockpqd.cluster.paging.paging import paging_machine
from sockpqd.cluster.snapshots.snapshot_store import SERIALIZING, SUCCESS, SnapshotStore
from sockpqd.cluster.storage.disk import Disk
from sockpqd.core import Get, GetWith, Machine, Put

ENTRY_JOBS = 1000
QUEUES = 10
TAKEN_JOBS = 100_000
NOW_MS = 1_700_000_000_000
POLL_S = 0.01


class Filled(Struct):
    """The costs of putting the jobs, and of writing a snapshot of them."""

    put_s: float
    memory_bytes: int
    page_bytes: int
    fork_s: float           # for which the node would do nothing else
    snapshot_s: float
    snapshot_bytes: int
    child_bytes: int        # memory that only the child had


class Loaded(Struct):
    """The costs of loading the snapshot, and of taking the first jobs."""

    start_s: float
    memory_bytes: int
    jobs: int
    taken_s: float
    longest_s: float        # of an entry of ENTRY_JOBS


class Storage:
    """The storage of one node without its log."""

    def __init__(self, directory: Path, hot_bytes: int) -> None:
        self.pages = PageFiles(directory / "pages", Disk())
        self.machine: Machine = paging_machine(self.pages, hot_bytes)
        self.journal = Journal.open(directory / "journal", Disk())
        self.store = SnapshotStore.open(
            directory / "snapshots", Disk(), self.journal, self.machine, pages=self.pages)

    def close(self) -> None:
        """Close snapshots and journal."""
        self.store.close()
        self.journal.close()


def fill(directory: Path, jobs: int, size: int, hot_bytes: int) -> Filled:
    """Put jobs, and write a snapshot."""
    storage = Storage(directory, hot_bytes)
    machine, journal, store = storage.machine, storage.journal, storage.store
    puts = [Put(f"q{number % QUEUES}", 0, bytes(size)) for number in range(ENTRY_JOBS)]
    begun = time.perf_counter()
    for index in range(2, 2 + -(-jobs // ENTRY_JOBS)):
        machine.apply(index, NOW_MS + index, index, puts)
        while machine.page_out():
            pass
    put_s = time.perf_counter() - begun
    # The journal that a node would have behind a snapshot: the last two entries.
    journal.clear()
    for index in (machine.index - 1, machine.index):
        journal.add(b"", index, 1)
    journal.sync()
    begun = time.perf_counter()
    prev, last = journal[-2:]
    store.serialize((None, last, prev, set()), prev[1])
    fork_s = time.perf_counter() - begun
    child_bytes = 0
    while (told := store.checkSerializing()[0]) == SERIALIZING:
        child_bytes = max(child_bytes, own_bytes_of_children())
        time.sleep(POLL_S)
    if told != SUCCESS:
        raise click.ClickException("the snapshot could not be written")
    filled = Filled(
        put_s, memory_bytes(), storage.pages.bytes_total, fork_s, time.perf_counter() - begun, store.newest_bytes,
        child_bytes,
    )
    storage.close()
    return filled


def load(directory: Path, hot_bytes: int) -> Loaded:
    """Load the snapshot, and take jobs."""
    begun = time.perf_counter()
    storage = Storage(directory, hot_bytes)
    start_s, memory, machine = time.perf_counter() - begun, memory_bytes(), storage.machine
    jobs, longest_s = machine.total(None).jobs, 0.0
    begun = time.perf_counter()
    for _ in range(min(TAKEN_JOBS, jobs) // ENTRY_JOBS):
        entry_begun, index = time.perf_counter(), machine.index + 1
        machine.apply(index, NOW_MS + index, index, [GetWith(Get(None), ENTRY_JOBS)])
        longest_s = max(longest_s, time.perf_counter() - entry_begun)
    taken_s = time.perf_counter() - begun
    storage.close()
    return Loaded(start_s, memory, jobs, taken_s, longest_s)


def memory_bytes() -> int:
    """Return the resident memory of this process."""
    return _kilobytes(Path("/proc/self/status"), "VmRSS:") << 10


def own_bytes_of_children() -> int:
    """Return the memory that the children of this process have in addition to its own."""
    pids = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    with suppress(OSError):             # one has ended
        return sum(_kilobytes(Path(f"/proc/{pid}/smaps_rollup"), "Private_Dirty:") << 10 for pid in pids)
    return 0


def _kilobytes(path: Path, name: str) -> int:
    lines = path.read_text().splitlines()
    return int(next((line.split()[1] for line in lines if line.startswith(name)), "0"))


@click.command()
@click.option("--jobs", default=20_000_000, show_default=True, type=click.IntRange(1))
@click.option("--size", default=100, show_default=True, type=click.IntRange(0, 8 << 20), help="Bytes of a job.")
@click.option("--hot-bytes", default=64_000_000, show_default=True, type=click.IntRange(0), help="limits.hot_bytes")
@click.option("--directory", type=click.Path(file_okay=False, exists=True, path_type=Path),
              help="Where the files are, for as long as this runs; without, where the system keeps temporary ones.")
@click.option("--load", "loaded", hidden=True, type=click.Path(path_type=Path))
def main(jobs: int, size: int, hot_bytes: int, directory: Path | None, loaded: Path | None) -> None:
    """Measure memory, snapshot and start with many jobs in pages."""
    if loaded is not None:          # the second process
        click.echo(msgspec.json.encode(load(loaded, hot_bytes)))
        return
    folder = Path(tempfile.mkdtemp(prefix="sockpqd-paged-", dir=directory))
    console = make_console()
    try:
        filled = fill(folder, jobs, size, hot_bytes)
        console.print(
            f"{jobs:,} jobs put in {filled.put_s:.1f} s: {filled.memory_bytes / 1e6:,.0f} MB of memory, "
            f"{filled.page_bytes / 1e9:.2f} GB of pages")
        console.print(
            f"snapshot in {filled.snapshot_s:.2f} s: the fork {1000 * filled.fork_s:.0f} ms, "
            f"{filled.snapshot_bytes / 1e6:,.0f} MB, memory of the child {filled.child_bytes / 1e6:,.0f} MB")
        program = [sys.executable, "-m", "tests.system.paged_storage"]
        command = [*program, "--load", str(folder), "--hot-bytes", str(hot_bytes)]
        told = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        again = msgspec.json.decode(told, type=Loaded)
        console.print(
            f"start in {again.start_s:.2f} s: {again.jobs:,} jobs, {again.memory_bytes / 1e6:,.0f} MB of memory")
        console.print(
            f"{min(TAKEN_JOBS, again.jobs):,} jobs taken in {again.taken_s:.2f} s, "
            f"{ENTRY_JOBS:,} of them in at most {1000 * again.longest_s:.0f} ms")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
