"""One real node for all tests of this room, with empty queues for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sockpq.testing import Server


@pytest.fixture(scope="session")
def push_process() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def address(push_process: Server) -> str:
    """The node's address; it has neither jobs nor settings."""
    push_process.empty()
    return push_process.address
