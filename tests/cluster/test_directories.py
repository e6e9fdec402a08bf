"""The directories of a node are durable before it vouches for anything.

A power loss soon after the founding must not make a directory vanish: a node that finds none founds a new cluster.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sockpqd.cluster import ClusterListener, ClusterNode, Member, NodeSettings
from sockpqd.cluster.storage.disk import Disk
from sockpqd.core import Put, Reply

PATIENCE_S = 30.0


class Calls:
    """The calls to the operating system, in order: ("mkdir" | "fsync" | "fdatasync", path)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[str, Path]] = []
        monkeypatch.setattr(os, "mkdir", self._watched("mkdir", os.mkdir, lambda path: Path(path)))
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, self._watched(name, getattr(os, name), _path_of))

    def _watched(self, name: str, call: Callable[..., Any], path_of: Callable[[Any], Path]) -> Callable[..., Any]:
        def watched(target: Any, *rest: Any, **more: Any) -> Any:
            result = call(target, *rest, **more)
            self.made.append((name, path_of(target)))
            return result
        return watched

    def unsynced(self) -> list[Path]:
        """Return directories that were made, and whose names could still vanish."""
        places = {path: place for place, (name, path) in enumerate(self.made) if name == "mkdir"}
        return [
            path for path, place in places.items()
            if ("fsync", path.parent) not in self.made[place:]
        ]


def _path_of(file: int) -> Path:
    return Path(os.readlink(f"/proc/self/fd/{file}"))


class Ignorant(ClusterListener):
    """A listener that ignores everything."""


class Acknowledged:
    """A Pending that calls when its job is acknowledged."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def applied(self, reply: Reply) -> None:
        self._then()

    def refused(self) -> None:
        pytest.fail("it was refused")

    def unknown(self) -> None:
        pytest.fail("nobody knows")


async def acknowledge_one(data_dir: Path, then: Callable[[], None]) -> None:
    """Found a cluster of one node, put a job, and call when it is acknowledged."""
    member = Member("n1", "127.0.0.1:0", "127.0.0.1:0")
    node = ClusterNode(NodeSettings(
        name="n1", data_dir=data_dir, peer_listen="127.0.0.1:0", members=(member,), version="test",
    ), Ignorant())
    await node.start()
    try:
        acknowledged = asyncio.Event()

        def told() -> None:
            then()
            acknowledged.set()
        async with asyncio.timeout(PATIENCE_S):
            while not node.serving:
                await asyncio.sleep(0.01)
            node.propose(Put("q", 0, b"x"), Acknowledged(told))
            await acknowledged.wait()
    finally:
        await node.stop()


def test_all_directories_are_durable_before_the_first_acknowledgement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    data_dir = tmp_path / "var" / "lib" / "node"
    calls = Calls(monkeypatch)
    then: list[list[Path]] = []
    asyncio.run(acknowledge_one(data_dir, lambda: then.append(calls.unsynced())))
    made = {path for name, path in calls.made if name == "mkdir"}
    assert made >= {tmp_path / "var", tmp_path / "var" / "lib", data_dir, data_dir / "journal", data_dir / "snapshots"}
    assert then == [[]]
    synced = [path for name, path in calls.made if name == "fsync"]
    assert {data_dir / "journal", data_dir, tmp_path / "var" / "lib", tmp_path / "var", tmp_path} <= set(synced)


def test_so_are_those_that_a_killed_process_has_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data_dir = tmp_path / "var" / "node"
    (data_dir / "journal").mkdir(parents=True)
    calls = Calls(monkeypatch)
    before: list[set[Path]] = []
    asyncio.run(acknowledge_one(data_dir, lambda: before.append({p for name, p in calls.made if name == "fsync"})))
    assert before[0] >= {tmp_path, tmp_path / "var", data_dir, data_dir / "journal"}


def test_a_link_on_the_way_leads_to_the_directory_that_has_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "disk")
    calls = Calls(monkeypatch)
    Disk().make_directory(tmp_path / "data" / "node")
    assert ("fsync", tmp_path / "disk") in calls.made
    assert (tmp_path / "disk" / "node").is_dir()


def test_a_parent_that_was_there_and_may_not_be_opened_is_somebody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    sync = Disk.sync_directory

    def refuse(self: Disk, directory: Path) -> None:
        if directory in (tmp_path.parent, forbidden):
            raise PermissionError(13, "Permission denied", str(directory))
        sync(self, directory)
    forbidden: Path | None = None
    monkeypatch.setattr(Disk, "sync_directory", refuse)
    Disk().make_directory(tmp_path / "a" / "b")
    forbidden = tmp_path            # but the name of what this process makes must be durable
    with pytest.raises(PermissionError):
        Disk().make_directory(tmp_path / "c" / "d")


def test_only_the_owner_may_look_into_it(tmp_path: Path) -> None:
    Disk().make_directory(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
