from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sockpq import Client
from sockpq.testing import Server

from tests.worker.program.running import Worker

Start = Callable[..., Worker]


@pytest.fixture(scope="session")
def one_server() -> Iterator[Server]:
    """A real node for all tests of this folder."""
    with Server() as server:
        yield server


@pytest.fixture
def client(one_server: Server) -> Iterator[Client]:
    """A client of a node without jobs."""
    one_server.empty()
    with Client(one_server.address) as client:
        yield client


@pytest.fixture
def start(client: Client, one_server: Server, tmp_path: Path) -> Iterator[Start]:
    """A function that starts workers: start(app, *arguments)."""
    with ExitStack() as stack:
        def begin(app: str, *arguments: str) -> Worker:
            return stack.enter_context(Worker(tmp_path, one_server.address, app, *arguments))
        yield begin
