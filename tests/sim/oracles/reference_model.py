"""The plain model of the queue, as a simulated run needs it: without effects, and with copies that cost little."""

from __future__ import annotations

import copy
from typing import Any

from msgspec.structs import replace

from sockpqd.core import GetWith, Operation, Reply, Requested
from tests.core.model.jobs import ModelApplied, ModelJob
from tests.core.model.model import Model

_Seen = tuple[list[tuple[int, str, str | None]], list[tuple[str, str | None]]]


class Reference(Model):
    """Answers as the model does."""

    def _there(self) -> _Seen:
        """Effects wake those who wait on one node; no promise depends on them here."""
        return [], []

    def running(self) -> list[ModelJob]:
        """As in the model, which looks into each job; this is asked with each entry."""
        return sorted((job for job in self.jobs if job.id is not None), key=lambda job: job.id or 0)

    def givable(self, queue: str, item: str | None = None) -> list[ModelJob]:
        """The same of a queue without settings, which most are."""
        if queue in self.queues:
            return super().givable(queue, item)
        ready = [job for job in self.jobs if job.queue == queue and job.id is None and not job.delayed]
        if self.fates and self.withheld(queue):
            return []
        return sorted((job for job in ready if item in (None, job.item)), key=ModelJob.place)

    def _requested(self, operation: Requested, bits: int, applied: ModelApplied) -> Reply:
        """As in the model, which has no rates."""
        return super()._requested(_unrated(operation), bits, applied)        # type: ignore[arg-type]

    def _saved(self) -> dict[str, Any]:
        """As in the model, in less time."""
        return jobs_of(self)


class Remembered(Model):
    """The part of a model that a CLONE needs. It is never changed, so it can be reused."""

    def __init__(self, model: Model) -> None:
        vars(self).update(vars(model) | jobs_of(model), pulses=copy.deepcopy(model.pulses), known_bytes={})

    def __deepcopy__(self, memo: dict[int, Any]) -> Remembered:
        return Remembered(self)


def jobs_of(model: Model) -> dict[str, Any]:
    """Return a copy of everything that operations on jobs can change."""
    copies = {id(job): copy.deepcopy(job) for job in (*model.jobs, *model.buried)}
    for job, *_ in model.releases:
        copies.setdefault(id(job), job)         # it has ended since
    return {
        "jobs": [copies[id(job)] for job in model.jobs],
        "buried": [copies[id(job)] for job in model.buried],
        "releases": [(copies[id(job)], *decided) for job, *decided in model.releases],
        "queues": dict(model.queues), "topics": {name: list(bound) for name, bound in model.topics.items()},
        "past": {name: happened.copy() for name, happened in model.past.items()}, "given_ms": dict(model.given_ms),
        "kept": dict(model.kept), "left": list(model.left), "fair": copy.deepcopy(model.fair),
        "rates": copy.deepcopy(model.rates), "groups": dict(model.groups),
        "records": list(model.records), "remembered": dict(model.remembered),
        "holds": {item: copy.copy(hold) for item, hold in model.holds.items()}, "owners": dict(model.owners),
        "fates": {item: copy.copy(fate) for item, fate in model.fates.items()},
        "failing": set(model.failing), "done_of": model.done_of.copy(),
        "newly_failing": list(model.newly_failing), "cancelled_items": set(model.cancelled_items),
        "used": dict(model.used), "event_seq": model.event_seq, "had": model.had,
        "next_seq": model.next_seq, "next_item": model.next_item, "put_item": model.put_item,
    }


def _unrated(operation: Operation) -> Operation:
    """The same without a pulse. That decides nothing while no queue has a rate, as in all runs."""
    return replace(operation, free=None) if isinstance(operation, GetWith) else operation
