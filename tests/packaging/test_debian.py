"""What the Debian package is made of: versions, the locked requirements, its scripts."""

from __future__ import annotations

import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
DEBIAN = ROOT / "deploy/debian"
BUILD: dict[str, Any] = runpy.run_path(str(DEBIAN / "build.py"))
LOCK: dict[str, Any] = runpy.run_path(str(ROOT / "deploy/release/lock.py"))


@pytest.mark.parametrize(
    ("version", "debians"),
    [("1.0.0", "1.0.0"), ("1.0.0rc1", "1.0.0~rc1"), ("1.1.0.dev0", "1.1.0~dev0"), ("2.0b12", "2.0~b12")],
)
def test_a_candidate_comes_before_its_release(version: str, debians: str) -> None:
    assert BUILD["debian_version"](version) == debians
    if version != debians and shutil.which("dpkg"):
        release = debians.partition("~")[0]
        assert subprocess.run(["dpkg", "--compare-versions", debians, "lt", release], check=False).returncode == 0


def test_everything_that_is_needed_is_locked() -> None:
    locked = {}
    for line in LOCK["LOCK"].read_text().splitlines():
        name, equal, version = line.partition("==")
        if equal and not line.startswith((" ", "#")):
            locked[name] = version.split()[0]
    for line in LOCK["requirements"]():
        wanted = Requirement(line)
        if wanted.marker is None or wanted.marker.evaluate():
            assert wanted.specifier.contains(locked[wanted.name.replace("_", "-").lower()]), line
    assert "sockpq" not in locked


def test_the_scripts_are_ones_of_the_shell() -> None:
    for name in BUILD["SCRIPTS"]:
        script = DEBIAN / name
        assert script.read_text().startswith("#!/bin/sh\n")
        assert subprocess.run(["sh", "-n", script], check=False).returncode == 0
