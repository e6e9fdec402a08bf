"""The interfaces of a connection: the origin of its commands, and the calls of the code that answers its client."""

from __future__ import annotations

from typing import Protocol


class Origin(Protocol):
    """The client from which commands come, for rights and for the audit log."""

    peer: str                   # the address of the client
    user: str | None            # the fixed user of a port for clients that cannot authenticate


class Link(Origin, Protocol):
    """A client connection that can be written to, paused and closed."""

    secure: bool                # cannot be eavesdropped on: TLS, or a client on this machine

    def write(self, data: bytes) -> None:
        """Send bytes; they are kept while the client does not read."""

    def unsent_bytes(self) -> int:
        """Return how many written bytes the kernel has not accepted yet."""

    def tell(self, lines: list[bytes]) -> None:
        """Send lines; other clients may share the same bytes."""

    def held_bytes(self) -> int:
        """Return the memory held for written data that the client has not read, in bytes."""

    def pause(self) -> None:
        """Stop reading from the client."""

    def resume(self) -> None:
        """Read from the client again."""

    def end_trial(self) -> None:
        """End the trial: the client keeps its place."""

    def expect_distance(self) -> None:
        """Let the kernel hold more unsent data: the client is far away and reads much."""

    def finish(self) -> None:
        """Close after the answers have been sent."""

    def abort(self) -> None:
        """Close immediately, dropping unsent output."""
