"""The server that users of the library get for their own tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sockpq import Client, Unavailable, testing
from sockpq.testing import Server, ServerError

from tests.waiting import until

USERS_TESTS = """
from sockpq import aio
import asyncio

def test_a_job_is_put(sockpq_client):
    sockpq_client.put("mail", b"to: ann")
    assert sockpq_client.total().jobs == 1

def test_nothing_is_left_of_it(sockpq_client, sockpq_server):
    assert sockpq_client.total().jobs == 0

    async def main():
        async with aio.Client(sockpq_server.address) as client:
            await client.put("mail", b"to: bob")

    asyncio.run(main())
    job = sockpq_client.get("mail")
    assert job.data == b"to: bob"

def test_not_even_a_running_job(sockpq_client):
    assert sockpq_client.running() == []
"""


def run_pytest(folder: Path, **environment: str) -> str:
    (folder / "conftest.py").write_text('pytest_plugins = ["sockpq.testing"]\n')
    (folder / "test_mail.py").write_text(USERS_TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        env={**os.environ, **environment}, cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )
    return done.stdout + done.stderr


def test_the_fixtures_give_a_real_server_and_empty_queues(tmp_path: Path) -> None:
    assert "3 passed" in run_pytest(tmp_path)


def test_a_missing_program_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServerError, match=f"no program sockpqd, neither in {tmp_path} nor in PATH: install"):
        Server().start()
    with pytest.raises(pytest.fail.Exception, match="no program sockpqd"):
        next(testing._process())


def test_the_program_is_also_found_in_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert testing.program() == str(Path(os.environ["PATH"]) / "sockpqd")


def test_a_server_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testing, "CONFIG", "[node]\nnonsense = 1\n")
    server = Server()
    with pytest.raises(ServerError, match="nonsense"):
        server.start()
    assert not server._folder.exists()


def test_server_and_files_are_gone_afterwards() -> None:
    with Server() as server:
        folder = server._folder
        with Client(server.address) as client:
            client.put("q", b"x")
        assert (folder / "data").exists()
    assert not folder.exists()
    with Client(server.address, timeout=0.3) as client, pytest.raises(Unavailable):
        client.ping()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning")
def test_a_child_that_lives_on_does_not_keep_the_server() -> None:
    server = Server()
    server.start()
    child = os.fork()
    if child == 0:
        time.sleep(600)
        os._exit(0)
    begun = time.monotonic()
    server.stop()
    taken = time.monotonic() - begun
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert taken < 150


def test_a_killed_test_run_leaves_nothing_behind() -> None:
    code = (
        "import time; from sockpq.testing import Server; server = Server(); server.start();"
        "print(server.address, server._folder, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout
        address, folder = run.stdout.readline().split()
        run.send_signal(signal.SIGKILL)
    until(lambda: not Path(folder).exists())
    with Client(address, timeout=0.3) as client, pytest.raises(Unavailable):
        client.ping()
