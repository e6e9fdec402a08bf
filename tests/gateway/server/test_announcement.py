"""A node announces that it serves."""

from __future__ import annotations

from pathlib import Path

from tests.gateway.helpers.memory import MemoryGateway, with_gateway


def test_it_is_announced_at_once_where_the_node_serves_already_and_each_time_it_begins(tmp_path: Path) -> None:
    async def watch(gateway: MemoryGateway) -> None:
        told: list[bool] = []
        assert gateway.cluster.serving
        gateway.hub.announce_serving(lambda: told.append(True))
        assert len(told) == 1
        gateway.hub.serving_changed(False)
        assert len(told) == 1
        gateway.hub.serving_changed(True)
        assert len(told) == 2

    with_gateway(watch, folder=tmp_path)


def test_it_is_not_announced_before(tmp_path: Path) -> None:
    async def watch(gateway: MemoryGateway) -> None:
        told: list[bool] = []
        gateway.cluster.serving = False
        gateway.hub.announce_serving(lambda: told.append(True))
        assert not told

    with_gateway(watch, folder=tmp_path)
