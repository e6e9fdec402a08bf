"""The records that jobs of the reference model leave when they end."""

from __future__ import annotations

import copy
from dataclasses import dataclass

from msgspec.structs import replace

from sockpqd.core import EndState, JobView, QueueSettings
from tests.core.model.jobs import ModelJob

EVICTED = 1000          # records that an entry removes for RETAINEDBYTES, besides two for each that it adds


@dataclass
class ModelRecord:
    """An ended job, as it is shown, with its result."""

    view: JobView
    result: bytes
    error: bytes
    ended_ms: int
    tries: int | None
    ttl_ms: int | None
    hand_outs: tuple[int, ...]
    stays: bool

    def __deepcopy__(self, memo: dict[int, object]) -> ModelRecord:
        """Copy as deepcopy does, in much less time: nothing in it ever changes."""
        return copy.copy(self)

    @property
    def size(self) -> int:
        """Return the bytes that its queue counts."""
        return len(self.view.data) + len(self.result) + len(self.error)


class ModelRecords:
    """All records in one list, in the order in which their jobs ended; each queue's are in rising time."""

    clock_ms: int
    spent: int

    def __init__(self) -> None:
        super().__init__()
        self.records: list[ModelRecord] = []
        self.evictions_left = EVICTED

    def records_of(self, queue: str) -> list[ModelRecord]:
        """Return the records of the queue, the oldest first."""
        return [one for one in self.records if one.view.queue == queue]

    def record(self, number: int) -> ModelRecord | None:
        """Return the record of this number."""
        return next((one for one in self.records if one.view.number == number), None)

    def keep_record(
        self, job: ModelJob, settings: QueueSettings, all_bytes: int, state: EndState, result: bytes = b"",
    ) -> None:
        """Keep a record of the job, which has ended in this way."""
        if not settings.retain_ms or job.known_as is None:
            return
        self.spent += job.size
        earlier = [one.ended_ms for one in self.records_of(job.queue)]
        ended_ms = max([self.clock_ms, *earlier])
        view = replace(
            job.seen(), id=None, state=state, at_ms=None, deadline_ms=None, due_ms=None, progress=None,
            ended_ms=ended_ms, seq=job.known_as,
        )
        error = job.error[1] if job.error else b""
        self.records.append(ModelRecord(view, result, error, ended_ms, job.tries, job.ttl_ms, job.hand_outs, job.stays))
        self.limit_records(job.queue, settings)
        self.evictions_left += 2
        self.limit_all_records(all_bytes)

    def take_record(self, record: ModelRecord) -> None:
        """Remove this record, which has been read."""
        self.spent += record.size
        self.records.remove(record)

    def limit_records(self, queue: str, settings: QueueSettings) -> None:
        """Remove the oldest records of the queue until there are no more than it keeps."""
        for one in self.records_of(queue):
            if one.ended_ms + settings.retain_ms <= self.clock_ms:
                self.records.remove(one)
        while (own := self.records_of(queue)) and (
            len(own) > settings.retain_max or sum(one.size for one in own) > settings.retain_bytes
        ):
            self.records.remove(own[0])

    def go_on_evicting(self, bytes_max: int) -> None:
        """Remove what earlier entries left, as a new one begins."""
        self.evictions_left = EVICTED
        self.limit_all_records(bytes_max)

    def too_many_bytes(self, bytes_max: int) -> bool:
        """Return whether the records of all queues have more bytes than this."""
        return sum(one.size for one in self.records) > bytes_max

    def limit_all_records(self, bytes_max: int) -> None:
        """Remove the oldest records of all queues, as many as this entry may yet remove.

        Of equally old ones the queue with the first name loses its own.
        """
        while self.too_many_bytes(bytes_max) and self.evictions_left:
            self.records.remove(min(self.records, key=lambda one: (one.ended_ms, one.view.queue)))
            self.evictions_left -= 1

    def forget_records(self, queue: str) -> int:
        """Remove all records of the queue; returns how many there were."""
        own = self.records_of(queue)
        self.records = [one for one in self.records if one.view.queue != queue]
        return len(own)
