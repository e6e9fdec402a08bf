"""Events as a stream of server-sent events, which continues where it was interrupted."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Header, Query
from sockpq import Event, EventsLost, EventType, SockpqError
from sockpq.aio import Events
from starlette.responses import Response, StreamingResponse

from sockpq_http.exchange.caller import Caller, Calling
from sockpq_http.limits import QUIET_S
from sockpq_http.problems.errors import problem_of
from sockpq_http.values import bodies
from sockpq_http.values.ids import Shown
from sockpq_http.values.patterns import EVENT

NAMES_MAX = 1000

Types = Annotated[list[EventType], Query(
    alias="type", min_length=1, max_length=32, description="The types of events (docs/PROTOCOL.md, Events)."
)]
Names = Annotated[list[str] | None, Query(
    alias="name", max_length=NAMES_MAX, description="Of queues, items and so on; one that ends in * is a prefix."
)]
After = Annotated[str | None, Query(pattern=EVENT, description="Begin after the event of this number.")]
LastEventId = Annotated[str | None, Header(
    alias="Last-Event-ID", max_length=100, description="As browsers send it when they connect again."
)]
STREAM: dict[int | str, dict[str, Any]] = {200: {"description": "The events.", "content": {
    "text/event-stream": {"schema": {"type": "string"}},
}}}


async def events(
    caller: Calling, types: Types, names: Names = None, after: After = None, last_event_id: LastEventId = None
) -> Response:
    """Listen to events: each has its number as `id`, its type as `event`, and JSON as `data`.

    An event `lost` says that events between two numbers may have been missed: read the state again.
    """
    begin = last_event_id if last_event_id is not None and re.fullmatch(EVENT, last_event_id) else after
    heard = caller.client.events(types, names, after=None if begin is None else int(begin))
    await heard.open()
    return StreamingResponse(
        _stream(heard, caller), media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


async def _stream(heard: Events, caller: Caller) -> AsyncIterator[bytes]:
    """Yield the lines of the stream until the program stops; closing it ends the subscription."""
    stopped = asyncio.ensure_future(caller.stopping.wait())
    coming: asyncio.Task[Event] | None = None
    try:
        yield b"retry: 1000\n\n"
        while not stopped.done():
            coming = coming or asyncio.create_task(_next(heard))
            await asyncio.wait([coming, stopped], timeout=QUIET_S, return_when=asyncio.FIRST_COMPLETED)
            if stopped.done():
                return
            if not coming.done():
                yield b": no news\n\n"
                continue
            done, coming = coming, None
            try:
                yield _lines(done.result(), caller.client.id_text)
            except EventsLost as lost:
                yield _event("lost", {"first": lost.first, "last": lost.last}, str(lost.last))
            except SockpqError as error:
                yield _event("problem", problem_of(error).fields(), None)
                return
    finally:
        stopped.cancel()
        if coming is not None:
            coming.cancel()
        await heard.close()


async def _next(heard: Events) -> Event:
    return await heard.__anext__()


def _lines(event: Event, shown: Shown) -> bytes:
    fields: dict[str, Any] = {"seq": event.seq, "type": event.type, "name": event.name, "words": list(event.words)}
    if event.priority is not None:
        fields["priority"] = event.priority
    if event.id is not None:
        fields["id"] = shown(event.id)
    if event.type == "MSG":
        fields |= bodies.shown(event.data, None)
    return _event(event.type, fields, str(event.seq))


def _event(kind: str, data: dict[str, Any], number: str | None) -> bytes:
    head = f"id: {number}\n" if number is not None else ""
    return f"{head}event: {kind}\ndata: {json.dumps(data)}\n\n".encode()
