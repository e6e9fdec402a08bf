"""Findings in the snapshots and page files of a node from outside, with each damage."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from sockpqd.cluster import FileCheck, check_data, check_files
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.paging import file_space
from sockpqd.cluster.paging.page_format import HEADER
from sockpqd.cluster.snapshots import snapshot_file
from sockpqd.cluster.storage.disk import Disk
from sockpqd.cluster.storage.errors import SnapshotDamaged, SnapshotTooNew
from sockpqd.gateway.main import main
from tests.cluster.test_named_pages import Log, Node, filled
from tests.core.helpers.paging import small_collections


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small_collections(monkeypatch)
    monkeypatch.setattr(file_space, "SEGMENT_BYTES", 1000)
    monkeypatch.setattr(file_space, "WRITE_BYTES", 100)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """A running node with two snapshots by reference, on a real disk."""
    return filled(Log(), Disk(), root=tmp_path)


def worst(found: list[FileCheck]) -> str:
    """Return the worst state among these findings."""
    return max((check.state for check in found), key=("OK", "WARN", "FAIL").index)


def of(found: list[FileCheck], name: str) -> list[FileCheck]:
    return [check for check in found if check.name == name]


def pages_of(node: Node, root: Path, index: int) -> list[Path]:
    """Return the files of pages that a snapshot names."""
    return [root / "pages" / f"pages-{number:08}" for number in sorted(node.pages.named[index])]


def change(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    path.write_bytes(data)


def test_all_is_well_while_the_node_runs_and_afterwards(node: Node, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for _ in range(2):
        found = check_files(tmp_path)
        assert worst(found) == "OK"
        newest, older = of(found, "snapshots")
        assert f"up to entry {node.store.newest_index}" in newest.found
        assert "pages of jobs, all as written; a start takes it" in newest.found
        assert "a start takes it" not in older.found
        assert any("is as written" in check.found for check in of(found, "pages"))
        node.close()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_files_that_only_the_running_node_needs_are_told(node: Node, tmp_path: Path) -> None:
    node.log.put(50)
    node.follow()
    found = check_files(tmp_path)
    assert worst(found) == "OK"
    assert any("that no snapshot needs" in check.found for check in of(found, "pages"))
    node.close()


def test_a_node_without_snapshots(tmp_path: Path) -> None:
    (found,) = check_files(tmp_path)
    assert (found.state, found.name) == ("OK", "snapshots")
    assert "a start reads the whole journal" in found.found


@pytest.mark.parametrize("damage", [
    lambda path: change(path, HEADER.size + 1),
    lambda path: change(path, 1),
    lambda path: os.truncate(path, path.stat().st_size - 1),
    lambda path: os.truncate(path, 0),
    Path.unlink,
], ids=["data", "header", "cut", "empty", "missing"])
def test_a_damaged_page_of_the_newest_snapshot_leads_to_the_one_before(
    node: Node, tmp_path: Path, damage: Callable[[Path], object],
) -> None:
    older, newest = node.store.kept()
    node.close()
    only = [path for path in pages_of(node, tmp_path, newest) if path not in pages_of(node, tmp_path, older)]
    damage(only[0])
    found = check_files(tmp_path)
    assert of(found, "snapshots")[0].state == "FAIL"
    assert f"a start takes the one up to entry {older} and the journal" in (of(found, "snapshots")[0].advice or "")
    assert of(found, "snapshots")[1].state == "OK"
    assert any(only[0].name in check.found for check in of(found, "pages") if check.state == "FAIL")
    again = Node(node.log, Disk(), root=tmp_path)
    assert again.state() == node.log.state()
    again.close()


def test_two_files_with_each_others_name_are_damage(node: Node, tmp_path: Path) -> None:
    one, other = pages_of(node, tmp_path, node.store.newest_index)[-2:]
    node.close()
    one.rename(tmp_path / "aside")
    other.rename(one)
    (tmp_path / "aside").rename(other)
    assert {check.state for check in of(check_files(tmp_path), "pages")} >= {"FAIL"}


def test_damage_of_the_older_snapshot_alone_is_a_warning(node: Node, tmp_path: Path) -> None:
    older = node.store.kept()[0]
    node.close()
    change(tmp_path / "snapshots" / f"snapshot-{older:016d}", 70)
    found = of(check_files(tmp_path), "snapshots")
    assert [check.state for check in found] == ["OK", "WARN"]
    assert "is newer and whole" in (found[1].advice or "")


def test_any_changed_bit_of_a_snapshot_that_names_pages_is_damage(node: Node, tmp_path: Path) -> None:
    node.close()
    path = tmp_path / "snapshots" / f"snapshot-{node.store.newest_index:016d}"
    whole = path.read_bytes()
    random = Random(1)
    for number in range(400):
        data = bytearray(whole)
        data[random.randrange(len(whole))] ^= 1 << random.randrange(8)
        path.write_bytes(data)
        with pytest.raises((SnapshotDamaged, SnapshotTooNew)):
            snapshot_file.verify(Disk(), path, tmp_path / "pages")
        if number < 20:
            assert of(check_files(tmp_path), "snapshots")[0].state == "FAIL"
    path.write_bytes(whole)
    assert snapshot_file.verify(Disk(), path, tmp_path / "pages").last[1] == node.store.newest_index


def test_a_snapshot_with_the_name_of_another_is_damage(node: Node, tmp_path: Path) -> None:
    node.close()
    newest = tmp_path / "snapshots" / f"snapshot-{node.store.newest_index:016d}"
    newest.rename(newest.with_name(f"snapshot-{node.store.newest_index + 1:016d}"))
    found = of(check_files(tmp_path), "snapshots")
    assert [check.state for check in found] == ["FAIL", "OK"]
    assert "has the name of another snapshot" in found[0].found


def test_no_whole_snapshot_is_the_worst(node: Node, tmp_path: Path) -> None:
    node.close()
    for path in (tmp_path / "snapshots").iterdir():
        os.truncate(path, 100)
    found = of(check_files(tmp_path), "snapshots")
    assert [check.state for check in found] == ["FAIL", "FAIL"]
    assert "rejoins the others" in (found[0].advice or "")


def test_what_is_not_ours_is_told(node: Node, tmp_path: Path) -> None:
    node.close()
    (tmp_path / "pages" / "pages-1").touch()
    (tmp_path / "pages" / "notes.txt").touch()
    (found,) = [check for check in check_files(tmp_path) if check.state != "OK"]
    assert (found.state, found.name) == ("WARN", "pages")
    assert "notes.txt, pages-1" in found.found


def test_many_damaged_pages_are_not_told_one_by_one(node: Node, tmp_path: Path) -> None:
    node.close()
    for path in (tmp_path / "pages").iterdir():
        path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))
    found = of(check_files(tmp_path), "pages")
    assert len([check for check in found if check.state == "FAIL"]) == 4
    assert "more like these" in found[3].found


def test_what_the_node_removes_meanwhile_is_not_missing(node: Node, tmp_path: Path) -> None:
    class Slow(Disk):
        """A check during whose first read the node goes on by two snapshots."""

        waits = True

        def read(self, file: int, length: int, offset: int) -> bytes:
            if self.waits and b"pages-" in os.readlink(f"/proc/self/fd/{file}").encode():
                self.waits = False
                node.log.take(1000)
                for _ in range(2):
                    node.log.put(30)
                    node.follow()
                    node.compact()
            return super().read(file, length, offset)

    first = node.store.newest_index
    found = check_files(tmp_path, Slow())
    assert node.store.kept()[0] > first
    assert worst(found) == "OK", found
    assert f"up to entry {node.store.newest_index}" in found[0].found
    node.close()


def test_the_program_prints_it(node: Node, tmp_path: Path) -> None:
    node.close()
    Journal.open(tmp_path / "journal", Disk(), segment_bytes=1 << 16).close()
    told = CliRunner().invoke(main, ["--check-data", str(tmp_path)])
    assert told.exit_code == 0
    assert [FileCheck(**json.loads(line)) for line in told.output.splitlines()] == check_data(tmp_path)
    assert check_data(tmp_path)[1:] == check_files(tmp_path)
    refused = CliRunner().invoke(main, ["--check-data", str(tmp_path), "--hash-secret"])
    assert refused.exit_code == 2


def test_no_byte_is_read_that_was_not_dropped_from_the_page_cache(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    dropped: set[int] = set()
    read: list[bool] = []
    drop, pread, close = os.posix_fadvise, os.pread, os.close

    def note_drop(file: int, offset: int, length: int, advice: int) -> None:
        if (offset, length, advice) == (0, 0, os.POSIX_FADV_DONTNEED):
            dropped.add(file)
        drop(file, offset, length, advice)

    def note_read(file: int, length: int, offset: int) -> bytes:
        read.append(file in dropped)
        return pread(file, length, offset)

    def note_close(file: int) -> None:
        dropped.discard(file)
        close(file)
    for name, call in (("posix_fadvise", note_drop), ("pread", note_read), ("close", note_close)):
        monkeypatch.setattr(os, name, call)
    assert worst(check_files(tmp_path)) == "OK"
    assert read
    assert all(read)
    node.close()


def test_one_page_and_one_file_are_no_plurals(node: Node, tmp_path: Path) -> None:
    (tmp_path / "pages" / "stray").write_bytes(b"")
    (stray,) = [check.found for check in check_files(tmp_path) if check.state == "WARN"]
    assert stray == f"in {tmp_path / 'pages'} 1 file not of sockpqd: stray"
    (tmp_path / "pages" / "other").write_bytes(b"")
    assert any("2 files not of sockpqd: other, stray" in check.found for check in check_files(tmp_path))
    node.close()
