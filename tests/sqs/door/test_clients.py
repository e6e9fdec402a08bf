"""The clients of users: one for each, as long as its secret is the same."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from sockpq import ClientClosed
from sockpq_sqs.auth import Account, Clients
from sockpq_sqs.settings import Cluster

FIRST, SECOND = Account("the-first-secret-0123"), Account("the-second-secret-0123")


def test_each_user_has_a_client_until_its_secret_changes() -> None:
    async def run() -> None:
        clients = Clients(Cluster(servers=["127.0.0.1:1"]))
        try:
            shop, other = clients.of("shop", FIRST), clients.of("other", FIRST)
            assert clients.of("shop", FIRST) is shop
            assert len({id(one) for one in (shop, other, clients.own)}) == 3
            changed = clients.of("shop", SECOND)
            assert changed is not shop
            with pytest.raises(ClientClosed):
                await shop.ping()
            clients.forget({"shop": SECOND, "other": SECOND})
            assert clients.of("shop", SECOND) is changed
            with pytest.raises(ClientClosed):
                await other.ping()
            clients.forget({})
            with pytest.raises(ClientClosed):
                await changed.ping()
        finally:
            await clients.close()
        with pytest.raises(ClientClosed):
            await clients.own.ping()

    asyncio.run(run())


def test_the_program_has_a_user_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.touch(0o600)
    path.write_text("the-secret-of-the-program")

    async def run() -> None:
        clients = Clients(Cluster(servers=["127.0.0.1:1"], user="front", secret_file=str(path)))
        await clients.close()

    asyncio.run(run())
