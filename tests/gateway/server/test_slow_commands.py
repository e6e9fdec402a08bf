"""Commands that take long are kept, the last thousand of them; waiting on purpose does not count."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sockpqd.gateway.server import pipeline
from sockpqd.gateway.server.slow_commands import KEPT_MAX
from tests.gateway.helpers.memory import MemoryGateway, with_gateway

SLOW_S = 0.05


def test_what_is_answered_late_is_kept_with_what_it_was_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline, "SLOW_S", SLOW_S)

    async def talk(gateway: MemoryGateway) -> None:
        client, slow = gateway.connect(), gateway.hub.slow
        gateway.cluster.automatic = False
        client.send(b"PUT mail 0 1\r\nxGET mail\r\nDONE 1\r\n")
        await gateway.settle()
        assert not slow.count
        await asyncio.sleep(2 * SLOW_S)
        gateway.cluster.commit()
        await gateway.settle()
        client.send(b"TOTAL\r\n")               # is quick
        await gateway.settle()
        kept = list(slow.newest())
        assert [(one.verb, one.about, one.answer) for one in kept] == [
            ("DONE", "1", "200 OK"), ("GET", "mail", "200 OK"), ("PUT", "mail", "200 OK")]
        assert all(one.took_s >= 2 * SLOW_S for one in kept)
        assert kept[0].address == "client:1"

    with_gateway(talk, folder=tmp_path)


def test_to_wait_for_a_job_is_not_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "SLOW_S", SLOW_S)

    async def talk(gateway: MemoryGateway) -> None:
        waits, puts = gateway.connect(), gateway.connect()
        waits.send(b"GETB mail\r\n")
        await gateway.settle()
        await asyncio.sleep(2 * SLOW_S)
        puts.send(b"PUT mail 0 1\r\nx")
        await gateway.settle()
        assert waits.take().startswith(b"200 OK mail 1")
        assert not gateway.hub.slow.count

    with_gateway(talk, folder=tmp_path)


def test_a_thousand_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "SLOW_S", -1.0)       # everything is

    async def talk(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        client.send(b"PUT first 0 1\r\nx" + b"PING\r\n" * KEPT_MAX)
        await gateway.settle()
        slow = gateway.hub.slow
        assert (slow.count, len(list(slow.newest()))) == (KEPT_MAX + 1, KEPT_MAX)
        assert {one.verb for one in slow.newest()} == {"PING"}

    with_gateway(talk, folder=tmp_path)
