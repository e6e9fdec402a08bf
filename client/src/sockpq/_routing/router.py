"""Sends each command to the cluster that owns the names in it, and follows the map of clusters when that changes.

Without a map everything is sent unchanged to the only cluster. The map is read before the first command that changes
something. A command refused by the wrong cluster is sent again according to the newest map.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, TypeVar, cast

from sockpq._backends.base import Network
from sockpq._engine.attempt import TINY_S
from sockpq._engine.call_runner import PutBack
from sockpq._engine.limits import Limits
from sockpq._engine.tracing import Tracing
from sockpq._protocol.addresses import Address, parse_server
from sockpq._protocol.arguments import Bodies, Codec, HeadersWanted
from sockpq._protocol.command import Command, Repeat, Steps
from sockpq._protocol.job_ids import TAG_SHIFT, local_id, tag_of
from sockpq._protocol.protocol import Answer
from sockpq._routing.known_clusters import KnownClusters
from sockpq._routing.resolving import Resolver, of_word, there
from sockpq._routing.routes import Route, Routes
from sockpq._routing.taking import LOOK_S, Taking, waits
from sockpq._routing.targets import ANY, Target, Use, as_sent, target_of
from sockpq._routing.values import labelled, together
from sockpq.errors import (
    Aborted,
    BadArguments,
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

UNTIL_DONE = "that queues of several clusters have no unfinished job cannot be waited for in one command"
ID_DIGITS_MAX = 19
TAKES = (b"GET ", b"GETB ", b"GETBE ", b"GET\r\n", b"GETB\r\n", b"GETBE\r\n")


class Options(NamedTuple):
    """The options of a call, see Executor.run."""

    timeout: float
    wait: float | None
    retry_unknown: bool | None
    put_back: PutBack[Any] | None


class Router:
    """Executes the commands of one client. As many threads or tasks as its network allows may share it."""

    def __init__(
        self, network: Network, addresses: tuple[Address, ...], limits: Limits, codec: Codec | None = None,
        tracing: Tracing | None = None, cluster: str | None = None, follows_map: bool = True,
    ) -> None:
        """`cluster`: the id of the first cluster, the only one unless it `follows_map`.

        The other arguments are the client's.
        """
        self.network = network
        self.limits = limits
        self.tracing = tracing
        self._clusters = KnownClusters(network, addresses, limits, codec, tracing, cluster, follows_map)
        self.first = self._clusters.first
        self.counters = self._clusters.counters
        self.bodies: Bodies = self.first.bodies
        self.identity = self.first.identity
        self._taking = Taking(network)
        self._resolver = Resolver(self.first, self._taking)

    # the client as a whole

    @property
    def leader(self) -> Address | None:
        """The leader of the first cluster; None while it is being searched for."""
        return self.first.leader

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The servers of the first cluster."""
        return self.first.addresses

    @property
    def guard(self) -> Callable[[], None] | None:
        """A function that is called before each call, in the thread of the caller."""
        return self._clusters.guard

    @guard.setter
    def guard(self, guard: Callable[[], None]) -> None:
        self._clusters.guard = guard

    def asks_for(self, headers: bool) -> HeadersWanted:
        """Return how to ask for headers when taking jobs: True, False, or "if_known"; see Executor."""
        return self.first.asks_for(headers)

    def close(self) -> None:
        """Close all connections and sessions, and end all calls in flight."""
        for executor in self._clusters.all:
            executor.close()

    async def connect(self, *, timeout: float | None = None) -> None:
        """Prepare a connection to the leader of the first cluster, and read the map if there is one."""
        try:
            await self.first.connect(timeout=timeout)
        except Elsewhere:
            await self._clusters.read_map()
            await self.first.connect(timeout=timeout)

    async def run(
        self, command: Command[T], *, timeout: float | None = None, wait: float | None = None,
        retry_unknown: bool | None = None, put_back: PutBack[T] | None = None,
    ) -> T:
        """Execute one command in the right cluster; see Executor.run.

        Raises CrossCluster, before anything is sent, if it is for several clusters and cannot be split.
        """
        begun = self.network.now()
        if self._clusters.routes is None and begun >= self._clusters.read_at:
            await self._clusters.look()
        if self._clusters.routes is None:
            try:
                value = await self.first.run(
                    command, timeout=timeout, wait=wait, retry_unknown=retry_unknown, put_back=put_back)
            except NotExecuted as error:
                if not self.identity.follows_map or not (self._clusters.must_read or _is_elsewhere(error)):
                    raise
            else:
                self._clusters.plain = self._clusters.plain or not self._clusters.must_read
                unsettled = command.repeat is Repeat.FREELY or (waits(command) and not value)
                if not unsettled or not self._clusters.must_read:
                    return value
            await self._clusters.read_map()
        left = None if wait is None else max(wait - (self.network.now() - begun), TINY_S)
        options = Options(self.calls_timeout(timeout), left, retry_unknown, put_back)
        return cast(T, await self._routed(command, options))

    async def run_behind(
        self, first: Command[Any] | None, command: Command[T], put_back: PutBack[T], *, timeout: float | None = None,
        wait: float | None = None,
    ) -> T:
        """Execute `command`, a GET, directly after `first`, a DONE, in one packet if both are for the same cluster.

        See CallRunner.run_behind.
        """
        begun = self.network.now()
        if self._clusters.routes is None and begun >= self._clusters.read_at:
            await self._clusters.look()
        if self._clusters.routes is None:
            try:
                value = await self.first.calls.run_behind(first, command, put_back, timeout=timeout, wait=wait)
            except Elsewhere:
                await self._clusters.read_map()
            else:
                self._clusters.plain = True
                if value or not (waits(command) and self._clusters.must_read):
                    return value
                first = None
                await self._clusters.read_map()
        else:
            routes = await self._clusters.now()
            both = self._resolver.one_route(routes, first, command)
            if both:
                route, before, behind = both
                value = await route.executor.calls.run_behind(before, behind, put_back, timeout=timeout, wait=wait)
                if not value:
                    await self._clusters.look()
                if value or not waits(command) or self._clusters.routes is routes:
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

        If one of several clusters does not execute its batch, the error is raised after the others have finished; with
        `each`, it becomes the answer to each command of that batch instead.
        """
        if self._clusters.routes is None:
            try:
                answers = await self.first.run_batch(
                    commands, timeout=timeout, retry_unknown=retry_unknown, partly=partly)
            except Elsewhere:
                await self._clusters.read_map()
                answers = [None] * len(commands)
            else:
                self._clusters.plain = True
            open_ = [at for at, answer in enumerate(answers) if self.identity.follows_map and (
                _is_refused_here(answer) or (answer is None and self._clusters.must_read))]
            if not open_:
                return answers
            await self._clusters.read_map()
        else:
            answers, open_ = [None] * len(commands), list(range(len(commands)))
        limit = self.calls_timeout(timeout)
        until = self.network.now() + limit
        for attempts in count(1):
            routes = await self._clusters.now()
            if routes.map.spread:
                await self._taking.look(routes.executors)
            try:
                by_route = self._resolver.by_route(routes, commands, open_)
            except Elsewhere:               # a name has no owner now
                if not await self._clusters.may_try_again(attempts, until):
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
            if not open_ or not await self._clusters.may_try_again(attempts, until):
                break
        return answers

    async def run_steps(self, steps: Steps[T], *, timeout: float | None = None) -> T:
        """Execute commands one after the other, each with this time limit; returns the result of the last one."""
        for command in steps.before:
            await self.run(command, timeout=timeout)
        return await self.run(steps.last, timeout=timeout)

    async def run_where(self, command: Command[T], server: str | None, *, timeout: float | None = None) -> T:
        """Execute one command on this server only; None: in the right cluster."""
        if server is None:
            return await self.run(command, timeout=timeout)
        return await self.run_at(parse_server(server), command, timeout=timeout)

    async def run_at(self, address: Address, command: Command[T], *, timeout: float | None = None) -> T:
        """Execute one command on exactly this server, once, on a connection of its own."""
        for route in self._clusters.routes.all if self._clusters.routes else ():
            if address in route.executor.addresses:
                sent = as_sent(command, target_of(command.line).ids)
                value = await route.executor.run_at(address, sent, timeout=timeout)
                return cast(T, labelled(value, route.name, route.tag))
        return await self.first.run_at(address, command, timeout=timeout)

    async def run_at_leader(self, command: Command[T], *, timeout: float | None = None) -> T:
        """Execute one command on the server that leads the first cluster, even while it serves no jobs."""
        return await self.first.run_at_leader(command, timeout=timeout)

    async def status_of_best(self, timeout: float) -> list[NodeStatus]:
        """Return CLUSTER STATUS of the best server of the first cluster. Raises Unavailable, AuthError."""
        return await self.first.status_of_best(timeout)

    # for uses that last longer than a call (_streaming)

    async def sources(self, names: tuple[str, ...]) -> tuple[Route, ...]:
        """Return the clusters that may have jobs under one of these names ("*": any), in the order of taking."""
        routes = await self._clusters.known()
        return (Route("", self.first, 0),) if routes is None else routes.of_any(names)

    async def owner_of(self, queues: Collection[str], *, timeout: float | None = None) -> str:
        """Return the name of the cluster that owns all of these queues; "" without a map, as far as is known.

        Raises CrossCluster if several do, Elsewhere if none does within `timeout` seconds.
        """
        until = self.network.now() + self.calls_timeout(timeout)
        for attempts in count(1):
            routes = await self._clusters.known()
            if routes is None:
                break
            try:
                owners = {
                    queue: there(routes.owner(queue), queue).name for queue in queues if not routes.is_spread(queue)}
            except Elsewhere:
                if not await self._clusters.may_try_again(attempts, until):
                    raise
                continue
            if len(set(owners.values())) > 1:
                of_each = ", ".join(f"{queue} by {cluster}" for queue, cluster in owners.items())
                raise CrossCluster(
                    f"queues whose jobs belong together need a common prefix in the map: they are owned, {of_each}")
            return next(iter(owners.values()), routes.home.name)
        return ""

    def id_text(self, job: int) -> str:
        """Return the id or number of a job with the name of its cluster; see Client.id_text."""
        routes = self._clusters.routes
        route = None if routes is None else routes.with_tag(tag_of(job))
        return str(job) if route is None else f"{route.name}.{local_id(job)}"

    async def id_of(self, text: str) -> int:
        """Return the id or number that such a text means. Raises BadArguments, JobNotFound; see Client.id_of."""
        name, _, number = text.rpartition(".")
        if not number.isascii() or not number.isdigit() or len(number) > ID_DIGITS_MAX:
            raise BadArguments(f"not the id or number of a job: {text[:80]!r}")
        if not name:
            return int(number)
        if self._clusters.routes is None:
            await self.connect()        # which reads the map if there is one
        routes = await self._clusters.known()
        route = None if routes is None else routes.with_name(name)
        if route is None:
            raise JobNotFound(f"there is no cluster {name[:80]!r} in the map")
        return local_id(int(number)) | route.tag << TAG_SHIFT

    async def of_events(self, words: str, names: tuple[str, ...] | None) -> Route:
        """Return the cluster that sends these events; `words`: as in SUBSCRIBE, `names`: None for all.

        The numbers of events are valid in one cluster only: raises CrossCluster for names of several.
        """
        routes = await self._clusters.known()
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
        return there(found.pop(), " ".join(names or ()))

    async def read_map(self) -> None:
        """Read the map now, after a command was sent to the wrong cluster (Elsewhere)."""
        await self._clusters.read_map()

    async def look(self) -> None:
        """Check whether the map has changed, when nothing was found; see KnownClusters."""
        await self._clusters.look()

    async def may_try_again(self, attempts: int, until: float) -> bool:
        """Return whether to retry after a refusal by the wrong cluster; see KnownClusters."""
        return await self._clusters.may_try_again(attempts, until)

    def calls_timeout(self, timeout: float | None) -> float:
        """Return the time limit of a call, seconds."""
        return self.first.calls.timeout(timeout)

    # routing of commands

    async def _routed(self, command: Command[Any], options: Options) -> Any:
        """Send by the current map, and again if that has changed or was wrong, until the deadline."""
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
                routes = await self._clusters.now()
                value, again = await self._send(routes, command, options)
                if not value and command.line.startswith(TAKES):
                    await self._clusters.look()
                    again = again or self._clusters.routes is not routes
            except (Elsewhere, Aborted) as refusal:
                if not _is_elsewhere(refusal):
                    raise
                if not await self._clusters.may_try_again(attempts, until):
                    if isinstance(refusal, MapUnread):
                        raise Unavailable(str(refusal)) from refusal
                    raise
                continue
            if not again or (wait_until is not None and self.network.now() >= wait_until):
                return value
            until = self.network.now() + limit      # it has only waited

    async def _send(self, routes: Routes, command: Command[Any], options: Options) -> tuple[Any, bool]:
        """Send a command; returns its value, and whether to send it again because the map has changed."""
        target = target_of(command.line)
        if target.use is Use.EVERY or (target.use is Use.SETS and routes.is_spread(target.names[0])):
            return await self._in_every(routes.all, command, options), False
        if target.use is Use.LIES and not command.members:
            sources = routes.of_any(target.names)
            if len(sources) > 1:
                return await self._lying(routes, sources, target, command, options)
        if target.use is Use.BRINGS and any(map(routes.is_spread, target.names)):
            await self._taking.look(routes.executors)
        if command.members or command.place or command.beside:
            route, sent = self._resolver.resolve(routes, command)
        else:
            route = self._resolver.route(routes, target, command, self._resolver.next_turn())
            sent = as_sent(command, target.ids) if target.ids else command
        value = await route.executor.run(
            sent, timeout=options.timeout, wait=options.wait, retry_unknown=options.retry_unknown,
            put_back=options.put_back,
        )
        again = waits(command) and not value and self._clusters.routes is not routes
        return labelled(value, route.name, route.tag), again

    def by_cluster(self, puts: Sequence[Command[Any]]) -> list[list[int]]:
        """Return the positions of these PUTs, all into one queue, grouped by cluster."""
        routes = self._clusters.routes
        queue = target_of(puts[0].line).names[0] if puts else ""
        if routes is None or not routes.is_spread(queue):
            return [list(range(len(puts)))]
        groups: dict[Route | None, list[int]] = {}
        for position, put in enumerate(puts):
            groups.setdefault(of_word(routes, put), []).append(position)
        return list(groups.values())

    async def _batches(
        self, routes: Routes, by_route: Mapping[Route, list[int]], commands: Sequence[Command[Any]],
        timeout: float | None, retry_unknown: bool | None, partly: bool,
    ) -> list[tuple[list[int], list[Answer | None] | SockpqError]]:
        """Execute the batch of each cluster; returns its positions with the answers, or with its error."""
        async def one(route: Route, positions: list[int]) -> list[Answer | None] | SockpqError:
            sent = [self._resolver.resolve(routes, commands[at])[1] for at in positions]
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

    # several clusters

    async def _in_every(self, clusters: Sequence[Route], command: Command[Any], options: Options) -> Any:
        """Execute a command in each of these clusters; returns their answers together.

        A refusal does not matter if another cluster accepts, as only that one may have the names.
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
        """Execute a command that takes or shows jobs that may be in several clusters."""
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
            routes.is_apart(name) or routes.owner(name) is not routes.owner(names[0]) for name in names)
        if several and command.line.startswith(b"GETBE"):
            raise CrossCluster(UNTIL_DONE)
        clusters = [route.executor for route in sources]
        first = self._resolver.next_turn() % len(clusters) if several else 0
        taken = await self._taking.at_once(command, clusters, first, options.timeout, options.put_back)
        if not taken.value and waits(command):
            if command.line.startswith(b"GETBE"):
                return await self._take_until_done(routes, sources[0], sources[1], command, options)
            taken = await self._taking.waiting(
                [command] * len(clusters), clusters, options.wait, options.timeout,
                lambda: self._clusters.routes is not routes, options.put_back,
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
            lambda: self._clusters.routes is not routes, options.put_back, last=0,
        )
        if taken.value or taken.again:
            route = (source, owner)[taken.cluster]
            return labelled(taken.value, route.name, route.tag), taken.again
        left = None if options.wait is None else max(options.wait - (self.network.now() - begun), TINY_S)
        value = await owner.executor.run(
            command, timeout=options.timeout, wait=left, retry_unknown=options.retry_unknown, put_back=options.put_back)
        return labelled(value, owner.name, owner.tag), not value and self._clusters.routes is not routes

    # the map


def _of_whole(error: SockpqError, positions: Sequence[int]) -> SockpqError:
    """Return the error of a part of a batch with its positions converted to those in the whole batch."""
    if not isinstance(error, BatchFailed):
        return error
    return BatchFailed(
        str(error), tuple(positions[at] for at in error.unknown), tuple(positions[at] for at in error.not_executed))


def _is_elsewhere(error: SockpqError) -> bool:
    """Return whether a command, or one in a transaction, was sent to the wrong cluster."""
    return isinstance(error, Elsewhere) or (isinstance(error, Aborted) and isinstance(error.reason, Elsewhere))


def _is_refused_here(answer: Answer | None) -> bool:
    return answer is not None and answer.error is not None and _is_elsewhere(answer.error)
