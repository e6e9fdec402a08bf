"""Receiving messages, and the attempts that may be repeated."""

from __future__ import annotations

import time
from collections.abc import Callable

from sockpq.aio import Client, Job

from sockpq_sqs.call import Call
from sockpq_sqs.messages import envelope, handles
from sockpq_sqs.messages.attempts import Attempts
from sockpq_sqs.messages.attributes import TRACE, Wanted, system_names
from sockpq_sqs.messages.checks import check_id, check_received, check_timeout
from sockpq_sqs.messages.digests import attributes_digest, body_digest
from sockpq_sqs.messages.handles import Handle
from sockpq_sqs.messages.identity import Identity, sequence_number
from sockpq_sqs.model import answers, requests
from sockpq_sqs.queues.entry import Entry
from sockpq_sqs.queues.names import Names, QueueName
from sockpq_sqs.queues.registry import Registry

AT_ONCE_S = 30.0        # the lease of messages that are given back at once: if this front end dies, they come back then


class Receiving:
    """Executes ReceiveMessage: takes jobs of a queue with a lease, and hands them out as messages."""

    def __init__(self, names: Names, registry: Registry, identity: Identity, clock: Callable[[], float]) -> None:
        self._names = names
        self._registry = registry
        self._identity = identity
        self._clock = clock
        self._attempts = Attempts()

    async def receive(self, call: Call, request: requests.ReceiveMessageRequest) -> answers.ReceiveMessageAnswer:
        """Receive up to ten messages, and wait for the first if there is none."""
        queue = self._names.of_url(call, request.queue_url)
        check_received(request.max_number_of_messages, request.wait_time_seconds)
        check_timeout(request.visibility_timeout)
        system = system_names((
            *(request.attribute_names or ()), *(request.message_system_attribute_names or ()),
        ))
        wanted = Wanted(request.message_attribute_names or ())
        entry = await self._registry.get(queue)
        timeout_s = entry.visibility_s if request.visibility_timeout is None else request.visibility_timeout
        attempt = request.receive_request_attempt_id if queue.is_fifo else None
        if attempt is not None:
            check_id(attempt, "ReceiveRequestAttemptId")
            repeated = await self._attempts.again(call.user.client, queue, attempt, timeout_s)
            if repeated is not None:
                return repeated
        wait_s = entry.wait_s if request.wait_time_seconds is None else request.wait_time_seconds
        jobs = await self._take(call.user.client, queue, entry, request.max_number_of_messages or 1, timeout_s, wait_s)
        key = await self._identity.key()
        now_ms = int(self._clock() * 1000)
        answer = answers.ReceiveMessageAnswer(messages=[
            self._message(call, queue, job, now_ms, key, system, wanted) for job in jobs
        ])
        if attempt is not None and jobs:
            self._attempts.remember(queue, attempt, answer, [job.id for job in jobs])
        return answer

    async def _take(
        self, client: Client, queue: QueueName, entry: Entry, count: int, timeout_s: int, wait_s: int,
    ) -> list[Job]:
        """Take messages, except those that are older than their queue keeps messages: these end here."""
        until = time.monotonic() + wait_s
        while True:
            left_s = max(0.0, until - time.monotonic())
            jobs = await client.get_many(
                count, queue.server, expire=timeout_s or AT_ONCE_S, then="later", wait=left_s or None, meta="life",
                headers=True,
            )
            over = [job for job in jobs if _is_over(job, entry, self._clock(), fifo=queue.is_fifo)]
            if over:
                await client.done_many(over)
                jobs = [job for job in jobs if job not in over]
            if jobs or not over:
                break
        if jobs and not timeout_s:
            await client.later_many(jobs)       # each to its place, which its number gives it
        return jobs

    def _message(
        self, call: Call, queue: QueueName, job: Job, now_ms: int, key: bytes, system: frozenset[str], wanted: Wanted,
    ) -> answers.Message:
        body, attributes = envelope.unpacked(job.data, job.headers)
        text, body = envelope.readable(body)
        chosen = wanted.of(attributes)
        number = job.meta.number or 0 if job.meta else 0
        return answers.Message(
            message_id=self._identity.message_id(number),
            receipt_handle=handles.encode(Handle(job.id, number, now_ms), queue.server, key),
            md5_of_body=body_digest(body), body=text,
            attributes=self._system(call, queue, job, system) if system else {},
            md5_of_message_attributes=attributes_digest(chosen), message_attributes=chosen,
        )

    def _system(self, call: Call, queue: QueueName, job: Job, wanted: frozenset[str]) -> dict[str, str]:
        meta, headers = job.meta, job.headers
        assert meta         # it was asked for
        life = meta.life
        found: dict[str, str | None] = {
            "SenderId": headers.get(envelope.SENDER, queue.account),
            TRACE: headers.get(envelope.TRACE),
            "MessageGroupId": envelope.group_of(meta.group, headers),
        }
        if life:
            found |= {
                "SentTimestamp": _ms(life.created), "ApproximateReceiveCount": str(life.taken),
                "ApproximateFirstReceiveTimestamp": _ms(life.first),
                "DeadLetterQueueSourceArn":
                    self._names.of_server(queue.account, life.died_in).arn(call.region) if life.died_in else None,
            }
        if queue.is_fifo:
            found |= {
                "MessageGroupId": envelope.group_of(meta.group or queue.name, headers),
                "MessageDeduplicationId": self._identity.message_id(meta.number or 0) if life and life.died_in
                    else headers.get(envelope.DEDUPLICATION),       # Amazon's: a dead letter has its own id for it
                "SequenceNumber": sequence_number(meta.number or 0),
            }
        return {name: value for name, value in found.items() if value is not None and name in wanted}


def _ms(time_s: float | None) -> str | None:
    return None if time_s is None else str(round(time_s * 1000))


def _is_over(job: Job, entry: Entry, now: float, *, fifo: bool) -> bool:
    """Return whether this message is older than its queue keeps messages.

    A dead letter of a FIFO queue counts from its death, which a hand-out does not show: its TTL ends it.
    """
    life = job.meta.life if job.meta else None
    return life is not None and not (fifo and life.died_in) and life.created + entry.retention_s < now
