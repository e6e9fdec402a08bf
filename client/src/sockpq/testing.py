"""A real server of one node for the tests of programs that use this library.

    # conftest.py
    pytest_plugins = ["sockpq.testing"]

    # test_mail.py
    def test_a_mail_is_queued(sockpq_client):
        send_later(sockpq_client, "ann")
        assert sockpq_client.get("mail", expire=30).data == b"ann"

`sockpq_client` is a sockpq.Client, `sockpq_server.address` what any client dials; both find empty queues in every test.
They need the program sockpqd, which is a distribution of its own, in this Python's environment or in PATH. Without
pytest: `with Server() as server:`.

The tasks of a worker's app need no server: `with inline(app) as jobs: program(); jobs.run()` keeps the app's jobs in
memory, and runs them as workers do, with all tries.
"""

from __future__ import annotations

import importlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from sockpq import _guardian
from sockpq._process import is_inherited
from sockpq._sync.client import Client
from sockpq.errors import JobNotFound, SockpqError
from sockpq.worker.inline import Inline, inline

__all__ = ["Inline", "Server", "ServerError", "inline", "program"]

START_ATTEMPTS = 5
START_S = 60.0
POLL_S = 0.02
STOP_S = 10.0
IN_USE = "address already in use"
CONFIG = """\
[node]
name = "test"
data_dir = '{folder}/data'
[listen]
client = "127.0.0.1:{port}"
peer = "127.0.0.1:{peer_port}"
[[cluster.members]]
name = "test"
client = "127.0.0.1:{port}"
peer = "127.0.0.1:{peer_port}"
"""


class ServerError(Exception):
    """The server cannot be run; the message says why, with the end of what it printed."""


class Server:
    """A sockpqd process on loopback, with its data in a temporary directory.

    It ends, and its files are removed, at the end of the block or of this process, however that ends.
    """

    def __init__(self) -> None:
        self.address = ""           # "host:port", for clients
        self._folder = Path()
        self._keeper: subprocess.Popen[bytes] | None = None
        self._empty = b""
        self._process = os.getpid()

    def start(self) -> None:
        """Start the server and wait until it serves; raises ServerError."""
        path = program()
        for attempt in range(START_ATTEMPTS):
            self._launch(path)
            try:
                self._wait()
                return
            except ServerError as error:
                self.stop()
                if attempt == START_ATTEMPTS - 1 or IN_USE not in str(error).lower():
                    raise

    def stop(self) -> None:
        """Stop the server and remove its files. In a forked child nothing happens."""
        if self._keeper and not is_inherited(self._process):
            assert self._keeper.stdin
            with suppress(BrokenPipeError):                 # it has ended before
                self._keeper.stdin.write(b"end")            # a forked child may keep this open
                self._keeper.stdin.flush()
            with suppress(BrokenPipeError):
                self._keeper.stdin.close()
            self._keeper.wait()
            self._keeper = None
            shutil.rmtree(self._folder, ignore_errors=True)

    def empty(self) -> None:
        """Remove all jobs, waiting and running."""
        with Client(self.address, sessions=False) as client:
            client.clone(self._empty)

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _launch(self, path: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="sockpq-"))
        port, peer_port = _free_ports()
        self.address = f"127.0.0.1:{port}"
        config = self._folder / "sockpqd.toml"
        config.write_text(CONFIG.format(folder=self._folder, port=port, peer_port=peer_port), "utf-8")
        environment = {key: value for key, value in os.environ.items() if not key.startswith("SOCKPQD_")}
        with (self._folder / "log").open("wb") as log:
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", _guardian.__file__, str(self._folder), str(STOP_S),
                 path, "--config", str(config)],
                stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment, start_new_session=True,
            )

    def _wait(self) -> None:
        """Wait until it serves; remembers the state of an empty server."""
        assert self._keeper
        until = time.monotonic() + START_S
        with Client(self.address, sessions=False) as client:
            while True:
                try:
                    client.later(0, timeout=1)
                except JobNotFound:         # there is no such job: it has looked
                    break
                except SockpqError:
                    pass
                if self._keeper.poll() is not None or time.monotonic() > until:
                    raise ServerError(f"the server does not serve; it printed:\n{self._log()}")
                time.sleep(POLL_S)
            self._empty = client.snapshot()

    def _log(self) -> str:
        return (self._folder / "log").read_text("utf-8", "replace")[-2000:]


def program() -> str:
    """Find sockpqd in this Python's environment or in PATH. Raises ServerError."""
    own = Path(sys.executable).parent
    found = shutil.which("sockpqd", path=str(own)) or shutil.which("sockpqd")
    if found is None:
        raise ServerError(
            f"there is no program sockpqd, neither in {own} nor in PATH: install the server (distribution sockpqd) "
            "into the environment of the tests, or put its folder into PATH"
        )
    return found


def _free_ports() -> tuple[int, int]:
    """Return two ports that are free now; another program may take one before it is used."""
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        return first.getsockname()[1], second.getsockname()[1]


def _process() -> Iterator[Server]:
    """The server of this test run."""
    try:
        with Server() as server:
            yield server
    except ServerError as error:
        _pytest.fail(str(error), pytrace=False)


def _server(sockpq_process: Server) -> Server:
    """A server with empty queues."""
    sockpq_process.empty()
    return sockpq_process


def _client(sockpq_server: Server) -> Iterator[Client]:
    """A client of a server with empty queues."""
    with Client(sockpq_server.address) as client:
        yield client


# Imported by name, because the library itself has no dependencies: a plugin's user has pytest. `Server` works without.
try:
    _pytest = importlib.import_module("pytest")
except ImportError:
    pass
else:
    sockpq_process = _pytest.fixture(scope="session", name="sockpq_process")(_process)
    sockpq_server = _pytest.fixture(name="sockpq_server")(_server)
    sockpq_client = _pytest.fixture(name="sockpq_client")(_client)
