"""SUBSCRIBE and UNSUBSCRIBE. A connection that hears events may send little else (spec/events 4.1)."""

from __future__ import annotations

from gateway.commands.context.client import Client
from gateway.commands.context.client_state import Run
from gateway.events.filters import Filter
from gateway.events.subscriptions import Subscription, Subscriptions
from gateway.protocol import responses
from gateway.protocol.command import Command


class Hearing:
    """The subscription of a connection, and the connection as its subscriber."""

    def __init__(self, client: Client, subscriptions: Subscriptions) -> None:
        self._client = client
        self._subscriptions = subscriptions
        self._subscription: Subscription | None = None

    def begin(self, wish: Filter, after: int | None) -> int:
        """Subscribe; returns the number of the newest event."""
        self._subscription, newest = self._subscriptions.add(self, wish, after)
        return newest

    def cancel(self) -> None:
        """End the subscription."""
        if self._subscription is not None:
            self._subscriptions.remove(self._subscription)
            self._subscription = None

    # ---- Subscriber

    def tell(self, lines: bytes) -> None:
        """Send lines."""
        self._client.link.write(lines)

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
    hearing = Hearing(client, subscriptions)
    newest = hearing.begin(wish, after)
    client.state.subscribe(hearing, while_subscribed)
    client.say(responses.number(newest))
    client.wake()           # what is past is written at the end of this turn, behind the answer


def unsubscribe(client: Client, command: Command) -> None:
    """UNSUBSCRIBE: hear nothing more."""
    client.state.subscribe(None, client.state.trial)
    client.say(responses.OK)


def while_subscribed(command: Command) -> Run | None:
    """Decide how to run a command of a connection that hears events."""
    row = command.row
    if command.answer is not None or row.while_subscribed:
        return None if row.alone else row.run
    return _not_allowed


def _not_allowed(client: Client, command: Command) -> None:
    client.say(responses.BAD_ARGUMENTS)
