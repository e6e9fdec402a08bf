"""The parts of the Debian package: versions, the locked requirements, its scripts."""

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
    [("1.0.0", "1.0.0"), ("1.0.0rc1", "1.0.0~rc1"), ("1.1.0.dev0", "1.1.0~dev0"), ("2.0b12", "2.0~b12"),
     ("1.0.0rc1.dev2", "1.0.0~rc1~dev2"), ("1.1.0.dev0+g1", "1.1.0~dev0+g1"), ("1.0.0+b1", "1.0.0+b1")],
)
def test_a_candidate_comes_before_its_release(version: str, debians: str) -> None:
    assert BUILD["debian_version"](version) == debians
    if "~" in debians and shutil.which("dpkg"):
        later, _, _ = debians.partition("+")[0].rpartition("~")
        assert subprocess.run(["dpkg", "--compare-versions", debians, "lt", later], check=False).returncode == 0


def test_only_the_own_programs_stay_and_what_else_lies_there_is_not_read(tmp_path: Path) -> None:
    programs = tmp_path / "opt/sockpqd/bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to("/usr/bin/python3")
    (programs / "sockpqd").write_text(f"#!{tmp_path}/opt/sockpqd/bin/python\n")
    (programs / "activate").write_text("")
    (programs / "compiled").write_bytes(b"\x7fELF\xff\xfe")
    BUILD["_relocate"](programs.parent, tmp_path)
    assert sorted(file.name for file in programs.iterdir()) == ["python", "sockpqd"]
    assert (programs / "sockpqd").read_text() == "#!/opt/sockpqd/bin/python\n"


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
