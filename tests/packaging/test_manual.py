"""The man pages and completions in the repository are those of the programs."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "deploy" / "manual"


def test_the_files_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("manual", FOLDER / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    files: dict[str, str] = module.files()
    stale = [name for name, content in files.items() if (FOLDER / name).read_text() != content]
    assert not stale, "make manual"
    assert {path.name for path in FOLDER.iterdir() if path.is_file()} == {*files, "make.py"}
    assert "pqctl cluster status" in files["pqctl.1"]


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
@pytest.mark.parametrize("page", ["sockpqd.1", "pqctl.1"])
def test_man_has_nothing_to_complain_of(page: str) -> None:
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", FOLDER / page],
                          capture_output=True, text=True, check=True)
    assert done.stderr == ""


@pytest.mark.parametrize("name", ["pqctl.bash", "sockpqd.bash"])
def test_bash_reads_the_completion(name: str) -> None:
    subprocess.run(["bash", "-n", FOLDER / name], check=True)
