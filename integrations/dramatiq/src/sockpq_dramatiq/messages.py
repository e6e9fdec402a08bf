"""Messages as they are sent and received, with what the cluster knows of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dramatiq import Message, MessageProxy
from sockpq import Client, Job

from sockpq_dramatiq.step import Step

HEADER_BYTES_MAX = 1024


class SentMessage(Message):
    """A message that was sent: it can be aborted. In all other respects it is like any message, and equal to one."""

    _abort: Callable[[Message], bool]
    _number: int | None = None

    @classmethod
    def of(cls, message: Message, abort: Callable[[Message], bool]) -> SentMessage:
        """Make a copy of a message; `abort` removes it from the cluster."""
        fields: dict[str, Any] = message.asdict()
        sent = cls(**{**fields, "options": dict(fields["options"])})
        object.__setattr__(sent, "_abort", abort)
        return sent

    @property
    def number(self) -> int | None:
        """The number of its job, by which it is found in the cluster; None until it is sent."""
        return self._number

    def stored(self, number: int | None) -> None:
        """Record the number of its job."""
        object.__setattr__(self, "_number", number)

    def abort(self) -> bool:
        """Remove the message from the cluster, and stop its actor if it runs. See SockpqBroker.cancel."""
        return self._abort(self)

    def copy(self, **attributes: Any) -> Message:
        """Return a message with other attributes; `options` are added to its own."""
        return Message(**self.asdict()).copy(**attributes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and self.asdict() == other.asdict()

    __hash__ = None     # type: ignore[assignment]      # its options can be changed, like those of any message

    def __repr__(self) -> str:
        return repr(Message(**self.asdict()))

    def __reduce__(self) -> tuple[type[Message], tuple[Any, ...]]:
        """Pickle as a plain message: the other process knows nothing of the job."""
        return Message, tuple(self.asdict().values())


class ReceivedMessage(MessageProxy):
    """A message that this worker has, with its job."""

    def __init__(self, message: Message, client: Client, job: Job, leave: Callable[[], None]) -> None:
        """`leave`: called when the message has ended, by the consumer that has taken it or by its successor."""
        super().__init__(message)
        self.job = job
        self.leave = leave
        self.step = Step(client, job)
        self.cancelled = False          # its job was removed while it was here
        self.retried_before = bool(message.options.get("retries"))


def headers_of(message: Message) -> dict[str, str]:
    """Return the headers of the job of a message: operators find it by its actor, and cancel() by its id."""
    shown = {"actor": message.actor_name, "message": message.message_id}
    return {name: text for name, text in shown.items() if text.isprintable() and len(text.encode()) <= HEADER_BYTES_MAX}
