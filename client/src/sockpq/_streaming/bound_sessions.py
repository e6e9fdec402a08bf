"""The sessions of one consumer, one in each cluster from which it takes jobs; see BoundSession."""

from __future__ import annotations

import os

from sockpq._engine.attempt import TINY_S
from sockpq._engine.executor import Executor
from sockpq._process import check_own, is_inherited
from sockpq._protocol import arguments
from sockpq._protocol.command import Command
from sockpq._protocol.commands.jobs import untaken
from sockpq._routing.router import UNTIL_DONE, Router
from sockpq._routing.routes import Route
from sockpq._routing.targets import target_of
from sockpq._routing.values import labelled
from sockpq._streaming.bound_session import BEATS_PER_TTL, BoundSession
from sockpq.errors import CrossCluster, Elsewhere, SockpqError
from sockpq.model import Handed

LOOK_S = 1.0            # how long a wait for the next of several clusters may be
GIVE_BACK_S = 3.0       # what it may take to put back jobs that came while others did
SLICE_S = 30.0          # a wait in several clusters is begun again after this time, by the map as it is then


class BoundSessions:
    """Takes jobs for one thread or task at a time; others may wake it, or keep it alive, at the same time."""

    def __init__(self, router: Router, ttl: float) -> None:
        """`ttl`: in seconds, how long each cluster waits for a sign of life."""
        arguments.session_ttl(ttl)
        self.period = ttl / BEATS_PER_TTL       # seconds between two beats
        self._router = router
        self._ttl = ttl
        self._process = os.getpid()
        self._sessions: dict[Executor, BoundSession] = {}
        self._kept: list[Handed] = []           # came from one cluster when another had sent jobs, and did not go back
        self._turn = 0
        self._woken = False
        self._closed = False

    @property
    def inherited(self) -> bool:
        """True if the sessions belong to a parent of this process."""
        return is_inherited(self._process)

    async def take(
        self, command: Command[list[Handed]], wait: float | None, timeout: float | None
    ) -> list[Handed]:
        """Execute this GET; returns [] when `wake` was called since the last one. Raises Inherited.

        With several clusters it takes the jobs that one of them has; if none has any, it waits in all of them, and puts
        back what a second one sends at the same moment.
        """
        check_own(self._process, "this consumer")
        now = self._router.network.now
        until = None if wait is None else now() + wait
        try:
            while not self._kept:
                left = None if until is None else max(until - now(), TINY_S)
                try:
                    routes = await self._router.sources(target_of(command.line).names)
                    jobs, ended = await self._take(routes, command, left, timeout)
                    if not jobs:
                        await self._router.look()
                        ended = ended and routes == await self._router.sources(target_of(command.line).names)
                except Elsewhere:               # there is a map, which was not known
                    await self._router.read_map()
                    continue
                if jobs or self._woken or self._closed or ended or (until is not None and now() >= until):
                    return jobs
            jobs, self._kept = self._kept, []
            return jobs
        finally:
            self._woken = False

    async def _take(
        self, routes: tuple[Route, ...], command: Command[list[Handed]], wait: float | None, timeout: float | None
    ) -> tuple[list[Handed], bool]:
        """Take by the current map; returns the jobs, and whether an empty answer is final."""
        if len(routes) == 1:
            return await self._taken(routes[0], command, wait, timeout), True
        if command.line.startswith(b"GETBE") and len({route.name for route in routes}) > 1:
            raise CrossCluster(UNTIL_DONE)
        self._turn += 1
        for at in ((self._turn + step) % len(routes) for step in range(len(routes))):
            jobs = await self._taken(routes[at], command.unblocked or command, None, timeout)
            if jobs or self._woken:
                return jobs, True
        if not command.unblocked:
            return [], True
        limit = SLICE_S if wait is None else min(wait, SLICE_S)
        race = self._router.network.race([
            self._caught(route, command, limit, timeout) for route in routes])
        found: list[Handed] = []
        failures: list[SockpqError] = []
        left = set(range(len(routes)))
        while left:
            ended = await race.next(LOOK_S)
            if ended is None:
                continue
            at, (jobs, error) = ended
            left.discard(at)
            failures += [error] if error else []
            if found and jobs:
                self._kept += await self._give_back(jobs)
            elif jobs or error:
                found = jobs
                for other in left:
                    self._sessions[routes[other].executor].wake()
        if len(failures) == len(routes):
            raise failures[0]
        return found, False

    async def _give_back(self, jobs: list[Handed]) -> list[Handed]:
        """Put surplus jobs back in their places; returns them if that fails: they are still bound here."""
        try:
            await self._router.run_batch(untaken(jobs), timeout=GIVE_BACK_S)
        except SockpqError:
            return jobs
        return []

    async def _taken(
        self, route: Route, command: Command[list[Handed]], wait: float | None, timeout: float | None
    ) -> list[Handed]:
        session = self._sessions.get(route.executor)
        if session is None:
            session = self._sessions[route.executor] = BoundSession(route.executor, self._ttl)
        jobs: list[Handed] = labelled(await session.take(command, wait, timeout), route.name, route.tag)
        return jobs

    async def _caught(
        self, route: Route, command: Command[list[Handed]], wait: float, timeout: float | None
    ) -> tuple[list[Handed], SockpqError | None]:
        try:
            return await self._taken(route, command, wait, timeout), None
        except SockpqError as error:
            return [], error

    def wake(self) -> None:
        """End the waiting GET, or the next one, which returns the jobs that it has. Callable from any thread."""
        self._woken = True
        for session in list(self._sessions.values()):
            session.wake()

    async def beat(self) -> None:
        """Keep alive the sessions that have no call in flight."""
        for session in list(self._sessions.values()):
            await session.beat()

    async def close(self) -> None:
        """Put back jobs that were not ended, in their old places, and end the sessions."""
        self._closed = True
        for session in list(self._sessions.values()):
            await session.close()
