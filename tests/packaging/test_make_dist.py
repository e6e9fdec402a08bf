"""`make dist`, `deb` and `image` make again what is older than its sources, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = "core/machine.py"
MADE = "sockpqd-1.0.0-py3-none-any.whl", "sockpqd_1.0.0-1_amd64.deb", "sockpqd_1.0.0-1_amd64.oci.tar"
STEPS = "-m build --outdir dist .", "deploy/debian/build.py dist", "deploy/container/build_image.py dist"
SUMS = "deploy/release/checksums.py dist"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the Makefile with a source, an environment, and all distributions, in the order of time."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    environment = "pyproject.toml", "client/pyproject.toml", *(f".venv/{name}" for name in (
        "bin/python", ".installed", ".installed-dev"))
    for at, name in enumerate((SOURCE, *environment, *(f"dist/{made}" for made in MADE))):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        os.utime(file, (1000 + at, 1000 + at))
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", SOURCE], cwd=tmp_path, check=True)
    return tmp_path


def steps(folder: Path, *goals: str) -> list[bool]:
    """Return which of STEPS make would take for these goals."""
    done = subprocess.run(["make", "--dry-run", *goals], cwd=folder, capture_output=True, text=True, check=True)
    assert SUMS in done.stdout
    lines = done.stdout.splitlines()
    return [any(line.endswith(step) for line in lines) for step in STEPS]


@pytest.mark.parametrize("goal", ["dist", "deb", "image"])
def test_what_is_newer_than_its_sources_is_not_made_again(goal: str, folder: Path) -> None:
    assert steps(folder, goal) == [False, False, False]


def test_a_changed_source_is_in_all_of_them(folder: Path) -> None:
    os.utime(folder / SOURCE)
    assert steps(folder, "dist") == [True, False, False]
    assert steps(folder, "deb") == [True, True, False]
    assert steps(folder, "image") == [True, True, True]


def test_what_is_missing_is_made_with_what_comes_after_it(folder: Path) -> None:
    (folder / "dist" / MADE[1]).unlink()
    assert steps(folder, "dist") == [False, False, False]
    assert steps(folder, "image") == [False, True, True]


def test_without_git_nobody_knows_whether_a_source_is_newer(folder: Path) -> None:
    shutil.rmtree(folder / ".git")
    assert steps(folder, "dist") == [True, False, False]


def test_at_first_all_is_made(folder: Path) -> None:
    shutil.rmtree(folder / "dist")
    assert steps(folder, "image") == [True, True, True]


def test_a_new_commit_changes_the_times_in_the_package(folder: Path) -> None:
    names = ["-c", "user.name=n", "-c", "user.email=n@example.org"]
    subprocess.run(["git", *names, "commit", "-qm", "x"], cwd=folder, check=True)
    assert steps(folder, "image") == [False, True, True]
