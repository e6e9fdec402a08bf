"""Chords: a job for each part that has not returned. They share an item, so the log knows which part is the last.

The queue of a chord has

* a job of the item for each awaited part: the command that ends the last one is answered FINI, and its sender calls the
  body;
* the value of each part that has returned, put by the transaction that ends the awaited one;
* one job that represents the call of the body. The transaction with the body's message removes it, so that the body is
  called once, even if several workers see that all parts have returned: a worker may die after it has ended the last
  part, and then the worker to which that part is redelivered calls the body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from sockpq import Aborted, Client, CrossCluster, JobNotFound, Key, QueueExists, QueueNotFound

from sockpq_kombu.mapping.names import name_of, route_of

AWAITED, CALL, VALUE = 2, 1, 0      # priorities: the first job of the queue says how far the chord is
CALL_KEY = "call"
PARTS_MAX = 9_999       # of which the servers show the values at once, with the job of the call


class Chords:
    """The chords of one virtual host."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self._prefix = prefix

    def open(self, chord: str, parts: Iterable[str], expires: float) -> None:
        """Register these parts; may be repeated. The chord is dropped after `expires` seconds without activity."""
        queue = self._queue(chord)
        try:
            self._client.queue_create(queue, idle=max(expires, 1.0))
        except QueueExists:         # it was opened before
            self._client.queue_config(queue, idle=max(expires, 1.0))
        self.add(chord, parts)
        self._client.put(queue, b"", CALL, key=CALL_KEY, on_duplicate="ignore")

    def add(self, chord: str, parts: Iterable[str]) -> None:
        """Register further parts. The chord must not have ended: call this before, or from one of its parts."""
        keys = list(dict.fromkeys(map(_awaited, parts)))
        queue = self._queue(chord)
        self._client.put_many(queue, [b""] * len(keys), AWAITED, queue, keys=keys, on_duplicate="ignore")

    def end(self, chord: str, part: str, value: bytes, store: Callable[[Any], None] | None = None) -> bool:
        """Keep the value of a part that has returned; returns whether the caller must call the body.

        `store` adds commands that are executed with it, or not at all if the part is not registered. Those for another
        cluster are executed before it. Raises JobNotFound if the part is not registered.
        """
        try:
            return self._end(chord, part, value, store)
        except CrossCluster:
            if store is not None:
                store(self._client)
            return self._end(chord, part, value, None)

    def _end(self, chord: str, part: str, value: bytes, store: Callable[[Any], None] | None) -> bool:
        queue = self._queue(chord)
        try:
            with self._client.transaction() as transaction:
                transaction.delete(Key(queue, _awaited(part)))
                transaction.put(queue, value, VALUE, key=_value(part), on_duplicate="replace")
                if store is not None:
                    store(transaction)
        except Aborted as error:
            if error.position == 1 and isinstance(error.reason, JobNotFound | QueueNotFound):
                raise JobNotFound(f"part {part} of chord {chord} is not awaited") from None
            raise
        return bool(transaction.results[0].item_done)

    def is_complete(self, chord: str, part: str) -> bool:
        """Return whether this part and all others have returned, and the body was not called."""
        queue = self._queue(chord)
        first = self._client.peek_queue(queue)
        if not first or first[0].priority != CALL:
            return False
        return self._client.peek(Key(queue, _value(part))) is not None      # otherwise the item was cancelled

    def values(self, chord: str) -> Sequence[bytes]:
        """Return the values of its parts, at most PARTS_MAX, in no particular order."""
        found = self._client.peek_queue(self._queue(chord), count=PARTS_MAX + 1)
        return [job.data for job in found if job.priority == VALUE]

    def called(self, chord: str) -> Callable[[Any], object]:
        """Return a command for a client or a transaction, refused (JobNotFound) if the body was called before."""
        return lambda commands: commands.delete(Key(self._queue(chord), CALL_KEY))

    def drop(self, chord: str) -> None:
        """Remove the remaining jobs of the chord."""
        with suppress(QueueNotFound):
            self._client.queue_delete(self._queue(chord), force=True)

    def _queue(self, chord: str) -> str:
        return name_of(self._prefix, f"celery.chord.{chord}")


def _awaited(part: str) -> str:
    return route_of(f"awaited.{part}")


def _value(part: str) -> str:
    return route_of(f"value.{part}")
