"""Operations on whole items in the reference model."""

from __future__ import annotations

from sockpqd.core import (
    Accepted,
    CancelItem,
    Finished,
    HoldItem,
    ItemCancelled,
    ItemNotFound,
    ItemNotHeld,
    Moved,
    Removed,
    Reply,
    RetryItem,
    Stored,
    TooManyHolds,
)
from tests.core.model.jobs import ModelHold, ModelJob
from tests.core.model.put import ModelPut
from tests.core.model.queues import PORTION

HOLDS_MAX = 100_000


class ModelItems(ModelPut):
    """Holds and their end, and the retry of failed jobs."""

    def hold_item(self, hold: HoldItem) -> Reply:
        """Hold an item: it does not end for a while. Or release it: it ends with its last job."""
        if hold.expire_ms is None:
            return self._release_item(hold.item)
        if self.cancelling(hold.item):
            return ItemCancelled()
        name = self.new_item() if hold.item is None else hold.item
        if name not in self.holds and len(self.holds) >= HOLDS_MAX:
            return TooManyHolds()
        if hold.item is None and hold.user:
            self.owners[name] = hold.user
        length_ms = min(max(1, hold.expire_ms), 86_400_000)
        self.holds[name] = ModelHold(self.clock_ms + length_ms, length_ms, hold.then)
        return Accepted() if hold.item is not None else Stored(name)

    def _release_item(self, item: str | None) -> Reply:
        if item is None or item not in self.holds:
            return ItemNotHeld()
        self.end_hold(item)
        return Finished(False, not self.has_item(item))

    def retry_item(self, retry: RetryItem) -> Reply:
        """Bring back all jobs of the item that are dead or buried."""
        if self.cancelling(retry.item):
            return ItemCancelled() if retry.left is None else Moved(0)
        if not self.has_item(retry.item):
            return ItemNotFound() if retry.left is None else Moved(0)
        lost = sorted((job for job in self.jobs if job.item == retry.item and job.lost), key=ModelJob.place)
        lost += [job for job in self.buried if job.item == retry.item]
        wanted = lost if retry.left is None else lost[: max(0, retry.left)]
        for job in wanted[:PORTION]:
            if job.buried and job.origin is None:
                self.kick_one(job)
            else:
                if job.buried:          # where the dead ones of its queue lie
                    job.buried = False
                    self.buried.remove(job)
                    self.jobs.append(job)
                self.kick_dead(job)
            self.end_operation()
        return Moved(len(wanted[:PORTION]), len(wanted[PORTION:]))

    def cancel_item(self, cancel: CancelItem) -> Reply:
        """Cancel an item: only its running jobs remain."""
        if not self.has_item(cancel.item):
            return ItemNotFound()
        self.cancel(cancel.item, cancel.reason)
        return Removed(len([job for job in [*self.jobs, *self.buried] if job.item == cancel.item]))
