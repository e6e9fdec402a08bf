"""The check that the file system of the data directory is large enough for the settings, and its warning."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sockpqd.cluster import disk_needs
from sockpqd.gateway.limits import Limits
from sockpqd.gateway.main import main
from sockpqd.gateway.process.disk_size import FAIL, OK, WARN, disk_check

BLOCK = 4096
MIB = 1 << 20
CONFIG = """
[node]
name = "n1"
data_dir = "{folder}/data/not/there/yet"
[listen]
client = "127.0.0.1:11361"
peer = "127.0.0.1:11362"
[limits]
disk_free_bytes_min = 1048576
hot_bytes = 1000000
[[cluster.members]]
name = "n1"
client = "127.0.0.1:11361"
peer = "127.0.0.1:11362"
"""


def disk_of(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all file systems have this size."""
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result(
        (BLOCK, BLOCK, size // BLOCK, size // BLOCK, size // BLOCK, 0, 0, 0, 0, 255)))


@pytest.mark.parametrize(("size", "state"), [(386, OK), (385, WARN), (97, WARN), (96, FAIL)])
def test_what_a_node_needs_is_compared_with_what_there_is(
    size: int, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk_of(size * MIB, monkeypatch)
    check = disk_check(tmp_path / "data", Limits(hot_bytes=1, disk_free_bytes_min=MIB))
    assert (check.state, check.name, bool(check.advice)) == (state, "disk size", state != OK)
    assert check.found == (
        f"the file system of {tmp_path} has {size} MiB; with these settings a node needs 386 MiB (journal 192, "
        "snapshots 1, page files 32, ballast 161, limits.disk_free_bytes_min 1), and room for its jobs")


def test_what_is_kept_for_copies_elsewhere_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk_of(1385 * MIB, monkeypatch)
    check = disk_check(tmp_path / "data", Limits(hot_bytes=1, disk_free_bytes_min=MIB), 1000 * MIB)
    assert check.state == WARN
    assert "needs 1386 MiB (" in check.found
    assert "feed.keep_bytes 1000)" in check.found


def test_more_in_memory_and_more_kept_free_needs_more() -> None:
    plain, more = disk_needs(0, 0), disk_needs(100 * MIB, 50 * MIB)
    assert sum(plain) == (192 + 160) * MIB
    assert sum(more) - sum(plain) == (3 * 100 + 32 + 50) * MIB
    assert more.least - plain.least == 50 * MIB


def checked(tmp_path: Path, *more: str) -> Result:
    file = tmp_path / "n1.toml"
    file.write_text(CONFIG.format(folder=tmp_path))
    return CliRunner().invoke(main, ["--check-config", str(file), *more])


def test_check_config_warns_of_a_small_disk_and_refuses_one_that_is_too_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk_of(1000 * MIB, monkeypatch)
    assert (checked(tmp_path).exit_code, checked(tmp_path).stderr) == (0, "")
    disk_of(300 * MIB, monkeypatch)
    small = checked(tmp_path)
    assert (small.exit_code, "good; node n1 of 1" in small.stdout) == (0, True)
    assert small.stderr.startswith(f"sockpqd: warning: node.data_dir: the file system of {tmp_path} has 300 MiB; with ")
    disk_of(90 * MIB, monkeypatch)
    too_small = checked(tmp_path)
    assert (too_small.exit_code, too_small.stdout) == (2, "")
    assert "with less than 97 MiB it never accepts a job" in too_small.stderr


def test_check_data_says_it_for_the_settings_of_a_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk_of(300 * MIB, monkeypatch)
    (tmp_path / "journal").mkdir()
    told = checked(tmp_path, "--check-data", str(tmp_path))
    assert told.exit_code == 0
    _, snapshots, disk = [json.loads(line) for line in told.stdout.splitlines()]
    assert (snapshots["name"], disk["name"], disk["state"]) == ("snapshots", "disk size", WARN)
    assert "with these settings a node needs" in disk["found"]


def test_a_large_disk_that_others_have_filled_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = 1000 * MIB // BLOCK
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result(
        (BLOCK, BLOCK, blocks, 50 * MIB // BLOCK, 50 * MIB // BLOCK, 0, 0, 0, 0, 255)))
    limits = Limits(hot_bytes=1, disk_free_bytes_min=MIB)
    check = disk_check(tmp_path, limits)
    assert check.state == WARN
    assert "only 50 MiB of it are free or taken by this node" in check.found
    with (tmp_path / "journal").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 60 * MIB)          # of this node itself: it is no trouble
    assert disk_check(tmp_path, limits).state == OK
