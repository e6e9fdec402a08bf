"""The clients of all users: one for each, with a bounded number of connections, and a bounded number of users."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import sockpq
from sockpq.aio import Client

from sockpq_http.access.credentials import Credentials, refused
from sockpq_http.access.peer import Peer
from sockpq_http.access.turns import Turns
from sockpq_http.problems.errors import AGAIN, problem_of
from sockpq_http.problems.problem import Problem

REFUSED_S = 5.0             # for which refused credentials are not tried again: each try costs the cluster a hash
REFUSED_MAX = 1000          # refused credentials that are remembered
TRIED_MAX = 2               # credentials that are tried at a time, as the nodes hash that many
WAITING_TRIES_MAX = 64

MakeClient = Callable[[Credentials | None], Client]


class UserLimits(NamedTuple):
    """`users_max`: users with a client. `connections_max`: requests of a user that are executed at a time, each of
    which has a connection. `waiting_max`: further ones that wait for that, `patience_s` at most. `leaving_max`:
    further ones whose clients have hung up, until they have ended.
    """

    users_max: int = 100
    connections_max: int = 100
    waiting_max: int = 100
    patience_s: float = 10.0
    leaving_max: int = 50


class Account:
    """One user with a client. `turns`: of requests that are executed.

    `known`: the cluster has accepted the user; requests without credentials are not known where only users are served.
    """

    def __init__(self, client: Client, limits: UserLimits, *, known: bool) -> None:
        self.client = client
        self.turns = Turns(limits.connections_max, limits.waiting_max, limits.patience_s, limits.leaving_max)
        self.known = known
        self.requests = 0           # that are executed or wait
        self.over = False           # its secret is good no more: it is closed after its last request

    @property
    def idle(self) -> bool:
        """True while nobody uses it."""
        return self.requests == 0


class Users:
    """The accounts of all users that have sent requests; None stands for requests without credentials."""

    def __init__(self, make_client: MakeClient, limits: UserLimits) -> None:
        self._make_client = make_client
        self._limits = limits
        self._accounts: OrderedDict[bytes, Account] = OrderedDict()     # the one used last at the end
        self._opening: dict[bytes, asyncio.Task[Account]] = {}
        self._refused: OrderedDict[bytes, float] = OrderedDict()        # until when
        self._tries = asyncio.Semaphore(TRIED_MAX)

    def __len__(self) -> int:
        return len(self._accounts)

    @asynccontextmanager
    async def place(self, credentials: Credentials | None, peer: Peer) -> AsyncIterator[Account]:
        """Give a request of this client the account of its user, once it has a place.

        Raises Problem: 401, or 503 without a place; HungUp when the client leaves before that.
        """
        key = credentials.digest if credentials else b""
        account = await self._account(key, credentials)
        if account.known:
            peer.recognise()
        account.requests += 1
        try:
            async with account.turns.turn(peer):
                yield account
        finally:
            account.requests -= 1
            if account.over and account.idle:
                await account.client.close()

    async def forget(self, credentials: Credentials | None) -> None:
        """Forget credentials that the cluster has just refused, so that the next request tries them again."""
        account = self._accounts.pop(credentials.digest, None) if credentials else None
        if account is not None:
            account.over = True
            if account.idle:
                await account.client.close()

    async def close(self) -> None:
        """Close the clients of all users, and give up those that are being opened."""
        accounts = [*self._accounts.values()]
        self._accounts.clear()
        for task in self._opening.values():
            task.cancel()
        await asyncio.gather(*(account.client.close() for account in accounts), return_exceptions=True)

    async def _account(self, key: bytes, credentials: Credentials | None) -> Account:
        account = self._accounts.get(key)
        if account is not None:
            self._accounts.move_to_end(key)
            return account
        if self._refused.get(key, 0.0) > time.monotonic():
            raise refused("the cluster does not accept this user with this secret")
        opening = self._opening.get(key)
        if opening is None:
            if len(self._opening) >= WAITING_TRIES_MAX:
                raise _busy("too many users come at a time")
            opening = asyncio.create_task(self._open(key, credentials))
            self._opening[key] = opening
            opening.add_done_callback(lambda _: self._opening.pop(key, None))
        try:
            return await asyncio.shield(opening)        # others may wait for it, too
        except sockpq.SockpqError as error:
            raise problem_of(error) from error

    async def _open(self, key: bytes, credentials: Credentials | None) -> Account:
        await self._make_room()
        client = self._make_client(credentials)
        try:
            if credentials is not None:
                async with self._tries:
                    await client.connect()
        except sockpq.AuthError:
            self._refuse(key)
            await client.close()
            raise
        except BaseException:
            await client.close()
            raise
        account = Account(client, self._limits, known=credentials is not None)
        self._accounts[key] = account
        return account

    async def _make_room(self) -> None:
        """Close the least recently used client. Raises Problem when all of them are in use."""
        if len(self._accounts) < self._limits.users_max:
            return
        key = next((key for key, account in self._accounts.items() if account.idle), None)
        if key is None:
            raise _busy("too many users are served at a time")
        await self._accounts.pop(key).client.close()

    def _refuse(self, key: bytes) -> None:
        self._refused[key] = time.monotonic() + REFUSED_S
        self._refused.move_to_end(key)
        while len(self._refused) > REFUSED_MAX:
            self._refused.popitem(last=False)


def _busy(why: str) -> Problem:
    return Problem(503, why, "busy", code=503, reason="Busy", headers=AGAIN)
