"""Fixtures of the tests of the storage."""

from __future__ import annotations

import pytest

from tests.cluster.helpers.faulty_disk import FaultyDisk


@pytest.fixture
def disk() -> FaultyDisk:
    return FaultyDisk()
