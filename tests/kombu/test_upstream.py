"""kombu's own 48 tests of transports, from its sources on the package index."""

from __future__ import annotations

import re

import pytest

from tests.kombu.upstream import NODES, SOURCES, SUITE_MAX_S, Upstream

TESTS = 48


@pytest.mark.skipif(not SOURCES, reason="no sources of kombu: make kombu-tests")
@pytest.mark.timeout(2 * SUITE_MAX_S)
@pytest.mark.parametrize("nodes", NODES)
def test_all_pass(nodes: int, upstream: Upstream) -> None:
    told = upstream[nodes].result()
    assert re.search(rf"\b{TESTS} passed", told.stdout), told.stdout[-4000:] + told.stderr[-2000:]
    assert " failed" not in told.stdout
