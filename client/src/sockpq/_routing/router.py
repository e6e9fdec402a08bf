"""Sends each command to the cluster that owns what it names, and follows the map of clusters when that changes.

Without a map there is one cluster, the one whose servers the client was given, and everything goes there as it is. The
first connection tells whether there is a map (CLUSTER ID has a name); it is read before the first command that changes
something. The newest one of all clusters is kept; they are asked again after a refusal (409 Elsewhere) and each minute.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import chain, count
from typing import Any, NamedTuple, TypeVar, cast

from sockpq._backends.base import Network
from sockpq._engine.attempt import TINY_S
from sockpq._engine.call_runner import PutBack
from sockpq._engine.executor import Executor
from sockpq._engine.limits import Limits
from sockpq._engine.probe import ask_all
from sockpq._engine.retry import pause_s
from sockpq._engine.stats import Counters
from sockpq._engine.tracing import Tracing
from sockpq._protocol.addresses import Address, parse_server, parse_servers
from sockpq._protocol.arguments import Bodies, Codec, HeadersWanted
from sockpq._protocol.cluster_map import ClusterMap
from sockpq._protocol.command import Command, Repeat, Steps
from sockpq._protocol.commands.clusters import CLUSTER_MAP
from sockpq._protocol.job_ids import tag_of
from sockpq._protocol.protocol import Answer
from sockpq._routing.routes import Route, Routes
from sockpq._routing.taking import LOOK_S, Taking, waits
from sockpq._routing.targets import ANY, Target, Use, as_sent, target_of
from sockpq._routing.values import labelled, together
from sockpq.errors import (
    Aborted,
    BatchFailed,
    CrossCluster,
    Elsewhere,
    JobNotFound,
    MapUnread,
    NotExecuted,
    Refused,
    SockpqError,
    Unavailable,
)
from sockpq.model import NodeStatus

T = TypeVar("T")

READ_AGAIN_S = 60.0     # how old the map may be
STRAGGLER_S = 0.1       # how long the maps of slower clusters are waited for
UNTIL_DONE = "that queues of several clusters have no unfinished job cannot be waited for in one command"
TAKES = (b"GET ", b"GETB ", b"GETBE ", b"GET\r\n", b"GETB\r\n", b"GETBE\r\n")


class Options(NamedTuple):
    """The options of a call, see Executor.run."""

    timeout: float
    wait: float | None
    retry_unknown: bool | None
    put_back: PutBack[Any] | None


class Router:
    """The clusters of one client. For as many threads or tasks at once as its network is for."""

    def __init__(
        self, network: Network, addresses: tuple[Address, ...], limits: Limits, codec: Codec | None = None,
        tracing: Tracing | None = None, cluster: str | None = None, follows_map: bool = True,
    ) -> None:
        """`cluster`: the id of the first cluster, the only one unless it `follows_map`. The rest is the client's."""
        self.network = network
        self.limits = limits
        self.counters = Counters()
        self._codec = codec
        self.tracing = tracing
        self.first = Executor(network, addresses, limits, codec, tracing, cluster, self.counters)
        self.bodies: Bodies = self.first.bodies
        self.identity = self.first.identity
        self.identity.follows_map = follows_map
        self.first.look_around(self._look_around)
        self._executors: dict[str, Executor] = {}       # of other clusters, by id
        self._routes: Routes | None = None
        self._plain = False                             # jobs were taken before there was a map
        self._read_at = math.inf                        # when the map is to be read again
        self._reading = network.lock()
        self._process = os.getpid()
        self._taking = Taking(network)
        self._turns = count()                           # which cluster is the next to begin with
        self._guard: Callable[[], None] | None = None

    # the client as a whole

    @property
    def leader(self) -> Address | None:
        """The leader of the first cluster; None while it is looked for."""
        return self.first.leader

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The servers of the first cluster."""
        return self.first.addresses

    @property
    def guard(self) -> Callable[[], None] | None:
        """A function that is called before each call, in the thread of the caller."""
        return self._guard

    @guard.setter
    def guard(self, guard: Callable[[], None]) -> None:
        self._guard = guard
        for executor in self._all():
            executor.guard = guard

    def asks_for(self, headers: bool) -> HeadersWanted:
        """Return whether jobs are taken with their headers; see Executor."""
        return self.first.asks_for(headers)

    def close(self) -> None:
        """Close all connections and sessions, and end all calls in flight."""
        for executor in self._all():
            executor.close()

    async def connect(self, *, timeout: float | None = None) -> None:
        """Prepare a connection to the leader of the first cluster, and read the map if there is one."""
        try:
            await self.first.connect(timeout=timeout)
        except Elsewhere:
            await self._read_map()
            await self.first.connect(timeout=timeout)

    def _all(self) -> list[Executor]:
        return [self.first, *list(self._executors.values())]

    # commands

    async def run(
        self, command: Command[T], *, timeout: float | None = None, wait: float | None = None,
        retry_unknown: bool | None = None, put_back: PutBack[T] | None = None,
    ) -> T:
        """Execute one command in the cluster that it is for; see Executor.run.

        Raises CrossCluster before anything is sent if it is for several and must be executed in one piece.
        """
        begun = self.network.now()
        if self._routes is None:
            try:
                value = await self.first.run(
                    command, timeout=timeout, wait=wait, retry_unknown=retry_unknown, put_back=put_back)
            except NotExecuted as error:
                if not self.identity.follows_map or not (self._must_read() or _is_elsewhere(error)):
                    raise
            else:
                self._plain = self._plain or not self._must_read()
                unsettled = command.repeat is Repeat.FREELY or (waits(command) and not value)
                if not unsettled or not self._must_read():
                    return value
            await self._read_map()
        left = None if wait is None else max(wait - (self.network.now() - begun), TINY_S)
        options = Options(self.calls_timeout(timeout), left, retry_unknown, put_back)
        return cast(T, await self._routed(command, options))

    async def run_behind(
        self, first: Command[Any] | None, command: Command[T], put_back: PutBack[T], *, timeout: float | None = None,
        wait: float | None = None,
    ) -> T:
        """Execute `command`, a GET, directly behind `first`, a DONE, in one packet if both are for one cluster.

        See CallRunner.run_behind.
        """
        begun = self.network.now()
        if self._routes is None:
            try:
                value = await self.first.calls.run_behind(first, command, put_back, timeout=timeout, wait=wait)
            except Elsewhere:
                await self._read_map()
            else:
                self._plain = True
                if value or not (waits(command) and self._must_read()):
                    return value
                first = None
                await self._read_map()
        else:
            routes = await self._now()
            both = self._one_route(routes, first, command)
            if both:
                route, before, behind = both
                value = await route.executor.calls.run_behind(before, behind, put_back, timeout=timeout, wait=wait)
                if value or not waits(command) or self._routes is routes:
                    return cast(T, labelled(value, route.name, route.tag))
                first = None
        if first:
            await self.run(first, timeout=timeout)
        left = None if wait is None else max(wait - (self.network.now() - begun), TINY_S)
        return await self.run(command, timeout=timeout, wait=left, put_back=put_back)

    async def run_batch(
        self, commands: Sequence[Command[Any]], *, timeout: float | None = None, retry_unknown: bool | None = None,
        partly: bool = False, each: bool = False,
    ) -> list[Answer | None]:
        """Execute commands pipelined, in one batch for each cluster, all at once; see Executor.run_batch.

        When one of several clusters does not execute its batch, the error is raised when the others have; with `each`
        it is the answer to each command of that batch instead.
        """
        if self._routes is None:
            try:
                answers = await self.first.run_batch(
                    commands, timeout=timeout, retry_unknown=retry_unknown, partly=partly)
            except Elsewhere:
                await self._read_map()
                answers = [None] * len(commands)
            else:
                self._plain = True
            open_ = [at for at, answer in enumerate(answers) if self.identity.follows_map and (
                _is_refused_here(answer) or (answer is None and self._must_read()))]
            if not open_:
                return answers
            await self._read_map()
        else:
            answers, open_ = [None] * len(commands), list(range(len(commands)))
        limit = self.calls_timeout(timeout)
        until = self.network.now() + limit
        for attempts in count(1):
            routes = await self._now()
            if routes.map.spread:
                await self._taking.look(routes.executors)
            try:
                by_route = self._by_route(routes, commands, open_)
            except Elsewhere:               # a name has no owner now
                if not await self.may_try_again(attempts, until):
                    raise
                continue
            failures: list[SockpqError] = []
            for positions, found in await self._batches(routes, by_route, commands, timeout, retry_unknown, partly):
                if isinstance(found, SockpqError):
                    failures.append(_of_whole(found, positions))
                    found = [Answer(None, found)] * len(positions)
                for at, answer in zip(positions, found, strict=True):
                    answers[at] = answer
            if failures and not (each and len(by_route) > 1):
                raise failures[0]
            open_ = [at for at in open_ if _is_refused_here(answers[at])]
            if not open_ or not await self.may_try_again(attempts, until):
                break
        return answers

    async def run_steps(self, steps: Steps[T], *, timeout: float | None = None) -> T:
        """Execute commands one after the other, each with this time limit; returns what the last one does."""
        for command in steps.before:
            await self.run(command, timeout=timeout)
        return await self.run(steps.last, timeout=timeout)

    async def run_where(self, command: Command[T], server: str | None, *, timeout: float | None = None) -> T:
        """Execute one command on this server only, or where it belongs."""
        if server is None:
            return await self.run(command, timeout=timeout)
        return await self.run_at(parse_server(server), command, timeout=timeout)

    async def run_at(self, address: Address, command: Command[T], *, timeout: float | None = None) -> T:
        """Execute one command on exactly this server, once, on a connection of its own."""
        for route in self._routes.all if self._routes else ():
            if address in route.executor.addresses:
                sent = as_sent(command, target_of(command.line).ids)
                value = await route.executor.run_at(address, sent, timeout=timeout)
                return cast(T, labelled(value, route.name, route.tag))
        return await self.first.run_at(address, command, timeout=timeout)

    async def run_at_leader(self, command: Command[T], *, timeout: float | None = None) -> T:
        """Execute one command on the server that leads the first cluster, also while it serves no jobs."""
        return await self.first.run_at_leader(command, timeout=timeout)

    async def status_of_best(self, timeout: float) -> list[NodeStatus]:
        """Return CLUSTER STATUS of the best server of the first cluster. Raises Unavailable, AuthError."""
        return await self.first.status_of_best(timeout)

    # for what lasts longer than a call (_streaming)

    async def sources(self, names: tuple[str, ...]) -> tuple[Route, ...]:
        """Return the clusters in which something may lie under one of these names ("*": under any), in their order."""
        routes = await self._known()
        return (Route("", self.first, 0),) if routes is None else _sources(routes, names)

    async def of_events(self, words: str, names: tuple[str, ...] | None) -> Route:
        """Return the cluster that tells these events; `words`: as in SUBSCRIBE, `names`: None for all.

        Their numbers mean something in one cluster only: raises CrossCluster for names of several.
        """
        routes = await self._known()
        if routes is None:
            return Route("", self.first, 0)
        types = set(words.partition(" ")[0].split("|"))
        if types == {"WORKER"}:
            return routes.home
        of_items = types <= {"FINI", "FAILI"}
        found = {
            routes.of_item(name) if of_items else routes.owner(name) for name in names or (ANY,) if name[-1] != ANY}
        if any(name[-1] == ANY for name in names or (ANY,)):
            found |= set(routes.all)
        if len(found) > 1:
            raise CrossCluster("events of several clusters have no common order: make a client for each, with cluster=")
        return _there(found.pop(), " ".join(names or ()))

    async def read_map(self) -> None:
        """Read the map now, after a cluster has refused what another one should have got (Elsewhere)."""
        await self._read_map()

    async def may_try_again(self, attempts: int, until: float) -> bool:
        """After a wrong cluster has refused: read the map again, and wait unless it is new; False: no time is left."""
        if not self.identity.follows_map:
            return False
        before = self._routes
        await self._read_map()
        if self._routes is not before:
            return True
        pause = pause_s(attempts)
        if self.network.closed or self.network.now() + pause >= until:
            return False
        await self.network.sleep(pause)
        return True

    def calls_timeout(self, timeout: float | None) -> float:
        """Return the time limit of a call, seconds."""
        return self.first.calls.timeout(timeout)

    # where a command goes

    async def _routed(self, command: Command[Any], options: Options) -> Any:
        """Send by the present map, and again when that has changed or another cluster was right, until the deadline."""
        begun, limit = self.network.now(), options.timeout
        until = begun + limit
        wait_until = None if options.wait is None else begun + options.wait
        attempts = 0
        while True:
            attempts += 1
            if attempts > 1:
                now = self.network.now()
                left = None if wait_until is None else max(wait_until - now, TINY_S)
                options = options._replace(timeout=max(until - now, TINY_S), wait=left)
            try:
                value, again = await self._send(await self._now(), command, options)
            except (Elsewhere, Aborted) as refusal:
                if not _is_elsewhere(refusal):
                    raise
                if not await self.may_try_again(attempts, until):
                    if isinstance(refusal, MapUnread):
                        raise Unavailable(str(refusal)) from refusal
                    raise
                continue
            if not again or (wait_until is not None and self.network.now() >= wait_until):
                return value
            until = self.network.now() + limit      # it has only waited

    async def _send(self, routes: Routes, command: Command[Any], options: Options) -> tuple[Any, bool]:
        """Send a command; returns its value, and whether it is to be sent again because the map has changed."""
        target = target_of(command.line)
        if target.use is Use.EVERY:
            return await self._in_every(routes.all, command, options), False
        if target.use is Use.LIES and not command.members:
            sources = _sources(routes, target.names)
            if len(sources) > 1:
                return await self._lying(routes, sources, target, command, options)
        if target.use is Use.BRINGS and any(map(routes.is_spread, target.names)):
            await self._taking.look(routes.executors)
        if command.members or command.place:
            route, sent = self._resolved(routes, command)
        else:
            route = self._route(routes, target, command, next(self._turns))
            sent = as_sent(command, target.ids) if target.ids else command
        value = await route.executor.run(
            sent, timeout=options.timeout, wait=options.wait, retry_unknown=options.retry_unknown,
            put_back=options.put_back,
        )
        again = waits(command) and not value and self._routes is not routes
        return labelled(value, route.name, route.tag), again

    def by_cluster(self, puts: Sequence[Command[Any]]) -> list[list[int]]:
        """Return the positions of these PUTs, all into one queue, in groups of which each is for one cluster."""
        routes = self._routes
        queue = target_of(puts[0].line).names[0] if puts else ""
        if routes is None or not routes.is_spread(queue):
            return [list(range(len(puts)))]
        groups: dict[Route | None, list[int]] = {}
        for position, put in enumerate(puts):
            groups.setdefault(_of_word(routes, put), []).append(position)
        return list(groups.values())

    def _resolved(
        self, routes: Routes, command: Command[Any], turn: int | None = None
    ) -> tuple[Route, Command[Any]]:
        """Return the cluster of a command and the form in which it is sent. Raises CrossCluster, Elsewhere.

        `turn`: of a command of which this is a part.
        """
        turn = next(self._turns) if turn is None else turn
        if command.place:
            return self._owner(routes, (command.place,), command, turn), command
        if not command.members:
            target = target_of(command.line)
            return self._route(routes, target, command, turn), as_sent(command, target.ids) if target.ids else command
        resolved = [self._resolved(routes, member, turn) for member in command.members]
        # A new item is held where the other commands are.
        bound = [route for route, member in resolved if member.place or target_of(member.line).use is not Use.HOME]
        names = list(dict.fromkeys(route.name for route in bound))
        if len(names) > 1:
            raise CrossCluster(f"its commands are for different clusters: {', '.join(names)}")
        if command.prelude:
            members = tuple(member for _, member in resolved)
            prelude = b"".join(chain.from_iterable((member.line, member.data) for member in members))
            command = command._replace(prelude=prelude, members=members)
        return bound[0] if bound else routes.home, command

    def _route(self, routes: Routes, target: Target, command: Command[Any], turn: int) -> Route:
        """Return the one cluster for this target. Raises CrossCluster, Elsewhere when there is none at present."""
        match target.use:
            case Use.JOB:
                return self._of_jobs(routes, target)
            case Use.ITEM:
                return _there(routes.of_item(target.names[0]), target.names[0])
            case Use.BRINGS | Use.LIES if target.names != (ANY,):
                if target.use is Use.LIES and len(_sources(routes, target.names)) == 1:
                    return _sources(routes, target.names)[0]
                return self._owner(routes, target.names, command, turn)
            case Use.FIRST:
                return next((one for one in routes.all if one.executor is self.first), Route("", self.first, 0))
        return routes.home

    def _owner(self, routes: Routes, names: tuple[str, ...], command: Command[Any], turn: int) -> Route:
        found = [
            (_of_word(routes, command) or self._in_turn(routes, turn)) if routes.is_spread(name)
            else _there(routes.owner(name), name)
            for name in names
        ]
        if any(route is not found[0] for route in found):
            owners = ", ".join(f"{name} ({route.name})" for name, route in zip(names, found, strict=True))
            raise CrossCluster(f"these names are owned by different clusters: {owners}")
        return found[0]

    def _in_turn(self, routes: Routes, turn: int) -> Route:
        """Return the cluster whose turn it is, of those that answer."""
        answering = [route for route in routes.all if self._taking.answers(route.executor)] or routes.all
        return answering[turn % len(answering)]

    def _of_jobs(self, routes: Routes, target: Target) -> Route:
        found = {tag_of(job): routes.with_tag(tag_of(job)) for job in target.ids}
        if len(found) > 1:
            raise CrossCluster("these jobs are in different clusters")
        (route,) = found.values()
        if route is None:
            raise JobNotFound("its cluster is not in the map any more")
        if target.names and routes.owner(target.names[0]) not in (route, None):
            owner = _there(routes.owner(target.names[0]), target.names[0])
            raise CrossCluster(f"the job is in cluster {route.name}, {target.names[0]} is owned by {owner.name}")
        return route

    def _one_route(
        self, routes: Routes, first: Command[Any] | None, command: Command[T]
    ) -> tuple[Route, Command[Any] | None, Command[T]] | None:
        """Return the only cluster of a DONE and a GET, and their forms for it; None if there are several."""
        sources = _sources(routes, target_of(command.line).names)
        if len(sources) > 1:
            return None
        if first is None:
            return sources[0], None, command
        route, sent = self._resolved(routes, first)
        return (route, sent, command) if route is sources[0] else None

    async def _batches(
        self, routes: Routes, by_route: Mapping[Route, list[int]], commands: Sequence[Command[Any]],
        timeout: float | None, retry_unknown: bool | None, partly: bool,
    ) -> list[tuple[list[int], list[Answer | None] | SockpqError]]:
        """Execute the batch of each cluster; returns its positions with the answers, or with its error."""
        async def one(route: Route, positions: list[int]) -> list[Answer | None] | SockpqError:
            sent = [self._resolved(routes, commands[at])[1] for at in positions]
            try:
                found = await route.executor.run_batch(
                    sent, timeout=timeout, retry_unknown=retry_unknown, partly=partly)
            except SockpqError as error:
                return error
            return [
                answer and answer._replace(value=labelled(answer.value, route.name, route.tag)) for answer in found]

        groups = list(by_route.items())
        if len(groups) == 1:
            return [(groups[0][1], await one(*groups[0]))]
        race = self.network.race([one(*group) for group in groups])
        ended: list[tuple[list[int], list[Answer | None] | SockpqError]] = []
        try:
            while len(ended) < len(groups):
                if next_ := await race.next(LOOK_S):
                    ended.append((groups[next_[0]][1], next_[1]))
        finally:
            race.stop()
        return ended

    def _by_route(
        self, routes: Routes, commands: Sequence[Command[Any]], positions: Sequence[int]
    ) -> dict[Route, list[int]]:
        """Return which of these commands go to which cluster. Raises CrossCluster, Elsewhere."""
        found: dict[Route, list[int]] = {}
        for at in positions:
            found.setdefault(self._resolved(routes, commands[at])[0], []).append(at)
        return found

    # several clusters

    async def _in_every(self, clusters: Sequence[Route], command: Command[Any], options: Options) -> Any:
        """Execute a command in each of these clusters; returns their answers together.

        One that refuses does not matter if another one accepts: what the command names may be there only.
        """
        values: list[Any] = []
        refusal: Refused | None = None
        for route in clusters:
            try:
                value = await route.executor.run(
                    command, timeout=options.timeout, wait=options.wait, retry_unknown=options.retry_unknown)
            except Elsewhere:
                raise
            except Refused as error:
                refusal = error
                continue
            values.append(labelled(value, route.name, route.tag))
        if refusal and not values:
            raise refusal
        return together(values)

    async def _lying(
        self, routes: Routes, sources: tuple[Route, ...], target: Target, command: Command[Any], options: Options
    ) -> tuple[Any, bool]:
        """Execute a command that takes or shows what may lie in several clusters."""
        if command.line.startswith(TAKES):
            return await self._take(routes, sources, target.names, command, options)
        if command.line.partition(b" ")[2].startswith((b"KEY ", b"SEQ ")):         # one job
            missing: JobNotFound | None = None
            for route in sources:
                try:
                    value = await route.executor.run(command, timeout=options.timeout, wait=options.wait)
                except JobNotFound as error:
                    missing = error
                    continue
                if value is not None or route is sources[-1]:
                    return labelled(value, route.name, route.tag), False
            raise missing or JobNotFound("no cluster has it")
        return await self._in_every(sources, command, options), False

    async def _take(
        self, routes: Routes, sources: tuple[Route, ...], names: tuple[str, ...], command: Command[Any],
        options: Options,
    ) -> tuple[Any, bool]:
        several = names == (ANY,) or any(
            routes.is_spread(name) or routes.owner(name) is not routes.owner(names[0]) for name in names)
        if several and command.line.startswith(b"GETBE"):
            raise CrossCluster(UNTIL_DONE)
        clusters = [route.executor for route in sources]
        first = next(self._turns) % len(clusters) if several else 0
        taken = await self._taking.at_once(command, clusters, first, options.timeout, options.put_back)
        if not taken.value and waits(command):
            if command.line.startswith(b"GETBE"):
                return await self._take_until_done(routes, sources[0], sources[1], command, options)
            taken = await self._taking.waiting(
                [command] * len(clusters), clusters, options.wait, options.timeout,
                lambda: self._routes is not routes, options.put_back,
            )
        route = sources[taken.cluster]
        return labelled(taken.value, route.name, route.tag), taken.again

    async def _take_until_done(
        self, routes: Routes, source: Route, owner: Route, command: Command[Any], options: Options
    ) -> tuple[Any, bool]:
        """Take from queues that move, as long as there is unfinished work at the old owner, and then at the new one."""
        begun = self.network.now()
        waits_on = command._replace(line=b"GETB" + command.line.removeprefix(b"GETBE"), older=None)
        taken = await self._taking.waiting(
            [command, waits_on], [source.executor, owner.executor], options.wait, options.timeout,
            lambda: self._routes is not routes, options.put_back, last=0,
        )
        if taken.value or taken.again:
            route = (source, owner)[taken.cluster]
            return labelled(taken.value, route.name, route.tag), taken.again
        left = None if options.wait is None else max(options.wait - (self.network.now() - begun), TINY_S)
        value = await owner.executor.run(
            command, timeout=options.timeout, wait=left, retry_unknown=options.retry_unknown, put_back=options.put_back)
        return labelled(value, owner.name, owner.tag), not value and self._routes is not routes

    # the map

    def _must_read(self) -> bool:
        """Return whether there is a map, and it was not read when the call began."""
        return self._routes is not None or self.identity.map_is_unread

    async def _known(self) -> Routes | None:
        """Return the routes; None when there is no map, as far as is known."""
        if self._routes is None and self.identity.map_is_unread:
            await self._read_map()
        return None if self._routes is None else await self._now()

    async def _now(self) -> Routes:
        """Return the routes, of a map that is not older than a minute if any cluster answers."""
        now = self.network.now()
        if now >= self._read_at:
            self._read_at = now + READ_AGAIN_S      # meanwhile others go on by the map that there is
            await self._read_map()
        if self._routes is None:
            raise MapUnread(f"the map of clusters cannot be read from {', '.join(map(str, self.addresses))}", None)
        return self._routes

    async def _look_around(self) -> None:
        """While a command is blocked: see whether the map has changed."""
        if self.network.now() >= self._read_at or (self._routes is None and self.identity.map_is_unread):
            with suppress(SockpqError):
                await self._read_map()

    async def _read_map(self) -> None:
        """Ask all clusters for their map, and keep the newest."""
        asked_at = self.network.now()
        if self._process != os.getpid():        # nobody here would release what a thread of the parent held
            self._reading, self._process = self.network.lock(), os.getpid()
        await self._reading.acquire(math.inf)
        try:
            if self._routes is not None and self._read_at - READ_AGAIN_S > asked_at:
                return              # somebody else has, meanwhile
            servers = list(dict.fromkeys(one.leader or one.addresses[0] for one in self._all()))
            self._read_at = self.network.now() + READ_AGAIN_S
            found = await ask_all(self.network, servers, [CLUSTER_MAP], self.limits.connect_timeout, STRAGGLER_S)
            maps = [
                response.answers[0].value for response in found.values()
                if response.failure is None and response.answers and not response.answers[0].error
            ]
            self._use(max(maps, key=lambda one: one.version, default=ClusterMap()))
        finally:
            self._reading.release()

    def _use(self, found: ClusterMap) -> None:
        """Follow this map if it is newer than the one in use."""
        before = self._routes
        if found.version <= (before.map.version if before else 0):
            return
        self._routes = Routes(found, self._executor_of, self.identity.cluster if self._plain else None)
        self.identity.map_is_read = True
        for executor in self._all():
            for call in executor.calls.blocking:
                names = target_of(call.command.line).names
                if names and (before is None or _sources(before, names) != _sources(self._routes, names)):
                    executor.calls.withdraw(call)

    def _executor_of(self, cluster: str, servers: tuple[str, ...]) -> Executor:
        if cluster == self.identity.cluster:
            return self.first
        executor = self._executors.get(cluster)
        if executor is None:
            executor = Executor(
                self.network, parse_servers(servers), self.limits, self._codec, self.tracing, cluster, self.counters)
            executor.guard = self._guard
            executor.look_around(self._look_around)
            self._executors[cluster] = executor
        return executor


def _sources(routes: Routes, names: tuple[str, ...]) -> tuple[Route, ...]:
    """Return the clusters in which something may lie under one of these names."""
    if len(names) == 1 and names != (ANY,):
        return routes.sources(names[0])
    if names == (ANY,):
        return routes.all
    return tuple(dict.fromkeys(route for name in names for route in routes.sources(name)))


def _of_whole(error: SockpqError, positions: Sequence[int]) -> SockpqError:
    """Return the error of a part of a batch with the positions that it speaks of in the whole batch."""
    if not isinstance(error, BatchFailed):
        return error
    return BatchFailed(
        str(error), tuple(positions[at] for at in error.unknown), tuple(positions[at] for at in error.not_executed))


def _of_word(routes: Routes, put: Command[Any]) -> Route | None:
    """Return the cluster for a job of a spread queue by its key, else by its item; None: it has neither."""
    words = put.line.split()
    for option in (b"KEY", b"IS"):
        if option in words[3:]:
            return routes.of_key(words[words.index(option, 3) + 1].decode())
    return None


def _there(route: Route | None, name: str) -> Route:
    """Return the owner of a name; raises Elsewhere when it has none at present."""
    if route is None:
        raise Elsewhere(f"no cluster owns {name} now", None)
    return route


def _is_elsewhere(error: SockpqError) -> bool:
    """Return whether a command, or one of a transaction, was for another cluster."""
    return isinstance(error, Elsewhere) or (isinstance(error, Aborted) and isinstance(error.reason, Elsewhere))


def _is_refused_here(answer: Answer | None) -> bool:
    return answer is not None and answer.error is not None and _is_elsewhere(answer.error)
