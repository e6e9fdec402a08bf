"""Queues that exist only in this program, for transient messages of NOTIFY.

Celery's events and remote control, and the replies to it, use them: none of these messages is logged, written to a
disk or left behind, and only programs that are subscribed at the time get them.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable
from itertools import count

from kombu.log import get_logger
from sockpq import Client, EventsLost, SockpqError, Unavailable

from sockpq_kombu.mapping.messages import BadMessage, Raw, unpack
from sockpq_kombu.mapping.names import name_of, route_of

logger = get_logger("kombu.transport.sockpq")

_NUMBERS = count(1)

BEGIN_S = 5.0           # what the servers may take to begin to tell


class LocalQueue:
    """The messages of one queue, from all exchanges to which it is bound."""

    def __init__(self, came: Callable[[], None]) -> None:
        """`came`: called, in another thread, when there is a message."""
        self.messages: deque[Raw] = deque()
        self._came = came
        self._bindings: dict[tuple[str, str], Binding] = {}

    def bind(self, client: Client, prefix: str, exchange: str, kind: str, key: str) -> Binding | None:
        """Subscribe to messages with such a key in this exchange, when the binding starts; None if already bound."""
        if (exchange, key) in self._bindings:
            return None
        binding = self._bindings[exchange, key] = Binding(client, prefix, exchange, kind, key, self._hear)
        return binding

    def unbind(self, exchange: str, key: str) -> None:
        if binding := self._bindings.pop((exchange, key), None):
            binding.close()

    def close(self) -> None:
        for exchange, key in list(self._bindings):
            self.unbind(exchange, key)

    def _hear(self, message: Raw) -> None:
        self.messages.append(message)
        self._came()


class Binding:
    """A subscription to one exchange, in a thread."""

    def __init__(
        self, client: Client, prefix: str, exchange: str, kind: str, key: str, hear: Callable[[Raw], None]
    ) -> None:
        self._exchange = exchange
        self._matches = matcher(kind, key)
        self._hear = hear
        self._closed = False
        self._events = client.events("MSG", channels(prefix, exchange, kind, key), timeout=BEGIN_S)

    def start(self) -> None:
        """Start, and wait until the server has confirmed the subscription."""
        if not self._closed:
            self._events.open()
            threading.Thread(target=self._run, name="sockpq subscription", daemon=True).start()

    def close(self) -> None:
        self._closed = True
        self._events.stop()

    def _run(self) -> None:
        while not self._closed:
            try:
                for event in self._events:
                    self._heard(event.data)
            except EventsLost:
                continue
            except Unavailable as error:
                if not self._closed:
                    logger.warning("messages of exchange %s are not received for now: %s", self._exchange, error)
            except SockpqError as error:
                if not self._closed:
                    logger.error("messages of exchange %s are no longer received: %s", self._exchange, error)
                return

    def _heard(self, data: bytes) -> None:
        try:
            message = unpack(data, f"local {next(_NUMBERS)}", False)
        except BadMessage as error:
            logger.warning("dropped data sent to exchange %s that are not a message: %s", self._exchange, error)
            return
        found = message["properties"]["delivery_info"]
        if found.get("exchange") == self._exchange and self._matches(found["routing_key"]):
            self._hear(message)


def channel_of(prefix: str, exchange: str, key: str) -> str:
    """Return the channel for messages to this exchange."""
    return name_of(prefix, f"{exchange}.") + route_of(key)


def channels(prefix: str, exchange: str, kind: str, key: str) -> str:
    """Return the channels to which a queue bound with this key subscribes."""
    return channel_of(prefix, exchange, key) if kind == "direct" else name_of(prefix, f"{exchange}.") + "*"


def matcher(kind: str, key: str) -> Callable[[str], bool]:
    """Return a function that tests whether a routing key belongs to this binding.

    As AMQP has it: `*` is one word, `#` any number of words.
    """
    if kind == "fanout":
        return lambda routing_key: True
    if kind == "direct":
        return lambda routing_key: routing_key == key
    pattern = "".join(
        r"(?:\..*)?" if word == "#" else r"\.[^.]+" if word == "*" else r"\." + re.escape(word)
        for word in key.split(".")
    )
    compiled = re.compile(pattern, re.DOTALL)
    return lambda routing_key: compiled.fullmatch(f".{routing_key}") is not None
