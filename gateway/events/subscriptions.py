"""The subscribers of this node, and the delivery of events to them.

Events of applied entries are delivered to their subscribers in slices, one at the end of each turn: first the index
(index.py) finds the subscribers of each event, then each subscriber with new events gets one write. However many
subscribers there are, other clients wait for one slice only. Events are delivered in order. A subscription that begins
in the past reads the history piece by piece, as fast as its client reads, until it has caught up. A client that leaves
too much unread is disconnected: a slow reader costs the others nothing.

The streams of HTTP are in a thread of their own (gateway/monitoring/stream_thread.py). It gets each event once, however
many streams there are, and filters for them itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from sockpqd.cluster.api import Cluster
from sockpqd.core import GAP, Event
from sockpqd.gateway.events.filters import LOST, MSG, CompiledFilter, Filter
from sockpqd.gateway.events.history import EventHistory, Recorded
from sockpqd.gateway.events.index import Index
from sockpqd.gateway.events.lines import gap, message, numbered
from sockpqd.gateway.limits import (
    CHANNELS_TOLD_MAX,
    EVENT_BACKLOG_BYTES,
    EVENT_DUE_BYTES_HIGH,
    EVENT_DUE_BYTES_MAX,
    EVENT_DUE_HIGH,
    EVENT_DUE_MAX,
    EVENT_PIECE_BYTES,
    EVENT_SLICE_STEPS,
    EVENT_SLICE_STEPS_MAX,
    EVENT_WRITE_STEPS,
)


class Subscriber(Protocol):
    """A connection or stream that receives events, and may lag behind them."""

    def tell(self, lines: list[bytes]) -> None:
        """Send lines, each followed by its data, if any."""

    def unsent_bytes(self) -> int:
        """Return the number of bytes that it has not accepted yet."""

    @property
    def may_hear(self) -> Callable[[str, str], bool]:
        """True if its rights cover an event of this type and name."""

    def may_stay(self) -> bool:
        """Return whether its user still exists."""

    def cut(self, why: str) -> None:
        """Close its connection, and cancel the subscription."""


class Relay(Protocol):
    """Passes events on to receivers outside the event loop."""

    def add(self, recorded: Sequence[Recorded]) -> None:
        """Relay events; messages are among them as MSG, and the loss of messages as LOST."""


NEVER = 1 << 62         # the place of nothing


class Subscription:
    """The subscription of one receiver. It gets only events after `seq`."""

    __slots__ = ("behind", "first", "lines", "may_hear", "seq", "since", "subscriber", "wanted", "wish")

    def __init__(self, subscriber: Subscriber, wish: Filter, seq: int, since: int) -> None:
        self.subscriber = subscriber
        self.may_hear = subscriber.may_hear
        self.wish = wish
        self.wanted = CompiledFilter(wish)
        self.seq = seq
        self.since = since                  # it began with the order of what is due here
        self.first = NEVER                  # it gets nothing before this place; NEVER: it has not begun, or ended
        self.behind = False                 # it still reads the history
        self.lines: list[bytes] = []        # heard, and not written yet

    def hears(self, event: Event) -> bool:
        """Return whether the event is for this subscriber."""
        if event.seq <= self.seq:
            return False
        return event.type == GAP or (
            self.wanted.wants(event.type, event.name) and self.may_hear(event.type, event.name))


Due = tuple[int, Event, bytes]      # its place in the order of all that was due, and its line


class Subscriptions:
    """All subscriptions of this node."""

    def __init__(self, cluster: Cluster, wake: Callable[[], None] = lambda: None) -> None:
        """`wake()` schedules a call of `turn_ended`, for events outside of a turn."""
        self._cluster = cluster
        self._wake = wake
        self.history = EventHistory(cluster.machine.event_seq)
        self._all: dict[Subscription, None] = {}
        self._index: Index[Subscription] = Index()
        self._gone: deque[Subscription] = deque()       # still in the index: to leave takes as long as there are names
        self._types: dict[str, int] = {}                # how many subscriptions each has
        self._channels: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}     # how many listen to these for MSG
        self._channel_names = 0                         # in these
        self._listening_changed = False
        self._due: deque[Due] = deque()                 # has happened
        self._due_bytes = 0
        self._next = 0                                  # the place of what happens next
        self._current: Due | None = None                # is being delivered
        self._hearers: list[Subscription] = []          # to these, who have not heard it
        self._slice = EVENT_SLICE_STEPS
        self._unwritten: deque[Subscription] = deque()  # had lines to be written when they came here
        self._behind: dict[Subscription, None] = {}
        self._relieved: list[asyncio.Future[None]] = []     # wait until less is due
        self._relay: Relay | None = None
        self._relayed = 0                               # who hears by it

    def __len__(self) -> int:
        return len(self._all) + self._relayed

    # ---- for commands

    @property
    def crowded(self) -> bool:
        """True if so much is unsent that producers of events should wait."""
        return len(self._due) > EVENT_DUE_HIGH or self._due_bytes > EVENT_DUE_BYTES_HIGH

    async def room(self) -> None:
        """Wait until fewer lines are due."""
        while self.crowded:
            relieved = asyncio.get_running_loop().create_future()
            self._relieved.append(relieved)
            await relieved

    @property
    def listening_known(self) -> bool:
        """True if the leader knows the channels subscribed to here."""
        self._tell_listening()
        return self._cluster.listening_known

    def may_begin(self, wish: Filter, after: int) -> bool:
        """Return whether a subscription can begin after this number: all later events are kept, or still to come."""
        self.history.newest = newest = self._cluster.machine.event_seq
        if after > newest:
            return not self._cluster.serving
        return self.history.reaches_back_to(after, [one for one in wish.types if one != MSG])

    def add(self, subscriber: Subscriber, wish: Filter, after: int | None) -> Subscription:
        """Subscribe from now on, or after the number `after`. Nothing is written before `begin`."""
        newest = self._cluster.machine.event_seq
        subscription = Subscription(subscriber, wish, newest if after is None else after, self._next)
        self._all[subscription] = None
        self._index.add(subscription)
        self._count(wish, 1)
        return subscription

    def skip(self, subscription: Subscription, newest: int) -> None:
        """Leave out the events so far; `newest`: the number of the newest event."""
        subscription.seq, subscription.since = newest, self._next

    def begin(self, subscription: Subscription) -> None:
        """Write the events since the subscription was answered, and all later ones."""
        if subscription not in self._all:
            return
        subscription.first = subscription.since
        if subscription.seq < self.history.replaced:
            self._write(subscription, gap(subscription.seq + 1, self.history.replaced))
            subscription.seq = self.history.replaced
        if subscription.seq < self._cluster.machine.event_seq:
            subscription.behind = True
            self._behind[subscription] = None
        self._wake()

    def flush(self, subscription: Subscription) -> None:
        """Write all events up to now that are for this subscription."""
        if self._current is not None and subscription in self._hearers:
            self._hear((subscription,), self._current)
        for due in self._due:
            event = due[1]
            if event.type in (GAP, LOST) or subscription.wanted.wants(event.type, event.name):
                self._hear((subscription,), due)
        subscription.first = max(subscription.first, self._next)
        lines, subscription.lines = subscription.lines, []
        if lines:
            self._send(subscription, lines)

    def remove(self, subscription: Subscription) -> None:
        """End a subscription: nothing more is written to its subscriber."""
        if self._all.pop(subscription, self) is self:
            return
        subscription.first = NEVER
        subscription.lines = []
        self._behind.pop(subscription, None)
        self._gone.append(subscription)
        self._count(subscription.wish, -1)
        self._wake()

    # ---- for receivers served by a relay

    def begin_relay(self, relay: Relay, wish: Filter, after: int | None) -> tuple[int, list[Recorded]]:
        """Add a receiver to the relay, which serves all of them and gets all events from now on.

        Returns the number up to which nothing more is due, and the events since `after`.
        """
        newest = self._cluster.machine.event_seq
        self._relay = relay
        self._relayed += 1
        self._count(wish, 1)
        if after is None:
            return newest, []
        return max(after, newest), self.history.all_after(after)

    def end_relay(self, wish: Filter) -> None:
        """Remove a receiver from the relay."""
        self._relayed -= 1
        if not self._relayed:
            self._relay = None
        self._count(wish, -1)

    # ---- recorded types, and channels with listeners

    def _count(self, wish: Filter, step: int) -> None:
        changed = False
        for event_type in wish.types:
            count = self._types[event_type] = self._types.get(event_type, 0) + step
            changed = changed or count == 0 or (count == 1 and step == 1)
        if MSG in wish.types:
            self._count_channels(wish, step)
        if changed:
            self._cluster.subscribed(frozenset(event_type for event_type, count in self._types.items() if count))

    def _count_channels(self, wish: Filter, step: int) -> None:
        place = ((), ("",)) if wish.everything else (wish.names, wish.prefixes)
        count = self._channels.get(place, 0) + step
        if count == step:                   # a new one
            self._channel_names += len(place[0]) + len(place[1])
        self._channels[place] = count
        if not count:
            del self._channels[place]
            self._channel_names -= len(place[0]) + len(place[1])
        self._listening_changed = True
        self._wake()

    def _tell_listening(self) -> None:
        """Report to the cluster which channels have subscribers, once for all changes of a turn."""
        if not self._listening_changed:
            return
        self._listening_changed = False
        if self._channel_names > CHANNELS_TOLD_MAX:       # too many to tell: the others send everything
            self._cluster.listen([([], [""], sum(self._channels.values()))])
        else:
            self._cluster.listen([
                ([*names], [*prefixes], count) for (names, prefixes), count in self._channels.items()
            ])

    # ---- from the cluster

    def notice(self, channel: str, data: bytes) -> None:
        """Deliver a message of NOTIFY to the subscribers of its channel."""
        if self._relay is not None or self._all:
            newest = self._cluster.machine.event_seq
            self._happened([(Event(newest, MSG, channel, ()), message(newest, channel, data))])

    def notices_lost(self) -> None:
        """Inform subscribers of messages that messages may have been lost."""
        newest = self._cluster.machine.event_seq
        self._happened([(Event(newest, LOST, "", ()), gap(newest, newest))])

    def recording(self, types: frozenset[str]) -> None:
        """Keep events of these types in the history from now on."""
        self.history.record(types, self._cluster.machine.event_seq)

    def events(self, events: Sequence[Event]) -> None:
        """Record the events of an applied entry, and deliver them."""
        self._happened(self.history.add(events))

    def replaced(self) -> None:
        """Report a gap to all subscribers: a snapshot was installed, and the events in between are unknown."""
        before, newest = self.history.newest, self._cluster.machine.event_seq
        self.history.replace(newest)
        behind, self._behind = self._behind, {}
        for subscription in behind:             # what is due is not for these
            subscription.behind = False
            if newest > subscription.seq:
                self._write(subscription, gap(subscription.seq + 1, newest))
                subscription.seq = newest
        if newest > before:
            self._happened([(Event(newest, GAP, "", (before + 1, newest)), gap(before + 1, newest))])

    def _happened(self, recorded: Sequence[Recorded]) -> None:
        """Queue events for the subscribers that want them."""
        if not recorded:
            return
        if self._relay is not None:
            self._relay.add(recorded)
        if not self._all:
            return
        for event, line in recorded:
            self._due.append((self._next, event, line))
            self._next += 1
            if event.type == MSG:
                self._due_bytes += len(line)
        if len(self._due) > EVENT_DUE_MAX or self._due_bytes > EVENT_DUE_BYTES_MAX:
            self._give_up()
        self._wake()

    def _give_up(self) -> None:
        """Replace the pending events, which are too many, by one that reports the gap."""
        newest = self._cluster.machine.event_seq
        first = next((event.seq for _, event, _ in self._due if event.type not in (MSG, LOST)), None)
        messages = self._due_bytes > 0
        self._due.clear()
        self._due_bytes = 0
        if first is not None:
            self._due.append((self._next, Event(newest, GAP, "", (first, newest)), gap(first, newest)))
        elif messages:
            self._due.append((self._next, Event(newest, LOST, "", ()), gap(newest, newest)))
        self._next += 1

    # ---- the slices

    @property
    def pending(self) -> bool:
        """True if there is something to do at the end of a turn."""
        return bool(
            self._due or self._hearers or self._unwritten or self._behind or self._gone or self._listening_changed)

    def turn_ended(self) -> None:
        """Do a slice of the pending work: half of it finds subscribers, the rest writes lines and reads the history."""
        self.history.newest = self._cluster.machine.event_seq
        if not self.pending:
            return
        self._tell_listening()
        steps = self._slice
        steps -= self._dispatch(steps // 2)
        steps -= self._write_lines(steps)
        steps -= self._catch_up_some(steps)
        steps -= self._forget(steps)
        steps -= self._dispatch(steps)
        if self._relieved and not self._is_half_full():
            relieved, self._relieved = self._relieved, []
            for future in relieved:
                if not future.done():
                    future.set_result(None)
        if steps > 0 and not self._due and not self._hearers and not self._unwritten and not self._gone:
            self._slice = EVENT_SLICE_STEPS
        else:
            self._slice = min(self._slice * 5 // 4, EVENT_SLICE_STEPS_MAX)
            self._wake()

    def _is_half_full(self) -> bool:
        return len(self._due) * 2 > EVENT_DUE_HIGH or self._due_bytes * 2 > EVENT_DUE_BYTES_HIGH

    def _dispatch(self, steps: int) -> int:
        """Find the subscribers of due events; returns how many steps that took, slightly more than `steps` at most."""
        left = steps
        while left > 0:
            if self._hearers:
                assert self._current is not None
                some = self._hearers[-left:]
                del self._hearers[-left:]
                left -= len(some)
                self._hear(some, self._current)
            elif self._due:
                self._current = self._due.popleft()
                left -= self._find_hearers(self._current)
            else:
                self._current = None
                break
        return steps - left

    def _find_hearers(self, due: Due) -> int:
        """Find the subscribers of this event; returns the number of steps to charge, an upper bound."""
        _, event, line = due
        if event.type == GAP:
            self._hearers = list(self._all)
        elif event.type == LOST:
            self._hearers = [one for one in self._all if MSG in one.wanted.types]
        else:
            if event.type == MSG:
                self._due_bytes -= len(line)
            self._hearers = self._index.hearers(event.type, event.name)
        return self._index.looks()

    def _hear(self, some: Iterable[Subscription], due: Due) -> None:
        """Add the event's line for each of these subscriptions that has begun and may hear it."""
        place, event, line = due
        event_type, name, seq, unwritten = event.type, event.name, event.seq, self._unwritten
        if event_type in (LOST, GAP):
            for subscription in some:
                if subscription.first <= place:
                    self._miss(subscription, event, line)
            return
        message = event_type == MSG
        for subscription in some:
            if subscription.first > place:
                continue
            past = subscription.behind or seq <= subscription.seq
            if (past and not message) or not subscription.may_hear(event_type, name):
                continue
            if not subscription.lines:
                unwritten.append(subscription)
            # A message has no number of its own, and must not overtake events still being read from the history.
            # Otherwise all subscribers get the same line, which is held only once.
            subscription.lines.append(numbered(subscription.seq, line) if past and seq != subscription.seq else line)

    def _miss(self, subscription: Subscription, event: Event, line: bytes) -> None:
        """Notify a subscriber that events may be missing."""
        seq, past = event.seq, subscription.behind or event.seq < subscription.seq
        if event.type == LOST:
            if MSG in subscription.wanted.types:
                self._write(subscription, gap(subscription.seq, subscription.seq) if past else line)
        elif not past and seq != subscription.seq:
            knows = bool(event.words) and subscription.seq >= int(event.words[0])       # of the first ones
            self._write(subscription, gap(subscription.seq + 1, seq) if knows else line)

    def _write(self, subscription: Subscription, line: bytes) -> None:
        if not subscription.lines:
            self._unwritten.append(subscription)
        subscription.lines.append(line)

    def _write_lines(self, steps: int) -> int:
        """Write lines to the subscribers, each in its turn; returns how many steps that took."""
        left, unwritten = steps, self._unwritten
        while unwritten and left > 0:
            subscription = unwritten.popleft()
            lines = subscription.lines
            if lines:               # and not flushed meanwhile
                subscription.lines = []
                left -= EVENT_WRITE_STEPS
                self._send(subscription, lines)
        return steps - left

    def _send(self, subscription: Subscription, lines: list[bytes]) -> None:
        """Write these lines, unless too much is unread or the rights are gone."""
        subscriber = subscription.subscriber
        if not subscriber.may_stay():
            self._cut(subscription, "its user is gone")
        elif subscriber.unsent_bytes() >= EVENT_BACKLOG_BYTES:
            self._cut(subscription, "it does not read its events")
        else:
            subscriber.tell(lines)

    def _cut(self, subscription: Subscription, why: str) -> None:
        self.remove(subscription)
        subscription.subscriber.cut(why)

    def _catch_up_some(self, steps: int) -> int:
        """Write pieces of the history to subscribers that are behind, in turns; returns how many steps that took."""
        left = steps
        for subscription in list(self._behind):
            if left <= 0:
                self._wake()
                break
            left -= 1
            while left > 0 and subscription.behind and not subscription.lines \
                    and subscription.subscriber.unsent_bytes() < EVENT_PIECE_BYTES:
                left -= self._catch_up(subscription)
            if subscription.behind and subscription in self._behind:
                self._behind[subscription] = self._behind.pop(subscription)
        return steps - left

    def _catch_up(self, subscription: Subscription) -> int:
        """Write the next piece of the history; returns how many steps that took."""
        if not self.history.reaches_back_to(subscription.seq, ()):
            self._cut(subscription, "it does not read its events")
            subscription.behind = False
            return 1
        piece = self.history.after(subscription.seq)
        if not piece:
            subscription.behind = False
            del self._behind[subscription]
            return 1
        lines = [line for event, line in piece if subscription.hears(event)]
        subscription.seq = piece[-1][0].seq
        if lines:
            self._send(subscription, lines)
        return len(piece) + EVENT_WRITE_STEPS

    def _forget(self, steps: int) -> int:
        """Remove subscribers that are gone from the index; returns how many steps that took."""
        left = steps
        while self._gone and left > 0:
            subscription = self._gone.popleft()
            left -= 1 + len(subscription.wish.names) + len(subscription.wish.prefixes)
            self._index.remove(subscription)
        return steps - left
