"""Policies of redrive: where dead letters go, and which queues may send theirs here."""

from __future__ import annotations

import json

from sockpq_sqs.model.errors import wrong
from sockpq_sqs.queues.attributes import RESOURCES_MAX, UNSUPPORTED_FORMAT, parsed_policy
from sockpq_sqs.queues.entry import Entry, Redrive
from sockpq_sqs.queues.names import Names, QueueName
from sockpq_sqs.queues.registry import Registry

TRIES_MAX = 1000
NAME, ALLOW = "RedrivePolicy", "RedriveAllowPolicy"


class RedrivePolicies:
    """Checks policies of redrive against the queues that they name."""

    def __init__(self, names: Names, registry: Registry) -> None:
        self._names = names
        self._registry = registry

    async def redrive(self, queue: QueueName, text: str, region: str) -> tuple[str, Redrive | None]:
        """Return the policy in its canonical form, and the setting that the cluster carries out. Raises SqsError.

        A queue that is its own dead-letter queue, which SQS accepts, never gives a message up: the cluster has no use
        for such a setting.
        """
        policy = parsed_policy(NAME, text)
        target, tries = policy.get("deadLetterTargetArn"), policy.get("maxReceiveCount")
        for name, value in (("deadLetterTargetArn", target), ("maxReceiveCount", tries)):
            if value is None:
                raise wrong(text, NAME, f"Redrive policy does not contain mandatory attribute: {name}.")
        try:
            count = int(str(tries))
        except ValueError:
            count = 0
        if not 1 <= count <= TRIES_MAX:
            raise wrong(
                text, NAME,
                f"Invalid value for maxReceiveCount: {tries}, valid values are from 1 to {TRIES_MAX} both inclusive.",
            )
        dead = self._names.of_arn(target)
        entry = await self._registry.find(dead) if dead else None
        if dead is None or entry is None:
            raise wrong(text, NAME, "Dead letter target does not exist.")
        if dead.is_fifo != queue.is_fifo:
            raise wrong(text, NAME, "Dead-letter queue must be same type of queue as the source.")
        if dead.account != queue.account:
            raise wrong(text, NAME, "Dead letter target must be owned by the same account.")
        if not _allows(entry, queue.arn(region)):
            raise wrong(text, NAME, "Queue does not have permission to access dead letter target.")
        canonical = json.dumps({"deadLetterTargetArn": target, "maxReceiveCount": count}, separators=(",", ":"))
        return canonical, None if dead == queue else Redrive(dead.server, count)


def check_allow_policy(text: str) -> None:
    """Check a RedriveAllowPolicy. Raises SqsError."""
    policy = parsed_policy(ALLOW, text)
    permission, sources = policy.get("redrivePermission"), policy.get("sourceQueueArns")
    if permission not in ("allowAll", "denyAll", "byQueue"):
        raise wrong(text, ALLOW, UNSUPPORTED_FORMAT)
    if permission == "byQueue":
        if not isinstance(sources, list) or not 0 < len(sources) <= RESOURCES_MAX:
            raise wrong(text, ALLOW, f"byQueue needs 1 to {RESOURCES_MAX} sourceQueueArns.")
    elif sources is not None:
        raise wrong(text, ALLOW, f"sourceQueueArns goes with byQueue, not with {permission}.")


def _allows(dead: Entry, source_arn: str) -> bool:
    """Return whether the dead-letter queue accepts messages of this queue."""
    text = dead.attributes.get(ALLOW)
    policy = json.loads(text) if text else {}
    permission = policy.get("redrivePermission", "allowAll")
    named = [str(arn).split(":")[4:] for arn in policy.get("sourceQueueArns") or ()]     # the region means nothing
    return permission == "allowAll" or (permission == "byQueue" and source_arn.split(":")[4:] in named)
