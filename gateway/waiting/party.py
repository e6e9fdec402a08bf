"""Whom answers are awaited for, as far as waiting is concerned."""

from __future__ import annotations

from typing import Protocol


class Party(Protocol):
    """A client whose answers are not there yet."""

    ended: bool             # it sent its last byte: it waits for no job

    def wake(self) -> None:
        """An answer is there."""
