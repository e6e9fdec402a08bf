"""The interface of the store of pages that the caller of core provides."""

from __future__ import annotations

from typing import Protocol


class PageLost(Exception):
    """A page is missing or corrupt: the state of this node is incomplete."""


class PageSpace(Protocol):
    """The pages of one state, numbered within the space."""

    def put(self, data: bytes) -> int | None:
        """Store a page; returns its number, or None when there is no room."""

    def get(self, number: int) -> bytes:
        """Return the bytes of the page. Raises PageLost."""

    def free(self, number: int) -> None:
        """Release the page, which is no longer needed."""

    def reference(self, number: int) -> bytes:
        """Return the reference by which a later process finds the page."""

    def adopt(self, reference: bytes) -> int:
        """Take over a page that an earlier process left; returns its number. Raises PageLost."""

    def expect(self, number: int) -> None:
        """Announce that the page will be read soon."""

    def drop(self) -> None:
        """Release all pages of the space."""


class PageStore(Protocol):
    """A store of pages. A page that no snapshot names need not outlive the process: the log has its jobs."""

    def space(self) -> PageSpace:
        """Return a new space without pages."""
