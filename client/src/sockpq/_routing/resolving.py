"""Finds the one cluster that a command is for, by the names in it, and the form in which it is sent there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count
from typing import Any, TypeVar

from sockpq._engine.executor import Executor
from sockpq._protocol.command import Command
from sockpq._protocol.job_ids import tag_of
from sockpq._routing.routes import Route, Routes
from sockpq._routing.taking import Taking
from sockpq._routing.targets import ANY, Target, Use, as_sent, target_of
from sockpq.errors import CrossCluster, Elsewhere, JobNotFound

T = TypeVar("T")


class Resolver:
    """Resolves the commands of one client. `first`: the executor of its first cluster."""

    def __init__(self, first: Executor, taking: Taking) -> None:
        self._first = first
        self._taking = taking
        self._turns = count()                           # which cluster is the next to begin with

    def next_turn(self) -> int:
        """Return the number of the next command for which clusters take turns."""
        return next(self._turns)

    def resolve(
        self, routes: Routes, command: Command[Any], turn: int | None = None
    ) -> tuple[Route, Command[Any]]:
        """Return the cluster of a command and the form in which it is sent. Raises CrossCluster, Elsewhere.

        `turn`: the number of the command, if this is a part of one; see next_turn().
        """
        turn = self.next_turn() if turn is None else turn
        if command.place:
            return self._owner(routes, (command.place,), command, turn), command
        if command.beside:
            return self._beside(routes, command), command
        if not command.members:
            target = target_of(command.line)
            return self.route(routes, target, command, turn), as_sent(command, target.ids) if target.ids else command
        resolved = [self.resolve(routes, member, turn) for member in command.members]
        # A new item is held in the cluster of the other commands.
        bound = [route for route, member in resolved if member.place or target_of(member.line).use is not Use.HOME]
        names = list(dict.fromkeys(route.name for route in bound))
        if len(names) > 1:
            raise CrossCluster(f"its commands are for different clusters: {', '.join(names)}")
        if command.prelude:
            members = tuple(member for _, member in resolved)
            prelude = b"".join(chain.from_iterable((member.line, member.data) for member in members))
            command = command._replace(prelude=prelude, members=members)
        return bound[0] if bound else routes.home, command

    def route(self, routes: Routes, target: Target, command: Command[Any], turn: int) -> Route:
        """Return the one cluster for this target. Raises CrossCluster, and Elsewhere if there is none at present."""
        match target.use:
            case Use.JOB:
                return self._of_jobs(routes, target)
            case Use.ITEM:
                return there(routes.of_item(target.names[0]), target.names[0])
            case Use.BRINGS | Use.SETS | Use.LIES if target.names != (ANY,):
                if target.use is Use.LIES and len(routes.of_any(target.names)) == 1:
                    return routes.of_any(target.names)[0]
                return self._owner(routes, target.names, command, turn)
            case Use.FIRST:
                return next((one for one in routes.all if one.executor is self._first), Route("", self._first, 0))
        return routes.home

    def one_route(
        self, routes: Routes, first: Command[Any] | None, command: Command[T]
    ) -> tuple[Route, Command[Any] | None, Command[T]] | None:
        """Return the only cluster of a DONE and a GET, and their forms for it; None if there are several."""
        sources = routes.of_any(target_of(command.line).names)
        if len(sources) > 1:
            return None
        if first is None:
            return sources[0], None, command
        route, sent = self.resolve(routes, first)
        return (route, sent, command) if route is sources[0] else None

    def by_route(
        self, routes: Routes, commands: Sequence[Command[Any]], positions: Sequence[int]
    ) -> dict[Route, list[int]]:
        """Return which of these commands go to which cluster. Raises CrossCluster, Elsewhere."""
        found: dict[Route, list[int]] = {}
        for at in positions:
            found.setdefault(self.resolve(routes, commands[at])[0], []).append(at)
        return found

    def _beside(self, routes: Routes, command: Command[Any]) -> Route:
        """Return the cluster that has the item; raises CrossCluster unless it owns the other names too."""
        route = there(routes.of_item(command.beside), command.beside)
        for name in target_of(command.line).names:
            owner = route if routes.is_spread(name) else there(routes.owner(name), name)
            if owner is not route:
                raise CrossCluster(
                    f"item {command.beside} is in cluster {route.name}, and queue {name} is owned by {owner.name}: "
                    f"queues whose jobs belong together need a common prefix in the map")
        return route

    def _owner(self, routes: Routes, names: tuple[str, ...], command: Command[Any], turn: int) -> Route:
        found = [
            (of_word(routes, command) or self._in_turn(routes, turn)) if routes.is_spread(name)
            else there(routes.owner(name), name)
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
        for name in target.names:
            if not routes.is_spread(name) and routes.owner(name) not in (route, None):
                owner = there(routes.owner(name), name)
                raise CrossCluster(f"the job is in cluster {route.name}, {name} is owned by {owner.name}")
        return route


def of_word(routes: Routes, put: Command[Any]) -> Route | None:
    """Return the cluster for a job of a spread queue by its key, else by its item; None: it has neither."""
    words = put.line.split()
    for option in (b"KEY", b"IS"):
        if option in words[3:]:
            return routes.of_key(words[words.index(option, 3) + 1].decode())
    return None


def there(route: Route | None, name: str) -> Route:
    """Return `route`, the owner of a name; raises Elsewhere if it is None."""
    if route is None:
        raise Elsewhere(f"no cluster owns {name} now", None)
    return route
