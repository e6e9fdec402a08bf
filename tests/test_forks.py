"""Forks of pytest run each test once, and what they report is what one process would have shown."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import lanes
from tests.forks import PORTION, Numbers, portions_of
from tests.waiting import eventually, gone

ROOT = Path(__file__).parents[1]


def command(folder: Path, *arguments: str) -> list[str]:
    return [
        sys.executable, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", *lanes.forks(3),
        f"--rootdir={folder}", str(folder), *arguments,
    ]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(folder, *arguments), cwd=ROOT, env={**os.environ, "COLUMNS": "160"}, capture_output=True, text=True,
        check=False)


ALL_KINDS = """
import os, pathlib, time
import pytest

HERE = pathlib.Path(__file__).parent

@pytest.fixture(scope="module", autouse=True)
def shared():
    with open(HERE / "shared.txt", "a") as file:
        file.write(f"{os.getpid()} set up\\n")
    yield
    with open(HERE / "shared.txt", "a") as file:
        file.write(f"{os.getpid()} torn down\\n")

@pytest.mark.parametrize("number", range(100))
def test_many(number, tmp_path):
    (tmp_path / "mine").touch(exist_ok=False)
    with open(HERE / "ran.txt", "a") as file:
        file.write(f"{number} {os.getpid()}\\n")
    time.sleep(0.001)

def test_bad():
    print("said by a bad test")
    assert 3 == 4, "no sum"

@pytest.fixture
def broken():
    raise OSError("no room")

def test_error(broken): pass

@pytest.mark.skip(reason="not today")
def test_skipped(): pass

@pytest.mark.xfail(reason="known")
def test_known(): assert False
"""


def test_each_test_runs_once_and_all_that_it_reports_is_shown(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(ALL_KINDS)
    ended = run(tmp_path)
    assert ended.returncode == 1, ended.stdout
    assert re.search(r"1 failed, 100 passed, 1 skipped, 1 xfailed, 1 error in", ended.stdout), ended.stdout
    assert re.search(r"FAILED \S*test_it\.py::test_bad - AssertionError: no sum", ended.stdout)
    assert re.search(r"ERROR \S*test_it\.py::test_error - OSError: no room", ended.stdout)
    assert "said by a bad test" in ended.stdout
    assert "not today" in ended.stdout
    ran = [line.split() for line in (tmp_path / "ran.txt").read_text().splitlines()]
    assert sorted(int(number) for number, _ in ran) == list(range(100))
    shared = (tmp_path / "shared.txt").read_text().splitlines()
    forks = {line.split()[0] for line in shared}
    assert {pid for _, pid in ran} <= forks
    assert sorted(shared) == sorted(f"{pid} {what}" for pid in forks for what in ("set up", "torn down"))


def test_a_run_without_a_failure_ends_well(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(): print('said in vain')\n")
    ended = run(tmp_path)
    assert ended.returncode == 0, ended.stdout
    assert "1 passed" in ended.stdout
    assert "said in vain" not in ended.stdout


def test_a_fork_that_dies_fails_the_run_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "test_deadly.py").write_text("import os\n\ndef test_deadly(): os._exit(0)\n")
    (tmp_path / "test_fatal.py").write_text("import os\n\ndef test_fatal(): os.kill(os.getpid(), 9)\n")
    for number in range(20):        # a fork that dies has taken one more, which is not run
        (tmp_path / f"test_{'eg'[number % 2]}{number}.py").write_text("def test_it(): pass\n")
    ended = run(tmp_path)
    assert ended.returncode not in (0, 1), ended.stdout
    passed = re.search(r"(\d+) passed", ended.stdout)
    assert passed
    assert 18 <= int(passed[1]) <= 20
    assert re.search(r"a fork ended with 0 in \S*test_deadly\.py::test_deadly", ended.stdout)
    assert re.search(r"a fork ended with -9 in \S*test_fatal\.py::test_fatal", ended.stdout)


FAILING = "import time\n\ndef test_it():\n    time.sleep(0.2)\n    assert False\n"


def test_after_the_first_failure_no_more_tests_are_taken(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"test_{number:03}.py").write_text(FAILING)
    ended = run(tmp_path, "-x")
    assert ended.returncode == 1, ended.stdout
    assert re.search(r"stopping after \d+ failures", ended.stdout)
    failed = re.search(r"(\d+) failed", ended.stdout)
    assert failed
    assert int(failed[1]) < 200


WAITING = """
import os, pathlib, time
import pytest

HERE = pathlib.Path(__file__).parent

@pytest.fixture
def tidied():
    yield
    (HERE / f"tidied-{os.getpid()}").touch()

@pytest.mark.parametrize("number", range(3))
def test_it(number, tidied):
    (HERE / f"began-{os.getpid()}").touch()
    time.sleep(600)
"""


@pytest.mark.parametrize("whole_group", [False, True], ids=["one process", "a terminal"])
def test_an_interrupt_ends_all_forks_and_they_tidy_up(tmp_path: Path, whole_group: bool) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / f"test_{name}.py").write_text(WAITING)
    running = subprocess.Popen(
        command(tmp_path), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True)
    try:
        assert eventually(lambda: len([*tmp_path.glob("began-*")]) == 3)
        (os.killpg if whole_group else os.kill)(running.pid, signal.SIGINT)
        out, _ = running.communicate()
    finally:
        running.kill()
        running.wait()
    assert running.returncode == pytest.ExitCode.INTERRUPTED, out
    forks = {path.name.partition("-")[2] for path in tmp_path.glob("began-*")}
    assert {path.name.partition("-")[2] for path in tmp_path.glob("tidied-*")} == forks
    assert all(gone(int(pid)) for pid in forks)


def test_a_portion_is_of_one_file_and_a_long_test_is_one() -> None:
    def item(path: str, *, long: bool = False) -> SimpleNamespace:
        return SimpleNamespace(path=path, get_closest_marker=lambda name: "marker" if long and name == "long" else None)

    items = [item("a")] * (PORTION + 1) + [item("b")] * 2 + [item("b", long=True)] * 2 + [item("b")]
    assert [len(portion) for portion in portions_of(items)] == [PORTION, 1, 2, 1, 1, 1]     # type: ignore[arg-type]


def test_each_number_is_taken_once() -> None:
    with Numbers(3) as numbers:
        assert [numbers.take() for _ in range(4)] == [0, 1, 2, None]
    with Numbers(1000) as numbers:
        numbers.drain()
        assert numbers.take() is None
    with pytest.raises(ValueError, match="1000000 numbers"):
        Numbers(1_000_000)
