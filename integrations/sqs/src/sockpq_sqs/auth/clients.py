"""The clients of the cluster: one for each user, made when that user's first request comes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from sockpq.aio import Client

from sockpq_sqs.auth.users import Account
from sockpq_sqs.settings import Cluster


class Clients:
    """Makes clients, and closes those of users who are gone or have another secret."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._of_users: dict[str, tuple[str, Client]] = {}      # with the secret
        self._closing: set[asyncio.Task[None]] = set()
        self.own = self._client(cluster.user, None)             # of this program, for requests that are nobody's

    def of(self, name: str, account: Account) -> Client:
        """Return the client of this user."""
        found = self._of_users.get(name)
        if found is not None and found[0] == account.secret:
            return found[1]
        if found is not None:
            self._close(name)
        client = self._client(name, account.secret)
        self._of_users[name] = account.secret, client
        return client

    def forget(self, users: Mapping[str, Account]) -> None:
        """Close the clients of users who are no longer among these, or have another secret."""
        for name, (secret, _) in list(self._of_users.items()):
            account = users.get(name)
            if account is None or account.secret != secret:
                self._close(name)

    async def close(self) -> None:
        """Close the clients of all users."""
        for name in list(self._of_users):
            self._close(name)
        await self.own.close()
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _client(self, user: str | None, secret: str | None) -> Client:
        cluster = self._cluster
        file = Path(cluster.secret_file) if cluster.secret_file is not None and secret is None else None
        return Client(cluster.servers or None, tls=cluster.ca, user=user, secret=secret, secret_file=file)

    def _close(self, name: str) -> None:
        _, client = self._of_users.pop(name)
        task = asyncio.get_running_loop().create_task(client.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
