"""Damage of real files: what is torn is repaired, what is damaged is refused, and nothing is silently different."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sockpqd.cluster.journal.journal import Journal, JournalDamaged
from sockpqd.cluster.storage.disk import Disk
from sockpqd.cluster.storage.errors import SnapshotDamaged, StorageDamaged
from tests.cluster.test_journal_tears import LAST_FRAMES, SEGMENT_BYTES, state_of, written
from tests.cluster.test_snapshots import Node

SEED = int(os.environ.get("SOCKPQ_SEED", "20240611"))
FLIPS = 2500
CUT_STEP = 16           # test_journal_tears.py tears at every byte, on a disk in memory
SMALL_SEGMENT_BYTES = 1 << 12


class QuickDisk(Disk):
    """Real files without syncs: nobody cuts the power here, and there are thousands of rounds."""

    def sync(self, file: int) -> None:
        pass

    def sync_directory(self, directory: Path) -> None:
        pass

    def drop_cache(self, file: int) -> None:
        pass

    def prepare(self, file: int, size: int, names: int) -> None:
        self.allocate(file, size)
        os.close(names)


class Directory:
    """A data directory that is damaged and restored again and again."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._files = {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}

    def files(self, pattern: str) -> dict[Path, bytes]:
        """Return their original contents, the oldest first."""
        return {path: data for path, data in self._files.items() if path.match(pattern)}

    def restore(self) -> None:
        """Restore all original files, and no others."""
        for folder in {path.parent for path in self._files}:
            for name in os.listdir(folder):
                if folder / name not in self._files:
                    (folder / name).unlink()
        for path, data in self._files.items():
            found = path.read_bytes() if path.exists() else None
            if found != data:
                with path.open("wb" if found is None or len(found) != len(data) else "r+b") as file:
                    file.write(data)


def open_node(root: Path) -> Node:
    return Node(QuickDisk(), root=root, segment_bytes=SMALL_SEGMENT_BYTES)


State = tuple[list[bytes], int, tuple[int, str | None, bool, int], list[tuple[bytes, int, int]]]


def opened(root: Path, since: int) -> State:
    """Return all that a node finds at its start: jobs, end of the log, promises, entries from `since` on."""
    node = open_node(root)
    try:
        applied, journal = node.load(), node.journal
        promises = journal.getCurrentTerm(), journal.getVotedForNodeId(), journal.voter, journal.getRaftCommitIndex()
        return applied, journal.last_index, promises, [journal.entry(k) for k in range(since, journal.last_index + 1)]
    finally:
        node.close()


