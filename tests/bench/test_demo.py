"""The demo as a user runs it: it finds nothing lost, and leaves nothing behind."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from sockpq import JobNotFound

from bench.demo import __main__ as demo
from bench.demo.actors import Prober
from bench.demo.files import decode_result, digest, encode_result, list_files
from bench.demo.report import Report
from bench.load_generator.ack_gaps import Acks

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "bench.demo"]


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def figure(output: str, name: str) -> str:
    found = re.search(rf"^{name} +([0-9.]+)", output, re.MULTILINE)
    assert found, f"no {name!r} in:\n{output}"
    return found[1]


def test_nothing_is_lost_when_the_leader_is_killed(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number}").write_bytes(b"%d" % number * number)
    (tmp_path / "with\nnewline and \udcff").write_text("x")
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    ended = run(tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "kill -9" in ended.stdout
    assert "runs again" in ended.stdout
    for name in ("jobs", "acknowledged", "done"):
        assert figure(ended.stdout, name) == "303"
    assert figure(ended.stdout, "lost") == figure(ended.stdout, "wrong") == "0"
    assert "2 unreadable" in ended.stdout
    assert "sockpqd --dev --nodes 3" in ended.stdout.splitlines()[-1]


@pytest.mark.parametrize("arguments", [["/no/such/folder"], [__file__]])
def test_a_wrong_folder_is_told_clearly(arguments: list[str]) -> None:
    ended = run(*arguments)
    assert ended.returncode == 2
    assert "is no folder" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_empty_folder_is_told_clearly(tmp_path: Path) -> None:
    ended = run(tmp_path)
    assert ended.returncode == 0
    assert "nothing to do" in ended.stdout


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """A shell lets programs in the background ignore SIGINT, and the programs that these start inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_everything_that_was_started(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "temporary").mkdir()
    for name in range(3000):
        (tmp_path / "files" / f"{name}").write_bytes(b"x")
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary"), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [*COMMAND, tmp_path / "files"], cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment,
        start_new_session=True,
    ) as demo:
        assert demo.stdout
        for line in demo.stdout:
            if "three nodes run" in line:
                break
        started = descendants(demo.pid)
        assert len(started) >= 4        # the nodes and their guardian
        demo.send_signal(number)
        demo.communicate(timeout=30)
    assert demo.returncode in (130, 128 + number)
    until = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in started) or list((tmp_path / "temporary").iterdir()):
        assert time.monotonic() < until, "something was left behind"
        time.sleep(0.05)


def descendants(pid: int) -> set[int]:
    """All processes below this one."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found: set[int] = set()
    new = [pid]
    while new:
        new = [child for parent in new for child in children.get(parent, ())]
        found.update(new)
    return found


def test_a_file_is_digested_and_everything_else_has_a_reason(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"abc" * 1_000_000)
    assert digest(os.fsencode(file)) == hashlib.sha256(b"abc" * 1_000_000).hexdigest()
    assert digest(os.fsencode(tmp_path)) == "unreadable: not a regular file"
    assert digest(os.fsencode(tmp_path / "none")) == "unreadable: ENOENT"
    assert digest(b"a\0b") == "unreadable: ValueError"


def test_all_files_are_listed_with_their_sizes(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_bytes(b"123")
    (tmp_path / "a" / "link").symlink_to("b")       # to a folder: it is not walked into, or it would be walked for ever
    assert list_files(tmp_path) == {os.fsencode(tmp_path / "a" / "b" / "c"): 3}


def test_a_result_carries_any_path() -> None:
    for path in (b"plain", b"new\nline", b"\xff\xfe", b"a b"):
        assert decode_result(encode_result(path, "unreadable: ENOENT")) == (path, "unreadable: ENOENT")


def test_the_longest_gap_is_found_over_several_sources() -> None:
    one, other = Acks(), Acks()
    one.add([1000, 1010, 3000])
    other.add([1500, 2990])
    one.add(other.take_new())
    assert other.take_new() == []
    assert one.longest_gap_s() == 1.49
    assert Acks().longest_gap_s() == 0


@pytest.mark.parametrize(
    ("acknowledged", "done", "lost", "wrong", "good"),
    [(2, 2, [], [], True), (1, 1, [], [], False), (2, 1, [b"a"], [], False), (2, 2, [], [b"a"], False)],
)
def test_only_a_complete_and_right_run_is_good(
    acknowledged: int, done: int, lost: list[bytes], wrong: list[bytes], good: bool
) -> None:
    report = Report(Path(tempfile.gettempdir()), 2, acknowledged, done, lost, wrong, 0, 0, 0, 0.0, 1.0)
    assert report.good is good


class Slow:
    """A cluster so slow that the lease of each job ends before its DONE arrives."""

    prober: Prober

    def __init__(self) -> None:
        self.late = 0

    def put(self, queue: str, data: bytes) -> None:
        """Put nothing."""

    def get(self, queue: str, *, expire: float) -> Slow:
        return self

    def done(self) -> None:
        """Say that the lease has ended; the second time stop the prober."""
        self.late += 1
        if self.late == 2:
            self.prober.stopping.set()
        raise JobNotFound("404 Job Not Found")


def test_a_probe_whose_lease_has_ended_is_no_failure_of_the_demo() -> None:
    slow = Slow()
    slow.prober = Prober(cast(Any, slow), Acks())
    slow.prober.run()
    assert slow.prober.error is None
    assert slow.late == 2


def test_a_busy_machine_is_named_as_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    for load, words in ((7.9, ""), (17.2, "a load of 17 on 2 processors")):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, 0.0, 0.0))
        assert words in demo._busy()
        assert bool(demo._busy()) is bool(words)
