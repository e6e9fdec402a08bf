"""A broker at the real node of this folder, with empty queues."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import dramatiq
import pytest
from dramatiq.middleware import CurrentMessage
from sockpq.testing import Server
from sockpq_dramatiq import SockpqBroker

from tests.emptied_cluster import EmptiedCluster

Brokers = Callable[..., SockpqBroker]


@pytest.fixture(scope="package")
def own_server() -> Iterator[Server | EmptiedCluster]:
    """A real node for all files of this folder; three nodes with `make test-frameworks`."""
    with EmptiedCluster() if os.environ.get("FRAMEWORKS") else Server() as server:
        yield server


@pytest.fixture
def brokers(own_server: Server) -> Iterator[Brokers]:
    """A function that makes brokers, all of the same cluster."""
    own_server.empty()
    made: list[SockpqBroker] = []

    def make(**options: Any) -> SockpqBroker:
        broker = SockpqBroker(own_server.address, **options)
        broker.add_middleware(CurrentMessage())
        broker.emit_after("process_boot")
        made.append(broker)
        return broker

    yield make
    for broker in made:
        broker.close()


@pytest.fixture
def broker(brokers: Brokers) -> SockpqBroker:
    """One broker, which is also Dramatiq's default."""
    made = brokers()
    dramatiq.set_broker(made)
    return made
