"""What the blocking client has for operators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sockpq._backends.sync import run
from sockpq.model import Leader, NodeStatus, SessionInfo, StateHash, User

if TYPE_CHECKING:
    from sockpq.calls import Calls


class ServerClient:
    """The servers, their users and sessions."""

    _calls: Calls[Any]

    # the users

    def users(self, *, timeout: float | None = None) -> list[User]:
        """The users the servers know, with their rights. For these three one needs the right admin."""
        return run(self._calls.users(timeout=timeout))

    def set_user(self, name: str, rights: str | Iterable[str], secret: str, *, timeout: float | None = None) -> None:
        """Make a user, or give him other rights and another secret, on all servers.

        `rights`: put, get, queue, admin, each for all queues or with a prefix: "put:mail*,get". `secret`: 16 to 64
        visible characters. Raises Refused when he is in the servers' files.
        """
        run(self._calls.set_user(name, rights, secret, timeout=timeout))

    def delete_user(self, name: str, *, timeout: float | None = None) -> None:
        """Take a user away; what he has open gets AuthError. Raises Refused when there is none, or in a file."""
        run(self._calls.delete_user(name, timeout=timeout))

    # the servers

    def ping(self, server: str | None = None, *, timeout: float | None = None) -> None:
        """Does this server (None: the serving leader) answer? Raises Unavailable when it does not."""
        run(self._calls.ping(server, timeout=timeout))

    def caps(self, server: str | None = None, *, timeout: float | None = None) -> tuple[str, ...]:
        """The protocol extensions the server has."""
        return run(self._calls.caps(server, timeout=timeout))

    def interconnect(self, server: str | None = None, *, timeout: float | None = None) -> int:
        """The server id; the serving leader has the smallest of all."""
        return run(self._calls.interconnect(server, timeout=timeout))

    def cluster_status(self, server: str | None = None, *, timeout: float | None = None) -> list[NodeStatus]:
        """All nodes, as `server` knows them; without one as the leader does, or any that answers if there is none."""
        return run(self._calls.cluster_status(server, timeout=timeout))

    def cluster_leader(self, server: str | None = None, *, timeout: float | None = None) -> Leader | None:
        """The leader this server (None: the serving leader) knows of."""
        return run(self._calls.cluster_leader(server, timeout=timeout))

    def cluster_hash(self, server: str, *, timeout: float | None = None) -> StateHash:
        """What this server has executed, as a hash: two that answer the same position answer the same hash."""
        return run(self._calls.cluster_hash(server, timeout=timeout))

    def offline(self, server: str, *, timeout: float | None = None) -> None:
        """Switch one server off for clients; it gives leadership away and goes on replicating."""
        run(self._calls.offline(server, timeout=timeout))

    def online(self, server: str, *, timeout: float | None = None) -> None:
        """Switch it on again."""
        run(self._calls.online(server, timeout=timeout))

    def cluster_add(self, name: str, peer: str, client: str, *, timeout: float | None = None) -> int:
        """Add a running server: `peer` is its address for the other servers, `client` for clients, "host:port" both.

        Returns its server id. It counts as soon as it has caught up; until then cluster_status() shows a LEARNER. This
        and the following are for the leader, which is looked for among the client's servers; Refused when it refuses.
        """
        return run(self._calls.cluster_add(name, peer, client, timeout=timeout))

    def cluster_remove(self, name: str, *, timeout: float | None = None) -> None:
        """Take a server out of the cluster; on return it may be stopped."""
        run(self._calls.cluster_remove(name, timeout=timeout))

    def cluster_transfer(self, name: str | None = None, *, timeout: float | None = None) -> Leader:
        """Let this server lead, or the one that is best prepared; returns the new leader."""
        return run(self._calls.cluster_transfer(name, timeout=timeout))

    def cluster_offline(self, *, timeout: float | None = None) -> None:
        """Switch the whole service off for clients, whoever leads, until cluster_online()."""
        run(self._calls.cluster_offline(timeout=timeout))

    def cluster_online(self, *, timeout: float | None = None) -> None:
        """Switch it on again."""
        run(self._calls.cluster_online(timeout=timeout))

    def cluster_snapshot(self, server: str, *, timeout: float | None = None) -> int:
        """Let one server write its state to disk and shorten its log; returns the position in the log."""
        return run(self._calls.cluster_snapshot(server, timeout=timeout))

    def shutdown(self, server: str, *, timeout: float | None = None) -> None:
        """End one server's process in good order."""
        run(self._calls.shutdown(server, timeout=timeout))

    # the sessions of all clients

    def sessions(self, *, server: str | None = None, timeout: float | None = None) -> list[SessionInfo]:
        """The sessions of all clients; `server` asks this one, whose answer may lag."""
        return run(self._calls.sessions(server=server, timeout=timeout))

    def end_session(self, number: int, *, timeout: float | None = None) -> bool:
        """End the session of this number; was there one? Its bound jobs go back to their queues.

        Its client learns that at its next use.
        """
        return run(self._calls.end_session(number, timeout=timeout))
