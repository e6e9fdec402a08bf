"""ITEMLIMIT: which READY jobs of an item can be given, and which are withheld until others end (see items.py)."""

from __future__ import annotations

from core.ops.effects import Effects
from core.store.items import Part
from core.store.job_list import JobList
from core.store.queues import Queue, Queues


def balance(queues: Queues, effects: Effects, queue: Queue, part: Part) -> None:
    """Give or withhold READY jobs of an item, so that those can be given that its ITEMLIMIT lets run."""
    limit = 0 if queue.settings is None else queue.settings.item_limit
    given = max(0, min(limit - part.running, part.ready.size))
    held = queue.held
    if held is None and part.given > given:
        held = queue.held = JobList()
    while part.given < given:
        assert held is not None
        job = part.ready[part.given]
        held.remove(job)
        queue.ready.add(job)
        part.given += 1
        effects.ready[queue.name] = None
        if job.item is not None:
            effects.ready_items[queue.name, job.item] = None
    while part.given > given:
        assert held is not None
        part.given -= 1
        job = part.ready[part.given]
        queue.ready.remove(job)
        held.add(job)
    if queue.held is not None and not queue.held.size:
        queue.held = None
    queues.relist(queue)
