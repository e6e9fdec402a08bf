"""What tests of the storage share."""

from __future__ import annotations

import pytest

from tests.cluster.helpers.faulty_disk import FaultyDisk


@pytest.fixture
def disk() -> FaultyDisk:
    return FaultyDisk()
