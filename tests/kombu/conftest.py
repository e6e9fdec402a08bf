"""kombu's own tests (test_upstream.py) begin with the first test of this folder, as they mostly wait."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.kombu.upstream import NODES, SOURCES, Upstream, run


@pytest.fixture(scope="session")
def upstream(forkserver: None) -> Iterator[Upstream]:
    """The runs with each number of nodes."""
    with ThreadPoolExecutor() as pool:
        yield {nodes: pool.submit(run, nodes) for nodes in NODES}


@pytest.fixture(scope="session", autouse=True)
def _begin(request: pytest.FixtureRequest) -> None:
    """Begin now if they are wanted later."""
    if SOURCES and any("upstream" in getattr(item, "fixturenames", ()) for item in request.session.items):
        request.getfixturevalue("upstream")
