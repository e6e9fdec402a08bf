"""A forked node is the one that would have been executed."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from devcluster.cluster import LocalCluster
from devcluster.node import NodeError, program
from tests.forkserver import BIN, SERVERS, Forked, Forkserver
from tests.system import failing_disk

WAIT_S = 30.0


@pytest.fixture
def server() -> Iterator[Forkserver]:
    server = Forkserver()
    yield server
    server.close()


def launched(server: Forkserver, tmp_path: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """Exit code and output of a node."""
    with (tmp_path / "log").open("wb") as log:
        process = server.launch([program(), *arguments], {**os.environ, **environment}, log)
    return process.wait(WAIT_S), (tmp_path / "log").read_text()


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["--nothing"], ["--config", "nowhere.toml"]])
def test_output_and_exit_code_are_those_of_the_program(
    arguments: list[str], server: Forkserver, tmp_path: Path
) -> None:
    executed = subprocess.run(
        [program(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert launched(server, tmp_path, *arguments) == (executed.returncode, executed.stdout)


def test_it_has_its_own_environment_folder_and_session(
    server: Forkserver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = [program(), "--dev"]
    with (tmp_path / "log").open("wb") as log:
        process = server.launch(arguments, {**os.environ, "SOCKPQD_LOG_LEVEL": "wrong"}, log)
    assert process.wait(WAIT_S) == 2
    assert "log.level" in (tmp_path / "log").read_text()
    with (tmp_path / "log").open("wb") as log:
        process = server.launch(arguments, os.environ, log)
    try:
        while not (tmp_path / "sockpqd-dev").exists():
            assert process.poll() is None
        assert os.getsid(process.pid) == process.pid
        assert {os.readlink(f"/proc/{process.pid}/fd/{number}") for number in (1, 2)} == {str(tmp_path / "log")}
    finally:
        process.send_signal(signal.SIGKILL)
    assert process.wait(WAIT_S) == process.poll() == -signal.SIGKILL
    process.send_signal(signal.SIGKILL)         # which does nothing


def test_a_wait_ends_in_time_and_signals_arrive(tmp_path: Path) -> None:
    with LocalCluster(1) as cluster:
        process = cluster._nodes["n1"]._process
        assert isinstance(process, Forked)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        assert cluster.terminate("n1") == 0
        assert cluster.pid("n1") is None


def test_a_module_that_runs_the_program_is_run_in_the_fork(server: Forkserver, tmp_path: Path) -> None:
    command = [sys.executable, "-m", failing_disk.__name__, program(), "--version"]
    with (tmp_path / "log").open("wb") as log:
        process = server.launch(command, os.environ, log)
    assert isinstance(process, Forked)
    assert process.wait(WAIT_S) == 0
    executed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (tmp_path / "log").read_text() == executed.stdout


def test_a_pqctl_at_a_terminal_sees_one_and_the_bytes_of_its_arguments(server: Forkserver) -> None:
    master, slave = pty.openpty()
    try:
        process = server.run("pqctl", [b"job", b"get", b"\xff", b"--timeout", b"x"], os.environ, [slave, slave, slave])
        code = process.wait(WAIT_S)
        said = os.read(master, 65536)
    finally:
        os.close(master)
        os.close(slave)
    executed = subprocess.run(
        [BIN / "pqctl", b"job", b"get", b"\xff", b"--timeout", b"x"], stderr=subprocess.PIPE, check=False)
    assert (code, said.replace(b"\r\n", b"\n")) == (executed.returncode, executed.stderr)


def test_what_a_pqctl_reads_and_writes_is_where_it_was_told(server: Forkserver) -> None:
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as errors:
        process = server.run("pqctl", ["--version"], os.environ, [given, out, errors])
        assert process.wait(WAIT_S) == 0
        out.seek(0)
        assert out.read().startswith(b"pqctl, version ")


def test_other_programs_and_environments_are_executed(server: Forkserver, tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        processes = [
            server.launch([sys.executable, "-c", "print('other')"], os.environ, log),
            server.launch([sys.executable, "-m", "calendar"], os.environ, log),
            server.launch([program(), "--version"], {**os.environ, "PYTHONVERBOSE": "1"}, log),
        ]
    assert all(isinstance(process, subprocess.Popen) for process in processes)
    assert [process.wait(WAIT_S) for process in processes] == [0, 0, 0]


def test_nodes_of_a_cluster_have_different_hash_seeds(server: Forkserver, tmp_path: Path) -> None:
    for number in range(SERVERS):
        launched(server, tmp_path, "--config", f"n{number}.toml")
    environments = [Path(f"/proc/{process.pid}/environ").read_bytes() for process, _ in server._servers.values()]
    seeds = {line for all_of_it in environments for line in all_of_it.split(b"\0") if b"HASHSEED" in line}
    assert len(seeds) == SERVERS


def test_the_end_of_a_server_is_an_error(tmp_path: Path) -> None:
    server = Forkserver()
    with (tmp_path / "log").open("wb") as log:
        process = server.launch([program(), "--version"], os.environ, log)
    process.wait(WAIT_S)
    for forking, _ in server._servers.values():
        forking.kill()
    with (tmp_path / "log").open("wb") as log, pytest.raises((NodeError, OSError)):
        server.launch([program(), "--version"], os.environ, log)
    server.close()
