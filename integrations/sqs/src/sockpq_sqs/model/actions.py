"""All actions by name, each with the types of its request and its answer."""

from typing import NamedTuple

from sockpq_sqs.model import answers, requests
from sockpq_sqs.model.shapes import Answer, Request


class Action(NamedTuple):
    """One action of the service."""

    name: str
    request: type[Request]
    answer: type[Answer]


ACTIONS: dict[str, Action] = {
    action.name: action for action in (
        Action("AddPermission", requests.AddPermissionRequest, answers.Nothing),
        Action("CancelMessageMoveTask", requests.CancelMessageMoveTaskRequest, answers.CancelMessageMoveTaskAnswer),
        Action("ChangeMessageVisibility", requests.ChangeMessageVisibilityRequest, answers.Nothing),
        Action("ChangeMessageVisibilityBatch", requests.ChangeMessageVisibilityBatchRequest,
               answers.ChangeMessageVisibilityBatchAnswer),
        Action("CreateQueue", requests.CreateQueueRequest, answers.QueueUrlAnswer),
        Action("DeleteMessage", requests.DeleteMessageRequest, answers.Nothing),
        Action("DeleteMessageBatch", requests.DeleteMessageBatchRequest, answers.DeleteMessageBatchAnswer),
        Action("DeleteQueue", requests.DeleteQueueRequest, answers.Nothing),
        Action("GetQueueAttributes", requests.GetQueueAttributesRequest, answers.QueueAttributesAnswer),
        Action("GetQueueUrl", requests.GetQueueUrlRequest, answers.QueueUrlAnswer),
        Action("ListDeadLetterSourceQueues", requests.ListDeadLetterSourceQueuesRequest, answers.SourceQueuesAnswer),
        Action("ListMessageMoveTasks", requests.ListMessageMoveTasksRequest, answers.ListMessageMoveTasksAnswer),
        Action("ListQueueTags", requests.ListQueueTagsRequest, answers.QueueTagsAnswer),
        Action("ListQueues", requests.ListQueuesRequest, answers.ListQueuesAnswer),
        Action("PurgeQueue", requests.PurgeQueueRequest, answers.Nothing),
        Action("ReceiveMessage", requests.ReceiveMessageRequest, answers.ReceiveMessageAnswer),
        Action("RemovePermission", requests.RemovePermissionRequest, answers.Nothing),
        Action("SendMessage", requests.SendMessageRequest, answers.SendMessageAnswer),
        Action("SendMessageBatch", requests.SendMessageBatchRequest, answers.SendMessageBatchAnswer),
        Action("SetQueueAttributes", requests.SetQueueAttributesRequest, answers.Nothing),
        Action("StartMessageMoveTask", requests.StartMessageMoveTaskRequest, answers.StartMessageMoveTaskAnswer),
        Action("TagQueue", requests.TagQueueRequest, answers.Nothing),
        Action("UntagQueue", requests.UntagQueueRequest, answers.Nothing),
    )
}
