"""The actions that change a queue's entry and nothing else: tags and permissions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from sockpq_sqs.call import Call
from sockpq_sqs.model import answers, requests
from sockpq_sqs.model.errors import invalid, missing
from sockpq_sqs.queues import backing, permissions
from sockpq_sqs.queues.actions import QueueActions
from sockpq_sqs.queues.entry import Entry
from sockpq_sqs.queues.names import Names, QueueName
from sockpq_sqs.queues.registry import Registry
from sockpq_sqs.queues.tags import KEY_MAX, check_tags


class LabelActions:
    """Executes the requests about tags and permissions."""

    def __init__(self, names: Names, registry: Registry, queues: QueueActions) -> None:
        self._names = names
        self._registry = registry
        self._queues = queues

    async def tag(self, call: Call, request: requests.TagQueueRequest) -> answers.Nothing:
        """Add tags to a queue."""
        queue = self._names.of_url(call, request.queue_url)
        if not request.tags:
            raise missing("Tags")

        async def update(entry: Entry) -> Entry:
            tags = {**entry.tags, **request.tags}
            check_tags(queue.name, tags)
            return replace(entry, tags=tags)

        return await self._change(call, queue, update)

    async def untag(self, call: Call, request: requests.UntagQueueRequest) -> answers.Nothing:
        """Remove tags of a queue; those that it does not have are ignored."""
        queue = self._names.of_url(call, request.queue_url)
        if not request.tag_keys:
            raise invalid(f"Tag keys must be between 1 and {KEY_MAX} characters in length.")

        async def update(entry: Entry) -> Entry:
            left = {key: value for key, value in entry.tags.items() if key not in request.tag_keys}
            return replace(entry, tags=left)

        return await self._change(call, queue, update)

    async def tags(self, call: Call, request: requests.ListQueueTagsRequest) -> answers.QueueTagsAnswer:
        """Read the tags of a queue."""
        queue = self._names.of_url(call, request.queue_url)
        entry = await self._registry.get(queue, fresh=True)
        await backing.check_any_right(call, queue)
        return answers.QueueTagsAnswer(tags=entry.tags)

    async def add_permission(self, call: Call, request: requests.AddPermissionRequest) -> answers.Nothing:
        """Add a statement to the policy of a queue."""
        queue = self._names.of_url(call, request.queue_url)

        async def update(entry: Entry) -> Entry:
            policy = permissions.with_statement(
                entry.attributes.get("Policy"), queue.arn(call.region), request.label, request.account_ids,
                request.actions,
            )
            return await self._queues.changed(call, queue, entry, {"Policy": policy}, creating=False)

        return await self._change(call, queue, update)

    async def remove_permission(self, call: Call, request: requests.RemovePermissionRequest) -> answers.Nothing:
        """Remove a statement from the policy of a queue."""
        queue = self._names.of_url(call, request.queue_url)

        async def update(entry: Entry) -> Entry:
            policy = permissions.without_statement(
                entry.attributes.get("Policy"), queue.arn(call.region), request.label,
            )
            return await self._queues.changed(call, queue, entry, {"Policy": policy}, creating=False)

        return await self._change(call, queue, update)

    async def _change(
        self, call: Call, queue: QueueName, update: Callable[[Entry], Awaitable[Entry]],
    ) -> answers.Nothing:
        await self._registry.get(queue)
        await backing.check_right(call, queue)
        await self._registry.change(queue, update)
        return answers.Nothing()
