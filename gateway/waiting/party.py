"""The interface of a client to the answers it is waiting for."""

from __future__ import annotations

from typing import Protocol


class WaitingClient(Protocol):
    """A client with pending answers."""

    ended: bool             # it has sent its last byte: it no longer waits for jobs

    def wake(self) -> None:
        """Note that an answer has become available."""
