"""A job in the hands of the caller."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from sockpq.errors import SockpqError
from sockpq.model import Finished, Handed

if TYPE_CHECKING:
    from sockpq.client import Client


class Job:
    """A running job: this client has it until done(), later() or the end of its lease.

    `id` is its number for this hand-out only; `item` is the group it belongs to, or None. As a context manager it says
    DONE at the end of the block, and LATER when the block raises.
    """

    __slots__ = ("_client", "_ended", "data", "id", "item", "priority", "queue")

    def __init__(self, client: Client, handed: Handed) -> None:
        self._client = client
        self._ended = False
        self.id, self.queue, self.priority, self.data, self.item = handed

    def done(self, *, timeout: float | None = None) -> Finished:
        """The job is finished: remove it. See Client.done."""
        self._ended = True
        return self._client.done(self.id, timeout=timeout)

    def later(self, *, timeout: float | None = None) -> None:
        """Put the job back at the end of its queue. See Client.later."""
        self._ended = True
        self._client.later(self.id, timeout=timeout)

    def __enter__(self) -> Job:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._ended:
            return
        if error is None:
            self.done()
            return
        try:
            self.later()
        except SockpqError as failure:      # the block's own error is the one to see
            error.add_note(f"and the job could not be put back: {failure}")

    def __repr__(self) -> str:
        return f"<Job {self.id} of {self.queue!r}, {len(self.data)} bytes>"
