"""ITEMLIMIT: the READY jobs of an item that may be handed out, and the ones blocked until others end (items/)."""

from __future__ import annotations

from sockpqd.core.ops.effects import Effects
from sockpqd.core.store.items.item import ItemQueue
from sockpqd.core.store.job_list import JobList
from sockpqd.core.store.queues import Queue, Queues


def apply_item_limit(queues: Queues, effects: Effects, queue: Queue, item_queue: ItemQueue) -> None:
    """Make as many READY jobs of an item eligible as the ITEMLIMIT of its queue lets run, and block the others."""
    limit = 0 if queue.settings is None else queue.settings.item_limit
    eligible = max(0, min(limit - item_queue.running, item_queue.ready.size))
    blocked = queue.blocked
    if blocked is None and item_queue.eligible > eligible:
        blocked = queue.blocked = JobList()
    while item_queue.eligible < eligible:
        assert blocked is not None
        job = item_queue.ready[item_queue.eligible]
        blocked.remove(job)
        queue.ready.add(job)
        item_queue.eligible += 1
        if queues.fair is not None:
            queues.fair.eligible(queue, job, now=True)
        effects.ready[queue.name] = None
        if job.item is not None:
            effects.ready_items[queue.name, job.item] = None
    while item_queue.eligible > eligible:
        assert blocked is not None
        item_queue.eligible -= 1
        job = item_queue.ready[item_queue.eligible]
        queue.ready.remove(job)
        blocked.add(job)
        if queues.fair is not None:
            queues.fair.eligible(queue, job, now=False)
    if queue.blocked is not None and not queue.blocked.size:
        queue.blocked = None
    queues.reindex(queue)
