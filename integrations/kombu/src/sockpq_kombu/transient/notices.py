"""Messages to current listeners, and their subscriptions: sent by a thread if an event loop cannot wait."""

from __future__ import annotations

from collections.abc import Callable

from kombu.log import get_logger
from sockpq import Client, SockpqError

from sockpq_kombu.background.event_loop import in_event_loop, must_not_block
from sockpq_kombu.background.outbox import Outbox
from sockpq_kombu.mapping.errors import errors_of_kombu
from sockpq_kombu.transient.interest import Interest

logger = get_logger("kombu.transport.sockpq")

WAITING_MAX = 10_000        # more are dropped: they are of use at once or not at all
FLUSH_S = 2.0
HEARTBEAT = "worker.heartbeat"


class Notices:
    """Sends messages to current listeners, and starts subscriptions, in the order of the calls."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._interest = Interest()
        self._outbox = Outbox("sockpq notices", _not_sent)

    def tell(self, channel: str, data: bytes, routing_key: str) -> None:
        """Send a message to current listeners. While nobody listens, only one heartbeat in ten seconds is sent.

        In the thread of an event loop this does not wait until the message is sent.
        """
        if routing_key == HEARTBEAT and not self._interest.there(channel):
            return
        if not in_event_loop():
            with errors_of_kombu():
                self._notify(channel, data)
        elif len(self._outbox) < WAITING_MAX:
            self._outbox.call(lambda: self._notify(channel, data))

    def subscribe(self, start: Callable[[], None]) -> None:
        """Start a subscription, before the program sends anything that may be answered."""
        if must_not_block():
            self._outbox.call(start)
        else:
            with errors_of_kombu():
                start()

    def flush(self) -> None:
        """Wait until all are sent, for a short time."""
        self._outbox.flush(FLUSH_S)

    def _notify(self, channel: str, data: bytes) -> None:
        self._interest.told(channel, self._client.notify(channel, data, retry_unknown=True))


def _not_sent(error: SockpqError) -> None:
    logger.info("a broadcast message was not sent: %s", error)
