"""SUBSCRIBE, UNSUBSCRIBE, NOTIFY. A subscribed connection may send few other commands (spec/events 4.1)."""

from __future__ import annotations

import asyncio

from sockpqd.gateway.commands.context.client import Client
from sockpqd.gateway.commands.context.client_state import Run
from sockpqd.gateway.events.filters import MSG, Filter
from sockpqd.gateway.events.subscriptions import Subscription, Subscriptions
from sockpqd.gateway.limits import LISTENING_KNOWN_S, NOTIFY_BYTES_MAX
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.protocol.grammar.events import Message
from sockpqd.gateway.waiting.slots import NoReply

POLL_S = 0.002
FEW_NAMES = 50          # as many are looked at in no time


class Hearing:
    """The subscription of a connection, which is also its subscriber."""

    def __init__(self, client: Client, subscriptions: Subscriptions) -> None:
        self._client = client
        self._subscriptions = subscriptions
        self._subscription: Subscription | None = None
        self.held_bytes = 0
        self.may_hear = client.guard.may_hear       # whether the rights of the client cover such an event

    def hears(self, wish: Filter) -> bool:
        """Return whether the subscription has this filter and has caught up with the history."""
        return self._subscription is not None and self._subscription.wish == wish and not self._subscription.behind

    def add(self, wish: Filter, after: int | None) -> None:
        """Subscribe to events after this number (None: from now on); nothing is written before `begin`."""
        self._subscription = self._subscriptions.add(self, wish, after)
        self.held_bytes = wish.held_bytes

    def skip(self, newest: int) -> None:
        """Leave out the events up to the number `newest`."""
        if self._subscription is not None:
            self._subscriptions.skip(self._subscription, newest)

    def begin(self) -> None:
        """Write events from now on, those since `add` first."""
        if self._subscription is not None:
            self._subscriptions.begin(self._subscription)

    def cancel(self) -> None:
        """End the subscription; events that are due are still written unless the connection is closed."""
        if self._subscription is not None:
            if not self._client.closed:
                self.flush()
            self._subscriptions.remove(self._subscription)
            self._subscription = None

    def flush(self) -> None:
        """Write the events that are due without waiting for the end of the turn."""
        if self._subscription is not None:
            self._subscriptions.flush(self._subscription)

    # ---- Subscriber

    def tell(self, lines: list[bytes]) -> None:
        """Send the lines of events; other subscribers may share the same bytes."""
        self._client.link.tell(lines)

    def unsent_bytes(self) -> int:
        """Return the number of bytes that the client has not accepted yet."""
        return self._client.link.unsent_bytes()

    def may_stay(self) -> bool:
        """Return whether the user of the client still exists."""
        return not self._client.guard.unauthenticated

    def cut(self, why: str) -> None:
        """Close the connection at once; `why` is logged."""
        self._client.cut(why)


def subscribe(client: Client, command: Command) -> None:
    """SUBSCRIBE: subscribe to events from now on, or after a number; replaces an earlier subscription.

    One with many names waits for its turn; one that replaces another waits while subscribers cannot keep up.
    """
    wish, after = command.arguments
    if len(wish.names) + len(wish.prefixes) > FEW_NAMES or _waits(client):
        client.run(_subscribe_in_turn(client, wish, after))
    else:
        answer, hearing = _subscribed(client, wish, after)
        if hearing is not None and not _known(client, wish):
            client.run(_when_known(client, hearing, wish, after is None))
            return
        client.say(answer)
        if hearing is not None:
            hearing.begin()


async def _subscribe_in_turn(client: Client, wish: Filter, after: int | None) -> None:
    if client.state.subscribed is not None:
        await client.hub.subscriptions.room()
    await client.hub.turn()
    answer, hearing = _subscribed(client, wish, after)
    if hearing is not None and not _known(client, wish):
        await _when_known(client, hearing, wish, after is None)
        return
    await client.stream(answer)
    if hearing is not None:
        hearing.begin()


def _subscribed(client: Client, wish: Filter, after: int | None) -> tuple[bytes, Hearing | None]:
    """Subscribe; return the answer, and the subscription to begin after it, None if none does."""
    subscriptions = client.hub.subscriptions
    before = client.state.subscribed
    if after is not None and not subscriptions.may_begin(wish, after):
        client.state.mode = while_subscribed if before is not None else client.state.mode
        return responses.TOO_OLD, None
    newest = responses.number(client.hub.cluster.machine.event_seq)
    if after is None and isinstance(before, Hearing) and before.hears(wish):        # so no message is missed
        before.flush()
        client.state.mode = while_subscribed
        return newest, None
    hearing = Hearing(client, subscriptions)
    hearing.add(wish, after)
    client.state.subscribe(hearing, while_subscribed)
    client.weigh()
    return newest, hearing


def _known(client: Client, wish: Filter) -> bool:
    """Return whether a message sent now would reach a new subscriber with this filter."""
    return MSG not in wish.types or client.hub.subscriptions.listening_known


async def _when_known(client: Client, hearing: Hearing, wish: Filter, from_now: bool) -> None:
    """Answer when the leader knows the subscription, so that it gets all messages sent after the answer.

    It answers after LISTENING_KNOWN_S in any case. `from_now`: events before the answer are left out.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + LISTENING_KNOWN_S
    while not _known(client, wish) and loop.time() < until:
        await asyncio.sleep(POLL_S)
    newest = client.hub.cluster.machine.event_seq
    if from_now:
        hearing.skip(newest)            # what has happened meanwhile was before the answer
    await client.stream(responses.number(newest))
    hearing.begin()


def _waits(client: Client) -> bool:
    """Return whether this command must wait, as the client is subscribed and subscribers cannot keep up."""
    return client.state.subscribed is not None and client.hub.subscriptions.crowded


def unsubscribe(client: Client, command: Command) -> None:
    """UNSUBSCRIBE: end the subscription, with an answer after the last event."""
    if _waits(client):
        client.run(_with_room(client, command, unsubscribe))
        return
    client.state.subscribe(None, client.state.trial)
    client.say(responses.OK)


def notify(client: Client, command: Command) -> None:
    """NOTIFY: send a message to the current subscribers of a channel, outside the log.

    It waits while earlier messages still have to be sent to more subscribers than this node can keep up with.
    """
    if client.hub.subscriptions.crowded:
        client.run(_with_room(client, command, notify))
        return
    message: Message = command.operation
    if len(message.data) > NOTIFY_BYTES_MAX:
        client.say(responses.TOO_LARGE)
    elif not client.hub.cluster.serving:
        client.say(NoReply.REFUSED)
    elif (refusal := client.hub.cluster.machine.elsewhere(message.channel)) is not None:
        client.say(responses.answer(refusal))
    else:
        client.say(responses.number(client.hub.cluster.notify(message.channel, message.data)))


async def _with_room(client: Client, command: Command, run: Run) -> None:
    """Run a command once subscribers have caught up."""
    await client.hub.subscriptions.room()
    run(client, command)


def while_subscribed(command: Command) -> Run | None:
    """Return how a subscribed connection runs a command; None: when all before it are answered, and the mode ends."""
    row = command.row
    if command.answer is not None or row.while_subscribed:
        return None if row.alone else row.run
    return _not_allowed


_ALLOWED = responses.bad_arguments("after SUBSCRIBE, only SUBSCRIBE, UNSUBSCRIBE, PING and QUIT are allowed")


def _not_allowed(client: Client, command: Command) -> None:
    client.say(_ALLOWED)
