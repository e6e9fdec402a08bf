"""The requests of the 23 actions."""

from typing import Annotated

from msgspec import Meta, field

from sockpq_sqs.model.shapes import (
    AccountIds,
    ActionNames,
    Attributes,
    MessageAttributeNames,
    MessageAttributes,
    QueueAttributeNames,
    Request,
    SystemAttributes,
    TagKeys,
    Tags,
)

# queues


class CreateQueueRequest(Request):
    """Create a queue, or find the one that has this name and these attributes."""

    queue_name: str
    attributes: Attributes | None = None
    tags: Tags | None = field(default=None, name="tags")


class GetQueueUrlRequest(Request):
    """Find a queue by its name."""

    queue_name: str
    queue_owner_account: str | None = field(default=None, name="QueueOwnerAWSAccountId")


class ListQueuesRequest(Request):
    """List the queues whose names begin with a prefix."""

    queue_name_prefix: str | None = None
    next_token: str | None = None
    max_results: int | None = None


class QueueRequest(Request):
    """Base of requests about one queue."""

    queue_url: str


class DeleteQueueRequest(QueueRequest):
    """Delete a queue and its messages."""


class PurgeQueueRequest(QueueRequest):
    """Delete the messages of a queue."""


class GetQueueAttributesRequest(QueueRequest):
    """Read attributes of a queue."""

    attribute_names: QueueAttributeNames | None = None


class SetQueueAttributesRequest(QueueRequest):
    """Change attributes of a queue."""

    attributes: Attributes


class TagQueueRequest(QueueRequest):
    """Add tags to a queue."""

    tags: Tags


class UntagQueueRequest(QueueRequest):
    """Remove tags of a queue."""

    tag_keys: TagKeys


class ListQueueTagsRequest(QueueRequest):
    """Read the tags of a queue."""


class AddPermissionRequest(QueueRequest):
    """Add a statement to the policy of a queue."""

    label: str
    account_ids: AccountIds = field(name="AWSAccountIds")
    actions: ActionNames


class RemovePermissionRequest(QueueRequest):
    """Remove a statement from the policy of a queue."""

    label: str


class ListDeadLetterSourceQueuesRequest(QueueRequest):
    """List the queues whose dead letters go to this one."""

    next_token: str | None = None
    max_results: int | None = None


# messages


class SendMessageRequest(QueueRequest):
    """Send a message."""

    message_body: str
    delay_seconds: int | None = None
    message_attributes: MessageAttributes | None = None
    message_system_attributes: SystemAttributes | None = None
    message_deduplication_id: str | None = None
    message_group_id: str | None = None


class SendEntry(Request):
    """One message of a batch."""

    id: str
    message_body: str
    delay_seconds: int | None = None
    message_attributes: MessageAttributes | None = None
    message_system_attributes: SystemAttributes | None = None
    message_deduplication_id: str | None = None
    message_group_id: str | None = None


class SendMessageBatchRequest(QueueRequest):
    """Send up to ten messages."""

    entries: Annotated[list[SendEntry], Meta(extra={"member": "SendMessageBatchRequestEntry"})]


class ReceiveMessageRequest(QueueRequest):
    """Receive up to ten messages, and wait for the first if there is none."""

    attribute_names: QueueAttributeNames | None = None
    message_system_attribute_names: Annotated[
        list[str], Meta(extra={"member": "MessageSystemAttributeName"})] | None = None
    message_attribute_names: MessageAttributeNames | None = None
    max_number_of_messages: int | None = None
    visibility_timeout: int | None = None
    wait_time_seconds: int | None = None
    receive_request_attempt_id: str | None = None


class DeleteMessageRequest(QueueRequest):
    """Delete a message that was received."""

    receipt_handle: str


class DeleteEntry(Request):
    """One message of a batch to delete."""

    id: str
    receipt_handle: str


class DeleteMessageBatchRequest(QueueRequest):
    """Delete up to ten messages that were received."""

    entries: Annotated[list[DeleteEntry], Meta(extra={"member": "DeleteMessageBatchRequestEntry"})]


class ChangeMessageVisibilityRequest(QueueRequest):
    """Set how long a message that was received stays invisible."""

    receipt_handle: str
    visibility_timeout: int


class VisibilityEntry(Request):
    """One message of a batch whose visibility changes."""

    id: str
    receipt_handle: str
    visibility_timeout: int | None = None


class ChangeMessageVisibilityBatchRequest(QueueRequest):
    """Set how long up to ten messages stay invisible."""

    entries: Annotated[list[VisibilityEntry], Meta(extra={"member": "ChangeMessageVisibilityBatchRequestEntry"})]


# dead letters


class StartMessageMoveTaskRequest(Request):
    """Move the dead letters of a queue back, or to another queue."""

    source_arn: str
    destination_arn: str | None = None
    max_number_of_messages_per_second: int | None = None


class CancelMessageMoveTaskRequest(Request):
    """Stop moving."""

    task_handle: str


class ListMessageMoveTasksRequest(Request):
    """List the newest tasks that move dead letters of a queue."""

    source_arn: str
    max_results: int | None = None
