"""A program that finds files of a newer one ends with a sentence and exit code 70, and changes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import msgspec
import pytest

from devcluster.cluster import LocalCluster
from sockpqd.cluster.journal import journal_format
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.snapshots import snapshot_file
from sockpqd.cluster.snapshots.snapshot_file import SnapshotFile
from sockpqd.cluster.storage.disk import Disk
from sockpqd.core.ops.entry import ENTRY_FORMAT
from sockpqd.core.snapshot.write import FORMAT, MAGIC
from tests.upgrade.directories import DATA, start_in_vain, stopped_node, unpack

NAME = "entry3"
NEVER = 250             # the tag of no operation
SAMPLE_ENTRY_FORMAT = 3     # of the entries in the data directory of that name


def newer_journal(data_dir: Path) -> str:
    """Make the last frame one of a newer format."""
    segments = (data_dir / "journal").glob("journal-*")
    segment = max(path for path in segments if path.read_bytes()[:4] == journal_format.MAGIC)
    data = bytearray(segment.read_bytes())
    *_, (start, _) = journal_format.later_headers(bytes(data), 0)
    data[start + 4:start + 6] = (journal_format.VERSION + 1).to_bytes(2, "little")
    data[start + 56:start + 60] = crc32(data[start:start + 56]).to_bytes(4, "little")
    segment.write_bytes(data)
    return f"JournalTooNew: journal {segment} has format {journal_format.VERSION + 1};"


def newest_snapshot(data_dir: Path) -> Path:
    return max((data_dir / "snapshots").glob("snapshot-*"))


def rewrite(path: Path, stream: Callable[[bytes], bytes]) -> None:
    """Write a snapshot again with another stream in it."""
    disk = Disk()
    file = SnapshotFile(disk, path)
    old = b"".join(file.stream())
    file.close()
    path.unlink()
    snapshot_file.write(disk, path, file.contents, iter((stream(old),)))


def newer_snapshot(data_dir: Path) -> str:
    """Make the newest snapshot's file one of a newer format."""
    path, version = newest_snapshot(data_dir), snapshot_file.VERSION_WITH_PAGES
    with pytest.MonkeyPatch.context() as newer:
        newer.setattr(snapshot_file, "VERSION", version + 1)
        rewrite(path, lambda stream: stream)
    return f"SnapshotTooNew: snapshot {path} has format {version + 1};"


def newer_state(data_dir: Path) -> str:
    """Make the state in the newest snapshot one of a newer format."""
    path = newest_snapshot(data_dir)
    rewrite(path, lambda stream: MAGIC + (FORMAT + 1).to_bytes(4, "big") + stream[len(MAGIC) + 4:])
    return f"SnapshotTooNew: .* does not understand snapshot {path}: snapshot of format {FORMAT + 1};"


def append(data_dir: Path, change: Callable[[bytes], bytes]) -> int:
    """Append a changed copy of the last entry, as if it were committed; returns its index."""
    journal = Journal.open(data_dir / "journal")
    command, index, term = journal[-1]
    changed = change(command)
    assert changed != command
    journal.add(changed, index + 1, term)
    journal.setRaftCommitIndex(index + 1)
    journal.sync()
    journal.close()
    return index + 1


def newer_entry(data_dir: Path) -> str:
    """Make a log entry of a newer format."""
    old, new = (
        msgspec.msgpack.encode([number, 1 << 40, 0, []])[:3] for number in (SAMPLE_ENTRY_FORMAT, ENTRY_FORMAT + 1)
    )
    index = append(data_dir, lambda command: command.replace(old, new, 1))
    return f"entry {index} .*format {ENTRY_FORMAT + 1};"


def newer_operation(data_dir: Path) -> str:
    """Put an operation into a log entry that is not known yet."""
    def change(command: bytes) -> bytes:
        start = command.index(msgspec.msgpack.encode([SAMPLE_ENTRY_FORMAT, 1 << 40, 0, []])[:3])
        entry = msgspec.msgpack.encode([ENTRY_FORMAT, 1 << 40, 0, [[NEVER, "what", "ever"]]])
        return command[:start - 2] + msgspec.msgpack.encode(entry)[:2] + entry
    return f"entry {append(data_dir, change)} was written by a newer version"


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """A node that does not run."""
    with stopped_node(NAME) as stopped:
        yield stopped


def contents(directory: Path) -> dict[str, tuple[int, int]]:
    """Return length and checksum of all files."""
    files = {path: path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}
    return {str(path): (len(data), crc32(data)) for path, data in files.items()}


@pytest.mark.parametrize("make", [newer_journal, newer_snapshot, newer_state, newer_entry, newer_operation])
def test_what_is_too_new_is_refused_and_left_as_it_is(cluster: LocalCluster, make: Callable[[Path], str]) -> None:
    data_dir = cluster.data_dir("n1")
    cluster.wipe("n1")
    unpack(DATA / f"{NAME}.tar.xz", data_dir)
    expected = make(data_dir)
    before = contents(data_dir)
    code, said = start_in_vain(cluster, "n1")
    assert code == 70
    assert re.search(expected, said), said
    assert "Traceback" not in said
    assert contents(data_dir) == before
