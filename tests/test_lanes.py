"""Lanes: they run at once, nothing of what they say is lost, and a failure of one is a failure of all."""

from __future__ import annotations

import importlib
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import conftest, lanes, laws

ROOT = Path(__file__).parents[1]
PATIENCE_S = 60.0


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def test_a_failure_of_one_lane_is_that_of_all() -> None:
    out = io.StringIO()
    assert lanes.run({"good": python("print('well')"), "bad": python("exit(3)")}, out) == 1
    lines = out.getvalue().splitlines()
    assert "good | well" in lines
    assert any(line.startswith("good | passed in ") for line in lines)
    assert any(line.startswith("bad  | FAILED with exit code 3 in ") for line in lines)
    assert lanes.run({"good": python("pass"), "killed": python("import os; os.abort()")}, io.StringIO()) == 1
    assert lanes.run({"one": python("pass"), "two": python("pass")}, io.StringIO()) == 0


def test_what_a_lane_has_compiled_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    out = io.StringIO()
    assert lanes.run({"one": python("import sys; print(sys.dont_write_bytecode)")}, out) == 0
    assert "one | False" in out.getvalue().splitlines()


YIELDING = """
import os, pathlib, time
group = pathlib.Path("/proc/self/autogroup")
def group_yields(): return not group.exists() or group.read_text().endswith(" nice {group}\\n")
end = time.monotonic() + {patience}
while (os.getpriority(os.PRIO_PROCESS, 0) < {nice} or not group_yields()) and time.monotonic() < end: time.sleep(0.01)
print(os.getpriority(os.PRIO_PROCESS, 0), group_yields())
"""


def test_the_lane_that_computes_runs_after_the_others() -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    nice = min(own + lanes.YIELDING_NICE, 19)
    waiting = YIELDING.format(group=lanes.YIELDING_NICE, patience=PATIENCE_S, nice=nice)
    other = "import os; print(os.getpriority(os.PRIO_PROCESS, 0))"
    out = io.StringIO()
    assert lanes.run({"cpu": python(waiting), "chaos": python(other)}, out, yielding=lanes.YIELDING) == 0
    lines = out.getvalue().splitlines()
    assert f"cpu   | {nice} True" in lines
    assert f"chaos | {own}" in lines
    assert set(lanes.LANES) > lanes.YIELDING


