"""Checks a node's snapshots, and the pages of jobs they refer to, from a separate process that an operator starts.

It only reads, so the node may be running; files that the node removes in the meantime do not count as missing. It
bypasses the page cache, which would show what was written and not what is on the disk. Unlike a start it continues
after the first damage. Pages are not kept in memory, only their references.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import closing
from heapq import merge
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from sockpqd.cluster.paging.page_format import PREFIX, PageReader, Reference, path_of
from sockpqd.cluster.snapshots.snapshot_directory import index_of
from sockpqd.cluster.snapshots.snapshot_file import SnapshotFile
from sockpqd.cluster.storage.disk import Disk
from sockpqd.cluster.storage.errors import SnapshotDamaged, SnapshotTooNew
from sockpqd.core import PageLost, references

OK, WARN, FAIL = "OK", "WARN", "FAIL"
DESCRIBED = 3           # damaged pages
MIB = 1 << 20


class FileCheck(NamedTuple):
    """One finding. `advice`: the remedy, and what the node will do at its next start."""

    state: str
    name: str
    found: str
    advice: str | None = None


class _Snapshot(NamedTuple):
    last: int               # entry in it
    size: int               # of its file
    pages: list[bytes]      # references, sorted
    error: str = ""         # what is wrong with its own file


class UncachedDisk(Disk):
    """Drops the synced part of a file from the page cache when it is opened.

    The node may have the file open as well.
    """

    def open(self, path: Path, *, writable: bool = False) -> int:
        file = super().open(path, writable=writable)
        self.forget(file, 0, 0)         # all of it
        return file


def check_files(data_dir: Path, disk: Disk | None = None) -> list[FileCheck]:
    """Read the snapshots of a node and all pages that they name. Raises OSError."""
    disk = disk or UncachedDisk()
    folder, pages = data_dir / "snapshots", data_dir / "pages"
    while True:
        found = [_read(disk, folder, index) for index in _indexes(disk, folder)]
        snapshots = [one for one in found if one is not None]
        damaged = _damaged_pages(disk, pages, snapshots)
        if {one.last for one in snapshots} <= set(_indexes(disk, folder)):
            return [*_of_snapshots(snapshots, damaged), *_of_pages(disk, pages, snapshots, damaged)]


def _names(disk: Disk, folder: Path) -> list[str]:
    try:
        return disk.names(folder)
    except FileNotFoundError:
        return []


def _indexes(disk: Disk, folder: Path) -> list[int]:
    """Return the indexes of the snapshots, the newest first."""
    return sorted((index for name in _names(disk, folder) if (index := index_of(name)) is not None), reverse=True)


def _read(disk: Disk, folder: Path, index: int) -> _Snapshot | None:
    """Read every byte of a snapshot; returns None if it no longer exists."""
    path = folder / f"snapshot-{index:016d}"
    try:
        with closing(SnapshotFile(disk, path)) as file:
            if file.contents.pages:
                pages = sorted(references(file.stream()))
            else:
                pages = []
                deque(file.stream(), maxlen=0)          # reading it all checks it
            if file.contents.last[1] != index:
                return _Snapshot(index, file.size, [], f"{path} has the name of another snapshot")
            return _Snapshot(index, file.size, pages)
    except FileNotFoundError:
        return None
    except PageLost as error:
        return _Snapshot(index, 0, [], f"snapshot {path} is damaged: {error}")
    except (OSError, SnapshotDamaged, SnapshotTooNew) as error:
        return _Snapshot(index, 0, [], str(error))


def _damaged_pages(disk: Disk, folder: Path, snapshots: list[_Snapshot]) -> dict[bytes, str]:
    """Read each page once, in file order; returns the damaged ones with their errors."""
    damaged: dict[bytes, str] = {}
    missing: set[int] = set()
    with closing(PageReader(disk, folder)) as reader:
        for one, _ in groupby(merge(*[snapshot.pages for snapshot in snapshots])):
            number = Reference.unpacked(one).segment
            try:
                if number in missing:
                    raise PageLost(f"{path_of(folder, number)} is missing")
                reader.read(one)
            except (OSError, PageLost) as error:
                damaged[one] = str(error)
                if path_of(folder, number).name not in _names(disk, folder):
                    missing.add(number)
    return damaged


def _of_snapshots(snapshots: list[_Snapshot], damaged: dict[bytes, str]) -> Iterator[FileCheck]:
    """Check each snapshot, and find the one that the node would use at its next start."""
    whole = [one.last for one in snapshots if not one.error and not any(page in damaged for page in one.pages)]
    if not snapshots:
        yield FileCheck(OK, "snapshots", "there is none yet: a start reads the whole journal")
    for at, one in enumerate(snapshots):
        if one.last in whole:
            pages = f" and {_counted(len(one.pages), 'page')} of jobs" if one.pages else ""
            taken = "; a start takes it" if one.last == whole[0] else ""
            yield FileCheck(OK, "snapshots",
                            f"up to entry {one.last}: {_size(one.size)}{pages}, all as written{taken}")
            continue
        bad = sum(page in damaged for page in one.pages)
        found = one.error or f"up to entry {one.last}: {bad} of {len(one.pages)} pages of jobs are damaged or missing"
        if whole and whole[0] > one.last:
            yield FileCheck(WARN, "snapshots", found, f"the one up to entry {whole[0]} is newer and whole: this one "
                            "goes with the next (pqctl cluster snapshot). Check the disk")
        elif whole:
            yield FileCheck(FAIL, "snapshots", found, f"a start takes the one up to entry {whole[0]} and the journal, "
                            "nothing is lost. Check the disk, and have a new one written (pqctl cluster snapshot)")
        else:
            yield FileCheck(FAIL, "snapshots", found, "no snapshot is whole. Do not restart the node without need: "
                            "if its journal is not complete, a start sets the files aside and rejoins the others "
                            "(OPERATIONS.md, Damaged files)" if at == 0 else None)


def _of_pages(
    disk: Disk, folder: Path, snapshots: list[_Snapshot], damaged: dict[bytes, str],
) -> Iterator[FileCheck]:
    """Yield the damaged pages with their errors, and the files that no snapshot needs."""
    named = {Reference.unpacked(page).segment for one in snapshots for page in one.pages}
    descriptions = sorted(set(damaged.values()))
    for what in descriptions[:DESCRIBED]:
        yield FileCheck(FAIL, "pages", what)
    if len(descriptions) > DESCRIBED:
        yield FileCheck(FAIL, "pages", f"{len(descriptions) - DESCRIBED} more like these")
    names = _names(disk, folder)
    files = {path_of(folder, number).name for number in named}
    others = [name for name in names if _is_page_file(name) and name not in files]
    strange = [name for name in names if not _is_page_file(name)]
    if named and not damaged:
        yield FileCheck(OK, "pages", f"{_counted(len(files), 'file')}, {_size(_bytes(disk, folder, files))}: what "
                        "the snapshots need of them is as written")
    if others:
        yield FileCheck(OK, "pages", f"{_counted(len(others), 'file')}, {_size(_bytes(disk, folder, others))}, that "
                        "no snapshot needs: a running node has newer jobs there, and a start removes them")
    if strange:
        yield FileCheck(WARN, "pages", f"in {folder} {_counted(len(strange), 'file')} not of sockpqd: "
                        f"{', '.join(strange[:DESCRIBED])}", "remove them, or find out who writes them")


def _is_page_file(name: str) -> bool:
    number = name.removeprefix(PREFIX)
    return number.isdecimal() and name == path_of(Path(), int(number)).name


def _bytes(disk: Disk, folder: Path, names: list[str] | set[str]) -> int:
    """Return the total size of the files that exist."""
    total = 0
    for name in names:
        try:
            file = disk.open(folder / name)
        except FileNotFoundError:
            continue
        total += disk.size(file)
        disk.close(file)
    return total


def _counted(count: int, one: str) -> str:
    return f"{count:,} {one if count == 1 else one + 's'}"


def _size(count: int) -> str:
    return f"{count:,} bytes" if count < MIB else f"{count / MIB:,.1f} MiB"
