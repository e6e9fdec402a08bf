"""A key-value store: each value is a job with a key, in a queue without consumers."""

from __future__ import annotations

from contextlib import suppress

from sockpq import Client, JobNotFound, Key, QueueNotFound, Transaction

from sockpq_kombu.mapping.names import name_of, route_of

QUEUE = "celery.results"
CHANNEL = "celery.replies."     # and who waits there


class Store:
    """The results of one virtual host."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        self._queue = name_of(prefix, QUEUE)

    def get(self, key: str) -> bytes | None:
        """Return the value, if there is one."""
        found = self._client.peek(self._at(key))
        return found.data if found else None

    def set(self, key: str, value: bytes, expires: float | None) -> None:
        """Store this value, replacing any earlier one, for `expires` seconds."""
        self.set_by(self._client, key, value, expires)

    def set_by(self, client: Client | Transaction, key: str, value: bytes, expires: float | None) -> None:
        """Store this value with a command of this client, or of a transaction."""
        client.put(self._queue, value, key=route_of(key), on_duplicate="replace", ttl=expires or 0)

    def delete(self, key: str) -> None:
        with suppress(JobNotFound, QueueNotFound):
            self._client.delete(self._at(key))

    def tell(self, waiter: str, value: bytes) -> None:
        """Send a result to the program that waits for it, if it listens."""
        self._client.notify(self.channel(waiter), value, retry_unknown=True)

    def channel(self, waiter: str) -> str:
        """Return the channel on which the program `waiter` listens for results."""
        return name_of(self._prefix, CHANNEL + waiter)

    def _at(self, key: str) -> Key:
        return Key(self._queue, route_of(key))
