"""The man pages and completions in the repository are those of the programs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "deploy" / "manual"


def test_the_files_are_up_to_date() -> None:
    # In a process of its own, as `make manual` does it: what other tests do to click shows in the pages.
    told = "import json, runpy, sys; print(json.dumps(runpy.run_path(sys.argv[1])['files']()))"
    done = subprocess.run([sys.executable, "-c", told, FOLDER / "make.py"], capture_output=True, text=True, check=True)
    files: dict[str, str] = json.loads(done.stdout)
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
