"""Topics, to which queues are bound, and messages to all who listen to a channel."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from sockpq_http.exchange.caller import Calling, answer, given
from sockpq_http.routes.queues import Prefix
from sockpq_http.routes.running import changed_answer
from sockpq_http.values.bodies import Body
from sockpq_http.values.model import Model, View
from sockpq_http.values.names import Channel, Topic
from sockpq_http.values.patterns import NAME, ROUTING


class Bind(Model):
    """A queue that gets the jobs of a topic."""

    queue: str = Field(pattern=NAME)
    pattern: str | None = Field(default=None, pattern=ROUTING, description="Only jobs whose routing key matches.")


class BindingView(View):
    """A queue that is bound to a topic."""

    topic: str
    queue: str
    pattern: str | None = None


class BindingsView(View):
    """A list of bindings."""

    bindings: list[BindingView]


class HeardView(View):
    """The number of listeners that a message had, as far as known."""

    listeners: int


class Message(Body):
    """A message; it is not stored."""


async def list_(caller: Calling, prefix: Prefix = "") -> Response:
    """List the bindings of topics."""
    return await caller.listed(
        "bindings", partial(caller.client.topic_list, prefix), lambda one: BindingView(**given(**one._asdict())),
        key=lambda one: (one.topic, one.queue, one.pattern or ""),
    )


async def bind(caller: Calling, topic: Topic, binding: Bind) -> Response:
    """Bind a queue to a topic: it gets all jobs that are published there."""
    await caller.client.topic_bind(topic, binding.queue, binding.pattern)
    return changed_answer()


async def unbind(
    caller: Calling, topic: Topic, queue: Annotated[str, Query(pattern=NAME)],
    pattern: Annotated[str | None, Query(pattern=ROUTING)] = None,
) -> Response:
    """Undo a binding."""
    await caller.client.topic_unbind(topic, queue, pattern)
    return changed_answer()


async def delete(caller: Calling, topic: Topic) -> Response:
    """Remove all bindings of a topic; the queues stay."""
    await caller.client.topic_delete(topic)
    return changed_answer()


async def notify(caller: Calling, channel: Channel, message: Message) -> Response:
    """Send a message to all who listen to this channel now (`/v1/events?type=MSG`)."""
    return answer(HeardView(listeners=await caller.client.notify(channel, message.data() or b"")))
