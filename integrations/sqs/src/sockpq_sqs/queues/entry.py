"""The registry's entry of a queue: its properties in SQS, and the settings of the cluster that follow from them."""

from __future__ import annotations

import msgspec
from msgspec import Struct
from sockpq import QueueSettings

SIZE_MAX = 1_048_576                        # bytes of a message: body and attributes
# Attributes are kept as JSON, in which bytes take a third more, and some characters twice their place; then come ids.
DATA_BYTES_MAX = 2 * SIZE_MAX + 64 * 1024
DEDUPLICATION_S = 300


class Redrive(Struct, frozen=True):
    """The queue for messages that were received too often: its name in the cluster, and after how many receives."""

    dead: str
    tries: int


class Entry(Struct, frozen=True, omit_defaults=True):
    """A queue: the attributes that differ from the defaults, its tags, and when it was made and changed, in seconds.

    `redrive`: of its RedrivePolicy, where the cluster can carry it out. `grouped`: messages of this standard queue have
    had groups, so that it is shared fairly among them from then on.
    """

    created: int
    modified: int
    attributes: dict[str, str] = {}
    tags: dict[str, str] = {}
    redrive: Redrive | None = None
    grouped: bool = False

    def number(self, name: str, default: int) -> int:
        """Return an attribute as a number, `default` if the queue has none of this name."""
        text = self.attributes.get(name)
        return default if text is None else int(text)

    @property
    def visibility_s(self) -> int:
        """Seconds for which a message that was received stays invisible."""
        return self.number("VisibilityTimeout", 30)

    @property
    def delay_s(self) -> int:
        """Seconds before a new message is visible."""
        return self.number("DelaySeconds", 0)

    @property
    def wait_s(self) -> int:
        """Seconds for which ReceiveMessage waits."""
        return self.number("ReceiveMessageWaitTimeSeconds", 0)

    @property
    def retention_s(self) -> int:
        """Seconds after which a message is dropped, counted from when it was sent."""
        return self.number("MessageRetentionPeriod", 345_600)

    @property
    def size_max(self) -> int:
        """The maximum size of a message, body and attributes, in bytes."""
        return self.number("MaximumMessageSize", SIZE_MAX)

    @property
    def deduplicates_content(self) -> bool:
        """True if the body's digest stands for a deduplication id that is missing."""
        return self.attributes.get("ContentBasedDeduplication") == "true"

    @property
    def deduplicates_groups(self) -> bool:
        """True if deduplication ids are different ones in each group."""
        return self.attributes.get("DeduplicationScope") == "messageGroup"

    def settings(self, *, fifo: bool) -> QueueSettings:
        """Return the settings of the queue in the cluster.

        Leases of 0 mean "for ever" there, so that a visibility timeout of 0 is left to each ReceiveMessage.
        """
        redrive = self.redrive
        settings = QueueSettings(
            expire=self.visibility_s, ttl=self.retention_s, numbered=True, tries=redrive.tries if redrive else 0,
            data_bytes_max=DATA_BYTES_MAX,
        )
        if self.visibility_s:
            settings["then"] = "later"
        if redrive:
            settings["dead"] = redrive.dead
        if fifo:
            settings["sched"], settings["group_order"] = "fair", True
        elif self.grouped:
            settings["sched"] = "fair"
        return settings


_encoder, _decoder = msgspec.json.Encoder(), msgspec.json.Decoder(Entry)


def encode(entry: Entry) -> bytes:
    """Return the entry as the registry keeps it."""
    return _encoder.encode(entry)


def decode(data: bytes) -> Entry:
    """Return the entry of these bytes. Raises msgspec.DecodeError."""
    return _decoder.decode(data)
