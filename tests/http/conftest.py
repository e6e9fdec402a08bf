"""A node and an instance of sockpq-http for the tests of this folder, and an HTTP client of both."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from sockpq.testing import Server

from tests.http.door import Door


@pytest.fixture(scope="session")
def http_node() -> Iterator[Server]:
    """A real node for all tests of this folder; each has queues of its own, or empties it."""
    with Server() as server:
        yield server


@pytest.fixture(scope="session")
def door(http_node: Server) -> Iterator[Door]:
    """An instance at that node."""
    with Door(http_node.address) as opened:
        yield opened


@pytest.fixture(scope="session")
def shared_web(door: Door) -> Iterator[httpx.Client]:
    with door.client() as client:
        yield client


@pytest.fixture
def web(http_node: Server, shared_web: httpx.Client) -> httpx.Client:
    """An HTTP client of the instance, and no job in the cluster."""
    http_node.empty()
    return shared_web
