"""Publishes the messages of a block together: `with publish_batch(): ..`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sockpq_kombu.background.event_loop import must_not_block
from sockpq_kombu.channels.collected import collect, collected_now


@contextmanager
def publish_batch() -> Iterator[None]:
    """Publish what this thread publishes in the block in one transaction, at its end: all or nothing.

    `delay()` and `apply_async()` return at once within the block; the messages are on the disks of a majority when the
    block has ended. If the block raises, none is sent. Blocks may be nested: the outermost one publishes. More than 999
    messages, or 15 MiB, go in several transactions, in order. Messages for other brokers, of transient exchanges, and
    of a channel with a `deadletter_queue` that are published to an exchange, are sent at once.

    Raises kombu.exceptions.OperationalError at the end if the servers cannot be reached or refuse the messages, and
    RuntimeError in a thread that runs an event loop, which cannot wait for the servers.
    """
    if must_not_block():
        raise RuntimeError("publish_batch() waits for the servers: it cannot be used in an event loop's thread")
    if collected_now() is not None:
        yield
        return
    with collect() as messages:
        yield
    if messages.links:
        from sockpq_kombu.mapping.errors import errors_of_publishers  # not needed with other brokers

        with errors_of_publishers():
            messages.send()
