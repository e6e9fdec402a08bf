"""The queue in the cluster behind a queue of SQS: its settings, counts and removal, with the sender's own rights."""

from __future__ import annotations

from contextlib import suppress

from sockpq import QueueNotFound

from sockpq_sqs.call import Call
from sockpq_sqs.queues.attributes import COUNTS
from sockpq_sqs.queues.entry import Entry
from sockpq_sqs.queues.names import QueueName


async def configure(call: Call, queue: QueueName, entry: Entry) -> None:
    """Give the queue the settings of its entry. Raises ForbiddenError for users without the right `queue`."""
    await call.user.client.queue_config(queue.server, **entry.settings(fifo=queue.is_fifo))


async def check_right(call: Call, queue: QueueName) -> None:
    """Raise ForbiddenError for users without the right `queue` for it."""
    with suppress(QueueNotFound):
        await call.user.client.queue_stat(queue.server)


async def check_any_right(call: Call, queue: QueueName) -> None:
    """Raise ForbiddenError for users without any right for the queue."""
    if call.user.name is not None:
        await call.user.client.total(queue.server)


async def counts(call: Call, queue: QueueName) -> dict[str, str]:
    """Return how many messages wait, are in flight and are delayed, as attributes."""
    try:
        found = await call.user.client.queue_stat(queue.server)
    except QueueNotFound:
        found = {}
    return {name: str(found.get(word, 0)) for name, word in COUNTS.items()}


async def ready(call: Call, queue: QueueName) -> int:
    """Return how many messages wait. Raises ForbiddenError for users without the right `queue`."""
    try:
        return (await call.user.client.queue_stat(queue.server)).get("ready", 0)
    except QueueNotFound:
        return 0


async def purge(call: Call, queue: QueueName) -> None:
    """Delete the messages of a queue, those in flight too, but not its dead letters; forget its deduplication ids."""
    with suppress(QueueNotFound):
        await call.user.client.queue_purge(queue.server, "own")


async def delete(call: Call, queue: QueueName) -> None:
    """Delete the queue with its messages. Dead letters that came from it stay where they are."""
    with suppress(QueueNotFound):
        await call.user.client.queue_delete(queue.server, force=True, leave=True)
