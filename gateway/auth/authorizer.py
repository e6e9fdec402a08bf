"""Who the client of one connection is, and whether he may do what he asks for."""

from __future__ import annotations

from collections.abc import Iterable

from cluster.api import Cluster
from gateway.auth.authenticator import Access
from gateway.auth.permissions import anybody
from gateway.link import Link
from gateway.protocol.command import Command
from gateway.protocol.responses import AUTH_REQUIRED
from gateway.rights import Rights


class Guard:
    """The user of a connection. His rights are looked up again when the users have changed."""

    def __init__(self, access: Access, cluster: Cluster, link: Link) -> None:
        self.user = link.user                                   # None: nobody yet
        self.fixed = link.user is not None                      # a port for clients that cannot say AUTH
        self.challenge: tuple[str, bytes] | None = None         # whom it was put to, and its nonce
        self.failures = 0
        self._access = access
        self._cluster = cluster
        self._machine = cluster.machine
        self._link = link
        self._rights: Rights | None = None
        self._look_up()

    @property
    def stranger(self) -> bool:
        """Must the client say who it is, and has not yet, or is it not a user any more?"""
        return self._access.required and self._rights is None

    @property
    def administrator(self) -> bool:
        """Has the user the right to look after the cluster?"""
        return self._rights is not None and bool(self._rights.admin)

    def become(self, user: str | None) -> None:
        """This is the user of the connection from now on."""
        self.user = user
        self._look_up()

    def refusal(self, command: Command) -> bytes | None:
        """What is answered to a command instead of executing it; None: it may be executed."""
        if self._machine.users is not self._log_users or self._access.file_users is not self._file_users:
            self._look_up()
        rights, right = self._rights, command.row.right
        if rights is not None:
            # What will only be answered, as the original's servers say it to each other, is everybody's.
            refusal = None if command.answer is not None else right(rights, command, self._cluster)
        else:
            refusal = None if right is anybody else AUTH_REQUIRED
        if refusal is not None:
            self._access.complain("no AUTH" if rights is None else "not his right", self.user, self._link.peer)
        return refusal

    def visible(self, queues: Iterable[str]) -> list[str]:
        """Those of the queues that the user has any right on."""
        seen = self._rights.seen if self._access.required and self._rights is not None else ("",)
        return [queue for queue in queues if queue.startswith(seen)]

    def _look_up(self) -> None:
        self._log_users, self._file_users = self._machine.users, self._access.file_users
        account = None if self.user is None else self._access.account(self.user)
        self._rights = None if account is None else account.rights
