"""The man pages and completions in the repository match the programs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sockpq.worker.program.options import KEYS

ROOT = Path(__file__).parents[2]
FOLDER, CLIENT = ROOT / "deploy" / "manual", ROOT / "client" / "manual"
REFERENCE = ROOT / "docs" / "reference"


def made_by(program: Path, what: str = "files") -> dict[str, str]:
    """Return what this program would write, made in a process of its own: other tests' changes of click would show."""
    told = f"import json, runpy, sys; print(json.dumps(runpy.run_path(sys.argv[1])['{what}']()))"
    done = subprocess.run([sys.executable, "-c", told, program], capture_output=True, text=True, check=True)
    files: dict[str, str] = json.loads(done.stdout)
    return files


def test_the_reference_is_up_to_date() -> None:
    pages = made_by(FOLDER / "make.py", "documents")
    assert [name for name, content in pages.items() if (REFERENCE / name).read_text() != content] == [], "make manual"
    assert {path.name for path in REFERENCE.iterdir()} == set(pages)
    assert "## pqctl cluster status" in pages["pqctl.md"]
    assert "--autoscale" in pages["pqworker.md"]
    nav = (ROOT / "mkdocs.yml").read_text()
    assert all(f"reference/{name}" in nav for name in pages)


@pytest.mark.parametrize(
    ("folder", "program"), [(FOLDER, FOLDER / "make.py"), (CLIENT, ROOT / "client" / "tools" / "manual.py")],
    ids=["server", "client"],
)
def test_the_files_are_up_to_date(folder: Path, program: Path) -> None:
    files = made_by(program)
    stale = [name for name, content in files.items() if (folder / name).read_text() != content]
    assert not stale, "make manual"
    assert {path.name for path in folder.iterdir() if path.is_file() and path.suffix != ".py"} == {*files}


def test_the_pages_have_every_command_and_every_option() -> None:
    assert "pqctl cluster status" in (FOLDER / "pqctl.1").read_text().replace("\\-", "-")
    for name in ("pqworker.1", "pqworker.bash", "pqworker.zsh", "pqworker.fish"):
        text = (CLIENT / name).read_text().replace("\\-", "-")
        assert [key for key in KEYS.keys() - {"app"} if f"--{key}" not in text and f"-l {key}" not in text] == [], name


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
@pytest.mark.parametrize("page", [*FOLDER.glob("*.1"), CLIENT / "pqworker.1"])
def test_man_has_nothing_to_complain_of(page: Path) -> None:
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page],
                          capture_output=True, text=True, check=True)
    assert done.stderr == ""


@pytest.mark.parametrize("script", [*FOLDER.glob("*.bash"), CLIENT / "pqworker.bash"])
def test_bash_reads_the_completion(script: Path) -> None:
    subprocess.run(["bash", "-n", script], check=True)


@pytest.mark.parametrize(
    ("typed", "offered"), [
        (["--str"], ["--strategy"]), (["--strategy", ""], ["fair", "fast"]), (["--pool", "t"], ["threads"]),
    ],
)
def test_bash_completes_what_is_typed(typed: list[str], offered: list[str]) -> None:
    words = " ".join(f"'{word}'" for word in ["pqworker", *typed])
    script = f'. "$0"; COMP_WORDS=({words}); COMP_CWORD={len(typed)}; _pqworker; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script, CLIENT / "pqworker.bash"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == offered


@pytest.mark.parametrize("program", ["sockpqd", "sockpq-beanstalkd"])
def test_bash_completes_the_options_of_the_programs(program: str) -> None:
    function = f"_{program.replace('-', '_')}_completion"
    script = f'. "$0" 2>&-; COMP_WORDS=({program} --); COMP_CWORD=1; {function} "$1"; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        ["bash", "-c", script, FOLDER / f"{program}.bash", Path(sys.executable).parent / program],
        capture_output=True, text=True, check=True)
    assert "--version" in done.stdout.split()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
@pytest.mark.parametrize("program", ["sockpqd", "sockpq-beanstalkd", "pqctl"])
def test_the_programs_answer_the_scripts_of_other_shells(program: str, shell: str) -> None:
    """The variable by which the script asks is one that the program hears."""
    script = (FOLDER / f"{program}.{shell}").read_text()
    (variable,) = set(re.findall(r"_\w+_COMPLETE(?==)", script))
    words = {
        "zsh": {"COMP_WORDS": f"{program} --", "COMP_CWORD": "1"},
        "fish": {"COMP_WORDS": program, "COMP_CWORD": "--"},
    }
    done = subprocess.run(
        [Path(sys.executable).parent / program], env={**os.environ, **words[shell], variable: f"{shell}_complete"},
        capture_output=True, text=True, check=True)
    assert "--version" in re.split(r"[\s,]+", done.stdout)
