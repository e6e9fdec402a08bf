"""The programs of client/examples do what they say, against a real server."""

from __future__ import annotations

import gzip
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sockpq import Client
from sockpq.testing import Server

EXAMPLES = Path(__file__).parents[2] / "client" / "examples"
TIMEOUT_S = 60


@pytest.fixture(scope="module")
def process() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def server(process: Server) -> str:
    process.empty()
    return process.address


def start(server: str, name: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", EXAMPLES / f"{name}.py", *arguments],
        env={**os.environ, "SOCKPQ_SERVERS": server}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )


def output(server: str, name: str, *arguments: str, stdin: str = "") -> str:
    with start(server, name, *arguments) as process:
        out, _ = process.communicate(stdin, TIMEOUT_S)
    assert process.returncode == 0
    return out


def test_no_example_is_forgotten() -> None:
    tested = Path(__file__).read_text("utf-8")
    assert [path.stem for path in EXAMPLES.glob("*.py") if f'"{path.stem}"' not in tested] == []


def test_files_are_put_and_compressed(server: str, tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.log" for number in range(5)]
    for number, path in enumerate(files):
        path.write_bytes(b"line\n" * number)
    lines = "".join(f"{path}\n" for path in files)
    assert output(server, "put_lines", "files", stdin=lines) == "5 jobs put, 5 waiting in files\n"
    with start(server, "compress_worker", "files") as worker:
        assert worker.stdout
        assert sorted(worker.stdout.readline() for _ in files) == [f"{path} compressed\n" for path in files]
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(TIMEOUT_S) == 0
    for number, path in enumerate(files):
        assert gzip.decompress(Path(f"{path}.gz").read_bytes()) == b"line\n" * number
    with Client(server) as client:
        assert client.total() == (0, 0, 0, 0)


def test_a_question_is_answered(server: str) -> None:
    with start(server, "remote_call", "serve") as process:
        try:
            assert output(server, "remote_call", "12345678901") == "857 14405693\n"
            assert output(server, "remote_call", "1001") == "7 11 13\n"
        finally:
            process.kill()


def test_words_are_counted(server: str) -> None:
    text = "one two two\n" * 2500 + "Three three\n" * 1000
    assert output(server, "count_words", stdin=text) == "5000 two\n2500 one\n2000 three\n"


def test_ports_are_probed(server: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_server(("127.0.0.1", 0)) as closed:
        listening = f"127.0.0.1:{listener.getsockname()[1]}"
        refusing = f"127.0.0.1:{closed.getsockname()[1]}"
        closed.close()
        lines = output(server, "probe_ports", listening, refusing).splitlines()
    assert sorted(lines) == sorted([f"{listening} open", f"{refusing} ConnectionRefusedError"])
