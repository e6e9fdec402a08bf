"""Messages that were delivered and not acknowledged. They are running jobs on the server, not copies here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from kombu.transport import virtual

from sockpq_kombu.background.acknowledgements import AckAction


class Ending(Protocol):
    """The part of a channel that QoS uses."""

    bury_rejected: bool

    def end(self, action: AckAction, delivery_tag: str) -> None:
        """Acknowledge, put back or bury the message of this delivery tag, as the action says."""

    def poll(self) -> None:
        """Fetch more messages if there is room."""


class QoS(virtual.QoS):
    """Unacknowledged messages by delivery tag, which is the id of the job's hand-out."""

    channel: Ending
    free: Callable[[], int] | None = None       # a limit besides: how many more its user could begin at once
    beginning = 0       # messages given to a callback that has not returned: `free` may not count them yet

    def room(self, undelivered: int, unsent: int) -> int | None:
        """Return how many more messages may be taken, None for any number. Any thread may call it.

        The server counts a message until it gets the acknowledgement. This limit ensures that it never counts more than
        twice the prefetch limit, even if acknowledgements are slow.
        """
        limit: int = self.prefetch_count
        taken = undelivered + self.beginning        # before `free` looks: better counted twice than not at all
        room = None if self.free is None else max(self.free() - taken, 0)
        if not limit:
            return room
        held = len(self._delivered) - len(self._dirty) + undelivered
        more = max(min(limit - held, 2 * limit - held - unsent), 0)
        return more if room is None else min(more, room)

    def ack(self, delivery_tag: str) -> None:
        """Acknowledge a message that was processed."""
        self._end(AckAction.DONE, delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Put the message back in its place; or drop or bury it, depending on the options."""
        dropped = AckAction.REJECTED if self.channel.bury_rejected else AckAction.DONE
        self._end(AckAction.BACK if requeue else dropped, delivery_tag)

    def bury(self, delivery_tag: str) -> None:
        """Bury the message, which can never be processed."""
        self._end(AckAction.BAD, delivery_tag)

    def _end(self, action: AckAction, delivery_tag: str) -> None:
        self.channel.end(action, delivery_tag)      # first: it counts as unsent before it counts no longer as held
        self._quick_ack(delivery_tag)
        self.channel.poll()

    def restore_unacked(self) -> list[Any]:
        """Put all messages back in their places."""
        self._flush()
        for tag in self._delivered:
            self.channel.end(AckAction.BACK, tag)
        self._delivered.clear()
        self.channel.poll()
        return []

    def restore_unacked_once(self, stderr: Any = None) -> None:
        """Forget the messages at the end of the channel: the end of its session puts them back, in order."""
        self.forget()
        self._delivered.clear()
        self._delivered.restored = True

    def forget(self) -> None:
        """Leave the messages alone at the end of the program: in a forked child they belong to its parent."""
        self._on_collect.cancel()
