"""Measures the memory and time for records of ended jobs: the state machine and the storage of one node.

    python -m tests.system.record_storage [--records 1000000] [--hot-bytes 0] [--directory DIR]

That many jobs end, without a log and without clients, in a queue without RETAIN and then in one with it. A snapshot is
written, another process loads it, and the time of all records passes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
import msgspec
from msgspec import Struct
from rich.console import Console

from bench.load_generator.console import make_console
from sockpqd.cluster.snapshots.snapshot_store import SERIALIZING, SUCCESS
from sockpqd.core import ConfigureQueue, End, Get, GetWith, Handed, HandedMany, How, Put, PutWith, QueueChange, Tick
from tests.system.paged_storage import NOW_MS, POLL_S, Storage, memory_bytes

AT_ONCE = 100
BODY, RESULT = bytes(100), bytes(20)
RETAIN_S = 86_400


class Kept(Struct):
    """The costs of ending the jobs, with records or without, and of writing a snapshot."""

    job_us: float
    record_bytes: float         # of memory, each
    file_bytes: float           # each
    snapshot_s: float
    snapshot_bytes: int


class Loaded(Struct):
    """The costs of loading the snapshot, of finding one record, and of removing all when they expire."""

    start_s: float
    record_bytes: float
    find_us: float
    removal_s: float
    removal_longest_s: float        # of an entry


def keep(directory: Path, records: int, hot_bytes: int, retain_ms: int) -> Kept:
    """Let this many jobs end, and write a snapshot."""
    storage = Storage(directory, hot_bytes)
    machine, journal, store = storage.machine, storage.journal, storage.store
    machine.apply(2, NOW_MS, 0, [ConfigureQueue("q", QueueChange(
        retain_ms=retain_ms, retain_max=records, retain_bytes=2**40))])
    puts = [PutWith(Put("q", 0, BODY), number=True)] * AT_ONCE
    _end_some(storage, puts, 3)
    before = memory_bytes()
    begun = time.process_time()
    for batch in range(1, -(-records // AT_ONCE)):
        _end_some(storage, puts, 3 + 3 * batch)
    job_us = (time.process_time() - begun) / records * 1e6
    grown = memory_bytes() - before
    journal.clear()
    for index in (machine.index - 1, machine.index):        # the journal that a node would have behind a snapshot
        journal.add(b"", index, 1)
    journal.sync()
    begun = time.perf_counter()
    prev, last = journal[-2:]
    store.serialize((None, last, prev, set()), prev[1])
    while (told := store.checkSerializing()[0]) == SERIALIZING:
        time.sleep(POLL_S)
    if told != SUCCESS:
        raise click.ClickException("the snapshot could not be written")
    kept = Kept(
        job_us, grown / records, storage.pages.bytes_total / records, time.perf_counter() - begun, store.newest_bytes)
    storage.close()
    return kept


def _end_some(storage: Storage, puts: list[PutWith], index: int) -> None:
    machine, now_ms = storage.machine, NOW_MS + index
    machine.apply(index, now_ms, index, puts)
    (taken,) = machine.apply(index + 1, now_ms, index, [GetWith(Get(("q",)), len(puts))]).replies
    assert isinstance(taken, HandedMany)
    ends = [End(job.id, How.DONE, text=RESULT) for job in taken.jobs if isinstance(job, Handed)]
    machine.apply(index + 2, now_ms, index, ends)
    while machine.page_out():
        pass


def load_again(directory: Path, records: int, hot_bytes: int) -> Loaded:
    """Load the snapshot, look for records, and let all of them expire."""
    before = memory_bytes()
    begun = time.perf_counter()
    storage = Storage(directory, hot_bytes)
    start_s, grown, machine = time.perf_counter() - begun, memory_bytes() - before, storage.machine
    jobs, _ = machine.ended_jobs("q", AT_ONCE)
    begun = time.perf_counter()
    assert all(machine.result(job.number or 0) == RESULT for job in jobs)
    find_us = (time.perf_counter() - begun) / len(jobs) * 1e6
    removal_s = longest_s = 0.0
    now_ms = NOW_MS + RETAIN_S * 1000
    while machine.retained("q")[0] or storage.pages.live_bytes:
        now_ms += 1000
        begun = time.perf_counter()
        machine.apply(machine.index + 1, now_ms, 0, [Tick()])
        longest_s = max(longest_s, time.perf_counter() - begun)
        removal_s += time.perf_counter() - begun
    storage.close()
    return Loaded(start_s, grown / records, find_us, removal_s, longest_s)


@click.command()
@click.option("--records", default=1_000_000, show_default=True, type=click.IntRange(1000))
@click.option("--hot-bytes", default=0, show_default=True, type=click.IntRange(0), help="limits.hot_bytes")
@click.option("--directory", type=click.Path(file_okay=False, exists=True, path_type=Path),
              help="Where the files are, for as long as this runs; without, where the system keeps temporary ones.")
@click.option("--loaded", hidden=True, type=click.Path(path_type=Path))
def main(records: int, hot_bytes: int, directory: Path | None, loaded: Path | None) -> None:
    """Measure memory, snapshot, start and removal of many records in the storage of one node."""
    if loaded is not None:          # the second process
        click.echo(msgspec.json.encode(load_again(loaded, records, hot_bytes)))
        return
    console = make_console()
    for retain_ms in (0, RETAIN_S * 1000):
        folder = Path(tempfile.mkdtemp(prefix="sockpqd-records-", dir=directory))
        try:
            found = keep(folder, records, hot_bytes, retain_ms)
            console.print(f"{'with' if retain_ms else 'without'} RETAIN: {found.job_us:.1f} us for each job")
            if retain_ms:
                _tell(console, found)
                options = ["--records", str(records), "--hot-bytes", str(hot_bytes)]
                command = [sys.executable, "-m", "tests.system.record_storage", "--loaded", str(folder), *options]
                told = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
                _tell(console, msgspec.json.decode(told, type=Loaded))
        finally:
            shutil.rmtree(folder)


def _tell(console: Console, figures: Struct) -> None:
    for name, figure in msgspec.structs.asdict(figures).items():
        console.print(f"{name}: {figure:,.3f}")


if __name__ == "__main__":
    main()
