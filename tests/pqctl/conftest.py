from __future__ import annotations

from collections.abc import Iterator

import pytest

from devcluster.cluster import LocalCluster
from sockpqd.pqctl import settings
from tests.client.memory_cluster import MemoryCluster


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Remove all settings of the machine that could select a cluster."""
    empty = tmp_path_factory.mktemp("home")
    for variable in (settings.VARIABLE, settings.CA, settings.USER, settings.SECRET, settings.SECRET_FILE):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(empty))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(empty / "config"))
    monkeypatch.setattr(settings, "SYSTEM_FILE", empty / "sockpq.toml")


@pytest.fixture
def cluster() -> Iterator[MemoryCluster]:
    with MemoryCluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def nodes() -> Iterator[LocalCluster]:
    """Three real nodes the tests of a file share; each test leaves them running, with empty queues."""
    with LocalCluster(3) as nodes:
        nodes.wait_until_level()
        yield nodes
