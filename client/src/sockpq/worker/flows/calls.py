"""The calls of flows and batches to the servers, as generators: written once for threads and for asyncio."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from sockpq._backends import asyncio as loops
from sockpq._backends import sync as threads
from sockpq._protocol.arguments import Codec
from sockpq._protocol.command import Command
from sockpq._routing.router import Router
from sockpq.errors import BadArguments

if TYPE_CHECKING:
    from sockpq._async.client import Client as AsyncClient
    from sockpq._sync.client import Client

T = TypeVar("T")


class Call(NamedTuple):
    """A command, whose result is sent into the generator. `wait`: how long it may block; `timeout`: its time limit."""

    command: Command[Any]
    wait: float | None = None
    timeout: float | None = None

    def begun(self, router: Router) -> Coroutine[Any, Any, Any]:
        """Return the call, to be run by the network of the router."""
        return router.run(self.command, wait=self.wait, timeout=self.timeout)


class Owner(NamedTuple):
    """Asks for the cluster that owns all of these queues (Router.owner_of); its name is sent into the generator."""

    queues: tuple[str, ...]

    def begun(self, router: Router) -> Coroutine[Any, Any, str]:
        """Return the call, to be run by the network of the router."""
        return router.owner_of(self.queues)


Calls = Generator[Call | Owner, Any, T]


class Home(Protocol):
    """The part of an app that is used here."""

    codec: Codec
    eager: bool
    stand_in: Any

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues of the app."""
        ...

    @property
    def client(self) -> Client:
        """The blocking client of the app."""
        ...

    @property
    def async_client(self) -> AsyncClient:
        """The client of the running event loop."""
        ...


def router_of(home: Home) -> Router:
    """Return the router of the app's blocking client. Raises BadArguments when it has no server."""
    _check(home)
    return home.client._router


def async_router_of(home: Home) -> Router:
    """Return the router of the client of the running event loop. Raises BadArguments without a server."""
    _check(home)
    return home.async_client._router


def made(router: Router, calls: Calls[T]) -> T:
    """Make the calls in this thread, and return the generator's result; errors of calls are raised inside it."""
    try:
        call = next(calls)
        while True:
            try:
                value = threads.run(call.begun(router))
            except BaseException as error:
                call = calls.throw(error)
            else:
                call = calls.send(value)
    except StopIteration as end:
        result: T = end.value
        return result


async def amade(router: Router, calls: Calls[T]) -> T:
    """Make the calls in the running event loop; made() for asyncio."""
    try:
        call = next(calls)
        while True:
            try:
                value = await loops.run(call.begun(router))
            except BaseException as error:
                call = calls.throw(error)
            else:
                call = calls.send(value)
    except StopIteration as end:
        result: T = end.value
        return result


def _check(home: Home) -> None:
    if home.stand_in or home.eager:
        raise BadArguments("flows and batches need a server, which tests have from sockpq.testing.Server")
