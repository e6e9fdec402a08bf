"""The output of pqworker before it works, on a terminal and with --check, and its lines for finished jobs."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sockpq import Client
from sockpq.testing import Server

from tests.waiting import PATIENCE_S

APP = '''
from sockpq.worker import App
app = App()
@app.task("mail")
def send(to): print("sending to", to)
@app.handler("orders")
def order(job): raise ValueError("no \\x1b[31msuch order")
'''
PROGRAM = Path(sys.executable).parent / "pqworker"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


def environment(servers: str) -> dict[str, str]:
    return {**os.environ, "SOCKPQ_SERVERS": servers, "TERM": "xterm", "NO_COLOR": ""}


def check(folder: Path, servers: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, "app:app", "--check", "--name", "w", *arguments], cwd=folder, capture_output=True,
                          env=environment(servers), text=True, timeout=PATIENCE_S, check=False)


@contextmanager
def on_a_terminal(folder: Path, servers: str, *arguments: str) -> Iterator[Iterator[str]]:
    """Return the lines that a worker shows on a terminal; at the end it is interrupted and has ended well."""
    ours, its = pty.openpty()
    process = subprocess.Popen([PROGRAM, "app:app", "-c", "2", "--name", "w", *arguments], cwd=folder, stdout=its,
                               stderr=its, env=environment(servers))
    os.close(its)
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        def lines() -> Iterator[str]:
            line = b""
            while one := terminal.read(1):
                line += one
                if one == b"\n":
                    yield line.decode().rstrip()
                    line = b""

        try:
            yield lines()
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
            process.wait()


def test_check_tells_tasks_queues_and_settings(folder: Path, one_server: Server, client: Client) -> None:
    client.queue_create("orders", limit=3, tries=7, backoff=(2, 60), capacity=100, rate=5, per=1)
    done = check(folder, one_server.address, "-c", "2")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()[1:]]
    assert lines[:4] == ["queue mail: app.send", "queue orders: a handler", "children 2 (processes)",
                         f"cluster {one_server.address}"]
    assert lines[4].endswith(" answers")
    assert lines[5:] == ["settings mail: the defaults",
                         "settings orders: tries 7, limit 3, capacity 100, backoff 2 60, rate 5 PER 1"]
    assert [queue.name for queue in client.queues()] == ["orders"]      # nothing was put


def test_check_knows_the_defaults_of_servers(folder: Path, one_server: Server, client: Client) -> None:
    client.put("mail", b"17")
    done = check(folder, one_server.address)
    assert " mail: the defaults\n" in done.stdout


def test_check_says_what_a_worker_will_set(folder: Path, one_server: Server, client: Client) -> None:
    (folder / "app.py").write_text(APP.replace('task("mail")', 'task("mail", backoff=(2, 60), retain=3600)'))
    coming = "; a worker that starts sends QUEUE CONFIG mail RETAIN 3600"
    assert f" mail: the defaults{coming} BACKOFF 2 60\n" in check(folder, one_server.address).stdout
    client.queue_config("mail", backoff=(2, 60))
    assert f" mail: backoff 2 60{coming}\n" in check(folder, one_server.address).stdout
    client.queue_config("mail", retain=7200)
    assert "a worker that starts" not in check(folder, one_server.address).stdout


def test_check_says_when_no_server_answers(folder: Path) -> None:
    (folder / "app.py").write_text(APP.replace("App()", "App(timeout=0.2)"))
    done = check(folder, "127.0.0.1:1")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "app.send" in done.stdout


def test_check_says_what_it_looks_for_before_a_server_answers(folder: Path) -> None:
    (folder / "app.py").write_text(APP.replace("App()", "App(timeout=3600)"))
    with subprocess.Popen([PROGRAM, "app:app", "--check"], cwd=folder, env=environment("127.0.0.1:1"),
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as asking:
        assert asking.stdout
        printed, _, _ = select.select([asking.stdout], [], [], PATIENCE_S)
        asking.kill()
        assert printed
        assert "cluster   127.0.0.1:1" in asking.stdout.read()


def test_a_terminal_shows_a_banner_and_text(folder: Path, one_server: Server, client: Client) -> None:
    client.put("orders", b"17")
    with on_a_terminal(folder, one_server.address, "-v") as lines:
        assert next(lines).startswith("pqworker ")
        assert "app.send" in next(lines)
        failed = next(line for line in lines if "a job failed" in line)
        assert "queue=orders" in failed
        assert "\\x1b[31msuch" in failed
        assert re.match("\x1b\\[3[13]m", failed)         # red or yellow
        assert next(lines).startswith("\x1b[2mTraceback")
        client.put("mail", b'{"task": "app.send", "args": ["ann"]}')
        done = next(line for line in lines if "a job is done" in line)
        assert " DEBUG " in done
        assert "queue=mail" in done


def test_elsewhere_it_is_json_and_no_banner(folder: Path, one_server: Server, client: Client) -> None:
    client.put("mail", b'{"task": "app.send", "args": ["ann"]}')
    with subprocess.Popen([PROGRAM, "app:app", "-c", "1", "-v"], cwd=folder, env=environment(one_server.address),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                assert line.startswith("{")
                if '"a job is done"' in line:
                    break
            process.send_signal(signal.SIGTERM)
            assert process.stderr.readlines()[-1].count("ended after 1 job\"") == 1
        finally:
            process.kill()
