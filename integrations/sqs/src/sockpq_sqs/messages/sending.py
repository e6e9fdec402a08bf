"""Sending messages: one, or a batch of up to ten."""

from __future__ import annotations

import re
from typing import NamedTuple

from sockpq import Put, SockpqError, Stored

from sockpq_sqs.call import Call
from sockpq_sqs.failures import sqs_error
from sockpq_sqs.messages import envelope
from sockpq_sqs.messages.attributes import (
    TRACE,
    TRACE_CHARACTERS_MAX,
    attributes_size,
    check_attributes,
    check_system_attributes,
)
from sockpq_sqs.messages.batches import check_entries
from sockpq_sqs.messages.checks import OTHER_KIND, check_body, check_delay, check_id, check_size, utf8_size
from sockpq_sqs.messages.digests import attributes_digest, body_digest
from sockpq_sqs.messages.identity import Identity, sequence_number
from sockpq_sqs.model import answers, requests
from sockpq_sqs.model.errors import SqsError, invalid, missing, wrong
from sockpq_sqs.model.shapes import FailedEntry
from sockpq_sqs.options import Options
from sockpq_sqs.queues.entry import DEDUPLICATION_S, SIZE_MAX, Entry
from sockpq_sqs.queues.names import Names, QueueName
from sockpq_sqs.queues.registry import Registry

ONCE_S = 60                 # a repetition by an SDK is recognized for this long
INVOCATION = re.compile(r"[A-Za-z0-9_.:-]{1,36}")


class Outgoing(NamedTuple):
    """A message that was checked: its job, and what the answer says about it."""

    put: Put
    body_md5: str
    attributes_md5: str | None
    system_md5: str | None