SNAPSHOTS_AT = (14, 28)
LAST = 44


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    """Return two snapshots and the journal after the older one, over several segments."""
    node = open_node(tmp_path)
    rng = random.Random(1)
    for index in range(2, LAST + 1, 2):
        if index % 6 == 0:
            node.journal.setCurrentTerm(index // 9, rng.choice((None, "n1", "n2")))
        node.propose(2, index // 9)
        node.journal.setRaftCommitIndex(index)
        if index == 6:
            node.journal.set_voter()
        if index in SNAPSHOTS_AT:
            node.compact()
    node.journal.setRaftCommitIndex(LAST)
    node.journal.setCurrentTerm(7, "n3")
    node.journal.sync()
    node.close()
    made = Directory(tmp_path)
    assert len(made.files("snapshot-*")) == 2
    assert len(made.files("journal-*")) >= 4
    return made


def flip(path: Path, data: bytes, position: int) -> None:
    """Change one bit of a file."""
    with path.open("r+b") as file:
        file.seek(position // 8)
        file.write(bytes([data[position // 8] ^ 1 << position % 8]))


def test_of_thousands_of_flipped_bits_none_makes_a_silent_difference(directory: Directory) -> None:
    print(f"SOCKPQ_SEED={SEED}")
    rng = random.Random(SEED)
    journal, snapshots = directory.files("journal-*"), directory.files("snapshot-*")
    older, newest = snapshots
    used = {path: len(data.rstrip(b"\0")) or 512 for path, data in {**journal, **snapshots}.items()}
    since, seen = SNAPSHOTS_AT[1] - 1, Counter[str]()
    original = opened(directory.root, since)
    assert original[:2] == ([b"command-%d" % index for index in range(1, LAST + 1)], LAST)
    assert original[2] == (7, "n3", True, LAST)
    for _ in range(FLIPS):
        path = rng.choice(list(used))
        data = {**journal, **snapshots}[path]
        position = rng.randrange(8 * (used[path] if rng.random() < 0.95 else len(data)))
        flip(path, data, position)
        try:
            found = opened(directory.root, since)
        except StorageDamaged as error:
            refused = path in journal and str(path) in str(error)
            seen["refused" if refused else "refused for nothing"] += 1
        else:
            assert found == original, f"bit {position} of {path}"
            kind = "journal" if path in journal else "older snapshot" if path == older else "newest snapshot"
            seen[kind] += 1
            assert path != newest or path.with_name(f"{path.name}.damaged").exists()
            assert path not in journal or position // 8 >= used[path] or not any(data), f"bit {position} of {path}"
        directory.restore()
    assert sum(seen.values()) == FLIPS
    assert set(seen) == {"refused", "journal", "older snapshot", "newest snapshot"}
    assert min(seen.values()) > FLIPS // 100
    assert seen["refused"] > FLIPS // 3


@pytest.mark.parametrize("last", LAST_FRAMES)
def test_a_write_torn_at_any_byte_leaves_what_was_synced(last: Callable[[Journal], None], tmp_path: Path) -> None:
    disk, before, behind, start, end = written(last)
    for name in disk.names(Path("/journal")):
        if name != "lock":
            (tmp_path / name).write_bytes(disk.file(Path("/journal") / name))
    segment = tmp_path / "journal-00000001"
    whole = segment.read_bytes()
    with segment.open("r+b", buffering=0) as file:
        sectors = {edge + beside for edge in range(start, end + 1, 512) for beside in (-1, 0, 1)} & {*range(start, end)}
        for cut in sorted({*range(start, end, CUT_STEP), *sectors, end - 1, end}):
            file.seek(start)
            file.write(whole[start:cut] + bytes(end - cut))
            for _ in range(2 if cut % 64 == 0 else 1):          # what was repaired stays repaired
                journal = Journal.open(tmp_path, QuickDisk(), segment_bytes=SEGMENT_BYTES)
                assert state_of(journal) == (behind if cut == end else before), f"cut at byte {cut - start}"
                journal.close()


def test_a_snapshot_cut_at_any_byte_is_replaced_by_the_older_and_the_journal(directory: Directory) -> None:
    _, newest = directory.files("snapshot-*")
    original, data = opened(directory.root, LAST), newest.read_bytes()
    for length in range(len(data)):
        newest.write_bytes(data[:length])
        assert opened(directory.root, LAST) == original
        directory.restore()


def test_a_journal_cut_at_any_sector_is_refused(directory: Directory) -> None:
    for path, data in directory.files("journal-*").items():
        if not any(data):
            continue                # the spare segment holds nothing yet
        for length in range(0, len(data), 512):
            path.write_bytes(data[:length])
            with pytest.raises(JournalDamaged):
                opened(directory.root, LAST)
            directory.restore()


def remove(*patterns: str) -> Callable[[Path], None]:
    def damage(root: Path) -> None:
        for pattern in patterns:
            for path in root.rglob(pattern):
                path.unlink()
    return damage


def newest_holds_the_older(root: Path) -> None:
    """Replace the newest snapshot by the older one, as after restoring the wrong file from a backup."""
    older, newest = sorted((root / "snapshots").iterdir())
    newest.write_bytes(older.read_bytes())


def older_alone_by_the_name_of_the_newest(root: Path) -> None:
    older, newest = sorted((root / "snapshots").iterdir())
    older.rename(newest)


def former_snapshots(root: Path) -> None:
    """Put snapshots from before those that are here."""
    for path in (root / "snapshots").iterdir():
        path.unlink()
    other = open_node(root / "other")
    other.propose(8)
    other.compact()
    other.close()
    for path in (root / "other" / "snapshots").iterdir():
        path.rename(root / "snapshots" / path.name)


HARMLESS = [remove(f"snapshot-{SNAPSHOTS_AT[0]:016d}"), remove(f"snapshot-{SNAPSHOTS_AT[1]:016d}")]
DAMAGES = [
    remove("snapshot-*"), remove("journal-*"), remove("journal-00000003"), remove("journal-*", "lock"),
    former_snapshots,
]


@pytest.mark.parametrize("damage", HARMLESS)
def test_one_of_two_snapshots_is_enough(damage: Callable[[Path], None], directory: Directory) -> None:
    original = opened(directory.root, LAST)
    damage(directory.root)
    assert opened(directory.root, LAST) == original


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_missing_or_too_old_is_noticed(damage: Callable[[Path], None], directory: Directory) -> None:
    damage(directory.root)
    with pytest.raises(StorageDamaged, match="Stop it, move its data directory away"):
        opened(directory.root, LAST)


@pytest.mark.parametrize("exchange", [newest_holds_the_older, older_alone_by_the_name_of_the_newest])
def test_a_snapshot_by_the_name_of_another_is_none(
    exchange: Callable[[Path], None], directory: Directory, caplog: pytest.LogCaptureFixture,
) -> None:
    original = opened(directory.root, LAST)
    exchange(directory.root)
    if exchange is newest_holds_the_older:
        assert opened(directory.root, LAST) == original
    else:
        with pytest.raises(SnapshotDamaged, match="no sound snapshot before it"):
            opened(directory.root, LAST)
    assert f"it holds the state after entry {SNAPSHOTS_AT[0]}" in caplog.text


@pytest.fixture(autouse=True)
def _no_files_stay_open() -> Iterator[None]:
    before = len(os.listdir("/proc/self/fd"))
    yield
    assert len(os.listdir("/proc/self/fd")) <= before
