"""A gateway in memory, and an engine of sockpq_sqs before it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.client.real_server import RealServer
from tests.sqs.running_engine import RunningEngine


@pytest.fixture
def server() -> Iterator[RealServer]:
    """A gateway with empty queues."""
    with RealServer() as server:
        yield server


@pytest.fixture
def engine(server: RealServer) -> Iterator[RunningEngine]:
    """An engine in front of the server."""
    with RunningEngine(server) as engine:
        yield engine