class Sending:
    """Executes SendMessage and SendMessageBatch: puts messages as jobs with headers."""

    def __init__(self, names: Names, registry: Registry, identity: Identity, options: Options) -> None:
        self._names = names
        self._registry = registry
        self._identity = identity
        self._options = options

    async def send(self, call: Call, request: requests.SendMessageRequest) -> answers.SendMessageAnswer:
        """Send a message; returns its id and checksums when it is on the disks of a majority."""
        queue = self._names.of_url(call, request.queue_url)
        entry = await self._registry.get(queue)
        message = self._outgoing(call, queue, entry, request, f"sdk:{call.invocation}")
        await self._share(queue, entry, grouped=message.put.group is not None)
        await self._identity.key()
        put = message.put
        stored = await call.user.client.put(
            queue.server, put.data, delay=put.delay, group=put.group, number=True, headers=put.headers, dedup=put.dedup,
        )
        number = _number_of(stored)
        return answers.SendMessageAnswer(
            md5_of_message_body=message.body_md5, md5_of_message_attributes=message.attributes_md5,
            md5_of_message_system_attributes=message.system_md5, message_id=self._identity.message_id(number),
            sequence_number=sequence_number(number) if queue.is_fifo else None,
        )

    async def send_batch(self, call: Call, request: requests.SendMessageBatchRequest) -> answers.SendMessageBatchAnswer:
        """Send up to ten messages, in order; each is sent or refused; for a FIFO queue all must have their ids."""
        queue = self._names.of_url(call, request.queue_url)
        entry = await self._registry.get(queue)
        check_entries("SendMessageBatchRequestEntry", [one.id for one in request.entries])
        if queue.is_fifo:
            for one in request.entries:
                self._ids(queue, entry, one)
        total = sum([
            utf8_size(one.message_body) + attributes_size(one.message_attributes or {}) for one in request.entries
        ])
        if total > SIZE_MAX:
            raise SqsError(
                "BatchRequestTooLong",
                f"Batch requests cannot be longer than {SIZE_MAX} bytes. You have sent {total} bytes.",
            )
        answer = answers.SendMessageBatchAnswer(successful=[], failed=[])
        messages: list[tuple[str, Outgoing]] = []
        for one in request.entries:
            try:
                message = self._outgoing(call, queue, entry, one, f"sdk:{call.invocation}:{one.id}")
            except SqsError as error:
                answer.failed.append(failed_entry(one.id, error))
            else:
                messages.append((one.id, message))
        if messages:
            await self._share(queue, entry, grouped=any(one.put.group is not None for _, one in messages))
            await self._identity.key()
            stored = await call.user.client.put_many(queue.server, jobs=[message.put for _, message in messages])
            for (entry_id, message), result in zip(messages, stored, strict=True):
                self._report(answer, queue, entry_id, message, result)
        return answer

    def _report(
        self, answer: answers.SendMessageBatchAnswer, queue: QueueName, entry_id: str, message: Outgoing,
        result: Stored | SockpqError,
    ) -> None:
        if isinstance(result, SockpqError):
            answer.failed.append(failed_entry(entry_id, sqs_error(result, None)))
            return
        number = _number_of(result)
        answer.successful.append(answers.SentEntry(
            id=entry_id, message_id=self._identity.message_id(number), md5_of_message_body=message.body_md5,
            md5_of_message_attributes=message.attributes_md5, md5_of_message_system_attributes=message.system_md5,
            sequence_number=sequence_number(number) if queue.is_fifo else None,
        ))

    def _outgoing(
        self, call: Call, queue: QueueName, entry: Entry, message: requests.SendMessageRequest | requests.SendEntry,
        once: str,
    ) -> Outgoing:
        """Return the job of a message. Raises SqsError. `once`: the id that repetitions by an SDK share."""
        check_body(message.message_body)
        check_delay(message.delay_seconds, fifo=queue.is_fifo)
        attributes = message.message_attributes or {}
        system = message.message_system_attributes or {}
        body = message.message_body.encode()
        if attributes:
            check_attributes(attributes)
        check_size(
            len(body) + attributes_size(attributes), entry.size_max, in_batch=isinstance(message, requests.SendEntry))
        if system:
            check_system_attributes(system)
        group, identifier = self._ids(queue, entry, message)
        headers: dict[str, str] = {}
        data = envelope.packed(body, attributes, headers)
        trace = system[TRACE].string_value if TRACE in system else call.trace
        if trace and len(trace) <= TRACE_CHARACTERS_MAX and trace.isprintable():
            headers[envelope.TRACE] = trace
        if call.user.name is not None:
            headers[envelope.SENDER] = call.user.name
        dedup = None
        if identifier is not None:
            headers[envelope.DEDUPLICATION] = identifier
            key = envelope.deduplication_key(identifier, group if entry.deduplicates_groups else None)
            dedup = (key, float(DEDUPLICATION_S))
        elif self._options.once and INVOCATION.fullmatch(call.invocation):
            dedup = (once, float(ONCE_S))
        name = None if group is None else envelope.group_name(group, queue)
        if group is not None and envelope.group_of(name, {}) != group:
            headers[envelope.GROUP] = group
        delay = entry.delay_s if message.delay_seconds is None or queue.is_fifo else message.delay_seconds
        put = Put(data, headers=headers or None, number=True, delay=delay or None, group=name, dedup=dedup)
        return Outgoing(put, body_digest(body), attributes_digest(attributes), attributes_digest(system))

    def _ids(
        self, queue: QueueName, entry: Entry, message: requests.SendMessageRequest | requests.SendEntry,
    ) -> tuple[str | None, str | None]:
        """Return the ids of a message's group and of its deduplication. Raises SqsError."""
        group, identifier = message.message_group_id, message.message_deduplication_id
        if group is not None:
            check_id(group, "MessageGroupId")
        if identifier is not None:
            check_id(identifier, "MessageDeduplicationId")
        if not queue.is_fifo:
            if identifier is not None:
                raise wrong(identifier, "MessageDeduplicationId", OTHER_KIND)
            return group, None
        if group is None:
            absent = missing("MessageGroupId")
            raise invalid(absent.message) if isinstance(message, requests.SendEntry) else absent
        if identifier is None:
            if not entry.deduplicates_content:
                raise invalid(
                    "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided "
                    "explicitly"
                )
            identifier = envelope.content_id(message.message_body)
        return group, identifier

    async def _share(self, queue: QueueName, entry: Entry, *, grouped: bool) -> None:
        """Share a standard queue fairly among groups from the first message with a group on."""
        if not grouped or entry.grouped or queue.is_fifo:
            return
        await self._registry.share(queue)


def failed_entry(entry_id: str, error: SqsError) -> FailedEntry:
    """Return the entry of a batch for this error."""
    return FailedEntry(id=entry_id, sender_fault=error.sender_fault, code=error.query_code, message=error.message)


def _number_of(stored: Stored) -> int:
    """Return the number of the job: every message is put with one, and remembered with it."""
    return stored.number or 0
