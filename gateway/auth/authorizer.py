"""Authorization of one connection: its user, and whether they may run a command."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from sockpqd.cluster.api import Cluster
from sockpqd.core import OWN_PREFIX, Get, WorkerPool
from sockpqd.gateway.auth.authenticator import Access
from sockpqd.gateway.auth.permissions import anybody, awaiting, held_item, may_hear, owner_of, taking, turning
from sockpqd.gateway.auth.users_file import Proof
from sockpqd.gateway.link import Origin
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.protocol.responses import AUTH_REQUIRED
from sockpqd.gateway.rights import Rights


class Someone(Struct):
    """The origin of an authenticated request. `user`: None if no users are required."""

    peer: str
    user: str | None


class Guard:
    """The user of a connection and their rights, which are looked up again when the users have changed."""

    def __init__(self, access: Access, cluster: Cluster, origin: Origin) -> None:
        self.user = origin.user                                 # None: not authenticated
        self.fixed = origin.user is not None                    # a port for clients that cannot authenticate
        self.challenge: tuple[str, bytes] | None = None         # the pending one: its user and nonce
        self.failures = 0
        self._access = access
        self._cluster = cluster
        self._machine = cluster.machine
        self._origin = origin
        self._rights: Rights | None = None
        self._proof: Proof | None = None                        # by which the user was recognized; None: by no secret
        if isinstance(origin, Someone):
            self._prove()
        self._look_up()

    @property
    def unauthenticated(self) -> bool:
        """True if the client has to authenticate: it has not done so, or its user or their secret is gone."""
        self._refresh()
        return self._access.required and self._rights is None

    @property
    def rights(self) -> Rights | None:
        """The user's current rights; None: there is no such user, or no users are required."""
        self._refresh()
        return self._rights if self._access.required else None

    @property
    def administrator(self) -> bool:
        """True if the user has any `admin` right."""
        return self._rights is not None and bool(self._rights.admin)

    def become(self, user: str | None) -> None:
        """Set the user of the connection, who has just been recognized; None: not authenticated."""
        self.user = user
        self._prove()
        self._look_up()

    def refusal(self, command: Command) -> bytes | None:
        """Return the answer that refuses a command, None if it may be executed."""
        self._refresh()
        rights, right = self._rights, command.row.right
        if rights is not None:
            # Lines that are answered but never executed, as sent between servers of the original, need no right.
            refusal = None if command.answer is not None else right(rights, command, self._cluster)
            if refusal is not None and right is held_item and self._has_made(command.operation.item):
                refusal = None
        else:
            refusal = None if right is anybody else AUTH_REQUIRED
        if refusal is not None:
            self._access.complain("no AUTH" if rights is None else "not permitted", self.user, self._origin.peer)
        return refusal

    def _has_made(self, item: str) -> bool:
        """Return whether the item was created for the user (ITEM HOLD NEW)."""
        return self.user is not None and self._machine.owner_of_item(item) == self.user

    def refusal_to_take(self, get: Get) -> bytes | None:
        """Return the answer that refuses these jobs to a blocked client, None if it may still take them."""
        return self.refusal_meanwhile(lambda rights: taking(rights, get))

    def refusal_of_turn(self, pulse: str) -> bytes | None:
        """Return the answer that refuses a grant to a blocked client, None if it may still have it."""
        return self.refusal_meanwhile(lambda rights: turning(rights, pulse))

    def refusal_to_await(self, queue: str, *, by_key: bool) -> bytes | None:
        """Return the answer that refuses a blocked client the outcome of a job, None if it may still learn it."""
        return self.refusal_meanwhile(lambda rights: awaiting(rights, queue, by_key=by_key))

    def refusal_meanwhile(self, rule: Callable[[Rights], bytes | None]) -> bytes | None:
        """Return the refusal, by the current rights, of what a blocked client waits for; None if still allowed."""
        if not self._access.required:
            return None
        self._refresh()
        refusal = AUTH_REQUIRED if self._rights is None else rule(self._rights)
        if refusal is not None:
            self._access.complain("not permitted any more", self.user, self._origin.peer)
        return refusal

    def may_hear(self, event_type: str, name: str) -> bool:
        """Return whether the user may receive such an event."""
        if not self._access.required:
            return True
        self._refresh()
        rights = self._rights
        if rights is None or not may_hear(rights, event_type, name):
            return False
        if event_type != "WORKER" or "" in rights.admin:
            return True
        worker = self._machine.worker(name)
        return worker is not None and owner_of(self._machine, worker) == self.user

    def visible(self, queues: Iterable[str]) -> list[str]:
        """Return the queues on which the user has any right."""
        seen = self._rights.seen if self._access.required and self._rights is not None else ("",)
        return [queue for queue in queues if queue.startswith(seen)]

    def visible_items(self, items: Iterable[str]) -> list[str]:
        """Return the items that belong to the user by their prefix."""
        own = self._rights.item if self._access.required and self._rights is not None else ("",)
        return [item for item in items if item.startswith(own)]

    def administered(self, queues: Iterable[str]) -> list[str]:
        """Return the queues for which the user has the right `queue`."""
        rights = self._rights.queue if self._access.required and self._rights is not None else ("",)
        return [queue for queue in queues if queue.startswith(rights)]

    def _refresh(self) -> None:
        if self._machine.users is not self._log_users or self._access.file_users is not self._file_users:
            self._look_up()

    def visible_pulses(self, pulses: Iterable[str]) -> list[str]:
        """Return the pulses on which the user has any right; a queue's own pulse follows the queue."""
        seen = self._rights.seen if self._access.required and self._rights is not None else ("",)
        return [pulse for pulse in pulses if pulse.removeprefix(OWN_PREFIX).startswith(seen)]

    def visible_groups(self, groups: Iterable[str]) -> list[str]:
        """Return the groups for which the user has the right `group`."""
        rights = self._rights.group if self._access.required and self._rights is not None else ("",)
        return [group for group in groups if group.startswith(rights)]

    def visible_workers(self, workers: Iterable[WorkerPool]) -> list[WorkerPool]:
        """Return the pools whose sessions belong to the user; for an administrator, all pools."""
        if not self._access.required or (self._rights is not None and "" in self._rights.admin):
            return list(workers)
        return [worker for worker in workers if owner_of(self._machine, worker) == self.user]

    def _look_up(self) -> None:
        self._log_users, self._file_users = self._machine.users, self._access.file_users
        account = None if self.user is None else self._access.account(self.user)
        if account is not None and self._proof not in (None, account.proof):
            account = None              # the secret was replaced: its holder has to know the new one
        self._rights = None if account is None else account.rights

    def _prove(self) -> None:
        account = None if self.user is None else self._access.account(self.user)
        self._proof = None if account is None else account.proof
