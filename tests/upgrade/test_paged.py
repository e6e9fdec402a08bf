"""Snapshots that name pages, as released programs wrote them, are read by this one, and written in the same form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sockpqd.core import Get, GetWith
from tests.upgrade import paged
from tests.upgrade.directories import unpack

NAMES = sorted(path.stem for path in paged.PAGED.glob("*.json"))
NEWEST = "level1"


def description(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((paged.PAGED / f"{name}.json").read_text("utf-8"))
    return found


def files(folder: Path) -> dict[str, bytes]:
    """Return the page files and the snapshots."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for part in ("pages", "snapshots") for path in sorted((folder / part).iterdir())
    }


def test_those_of_the_first_level_are_there() -> None:
    assert "level1" in NAMES
    for name in NAMES:
        expected = description(name)
        assert expected["jobs in pages"] > expected["of them delayed"] > 500
        assert expected["of them of groups"] > 200
        assert expected["bodies"] > 1


@pytest.mark.parametrize("name", NAMES)
def test_the_jobs_are_where_they_were(name: str, tmp_path: Path) -> None:
    unpack(paged.PAGED / f"{name}.tar.xz", tmp_path / "data")
    node = paged.Paged(tmp_path / "data")
    try:
        node.store.deserialize()
        assert node.found() == description(name)
        node.do([GetWith(Get(None), 10_000)] * 9)
        assert node.machine.pages is not None
        assert node.machine.pages.indexed == node.machine.pages.jobs == description(name)["of them delayed"]
    finally:
        node.close()


def test_this_program_writes_what_was_recorded_last(tmp_path: Path) -> None:
    unpack(paged.PAGED / f"{NEWEST}.tar.xz", tmp_path / "recorded")
    assert paged.make(tmp_path / "now") == description(NEWEST)
    assert files(tmp_path / "now") == files(tmp_path / "recorded")
