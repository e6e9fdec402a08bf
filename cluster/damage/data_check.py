"""Checks that a directory is the data directory of a node, and its journal, snapshots and pages of jobs."""

from __future__ import annotations

from pathlib import Path

from sockpqd.cluster.damage.file_check import FAIL, FileCheck, UncachedDisk, check_files
from sockpqd.cluster.damage.journal_check import check_journal
from sockpqd.cluster.snapshots.snapshot_directory import needed_from
from sockpqd.cluster.storage.disk import Disk


def check_data(data_dir: Path, disk: Disk | None = None) -> list[FileCheck]:
    """Read all files that a start would read, whether the node runs or not. Raises OSError."""
    disk = disk or UncachedDisk()
    journal = data_dir / "journal"
    if "journal" not in disk.names(data_dir):
        return [FileCheck(FAIL, "data directory", f"{data_dir} is not the data directory of a node: it has no journal",
                          "name the directory that the node's configuration has as node.data_dir; a node makes its "
                          "journal when it is started for the first time")]
    needed = needed_from(disk, data_dir / "snapshots")
    return [check_journal(journal, disk, needed), *check_files(data_dir, disk)]
