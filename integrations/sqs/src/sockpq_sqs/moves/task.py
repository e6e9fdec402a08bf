"""A task that moves messages, as the cluster keeps it, and its handle."""

from __future__ import annotations

import base64
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

from sockpq_sqs.model.errors import invalid

Status = Literal["RUNNING", "COMPLETED", "CANCELLING", "CANCELLED", "FAILED"]
ACTIVE = ("RUNNING", "CANCELLING")


class Task(Struct, frozen=True, omit_defaults=True):
    """A task: names of queues in the account; without a destination messages go back to where they came from.

    `rate`: messages a second at most. `to_move`: how many waited when it began. Times in milliseconds.
    """

    id: str
    source: str
    started_ms: int
    to_move: int
    destination: str | None = None
    rate: int | None = None
    status: Status = "RUNNING"
    moved: int = 0
    failure: str | None = None

    @property
    def is_active(self) -> bool:
        """True while it moves messages."""
        return self.status in ACTIVE


class TaskHandle(NamedTuple):
    """The name of a task for clients: its id and the ARN of its queue."""

    id: str
    source_arn: str

    def encode(self) -> str:
        """Return it as clients see it."""
        return base64.b64encode(msgspec.json.encode({"taskId": self.id, "sourceArn": self.source_arn})).decode()


class _Document(Struct):
    """The content of a handle."""

    taskId: str     # noqa: N815, as in Amazon's handles
    sourceArn: str  # noqa: N815, as in Amazon's handles


def handle_of(text: str) -> TaskHandle:
    """Return the handle that clients sent. Raises SqsError."""
    try:
        document = msgspec.json.decode(base64.b64decode(text, validate=True), type=_Document)
    except (ValueError, msgspec.MsgspecError):
        raise invalid("Value for parameter TaskHandle is invalid.") from None
    return TaskHandle(document.taskId, document.sourceArn)
