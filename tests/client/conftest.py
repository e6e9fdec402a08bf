from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from sockpq import Client

from tests.client.both import LoopClient, ThreadClient
from tests.client.memory_cluster import MemoryCluster
from tests.client.pair import Pair
from tests.client.real_server import RealServer

EARLY = ("delay", "session", "bound")
MakeClient = Callable[..., Client]


@pytest.fixture
def cluster() -> Iterator[MemoryCluster]:
    """Three servers of a version before PUTS and the like: clients send a batch as commands of its jobs."""
    with MemoryCluster(features=EARLY) as cluster:
        yield cluster


@pytest.fixture
def server() -> Iterator[RealServer]:
    with RealServer() as server:
        yield server


@pytest.fixture(scope="module")
def clusters() -> Iterator[Pair]:
    """Two clusters, for all tests of a module."""
    with Pair() as pair:
        yield pair


@pytest.fixture(params=[ThreadClient, pytest.param(LoopClient, marks=pytest.mark.long)], ids=["threads", "asyncio"])
def make_client(request: pytest.FixtureRequest) -> Iterator[MakeClient]:
    """Makes clients of one kind, and closes them at the end.

    Both are made from one source (client/tools/faces.py), so the quick tests look at one of them.
    """
    with ExitStack() as stack:
        def make(*arguments: Any, **settings: Any) -> Any:
            client = request.param(*arguments, **settings)
            stack.callback(client.stop)
            return client
        yield make


@pytest.fixture
def client(cluster: MemoryCluster, make_client: MakeClient) -> Client:
    """Return a client with short time limits, so that it gives up a silent server soon."""
    return make_client(cluster.addresses, timeout=60, server_timeout=0.3, connect_timeout=0.5)


@pytest.fixture
def old_client(cluster: MemoryCluster, make_client: MakeClient) -> Client:
    """A client without sessions, as against servers that have none."""
    return make_client(cluster.addresses, timeout=60, server_timeout=0.3, connect_timeout=0.5, sessions=False)
