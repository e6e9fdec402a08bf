"""The program as a whole: it starts, is watched, ends in order, and loses nothing when it is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from sockpq import Client

from tests.http.push.programs import END_S, ROOT, pusher
from tests.waiting import until

CONFIG = """
[push]
listen = "127.0.0.1:0"
ttl_s = {ttl}
stop_s = 60
[targets.a]
queues = ["hooks"]
url = "http://127.0.0.1:{port}/"
allow = ["127.0.0.1"]
concurrency = 4
"""


class SlowReceiver:
    """A receiver in threads of this process that answers nothing before `answering` is set."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.answering = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer.bodies.append(self.rfile.read(int(self.headers["content-length"])))
                outer.answering.wait(END_S)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                pass

            def handle(self) -> None:
                try:
                    super().handle()
                except OSError:
                    self.close_connection = True

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})


@pytest.fixture
def slow() -> Iterator[SlowReceiver]:
    receiver = SlowReceiver()
    receiver.thread.start()
    yield receiver
    receiver.answering.set()
    receiver.server.shutdown()
    receiver.thread.join()
    receiver.server.server_close()


def status(port: int, path: str) -> int:
    """Return the status of a page, 0 while nobody listens."""
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=END_S) as found:
            return int(found.status)
    except HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return 0


def listens_at(program: subprocess.Popen[str]) -> int:
    """Return the port of the page with the metrics, which the program logs first."""
    assert program.stderr
    line = program.stderr.readline()
    assert "metrics at http://127.0.0.1:" in line, line
    return int(line.rpartition(":")[2].partition("/")[0])


def test_it_is_ready_and_ends_in_order(address: str, tmp_path: Path, slow: SlowReceiver) -> None:
    text = CONFIG.format(ttl=60, port=slow.port)
    with Client(address) as client, pusher(tmp_path / "push.toml", text, address) as program:
        client.put_many("hooks", [b"%d" % number for number in range(6)])
        port = listens_at(program)
        until(lambda: status(port, "/readyz") == 200)
        assert status(port, "/healthz") == status(port, "/metrics") == 200
        until(lambda: len(slow.bodies) == 4)
        program.send_signal(signal.SIGTERM)
        until(lambda: status(port, "/readyz") in (0, 503))
        slow.answering.set()
        assert program.wait(END_S) == 0
        assert program.stderr
        assert "ended" in program.stderr.read()
        assert [job.data for job in client.peek_queue("hooks", "ready", 10)] == [b"4", b"5"]


def test_a_second_signal_cuts_at_once(address: str, tmp_path: Path, slow: SlowReceiver) -> None:
    text = CONFIG.format(ttl=60, port=slow.port)
    with Client(address) as client, pusher(tmp_path / "push.toml", text, address) as program:
        client.put_many("hooks", [b"1", b"2"])
        port = listens_at(program)
        until(lambda: len(slow.bodies) == 2)
        program.send_signal(signal.SIGTERM)
        until(lambda: status(port, "/readyz") in (0, 503))
        program.send_signal(signal.SIGTERM)
        assert program.wait(END_S) == 0
        assert [job.data for job in client.peek_queue("hooks", "ready", 10)] == [b"1", b"2"]


def test_what_a_killed_program_was_sending_is_sent_by_another_one(
    address: str, tmp_path: Path, slow: SlowReceiver
) -> None:
    text = CONFIG.format(ttl=5, port=slow.port)
    with Client(address) as client:
        client.put_many("hooks", [b"%d" % number for number in range(10)])
        with pusher(tmp_path / "push.toml", text, address) as program:
            until(lambda: len(slow.bodies) == 4)
            program.kill()
            program.wait(END_S)
        slow.answering.set()
        with pusher(tmp_path / "push.toml", text, address):
            until(lambda: not client.total("hooks").jobs and not client.total("hooks").running)
        assert {int(body) for body in slow.bodies} == set(range(10))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sockpq_http.main", "push", *arguments], cwd=ROOT, capture_output=True, text=True,
        timeout=END_S, check=False,
    )


def test_a_configuration_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "push.toml"
    path.write_text(CONFIG.format(ttl=60, port=8000))
    good = run(str(path), "--check")
    assert (good.returncode, good.stdout) == (0, "a: hooks to 127.0.0.1\n")
    path.write_text(CONFIG.format(ttl=60, port=8000) + "concurency = 3")
    bad = run(str(path))
    assert (bad.returncode, bad.stderr) == (64, "sockpq-http: targets.a.concurency: unknown key\n")
