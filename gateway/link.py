"""A connection, as those see it that answer its client."""

from __future__ import annotations

from typing import Protocol


class Link(Protocol):
    """A connection."""

    peer: str
    secure: bool                # nobody can listen: TLS, or a client of this machine
    user: str | None            # in whose name all is said on a port for clients that cannot say AUTH

    def write(self, data: bytes) -> None:
        """Send bytes."""

    def unsent_bytes(self) -> int:
        """Bytes written that the kernel has not taken yet."""

    def pause(self) -> None:
        """Stop reading."""

    def resume(self) -> None:
        """Read on."""

    def end_trial(self) -> None:
        """The client keeps its place."""

    def finish(self) -> None:
        """Close so that the answers arrive."""

    def abort(self) -> None:
        """Close at once."""
