"""A separate session to which jobs are bound: they go back when it ends, and need no lease until then."""

from __future__ import annotations

import logging
import os
from contextlib import suppress

from sockpq._engine.call_runner import Call
from sockpq._engine.executor import Executor
from sockpq._engine.pool import Slot
from sockpq._engine.retry import Lost
from sockpq._process import check_own, is_inherited
from sockpq._protocol import arguments
from sockpq._protocol.command import Command
from sockpq._protocol.commands.cluster import PING
from sockpq._protocol.commands.connection import SESSION_RELEASE_FIRST
from sockpq._protocol.commands.jobs import untaken
from sockpq.errors import ClientClosed, SockpqError
from sockpq.model import Handed

LOG = logging.getLogger("sockpq")

BEATS_PER_TTL = 3           # two may come too late, as through a failover
CLOSE_S = 5.0               # what the release of the jobs may take; afterwards the session ends by its TTL


class BoundSession:
    """Takes jobs for one thread or task at a time; others may wake it, or keep it alive, at the same time."""

    def __init__(self, executor: Executor, ttl: float) -> None:
        """`ttl`: in seconds, how long the cluster waits for a sign of life."""
        arguments.session_ttl(ttl)
        self.period = ttl / BEATS_PER_TTL       # seconds between two beats
        self._executor = executor
        self._process = os.getpid()
        self._network = executor.network
        self._slot: Slot = executor.take_slot(ttl)
        self._lock = self._network.lock()
        self._sid: str | None = None
        self._taking: Call[list[Handed]] | None = None
        self._woken = False
        self._closed = False

    @property
    def inherited(self) -> bool:
        """True if the session belongs to a parent of this process."""
        return is_inherited(self._process)

    async def take(
        self, command: Command[list[Handed]], wait: float | None, timeout: float | None
    ) -> list[Handed]:
        """Execute this GET; returns [] when `wake` was called since the last one. Raises Inherited.

        If its caller is interrupted, the jobs that it has taken go back to their places.
        """
        check_own(self._process, "this consumer")
        await self._lock.acquire(self._executor.limits.timeout)
        try:
            call = self._taking = self._executor.calls.call(command, timeout=timeout, wait=wait)
            call.bound = True
            if self._woken or self._closed:
                return []
            return await self._executor.calls.run_in(self._slot, call, untaken) or []
        finally:
            self._taking = None
            self._woken = False
            self._tell_new_session()
            self._lock.release()

    def wake(self) -> None:
        """End the waiting GET, or the next one, which returns the jobs that it has. Callable from any thread."""
        if self.inherited:
            return
        self._woken = True
        call, connection = self._taking, self._slot.connection
        if call:
            call.wait, call.wait_until = 0.0, self._network.now()
            if connection:
                connection.withdraw()

    async def beat(self) -> None:
        """Keep the session alive, unless a call is in flight, which does that."""
        if self._closed or self.inherited or not await self._lock.acquire(0):
            return
        try:
            if self._slot.session:
                await self._executor.calls.run_attached(self._slot, PING, self.period)
        except ClientClosed:
            pass                            # nobody wants the session any longer, and it ends by its TTL
        except SockpqError as failure:
            LOG.warning("a session with jobs was not kept alive: %s", failure)
        finally:
            self._tell_new_session()
            self._lock.release()

    async def close(self) -> None:
        """Put back jobs that were not ended, in their old places, and end the session."""
        if self._closed or self.inherited:
            return
        self._closed = True
        self.wake()
        free = await self._lock.acquire(CLOSE_S)
        try:
            if free and self._slot.session:
                with suppress(SockpqError, Lost):
                    await self._executor.calls.run_attached(self._slot, SESSION_RELEASE_FIRST, CLOSE_S)
        finally:
            self._slot.drop_connection()
            self._slot.session = None
            self._executor.give_back(self._slot)
            if free:        # else a call is still in progress, which ends with its connection
                self._lock.release()

    def _tell_new_session(self) -> None:
        session = self._slot.session
        if session and session.sid != self._sid:
            if self._sid:
                LOG.warning("a session has ended; the jobs that were bound to it have gone back")
            self._sid = session.sid
