from __future__ import annotations

from collections.abc import Iterator

import pytest
from sockpq import Client

from tests.client.fake_server import FakeCluster


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as cluster:
        yield cluster


@pytest.fixture
def client(cluster: FakeCluster) -> Iterator[Client]:
    """Short time limits, so that a server's silence is over soon."""
    with Client(cluster.addresses, timeout=5, server_timeout=0.3, connect_timeout=0.5) as client:
        yield client
