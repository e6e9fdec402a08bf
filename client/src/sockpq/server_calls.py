"""The calls for the servers and their users; sockpq.Client tells what each is for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from sockpq._engine.executor import Caller
from sockpq._engine.probe import hopeless, view_all
from sockpq._protocol import commands
from sockpq._protocol.addresses import parse_server
from sockpq._protocol.arguments import span
from sockpq._protocol.commands import Command
from sockpq.errors import Unavailable
from sockpq.model import Leader, NodeStatus, SessionInfo, StateHash, User

T = TypeVar("T")


class ServerCalls:
    """What a client has for operators."""

    _caller: Caller

    async def ping(self, server: str | None = None, *, timeout: float | None = None) -> None:
        """Does this server (None: the serving leader) answer?"""
        await self._ask(commands.PING, server, timeout)

    async def caps(self, server: str | None = None, *, timeout: float | None = None) -> tuple[str, ...]:
        """The protocol extensions the server has."""
        return await self._ask(commands.CAPS, server, timeout)

    async def interconnect(self, server: str | None = None, *, timeout: float | None = None) -> int:
        """The server id; the serving leader has the smallest of all."""
        return await self._ask(commands.INTERCONNECT, server, timeout)

    async def cluster_status(self, server: str | None = None, *, timeout: float | None = None) -> list[NodeStatus]:
        """All nodes, as `server` knows them, or the best of all servers that answer."""
        if server is not None:
            return await self._ask(commands.CLUSTER_STATUS, server, timeout)
        caller = self._caller
        timeout = caller.limits.connect_timeout if timeout is None else span(timeout, "timeout")
        views = await view_all(caller.network, caller.addresses, timeout)
        answered = [view for view in views if view.error is None]
        if not answered:
            failures = {address: view.error for address, view in zip(caller.addresses, views, strict=True)}
            raise hopeless(failures) or Unavailable("; ".join(str(view.error) for view in views))
        return min(answered, key=lambda view: view.id or 0).nodes

    async def cluster_leader(self, server: str | None = None, *, timeout: float | None = None) -> Leader | None:
        """The leader this server (None: the serving leader) knows of."""
        return await self._ask(commands.CLUSTER_LEADER, server, timeout)

    async def cluster_hash(self, server: str, *, timeout: float | None = None) -> StateHash:
        """What this server has executed, as a hash."""
        return await self._ask(commands.CLUSTER_HASH, server, timeout)

    async def offline(self, server: str, *, timeout: float | None = None) -> None:
        """Switch one server off for clients."""
        await self._ask(commands.OFFLINE, server, timeout)

    async def online(self, server: str, *, timeout: float | None = None) -> None:
        """Switch it on again."""
        await self._ask(commands.ONLINE, server, timeout)

    async def cluster_add(self, name: str, peer: str, client: str, *, timeout: float | None = None) -> int:
        """Add a running server; returns its server id."""
        return await self._caller.run_at_leader(commands.cluster_add(name, peer, client), timeout=timeout)

    async def cluster_remove(self, name: str, *, timeout: float | None = None) -> None:
        """Take a server out of the cluster."""
        await self._caller.run_at_leader(commands.cluster_remove(name), timeout=timeout)

    async def cluster_transfer(self, name: str | None = None, *, timeout: float | None = None) -> Leader:
        """Let this server lead, or the one that is best prepared; returns the new leader."""
        return await self._caller.run_at_leader(commands.cluster_transfer(name), timeout=timeout)

    async def cluster_offline(self, *, timeout: float | None = None) -> None:
        """Switch the whole service off for clients."""
        await self._caller.run_at_leader(commands.CLUSTER_OFFLINE, timeout=timeout)

    async def cluster_online(self, *, timeout: float | None = None) -> None:
        """Switch it on again."""
        await self._caller.run_at_leader(commands.CLUSTER_ONLINE, timeout=timeout)

    async def cluster_snapshot(self, server: str, *, timeout: float | None = None) -> int:
        """Let one server write its state to disk and shorten its log; returns the position in the log."""
        return await self._ask(commands.CLUSTER_SNAPSHOT, server, timeout)

    async def shutdown(self, server: str, *, timeout: float | None = None) -> None:
        """End one server's process in good order."""
        await self._ask(commands.SHUTDOWN, server, timeout)

    # the sessions of all clients

    async def sessions(self, *, server: str | None = None, timeout: float | None = None) -> list[SessionInfo]:
        """The sessions of all clients."""
        return await self._ask(commands.SESSION_LIST, server, timeout)

    async def end_session(self, number: int, *, timeout: float | None = None) -> bool:
        """End the session of this number; was there one?"""
        return await self._caller.run(commands.session_end(number), timeout=timeout)

    # the users

    async def users(self, *, timeout: float | None = None) -> list[User]:
        """The users the servers know."""
        return await self._caller.run(commands.USER_LIST, timeout=timeout)

    async def set_user(
        self, name: str, rights: str | Iterable[str], secret: str, *, timeout: float | None = None
    ) -> None:
        """Make a user, or change him."""
        await self._caller.run(commands.user_set(name, rights, secret), timeout=timeout)

    async def delete_user(self, name: str, *, timeout: float | None = None) -> None:
        """Take a user away."""
        await self._caller.run(commands.user_delete(name), timeout=timeout)

    async def _ask(self, command: Command[T], server: str | None, timeout: float | None) -> T:
        """Run on this server only, or on the serving leader with failover."""
        if server is None:
            return await self._caller.run(command, timeout=timeout)
        return await self._caller.run_at(parse_server(server), command, timeout=timeout)
