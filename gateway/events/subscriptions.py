"""The subscribers of this node, and how events reach them.

Events are collected while entries are applied and written at the end of the turn, one write for each subscriber. A
subscriber that begins in the past reads the history piece by piece, as fast as it takes it, until it has caught up.
Whoever leaves too much unread is cut: a slow reader costs the others nothing.

The streams of HTTP are in a thread of their own (gateway/monitoring/stream_thread.py). It gets everything in one piece,
however many they are, and finds out itself who hears what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from cluster.api import Cluster
from core import GAP, Event
from gateway.events.filters import LOST, MSG, UNNAMED, Filter
from gateway.events.history import History, Recorded
from gateway.events.lines import gap, message
from gateway.limits import CHANNELS_TOLD_MAX, EVENT_BACKLOG_BYTES, EVENT_PIECE_BYTES


class Subscriber(Protocol):
    """Whoever hears events."""

    def tell(self, lines: list[bytes]) -> None:
        """Send lines, each complete with the data behind it."""

    def unsent_bytes(self) -> int:
        """How much of what was sent it has not taken yet."""

    def may_hear(self, event_type: str, name: str) -> bool:
        """Whether its rights cover such an event."""

    def cut(self, why: str) -> None:
        """Close its connection, and cancel the subscription."""


class Relay(Protocol):
    """Tells others what happens, outside of the event loop."""

    def add(self, recorded: Sequence[Recorded]) -> None:
        """The next events; messages are among them as MSG, and the loss of messages as LOST."""


class Subscription:
    """What a subscriber gets from now on. `seq`: events up to this number it has had, or does not want."""

    __slots__ = ("begun", "behind", "lines", "seq", "subscriber", "wish")

    def __init__(self, subscriber: Subscriber, wish: Filter, seq: int) -> None:
        self.subscriber = subscriber
        self.wish = wish
        self.seq = seq
        self.begun = False                  # nothing is written to it before
        self.behind = False                 # it still reads the history
        self.lines: list[bytes] = []        # of this turn

    def hears(self, event: Event) -> bool:
        """Whether the event is for this subscriber."""
        if event.seq <= self.seq:
            return False
        if event.type == GAP:
            return True
        wish = self.wish
        return (
            event.type in wish.types and wish.wants(event.type, event.name)
            and self.subscriber.may_hear(event.type, event.name)
        )


class Subscriptions:
    """All subscriptions of this node, found by type and name of an event."""

    def __init__(self, cluster: Cluster, wake: Callable[[], None] = lambda: None) -> None:
        """`wake()` has `turn_ended` called soon, for what happens outside of a turn."""
        self._cluster = cluster
        self._wake = wake
        self.history = History(cluster.machine.event_seq)
        self._all: dict[Subscription, None] = {}
        self._types: dict[str, int] = {}                # how many subscriptions each has
        # By type and name, those of exact names; by type and "", those of all names and of prefixes.
        self._places: dict[tuple[str, str], dict[Subscription, None]] = {}
        self._channels: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}     # how many listen to these for MSG
        self._told: dict[Subscription, None] = {}                               # have lines to be written
        self._behind: dict[Subscription, None] = {}
        self._relay: Relay | None = None
        self._relayed = 0                                                       # who hears by it

    def __len__(self) -> int:
        return len(self._all) + self._relayed

    # ---- for commands

    def may_begin(self, wish: Filter, after: int) -> bool:
        """Whether a subscription can begin behind this number: all events since are there, or still to come."""
        self.history.newest = newest = self._cluster.machine.event_seq
        if after > newest:
            return not self._cluster.serving
        return self.history.reaches_back_to(after, [one for one in wish.types if one != MSG])

    def add(self, subscriber: Subscriber, wish: Filter, after: int | None) -> Subscription:
        """Subscribe from now on, or behind the number `after`. Nothing is written before `begin`."""
        newest = self._cluster.machine.event_seq
        subscription = Subscription(subscriber, wish, newest if after is None else after)
        self._all[subscription] = None
        for place in _places(wish):
            self._places.setdefault(place, {})[subscription] = None
        self._count(wish, 1)
        return subscription

    def begin(self, subscription: Subscription) -> None:
        """The subscription was answered: write what has happened since, and then what happens."""
        subscription.begun = True
        if subscription in self._all and subscription.seq < self.history.replaced:
            self._write(subscription, gap(subscription.seq + 1, self.history.replaced))
            subscription.seq = self.history.replaced
        if subscription in self._all and subscription.seq < self._cluster.machine.event_seq:
            subscription.behind = True
            self._behind[subscription] = None
        self._wake()

    def flush(self, subscription: Subscription) -> None:
        """Write what it has heard in this turn now."""
        lines, subscription.lines = subscription.lines, []
        if lines and self._told.pop(subscription, self) is None:
            self._send(subscription, lines)

    def remove(self, subscription: Subscription) -> None:
        """End a subscription: nothing more is written to its subscriber."""
        if self._all.pop(subscription, self) is self:
            return
        self._told.pop(subscription, None)
        self._behind.pop(subscription, None)
        for place in _places(subscription.wish):
            left = self._places[place]
            del left[subscription]
            if not left:
                del self._places[place]
        self._count(subscription.wish, -1)

    # ---- for whoever hears by a relay

    def begin_relay(self, relay: Relay, wish: Filter, after: int | None) -> tuple[int, list[Recorded]]:
        """From now on the relay, one for all, is given what happens, for one more who wants this.

        Returns the number up to which nothing more is due, and what has happened since `after`.
        """
        newest = self._cluster.machine.event_seq
        self._relay = relay
        self._relayed += 1
        self._count(wish, 1)
        if after is None:
            return newest, []
        return max(after, newest), self.history.all_after(after)

    def end_relay(self, wish: Filter) -> None:
        """One of them is gone."""
        self._relayed -= 1
        if not self._relayed:
            self._relay = None
        self._count(wish, -1)

    # ---- what is recorded, and which messages are listened to

    def _count(self, wish: Filter, step: int) -> None:
        for event_type in wish.types:
            self._types[event_type] = self._types.get(event_type, 0) + step
        if MSG in wish.types:
            self._count_channels(wish, step)
        self._cluster.subscribed(frozenset(event_type for event_type, count in self._types.items() if count))

    def _count_channels(self, wish: Filter, step: int) -> None:
        place = ((), ("",)) if wish.everything else (wish.names, wish.prefixes)
        count = self._channels.get(place, 0) + step
        if count:
            self._channels[place] = count
        else:
            del self._channels[place]
        names = sum(len(names) + len(prefixes) for names, prefixes in self._channels)
        if names > CHANNELS_TOLD_MAX:       # too many to tell: the others send everything
            self._cluster.listen([([], [""], sum(self._channels.values()))])
        else:
            self._cluster.listen([
                ([*names], [*prefixes], count) for (names, prefixes), count in self._channels.items()
            ])

    # ---- from the cluster

    def notice(self, channel: str, data: bytes) -> None:
        """A message of NOTIFY."""
        if self._relay is not None:
            newest = self._cluster.machine.event_seq
            self._relay.add([(Event(newest, MSG, channel, ()), message(newest, channel, data))])
        hearers = self._places.get((MSG, ""), {})
        named = self._places.get((MSG, channel))
        if named:
            hearers = {**hearers, **named}
        if hearers:
            line = message(self._cluster.machine.event_seq, channel, data)
            for subscription in hearers:
                if (
                    subscription.begun and subscription.wish.wants(MSG, channel)
                    and subscription.subscriber.may_hear(MSG, channel)
                ):
                    behind = subscription.behind
                    self._write(subscription, message(subscription.seq, channel, data) if behind else line)
            self._wake()

    def notices_lost(self) -> None:
        """Messages of NOTIFY may have been lost."""
        newest = self._cluster.machine.event_seq
        if self._relay is not None:
            self._relay.add([(Event(newest, LOST, "", ()), gap(newest, newest))])
        for subscription in self._all:
            if subscription.begun and MSG in subscription.wish.types:
                # Who still reads the past must not take it for told.
                number = subscription.seq if subscription.behind else newest
                self._write(subscription, gap(number, number))
        self._wake()

    def recording(self, types: frozenset[str]) -> None:
        """These types are recorded from now on."""
        self.history.record(types, self._cluster.machine.event_seq)

    def events(self, events: Sequence[Event]) -> None:
        """An entry was applied that brought these."""
        recorded = self.history.add(events)
        if self._relay is not None and recorded:
            self._relay.add(recorded)
        if self._all:
            for event, line in recorded:
                self._dispatch(event, line)

    def replaced(self) -> None:
        """A snapshot was installed: everybody has missed what happened in between."""
        before, newest = self.history.newest, self._cluster.machine.event_seq
        self.history.replace(newest)
        self._behind.clear()
        if self._relay is not None and newest > before:
            self._relay.add([(Event(newest, GAP, "", (before + 1, newest)), gap(before + 1, newest))])
        for subscription in self._all:
            if not subscription.begun:
                continue                    # it will be told, unless it begins later than that
            known = subscription.seq if subscription.behind else max(before, subscription.seq)
            subscription.behind = False
            if newest > known:
                self._write(subscription, gap(known + 1, newest))

    @property
    def pending(self) -> bool:
        """Whether there is something to write."""
        return bool(self._told or self._behind)

    def turn_ended(self) -> None:
        """Write what has happened in the turn."""
        self.history.newest = self._cluster.machine.event_seq
        if self._told:
            told, self._told = self._told, {}
            for subscription in told:
                lines, subscription.lines = subscription.lines, []
                if subscription in self._all:
                    self._send(subscription, lines)
        for subscription in list(self._behind):
            self._catch_up(subscription)

    # ---- inside

    def _dispatch(self, event: Event, line: bytes) -> None:
        if event.type == GAP:
            hearers = self._all
        else:
            hearers = self._places.get((event.type, ""), {})
            named = self._places.get((event.type, event.name)) if event.name else None
            if named:
                hearers = {**hearers, **named}
        for subscription in hearers:
            if subscription.begun and not subscription.behind and subscription.hears(event):
                self._write(subscription, line)

    def _write(self, subscription: Subscription, line: bytes) -> None:
        subscription.lines.append(line)
        self._told[subscription] = None

    def _send(self, subscription: Subscription, lines: list[bytes]) -> None:
        """Write these lines, unless too much is unread."""
        subscriber = subscription.subscriber
        if subscriber.unsent_bytes() >= EVENT_BACKLOG_BYTES:
            self.remove(subscription)
            subscriber.cut("it does not read its events")
        else:
            subscriber.tell(lines)

    def _catch_up(self, subscription: Subscription) -> None:
        """Write the next pieces of the history to a subscriber that takes them."""
        while subscription.subscriber.unsent_bytes() < EVENT_PIECE_BYTES:
            if not self.history.reaches_back_to(subscription.seq, ()):
                self.remove(subscription)
                subscription.subscriber.cut("it does not read its events")
                return
            piece = self.history.after(subscription.seq)
            if not piece:
                subscription.behind = False
                del self._behind[subscription]
                return
            lines = [line for event, line in piece if subscription.hears(event)]
            subscription.seq = piece[-1][0].seq
            if lines:
                subscription.subscriber.tell(lines)


def _places(wish: Filter) -> list[tuple[str, str]]:
    """Where a subscription is found: type and exact name, or "" for all others."""
    places: list[tuple[str, str]] = []
    for event_type in wish.types:
        if wish.everything or wish.prefixes or event_type in UNNAMED:
            places.append((event_type, ""))
        if not wish.everything and event_type not in UNNAMED:
            places += [(event_type, name) for name in wish.names]
    return places
