"""Subscribers and senders of messages at simulated gateways, and checks of their guarantees (spec/events 3.1, 5.1).

A subscriber moves to another node at will or of necessity, and resumes after the last number it received. So it gets
every event of its types once and in order, whichever nodes die, except in a GAP. Messages of one sender arrive in
order, each at most once; between two that it receives in one subscription, none that was accepted is missing except
in a GAP.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from sockpqd.core import Event
from sockpqd.gateway.events.lines import line_of
from tests.sim.gateway.answers import Answer, Asked, Form
from tests.sim.gateway.clients import BACKOFF_S, GatewayClient, Life, accepted
from tests.sim.world.trace import Violation

TYPES = ("PULSE", "LEADER", "DONE")
CHANNEL = "news"
STAYS_S = (5.0, 30.0, 120.0)
SILENCE_S = 20.0
SENDS_S = (0.0, 0.3, 3.0)


class Tale:
    """All events so far, as lines without the end of line."""

    def __init__(self, seen: Counter[str]) -> None:
        self.seen = seen
        self.accepted: dict[bytes, list[int]] = {}      # the messages of each sender that a leader took
        self._numbers: list[int] = []
        self._lines: list[bytes] = []

    def told(self, events: list[Event]) -> None:
        """Add the events of an entry."""
        self._numbers += [event.seq for event in events]
        self._lines += [line_of(event).rstrip() for event in events]

    def after(self, seq: int) -> int:
        """Return the place of the first event after this number."""
        place = len(self._numbers)
        while place and self._numbers[place - 1] > seq:
            place -= 1
        return place

    def at(self, place: int) -> bytes:
        """Return the event at this place; None if it has not happened yet."""
        return self._lines[place] if place < len(self._lines) else b"nothing"


class Hearing:
    """The events that one subscriber has received. `position`: all events up to this number."""

    def __init__(self, number: int, tale: Tale) -> None:
        self.position: int | None = None
        self._number = number
        self._tale = tale
        self._next = 0                              # the place of the next event
        self._messages: dict[bytes, int] = {}       # the last one of each sender on this connection
        self._whole: dict[bytes, int] = {}          # those of them behind which no GAP came

    def begin(self, newest: int) -> None:
        """Note that a subscription was answered with the number of the newest event."""
        self._messages.clear()
        self._whole.clear()
        if self.position is None:
            self.position = newest
            self._next = self._tale.after(newest)

    def hears(self, answer: Answer) -> None:
        """Check a line that the subscriber has received; raises Violation."""
        seq, kind, *words = answer.line.split()[1:]
        if kind == b"MSG":
            sender, _, number = answer.data.partition(b" ")
            if int(number) <= self._messages.get(sender, -1):
                raise Violation(f"subscriber {self._number} hears message {number!r} of {sender!r} again or too late")
            before = self._whole.get(sender)
            missing = [] if before is None else [
                one for one in self._tale.accepted.get(sender, ()) if before < one < int(number)
            ]
            if missing:
                raise Violation(f"subscriber {self._number} never hears messages {missing} of {sender!r}")
            self._messages[sender] = self._whole[sender] = int(number)
            self._tale.seen["messages heard"] += 1
        elif kind == b"GAP":
            self._whole.clear()
            self.position = max(self.position or 0, int(words[1]))
            self._next = max(self._next, self._tale.after(self.position))
            self._tale.seen["gaps in events"] += 1
        else:
            following = self._tale.at(self._next)
            if answer.line != following:
                raise Violation(f"subscriber {self._number} hears {answer.line!r}, and the next one is {following!r}")
            self._next += 1
            self.position = int(seq)
            self._tale.seen["events heard"] += 1


def listens(tale: Tale) -> Callable[[GatewayClient], Life]:
    """Subscribe, at one node after another."""
    def life(client: GatewayClient) -> Life:
        hearing, seen = Hearing(client.number, tale), tale.seen
        while True:
            client.dial(anywhere=True)
            after = "" if hearing.position is None else f" FROM {hearing.position}"
            answer = yield from client.ask(f"SUBSCRIBE {'|'.join((*TYPES, 'MSG'))}{after}")
            if answer is not None and accepted(answer):
                seen["subscriptions continued" if after else "subscriptions"] += 1
                hearing.begin(int(answer.line.split()[2]))
                until = client.world.events.now + client.rng.choice(STAYS_S)
                while client.open and client.world.events.now < until:
                    heard = yield SILENCE_S
                    if heard is not None:
                        hearing.hears(heard)
            elif answer is not None and answer.line.startswith(b"409"):
                seen["subscriptions too old"] += 1
                hearing.position = None
            client.hang_up()
            yield client.rng.uniform(*BACKOFF_S)
    return life


def sends_messages(tale: Tale) -> Callable[[GatewayClient], Life]:
    """Send a message to all subscribers every now and then."""
    return partial(_send_messages, tale)


def _send_messages(tale: Tale, client: GatewayClient) -> Life:
    number = 0
    taken = tale.accepted.setdefault(b"%d" % client.number, [])
    while True:
        client.dial()
        going = True
        while going:
            number += 1
            data = f"{client.number} {number}"
            going = accepted((yield from client.ask(f"NOTIFY {CHANNEL} {len(data)}\r\n{data}", Asked(Form.LINE))))
            if going:
                taken.append(number)
            yield client.rng.choice(SENDS_S)
        client.leave()
        yield client.rng.uniform(*BACKOFF_S)
