"""The caller of a request: the client of its user, and the ways to execute a call for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from enum import Enum
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from sockpq import Aborted, Stored
from sockpq.aio import Client, Transaction
from starlette.responses import Response

from sockpq_http.access.peer import peer_of
from sockpq_http.exchange.lists import Lists
from sockpq_http.exchange.rates import Rates
from sockpq_http.idempotency.key import fingerprint_of, word_of
from sockpq_http.idempotency.marker import Markers, Subject
from sockpq_http.problems.problem import Problem
from sockpq_http.values.model import Replayable, View

T = TypeVar("T")
KEY_HEADER = "idempotency-key"
REPLAYED_HEADER = {"idempotency-replayed": "true"}


class Before(Enum):
    """Stands for the result of a request that was executed before, under the same Idempotency-Key."""

    BEFORE = "before"


BEFORE = Before.BEFORE


class Caller:
    """One request: `client` acts for its user; `stopping` is set when the program stops."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.client: Client = request.state.client
        self._user: str = request.state.user
        self._markers: Markers = request.app.state.markers
        self._rates: Rates = request.app.state.rates
        self._readings: asyncio.Semaphore = request.app.state.readings
        self._lists: Lists = request.app.state.lists
        self.stopping: asyncio.Event = request.app.state.stopping

    async def id(self, text: str) -> int:
        """Return the id or number of a job as the client has it. Raises JobNotFound if its cluster is unknown."""
        return await self.client.id_of(text) if "." in text else int(text)

    async def rate_header(self, queue: str) -> dict[str, str]:
        """Return the header with the rate of a queue, none if it has no rate."""
        policy = await self._rates.policy(self.client, self._user, queue)
        return {} if policy is None else {"ratelimit-policy": policy}

    async def read(self, work: Awaitable[T]) -> T:
        """Await a call that answers at once and may bring large jobs: only as many at a time as memory allows."""
        async with self._readings:
            return await work

    async def listed(
        self, name: str, call: Callable[[], Awaitable[list[T]]], view: Callable[[T], View],
        key: Callable[[T], Any] | None = None,
    ) -> Response:
        """Return the answer with a list of any length under this name: see Lists.answer."""
        return await self._lists.answer(self._user, peer_of(self.request.scope).address, name, call, view, key)

    async def execute(self, key: str | None, call: str, /, *arguments: Any, **options: Any) -> Any:
        """Execute a call of the client; with a key in a transaction, once: BEFORE if it was executed before.

        The first argument is the subject, or several.
        """
        if key is None:
            return await getattr(self.client, call)(*arguments, **options)
        try:
            subject = arguments[0] if arguments else options.get("queue")
            results = await self.once(
                key, lambda transaction: getattr(transaction, call)(*arguments, **options),
                subject[0] if isinstance(subject, list) else subject,
            )
        except Aborted as error:
            raise error.reason from error       # of one call, as without a key
        return BEFORE if results is None else results[0]

    async def once(self, key: str, collect: Callable[[Transaction], None], subject: Subject) -> list[Any] | None:
        """Execute a transaction once for this key; returns its results, None if it was executed before.

        `subject`: of one of its commands. Raises Problem if another request had the key.
        """
        return await self._markers.once(self.client, self._user, *await self._identity(key), collect, subject)

    async def put_once(self, key: str, queue: str, arguments: Mapping[str, Any]) -> Stored:
        """Put a job once for this key; returns what is stored, with the outcome `exists` if it was put before.

        `arguments`: of the client's put(). Raises Problem if another request had the key, or there is no room.
        """
        return await self._markers.put_once(self.client, self._user, *await self._identity(key), queue, arguments)

    async def unless_gone(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Await a call that may take long; None if its client hangs up, or this program stops, before the end."""
        working = asyncio.ensure_future(work)
        reasons = [asyncio.ensure_future(self._hung_up()), asyncio.ensure_future(self.stopping.wait())]
        try:
            await asyncio.wait([working, *reasons], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in reasons:
                one.cancel()
            if not working.done():
                working.cancel()
        await asyncio.wait([working])
        return None if working.cancelled() else working.result()

    async def is_gone(self) -> bool:
        """Return whether the client has hung up."""
        return await self.request.is_disconnected()

    async def _identity(self, key: str) -> tuple[str, str]:
        """Return what the cluster remembers for this Idempotency-Key, and what identifies this request."""
        request = self.request
        word = word_of(key, self._user, request.method, request.url.path)
        return word, fingerprint_of(request.url.query, request.headers, await request.body())

    async def _hung_up(self) -> None:
        while (await self.request.receive())["type"] != "http.disconnect":
            pass


async def caller_of(request: Request) -> Caller:
    """Return the caller of a request."""
    return Caller(request)


async def refuse_key(request: Request) -> None:
    """Refuse an Idempotency-Key where it would promise too much."""
    if KEY_HEADER in request.headers:
        raise Problem(400, "this request takes no Idempotency-Key: docs/HTTP.md says which do, and why", "no-key-here")


Calling = Annotated[Caller, Depends(caller_of)]


def answer(view: View, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer with the known fields of a view."""
    return Response(view.model_dump_json(by_alias=True, exclude_unset=True), status, headers, "application/json")


def replay(view: type[Replayable], status: int = 200) -> Response:
    """Return the answer to a request that was executed before under its key."""
    return Response(
        view(replayed=True).model_dump_json(by_alias=True, exclude_unset=True), status, REPLAYED_HEADER,
        "application/json",
    )


def given(**options: Any) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}
