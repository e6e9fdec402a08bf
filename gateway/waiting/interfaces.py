"""The interface of a client to the answers it is waiting for."""

from __future__ import annotations

from typing import Any, Protocol

from sockpqd.core import Get


class BlockedCommand(Protocol):
    """A blocked command: the slot of its answer, and the place where it waits."""

    outcome: Any            # None until it is known
    was_queued: bool        # it has stood in line

    @property
    def numbered(self) -> bool:
        """Return whether it is a command with REQ."""

    @property
    def held_bytes(self) -> int:
        """Return the memory that it uses, beyond what any command does."""

    def end_of_input(self) -> None:
        """Handle that the client has sent its last byte while earlier commands have no answer yet."""

    def leave(self) -> None:
        """Stop waiting: the client is gone."""

    def keep_session(self) -> None:
        """Use the session it is in, if any: a blocked client sends nothing."""


class Authorization(Protocol):
    """The current rights of a client; gateway/auth implements it."""

    def refusal_to_take(self, get: Get) -> bytes | None:
        """Return the answer that refuses these jobs to a blocked client, None if it still may have them."""

    def refusal_of_turn(self, pulse: str) -> bytes | None:
        """Return the answer that refuses a turn to a blocked client, None if it still may have it."""


class WaitingClient(Protocol):
    """A client with pending answers."""

    ended: bool             # it has sent its last byte: it no longer waits for jobs

    @property
    def guard(self) -> Authorization:
        """Return the client's rights as they are now."""

    def wake(self) -> None:
        """Note that an answer has become available."""