def test_make_test_lets_that_lane_yield(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    monkeypatch.setattr(lanes, "run", lambda commands, yielding: ran.append((set(commands), yielding)) or 0)
    assert lanes.main(["all"]) == 0
    assert ran == [({*lanes.STYLE, *lanes.LANES}, {"cpu"})]


TESTS = """
import pytest

@pytest.fixture
def broken():
    raise OSError("no room")

def test_good(): pass
def test_bad(): assert 3 == 4, "first line\\nsecond line"
def test_whose_name_leaves_no_room_in_eighty_characters(): assert 5 == 6
def test_error(broken): pass
def test_says_error():
    print("ERROR not of a test")
    raise AssertionError
"""


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder of a short name: pytest's line about a test begins with the path, and has a width."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_the_failed_tests_of_all_lanes_are_the_last_that_is_said(short_path: Path) -> None:
    (short_path / "test_it.py").write_text(TESTS)
    failing = [
        sys.executable, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", f"--rootdir={short_path}",
        str(short_path),
    ]
    out = io.StringIO()
    ends = "for number in range(30): print('line', number)\nexit(2)"
    assert lanes.run({"tests": failing, "good": python("print('well')"), "style": python(ends)}, out) == 1
    error, bad, long, says, *lines, tests, good, style = out.getvalue().splitlines()[-(4 + lanes.LAST_LINES + 3):]
    assert re.fullmatch(r"tests \| ERROR \S+test_it\.py::test_error - OSError: no room", error)
    assert re.match(r"tests \| FAILED \S+test_it\.py::test_bad - AssertionError: first line", bad)
    assert "in_eighty_characters - assert 5 == 6" in long
    assert re.match(r"tests \| FAILED \S+test_it\.py::test_says_error", says)
    assert lines == [f"style | line {number}" for number in range(30 - lanes.LAST_LINES, 30)]
    assert tests.startswith("tests | FAILED with exit code 1 in ")
    assert good.startswith("good  | passed in ")
    assert style.startswith("style | FAILED with exit code 2 in ")


def test_lanes_run_at_once(tmp_path: Path) -> None:
    meeting = (
        "import pathlib, time\n"
        "here, there = map(pathlib.Path, ({!r}, {!r}))\n"
        "here.touch()\n"
        f"end = time.monotonic() + {PATIENCE_S}\n"
        "while not there.exists() and time.monotonic() < end: time.sleep(0.01)\n"
        "exit(not there.exists())\n"
    )
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    assert lanes.run({"a": python(meeting.format(one, two)), "b": python(meeting.format(two, one))}, io.StringIO()) == 0


WAITING = """
import sys, time
from tests import lanes

CLEANING = '''
import time
print("under way", flush=True)
try:
    time.sleep(60)
finally:
    print("cleaned up", flush=True)
'''
sys.exit(lanes.run({name: [sys.executable, "-c", CLEANING] for name in ("one", "two")}))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize("ignored", [False, True], ids=["", "in the background"])
def test_an_interrupt_ends_all_lanes(number: signal.Signals, ignored: bool) -> None:
    program = f"import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n{WAITING}" if ignored else WAITING
    running = subprocess.Popen(python(program), cwd=ROOT, stdout=subprocess.PIPE, text=True)
    watch = threading.Timer(PATIENCE_S, running.kill)
    watch.start()
    try:
        assert running.stdout
        lines = [running.stdout.readline(), running.stdout.readline()]
        assert sorted(lines) == ["one | under way\n", "two | under way\n"]
        os.kill(running.pid, number)
        rest = running.stdout.read()
        assert running.wait() == 130
    finally:
        watch.cancel()
        running.kill()
        running.wait()
        if running.stdout:
            running.stdout.close()
    assert "one | cleaned up" in rest
    assert "two | cleaned up" in rest


def test_every_test_is_in_one_lane_of_all() -> None:
    pytests = [command for name, command in lanes.everything().items() if name not in lanes.STYLE]
    chosen = [command[command.index("-m", 3) + 1] for command in pytests]
    assert sorted(chosen) == sorted([
        "not processes", "processes and not chaos and not programs", "processes and chaos", "processes and programs",
    ])


def test_arguments_go_to_every_pytest() -> None:
    assert [command[-1] for command in lanes.everything("-x").values()].count("-x") == 4
    assert lanes.fast("-x")["tests"][-1] == "-x"


@pytest.mark.parametrize("name", ["PROCESSES", "LONG"])
def test_what_is_listed_must_be_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    conftest.check_lists()
    listed = getattr(conftest, name)
    for moved in ("core/test_that_was_moved.py", "core/test_machine.py::test_that_was_moved"):
        monkeypatch.setattr(conftest, name, (*listed, moved))
        with pytest.raises(pytest.UsageError, match="test_that_was_moved"):
            conftest.check_lists()


def test_a_folder_of_processes_is_in_one_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "PROCESS_LANES", {"chaos": ("bench/test_programs.py",), "programs": ("bench",)})
    with pytest.raises(pytest.UsageError, match=r"bench/test_programs\.py"):
        conftest.check_lists()


@pytest.mark.parametrize(("times", "count"), [(1 / conftest.EXAMPLES_SHARE, 20), (2, 400)])
def test_a_test_of_hypothesis_can_be_given_less_or_more(times: float, count: int) -> None:
    drawn = []

    @settings(max_examples=200)
    @given(st.integers())
    def law(number: int) -> None:
        drawn.append(number)

    conftest.draw(conftest.laws_among([SimpleNamespace(obj=law), SimpleNamespace(obj=time.sleep)]), times)
    law()
    assert len(drawn) == count


def test_examples_are_the_same_in_each_run() -> None:
    runs: list[list[int]] = [[], []]

    @settings(max_examples=20)
    @given(st.integers())
    def law(number: int) -> None:
        runs[-1].append(number)

    law()
    runs.reverse()
    law()
    assert runs[0] == runs[1] != []


def test_examples_are_the_same_whatever_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[list[int]] = [[], []]

    @settings(max_examples=100)
    @given(st.lists(st.integers()))
    def law(numbers: list[int]) -> None:
        runs[-1] += numbers

    law()
    runs.reverse()
    (tmp_path / "of_constants.py").write_text(f"CONSTANTS = {[10**9 + 7 * number for number in range(500)]}\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("of_constants")
    law()
    assert runs[0] == runs[1] != []


def test_a_slow_machine_fails_no_law() -> None:
    @settings(max_examples=2)
    @given(st.integers())
    def law(number: int) -> None:
        time.sleep(0.3)         # hypothesis itself allows 0.2 s

    law()


LAW = """
from hypothesis import given, settings, strategies as st

def test_no_law() -> None:
    raise AssertionError

@settings(max_examples=20)
@given(st.integers())
def test_it(number: int) -> None:
    print("drawn", number)
"""


def test_a_campaign_draws_more_examples_and_others(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import *")
    (tmp_path / "test_it.py").write_text(LAW)
    campaigns = []
    for seed in (1, 2):
        ended = subprocess.run(
            [*laws.command(seed, 2, 1, [str(tmp_path)]), "-s", "-p", "no:cacheprovider"], cwd=tmp_path,
            env={**os.environ, "CI": "true", "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout
        campaigns.append([line for line in ended.stdout.splitlines() if "drawn" in line])
    assert [len(drawn) for drawn in campaigns] == [40, 40]
    assert campaigns[0] != campaigns[1]


class Holder:
    """Refers to itself, and holds a lot: garbage of two objects."""

    def __init__(self) -> None:
        self.itself = self
        self.data = b"x" * 2 * conftest.GROWN_BYTES


def test_what_a_test_leaves_in_cycles_is_freed_when_the_process_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "_resident", conftest.resident_bytes())
    left = weakref.ref(Holder())
    assert left() is not None
    assert conftest.resident_bytes() > conftest._resident + conftest.GROWN_BYTES
    conftest.collect_if_grown()
    assert left() is None


def test_nothing_is_looked_for_in_a_process_that_has_not_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "_resident", conftest.resident_bytes())
    monkeypatch.setattr(conftest.gc, "collect", lambda: pytest.fail("collected"))
    conftest.collect_if_grown()


def test_only_what_is_listed_starts_a_process(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import *")
    (tmp_path / "test_it.py").write_text(
        "import os, subprocess, pytest\n\n"
        "def run() -> None:\n    subprocess.run(['true'], check=True)\n\n"
        "def fork() -> None:\n    os.fork() or os._exit(0)\n    os.wait()\n\n"
        "def spawn() -> None:\n    os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)\n\n"
        "def test_forked() -> None:\n    fork()\n\n"
        "@pytest.mark.parametrize('start', [run, spawn])\ndef test_unlisted(start) -> None:\n    start()\n\n"
        "@pytest.mark.long\n@pytest.mark.parametrize('start', [run, spawn])\n"
        "def test_listed(start) -> None:\n    start()\n")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert "2 failed, 3 passed" in ended.stdout
    assert "RuntimeError: subprocess.Popen" in ended.stdout
    assert "RuntimeError: os.posix_spawn" in ended.stdout
    assert "not in PROCESSES or LONG" in ended.stdout


def test_with_fast_the_least_seed_is_enough(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import *")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\n@pytest.mark.parametrize('kind', 'ab')\n@pytest.mark.parametrize('seed', [3, 1, 2])\n"
        "def test_law(seed: int, kind: str) -> None:\n    pass\n\ndef test_other() -> None:\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    whole, fast = (
        re.findall(r"::(\S+) PASSED", subprocess.run(
            [*command, *more], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout)
        for more in ([], ["--fast"])
    )
    assert len(whole) == 7
    assert fast == ["test_law[1-a]", "test_law[1-b]", "test_other"]


def test_workers_begin_with_other_files_and_with_all_that_are_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[list[str]] = []
    monkeypatch.setattr(conftest.importlib, "import_module", lambda name: shares[-1].append(name))
    config = SimpleNamespace(
        args=["tests/core", "tests/client"], rootpath=ROOT, getoption={"--fast": True, "-m": lanes.FAST}.get)
    for number in range(3):
        shares.append([])
        config.workerinput = {"workerid": f"gw{number}", "workercount": 3}
        conftest.import_share(config)
    files = [path for folder in ("core", "client") for path in (ROOT / "tests" / folder).rglob("test_*.py")]
    collected = [path for path in files if not conftest.pytest_ignore_collect(path, config)]
    assert len(collected) < len(files)
    assert sorted(name for share in shares for name in share) == sorted(
        ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in collected)
    assert len({share[0] for share in shares}) == 3


def test_with_one_process_files_are_imported_as_they_are_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest.importlib, "import_module", lambda name: pytest.fail(name))
    conftest.import_share(SimpleNamespace(args=["tests/core"], rootpath=ROOT))


def test_with_fast_a_test_is_quick(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import *")
    (tmp_path / "test_it.py").write_text(
        "import time\n\ndef test_it() -> None:\n"
        f"    end = time.process_time() + {conftest.FAST_MAX_S}\n    while time.process_time() < end:\n        pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--fast", str(tmp_path)]
    ended = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "belongs in LONG" in ended.stdout
