"""Values by their names: jobs with a key, in a queue without consumers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from sockpq import Client, JobExists, JobNotFound, Key, QueueExists, QueueNotFound

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
        """The value, if there is one."""
        found = self._client.peek(self._at(key))
        return found.data if found else None

    def set(self, key: str, value: bytes, expires: float | None) -> None:
        """Keep this value, instead of the one before, for this many seconds."""
        self._client.put(self._queue, value, key=route_of(key), on_duplicate="replace", ttl=expires or 0)

    def add(self, key: str, value: bytes, expires: float | None) -> bool:
        """Keep this value unless there is one; return whether it is kept."""
        try:
            self._client.put(self._queue, value, key=route_of(key), ttl=expires or 0)
        except JobExists:
            return False
        return True

    def delete(self, key: str) -> None:
        with suppress(JobNotFound, QueueNotFound):
            self._client.delete(self._at(key))

    def gather(self, gathering: str, expires: float) -> None:
        """Begin a gathering, which is dropped if nothing is added to it for this many seconds."""
        queue = self._gathering(gathering)
        try:
            self._client.queue_create(queue, idle=max(expires, 1.0))
        except QueueExists:         # a part was faster
            self._client.queue_config(queue, idle=max(expires, 1.0))

    def collect(self, gathering: str, key: str, value: bytes, expires: float) -> int:
        """Add a value to a gathering, once for each key; returns how many it has, 0 when it was dropped meanwhile."""
        queue = self._gathering(gathering)
        try:
            self._client.put(queue, value, key=route_of(key), on_duplicate="ignore")
        except QueueNotFound:       # queues are not made by PUT, says the configuration
            self.gather(gathering, expires)
            self._client.put(queue, value, key=route_of(key), on_duplicate="ignore")
        try:
            return self._client.queue_stat(queue)["ready"]
        except QueueNotFound:        # it is complete, and was dropped meanwhile
            return 0

    def gathered(self, gathering: str, count: int) -> Sequence[bytes]:
        """The values of a gathering."""
        return [job.data for job in self._client.peek_queue(self._gathering(gathering), "ready", count)]

    def drop(self, gathering: str) -> None:
        with suppress(QueueNotFound):
            self._client.queue_delete(self._gathering(gathering), force=True)

    def tell(self, waiter: str, value: bytes) -> None:
        """Send a result to the program that waits for it, if it listens."""
        self._client.notify(self.channel(waiter), value, retry_unknown=True)

    def channel(self, waiter: str) -> str:
        """The channel on which that program listens."""
        return name_of(self._prefix, CHANNEL + waiter)

    def _at(self, key: str) -> Key:
        return Key(self._queue, route_of(key))

    def _gathering(self, gathering: str) -> str:
        return name_of(self._prefix, f"celery.chord.{gathering}")
