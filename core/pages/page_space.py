"""Where pages are kept: what core asks of the store that the caller provides."""

from __future__ import annotations

from typing import Protocol


class PageLost(Exception):
    """A page cannot be read, or not as it was written: the state of this node is incomplete."""


class PageSpace(Protocol):
    """The pages of one state; numbers are its own."""

    def put(self, data: bytes) -> int | None:
        """Keep a page; returns its number, or None when there is no room."""

    def get(self, number: int) -> bytes:
        """The bytes of the page. Raises PageLost."""

    def free(self, number: int) -> None:
        """The page is not needed any more."""

    def reference(self, number: int) -> bytes:
        """By what a later process finds the page again."""

    def adopt(self, reference: bytes) -> int:
        """Take over a page that an earlier process has left; returns its number. Raises PageLost."""

    def expect(self, number: int) -> None:
        """The page will be read soon."""

    def drop(self) -> None:
        """Nothing of the space is needed any more."""


class PageStore(Protocol):
    """Where pages are kept. One that no snapshot names need not outlive the process: the log has its jobs."""

    def space(self) -> PageSpace:
        """An empty space."""
