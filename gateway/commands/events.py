"""SUBSCRIBE, UNSUBSCRIBE, NOTIFY. A connection that hears events may send little else (spec/events 4.1)."""

from __future__ import annotations

import asyncio

from gateway.commands.context.client import Client
from gateway.commands.context.client_state import Run
from gateway.events.filters import MSG, Filter
from gateway.events.subscriptions import Subscription, Subscriptions
from gateway.limits import LISTENING_KNOWN_S, NOTIFY_BYTES_MAX
from gateway.protocol import responses
from gateway.protocol.command import Command
from gateway.protocol.grammar.events import Message
from gateway.waiting.slots import NoReply

POLL_S = 0.002


class Hearing:
    """The subscription of a connection, and the connection as its subscriber."""

    def __init__(self, client: Client, subscriptions: Subscriptions) -> None:
        self._client = client
        self._subscriptions = subscriptions
        self._subscription: Subscription | None = None

    def hears(self, wish: Filter) -> bool:
        """Whether it hears just this, up to now."""
        return self._subscription is not None and self._subscription.wish == wish and not self._subscription.behind

    def add(self, wish: Filter, after: int | None) -> None:
        """Subscribe; nothing is written before `begin`."""
        self._subscription = self._subscriptions.add(self, wish, after)

    def skip(self, newest: int) -> None:
        """Leave out all up to this number."""
        if self._subscription is not None:
            self._subscription.seq = newest

    def begin(self) -> None:
        """Hear what happens."""
        if self._subscription is not None:
            self._subscriptions.begin(self._subscription)

    def cancel(self) -> None:
        """End the subscription. What was heard before is written."""
        if self._subscription is not None:
            self.flush()
            self._subscriptions.remove(self._subscription)
            self._subscription = None

    def flush(self) -> None:
        """Write what was heard."""
        if self._subscription is not None:
            self._subscriptions.flush(self._subscription)

    # ---- Subscriber

    def tell(self, lines: list[bytes]) -> None:
        """Send lines."""
        self._client.link.write(b"".join(lines))

    def unsent_bytes(self) -> int:
        """How much of what was sent the client has not taken yet."""
        return self._client.link.unsent_bytes()

    def may_hear(self, event_type: str, name: str) -> bool:
        """Whether the rights of the client cover such an event."""
        return self._client.guard.may_hear(event_type, name)

    def cut(self, why: str) -> None:
        """Close the connection."""
        self._client.cut(why)


def subscribe(client: Client, command: Command) -> None:
    """SUBSCRIBE: hear events from now on, or from after a number; a subscription before it ends."""
    wish, after = command.arguments
    subscriptions = client.hub.subscriptions
    if after is not None and not subscriptions.may_begin(wish, after):
        client.state.mode = while_subscribed if client.state.subscribed is not None else client.state.mode
        client.say(responses.TOO_OLD)
        return
    before = client.state.subscribed
    if after is None and isinstance(before, Hearing) and before.hears(wish):        # so no message is missed
        before.flush()
        client.state.mode = while_subscribed
        client.say(responses.number(client.hub.cluster.machine.event_seq))
        return
    hearing = Hearing(client, subscriptions)
    hearing.add(wish, after)
    client.state.subscribe(hearing, while_subscribed)
    if MSG in wish.types and not client.hub.cluster.listening_known:
        client.run(_when_known(client, hearing, after is None))
    else:
        client.say(responses.number(client.hub.cluster.machine.event_seq))
        hearing.begin()


async def _when_known(client: Client, hearing: Hearing, from_now: bool) -> None:
    """Answer when the leader knows that somebody listens here, so that no message is lost that is sent after that."""
    loop = asyncio.get_running_loop()
    until = loop.time() + LISTENING_KNOWN_S
    while not client.hub.cluster.listening_known and loop.time() < until:
        await asyncio.sleep(POLL_S)
    newest = client.hub.cluster.machine.event_seq
    if from_now:
        hearing.skip(newest)            # what has happened meanwhile was before the answer
    await client.stream(responses.number(newest))
    hearing.begin()


def unsubscribe(client: Client, command: Command) -> None:
    """UNSUBSCRIBE: hear nothing more."""
    client.state.subscribe(None, client.state.trial)
    client.say(responses.OK)


def notify(client: Client, command: Command) -> None:
    """NOTIFY: send a message to all who listen to a channel now, beside the log."""
    message: Message = command.operation
    if len(message.data) > NOTIFY_BYTES_MAX:
        client.say(responses.TOO_LARGE)
    elif not client.hub.cluster.serving:
        client.say(NoReply.REFUSED)
    else:
        client.say(responses.number(client.hub.cluster.notify(message.channel, message.data)))


def while_subscribed(command: Command) -> Run | None:
    """Decide how to run a command of a connection that hears events."""
    row = command.row
    if command.answer is not None or row.while_subscribed:
        return None if row.alone else row.run
    return _not_allowed


def _not_allowed(client: Client, command: Command) -> None:
    client.say(responses.BAD_ARGUMENTS)
