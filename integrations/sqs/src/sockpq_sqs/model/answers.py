"""The answers to the 23 actions; those without content share `Nothing`."""

from typing import Annotated

from msgspec import Meta, field

from sockpq_sqs.model.shapes import Answer, Attributes, FailedEntries, MessageAttributes, QueueUrls, Tags


class Nothing(Answer):
    """The action was executed, and there is nothing to report."""


class QueueUrlAnswer(Answer):
    """The URL of a queue that was created or found."""

    queue_url: str


class ListQueuesAnswer(Answer):
    """A page of URLs of queues."""

    queue_urls: QueueUrls = []
    next_token: str | None = None


class SourceQueuesAnswer(Answer):
    """A page of URLs of queues whose dead letters go to one queue."""

    queue_urls: QueueUrls = field(default_factory=list, name="queueUrls")
    next_token: str | None = None


class QueueAttributesAnswer(Answer):
    """Attributes of a queue, by name."""

    attributes: Attributes = {}


class QueueTagsAnswer(Answer):
    """The tags of a queue."""

    tags: Tags = {}


class SendMessageAnswer(Answer):
    """The id and the digests of a message that was sent."""

    message_id: str
    md5_of_message_body: str = field(name="MD5OfMessageBody")
    md5_of_message_attributes: str | None = field(default=None, name="MD5OfMessageAttributes")
    md5_of_message_system_attributes: str | None = field(default=None, name="MD5OfMessageSystemAttributes")
    sequence_number: str | None = None


class SentEntry(Answer):
    """The same for a message of a batch."""

    id: str
    message_id: str
    md5_of_message_body: str = field(name="MD5OfMessageBody")
    md5_of_message_attributes: str | None = field(default=None, name="MD5OfMessageAttributes")
    md5_of_message_system_attributes: str | None = field(default=None, name="MD5OfMessageSystemAttributes")
    sequence_number: str | None = None


class SendMessageBatchAnswer(Answer):
    """The messages of a batch that were sent, and those that were not."""

    successful: Annotated[list[SentEntry], Meta(extra={"member": "SendMessageBatchResultEntry"})] = []
    failed: FailedEntries = []


class Message(Answer):
    """A message that was received."""

    message_id: str
    receipt_handle: str
    md5_of_body: str = field(name="MD5OfBody")
    body: str
    attributes: Attributes = {}
    md5_of_message_attributes: str | None = field(default=None, name="MD5OfMessageAttributes")
    message_attributes: MessageAttributes = {}


class ReceiveMessageAnswer(Answer):
    """The messages that were received."""

    messages: Annotated[list[Message], Meta(extra={"member": "Message"})] = []


class DeletedEntry(Answer):
    """A message of a batch that was deleted."""

    id: str


class DeleteMessageBatchAnswer(Answer):
    """The messages of a batch that were deleted, and those that were not."""

    successful: Annotated[list[DeletedEntry], Meta(extra={"member": "DeleteMessageBatchResultEntry"})] = []
    failed: FailedEntries = []


class ChangedEntry(Answer):
    """A message of a batch whose visibility was changed."""

    id: str


class ChangeMessageVisibilityBatchAnswer(Answer):
    """The messages of a batch that were changed, and those that were not."""

    successful: Annotated[list[ChangedEntry], Meta(extra={"member": "ChangeMessageVisibilityBatchResultEntry"})] = []
    failed: FailedEntries = []


class StartMessageMoveTaskAnswer(Answer):
    """The handle of a task that moves messages."""

    task_handle: str


class CancelMessageMoveTaskAnswer(Answer):
    """The number of messages that were moved before the task stopped."""

    approximate_number_of_messages_moved: int


class MoveTask(Answer):
    """A task that moves messages, or did. It has a handle as long as it can be stopped."""

    status: str
    source_arn: str
    approximate_number_of_messages_moved: int
    started_timestamp: int
    task_handle: str | None = None
    destination_arn: str | None = None
    max_number_of_messages_per_second: int | None = None
    approximate_number_of_messages_to_move: int | None = None
    failure_reason: str | None = None


class ListMessageMoveTasksAnswer(Answer):
    """The newest tasks of a queue."""

    results: Annotated[list[MoveTask], Meta(extra={"member": "ListMessageMoveTasksResultEntry"})] = []
