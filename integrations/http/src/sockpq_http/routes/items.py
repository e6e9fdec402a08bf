"""Items: jobs that belong together, counted, held, cancelled and retried."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Annotated, Literal

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from sockpq_http.exchange.caller import BEFORE, Calling, answer, given, replay
from sockpq_http.exchange.views import CountView
from sockpq_http.idempotency.key import Key
from sockpq_http.idempotency.marker import Item as ItemName
from sockpq_http.routes.queues import Prefix
from sockpq_http.values.model import Model, Replayable, View
from sockpq_http.values.names import Item
from sockpq_http.values.patterns import NAME, WORD
from sockpq_http.values.times import Span


class Hold(Model):
    """The hold of an item, which does not end before all of its jobs are put."""

    expire: Span | None = Field(default=None, description="After this time the producer counts as dead; 600 s.")
    then: Literal["cancel", "release"] | None = Field(default=None, description="What happens then.")


class NewHold(Hold):
    """A hold of a new item."""

    queue: str | None = Field(default=None, pattern=NAME, description="With several clusters: a queue of its jobs.")


class Cancel(Model):
    """The reason for cancelling an item."""

    reason: str | None = Field(default=None, pattern=WORD)


class ItemView(View):
    """The jobs of an item by state, and what waits for it."""

    ready: int
    delayed: int
    running: int
    dead: int
    buried: int
    done: int
    waiters: int
    cancelled: int
    held: bool
    cancelling: bool


class ItemTotalsView(View):
    """An item in a list, with the number of its jobs."""

    name: str
    unfinished: int
    dead: int
    held: bool
    cancelling: bool


class ItemsView(View):
    """A list of items."""

    items: list[ItemTotalsView]


class HeldView(Replayable):
    """The item that is held."""

    item: str | None = None


class ReleasedView(Replayable):
    """The end of a hold, and whether it has ended the item."""

    item_done: bool = False


async def list_(
    caller: Calling, prefix: Prefix = "", held: Annotated[bool, Query(description="Only those with a hold.")] = False
) -> Response:
    """List the items, in the order of their names."""
    return await caller.listed(
        "items", partial(caller.client.items, prefix, held=held), lambda one: ItemTotalsView(**one._asdict()),
        key=attrgetter("name"),
    )


async def stat(caller: Calling, item: Item) -> Response:
    """Count the jobs of an item; 404 when it has none."""
    return answer(ItemView(**(await caller.client.item_stat(item))._asdict()))


async def hold_new(caller: Calling, how: NewHold | None = None, key: Key = None) -> Response:
    """Hold a new item, which the server names."""
    how = how or NewHold()
    return _held(await caller.execute(
        key, "item_hold", **given(expire=how.expire, then=how.then, queue=how.queue)
    ))


async def hold(caller: Calling, item: Item, how: Hold | None = None, key: Key = None) -> Response:
    """Hold an item, or renew its hold."""
    how = how or Hold()
    return _held(await caller.execute(key, "item_hold", ItemName(item), **given(expire=how.expire, then=how.then)))


async def release(caller: Calling, item: Item, key: Key = None) -> Response:
    """End the hold of an item."""
    ended = await caller.execute(key, "item_release", ItemName(item))
    return replay(ReleasedView) if ended is BEFORE else answer(ReleasedView(item_done=ended))


async def cancel(caller: Calling, item: Item, why: Cancel | None = None) -> Response:
    """Remove all jobs of an item, and those that wait for it to be done; returns how many it has."""
    reason = why.reason if why else None
    return answer(CountView(count=await caller.client.item_cancel(item, reason)))


async def retry(caller: Calling, item: Item) -> Response:
    """Put back all dead and buried jobs of an item."""
    return answer(CountView(count=await caller.client.item_retry(item)))


def _held(item: object) -> Response:
    return replay(HeldView) if item is BEFORE else answer(HeldView(item=str(item)))
