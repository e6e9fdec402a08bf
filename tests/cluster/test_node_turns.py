"""A node on a real event loop: what its turns leave out while the next entry waits for clients."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sockpqd.cluster import ClusterNode, Member, NodeSettings, limits
from sockpqd.cluster.wire.messages import Ack
from sockpqd.core import Put
from tests.cluster.helpers.small_cluster import Outcome
from tests.cluster.test_directories import PATIENCE_S, Ignorant

LONG_S = 1000.0


async def until(node: ClusterNode, outcomes: list[Outcome]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while any(outcome.state == "open" for outcome in outcomes):
            await asyncio.sleep(0.001)


async def put_while_a_message_arrives(data_dir: Path) -> tuple[int, str]:
    """Let a message arrive when two clients were answered and one is back; returns what is queued, and its outcome."""
    member = Member("n1", "127.0.0.1:0", "127.0.0.1:0")
    node = ClusterNode(NodeSettings(
        name="n1", data_dir=data_dir, peer_listen="127.0.0.1:0", members=(member,), version="test",
        feature_level_max=1,        # to raise it is an entry of its own, at some time after the start
    ), Ignorant())
    await node.start()
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not node.serving:
                await asyncio.sleep(0.01)
        first = [Outcome(), Outcome()]
        for outcome in first:
            node.propose(Put("q", 0, b"x"), outcome)
        await until(node, first)
        one, other = Outcome(), Outcome()
        node.propose(Put("q", 0, b"x"), one)
        node._driver.inbox.append(("n2", Ack(1, 1, 0.0, 1, False, True)))
        for _ in range(3):
            await asyncio.sleep(0)
        waiting = node._driver.proposer.queued
        assert node._driver.inbox == [], "the message was handled meanwhile"
        node.propose(Put("q", 0, b"x"), other)
        await until(node, [one, other])
        return waiting, one.state
    finally:
        await node.stop()


def test_a_message_does_not_end_the_commit_delay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "COMMIT_DELAY_S_MAX", LONG_S)
    monkeypatch.setattr(limits, "COMMIT_DELAY_SHARE", 1e9)
    assert asyncio.run(put_while_a_message_arrives(tmp_path)) == (1, "applied")
