"""Deleting messages and changing how long they are hidden: one, or a batch of up to ten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from sockpq import JobNotFound, JobRunning, Number
from sockpq.aio import Client

from sockpq_sqs.call import Call
from sockpq_sqs.messages import handles
from sockpq_sqs.messages.batches import check_entries
from sockpq_sqs.messages.checks import TIMEOUT_S_MAX, check_timeout
from sockpq_sqs.messages.handles import Handle
from sockpq_sqs.messages.identity import Identity
from sockpq_sqs.messages.sending import failed_entry
from sockpq_sqs.model import answers, requests
from sockpq_sqs.model.errors import SqsError, missing, wrong
from sockpq_sqs.queues.names import Names, QueueName
from sockpq_sqs.queues.registry import Registry


class Finishing:
    """Executes DeleteMessage, ChangeMessageVisibility, and batches of them.

    A message that is no longer in flight under its handle is looked for by its number, with the front end's own client:
    the handle proves that the sender has received it.
    """

    def __init__(
        self, client: Client, names: Names, registry: Registry, identity: Identity, clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._names = names
        self._registry = registry
        self._identity = identity
        self._clock = clock

    async def delete(self, call: Call, request: requests.DeleteMessageRequest) -> answers.Nothing:
        """Delete a message that was received; it may be deleted already."""
        queue, handle = await self._handle(call, request.queue_url, request.receipt_handle)
        try:
            await call.user.client.done(handle.id)
        except JobNotFound:
            await self._delete_late(queue, handle, request.receipt_handle)
        return answers.Nothing()

    async def _delete_late(self, queue: QueueName, handle: Handle, text: str) -> None:
        """Delete a message whose hand-out has ended. Raises SqsError for FIFO queues, where the order depends on it.

        One that somebody else has received meanwhile stays, as an older receipt handle does not delete it.
        """
        if queue.is_fifo:
            if await self._client.peek(Number(handle.number)):
                raise wrong(text, "ReceiptHandle", "The receipt handle has expired.")
            return
        with suppress(JobNotFound, JobRunning):
            await self._client.delete(Number(handle.number), untaken=True)

    async def delete_batch(
        self, call: Call, request: requests.DeleteMessageBatchRequest,
    ) -> answers.DeleteMessageBatchAnswer:
        """Delete up to ten messages that were received."""
        check_entries("DeleteMessageBatchRequestEntry", [one.id for one in request.entries])
        answer = answers.DeleteMessageBatchAnswer(successful=[], failed=[])
        queue, found = await self._handles(
            call, request.queue_url, [(one.id, one.receipt_handle) for one in request.entries], answer,
        )
        ended = await call.user.client.done_many([handle.id for _, _, handle in found]) if found else []
        for (entry_id, text, handle), finished in zip(found, ended, strict=True):
            try:
                if finished is None:
                    await self._delete_late(queue, handle, text)
            except SqsError as error:
                answer.failed.append(failed_entry(entry_id, error))
            else:
                answer.successful.append(answers.DeletedEntry(id=entry_id))
        return answer

    async def change(self, call: Call, request: requests.ChangeMessageVisibilityRequest) -> answers.Nothing:
        """Hide a message for another time from now on, or show it at once."""
        check_timeout(request.visibility_timeout)
        queue, handle = await self._handle(call, request.queue_url, request.receipt_handle)
        timeout_s = request.visibility_timeout
        self._check_total(handle, timeout_s)
        try:
            await self._hide(call.user.client, handle.id, timeout_s)
        except JobNotFound:
            await self._change_late(queue, handle, request.receipt_handle, timeout_s)
        return answers.Nothing()

    async def _change_late(self, queue: QueueName, handle: Handle, text: str, timeout_s: int) -> None:
        """Hide or show a message whose hand-out has ended, which only standard queues allow. Raises SqsError.

        As with Amazon's, this holds as well for a message that somebody else has received meanwhile.
        """
        number = Number(handle.number)
        refusal = wrong(
            text, "ReceiptHandle", "Message does not exist or is not available for visibility timeout change.")
        job = None if queue.is_fifo else await self._client.peek(number)
        if job is None or job.queue != queue.server or job.state not in ("ready", "delayed", "running"):
            raise refusal
        try:
            if job.id is None:
                await self._client.change(number, delay=timeout_s)
            else:
                await self._hide(self._client, job.id, timeout_s)
        except JobNotFound:
            raise refusal from None

    async def _hide(self, client: Client, job_id: int, timeout_s: int) -> None:
        """Set how long a message in flight is hidden from now on. Raises JobNotFound."""
        if timeout_s:
            await client.touch(job_id, timeout_s, "later")
        else:
            await client.later(job_id)

    async def change_batch(
        self, call: Call, request: requests.ChangeMessageVisibilityBatchRequest,
    ) -> answers.ChangeMessageVisibilityBatchAnswer:
        """Hide up to ten messages for other times from now on, or show them at once."""
        check_entries("ChangeMessageVisibilityBatchRequestEntry", [one.id for one in request.entries])
        answer = answers.ChangeMessageVisibilityBatchAnswer(successful=[], failed=[])
        times = {one.id: one.visibility_timeout for one in request.entries}
        queue, found = await self._handles(
            call, request.queue_url, [(one.id, one.receipt_handle) for one in request.entries], answer,
        )
        client = call.user.client
        shown: list[tuple[str, str, Handle]] = []
        hidden: list[tuple[str, str, Handle]] = []
        for one in found:
            timeout_s = times[one[0]]
            try:
                if timeout_s is None:
                    raise missing("VisibilityTimeout")
                check_timeout(timeout_s)
                self._check_total(one[2], timeout_s)
            except SqsError as error:
                answer.failed.append(failed_entry(one[0], error))
            else:
                (hidden if timeout_s else shown).append(one)
        changed = await client.later_many([handle.id for _, _, handle in shown]) if shown else []
        if hidden:
            seconds = [times[entry_id] or 0 for entry_id, _, _ in hidden]
            changed += await client.touch_many([handle.id for _, _, handle in hidden], seconds, "later")
        for (entry_id, text, handle), done in zip(shown + hidden, changed, strict=True):
            try:
                if not done:
                    await self._change_late(queue, handle, text, times[entry_id] or 0)
            except SqsError as error:
                answer.failed.append(failed_entry(entry_id, error))
            else:
                answer.successful.append(answers.ChangedEntry(id=entry_id))
        return answer

    async def _handle(self, call: Call, url: str, text: str) -> tuple[QueueName, Handle]:
        queue = self._names.of_url(call, url)
        await self._registry.get(queue)
        return queue, handles.decode(text, queue.server, await self._identity.key())

    async def _handles(
        self, call: Call, url: str, entries: Sequence[tuple[str, str]],
        answer: answers.DeleteMessageBatchAnswer | answers.ChangeMessageVisibilityBatchAnswer,
    ) -> tuple[QueueName, list[tuple[str, str, Handle]]]:
        """Return the queue, and id, text and hand-out of each entry; those without a valid handle are reported."""
        queue = self._names.of_url(call, url)
        await self._registry.get(queue)
        key = await self._identity.key()
        found = []
        for entry_id, text in entries:
            try:
                found.append((entry_id, text, handles.decode(text, queue.server, key)))
            except SqsError as error:
                answer.failed.append(failed_entry(entry_id, error))
        return queue, found

    def _check_total(self, handle: Handle, timeout_s: int) -> None:
        """Check that a message is not hidden for more than 12 hours since it was received. Raises SqsError."""
        if self._clock() - handle.time_ms / 1000 + timeout_s > TIMEOUT_S_MAX:
            raise wrong(
                timeout_s, "VisibilityTimeout",
                f"Total VisibilityTimeout for the message is beyond the limit [{TIMEOUT_S_MAX} seconds]",
            )
