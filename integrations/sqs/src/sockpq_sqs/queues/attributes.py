"""Attributes of queues: their names, their values, and what a request may set."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from sockpq_sqs.model.errors import (
    SqsError,
    invalid,
    only_fifo,
    unknown_attribute,
    unsupported,
    wrong,
    wrong_attribute,
)
from sockpq_sqs.options import Options
from sockpq_sqs.queues.entry import SIZE_MAX

# The least and the greatest value of each numeric attribute.
NUMBERS = {
    "DelaySeconds": (0, 900),
    "MaximumMessageSize": (1024, SIZE_MAX),
    "MessageRetentionPeriod": (60, 1_209_600),
    "ReceiveMessageWaitTimeSeconds": (0, 20),
    "VisibilityTimeout": (0, 43_200),
    "KmsDataKeyReusePeriodSeconds": (60, 86_400),
}
BOOLEANS = frozenset({"FifoQueue", "ContentBasedDeduplication", "SqsManagedSseEnabled"})
CHOICES = {
    "DeduplicationScope": ("messageGroup", "queue"),
    "FifoThroughputLimit": ("perQueue", "perMessageGroupId"),
}
JSON = frozenset({"Policy", "RedrivePolicy", "RedriveAllowPolicy"})
OF_FIFO = frozenset({"FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"})
SETTABLE = frozenset({*NUMBERS, *BOOLEANS, *CHOICES, *JSON, "KmsMasterKeyId"})
COUNTS = {
    "ApproximateNumberOfMessages": "ready",
    "ApproximateNumberOfMessagesNotVisible": "running",
    "ApproximateNumberOfMessagesDelayed": "delayed",
}
READABLE = frozenset({*SETTABLE, *COUNTS, "CreatedTimestamp", "LastModifiedTimestamp", "QueueArn"})

DEFAULTS = {
    "VisibilityTimeout": "30", "MaximumMessageSize": str(SIZE_MAX), "MessageRetentionPeriod": "345600",
    "DelaySeconds": "0", "ReceiveMessageWaitTimeSeconds": "0", "SqsManagedSseEnabled": "true",
}
FIFO_DEFAULTS = {
    "FifoQueue": "true", "ContentBasedDeduplication": "false", "DeduplicationScope": "queue",
    "FifoThroughputLimit": "perQueue",
}
POLICY_BYTES_MAX = 8192             # Amazon's limit for the policy of a queue
UNSUPPORTED_FORMAT = "Amazon SQS can't create the redrive allow policy, as it's in an unsupported format."
RESOURCES_MAX = 10                  # queues that a RedriveAllowPolicy may name


def checked(given: Mapping[str, str], options: Options, *, fifo: bool, creating: bool) -> dict[str, str]:
    """Return the attributes of a request in their canonical form. Raises SqsError.

    A policy that is taken away is an empty text.
    """
    found = {}
    for name, value in given.items():
        if name in CHOICES and not fifo:
            raise only_fifo(name)
        if name not in SETTABLE or (name in OF_FIFO and not fifo):
            raise unknown_attribute(name)
        found[name] = _value(name, value, creating=creating)
    if options.policies == "refuse" and found.get("Policy"):
        raise unsupported("Policies of queues have no effect here, and this service is configured to refuse them.")
    if options.encryption == "refuse" and found.get("KmsMasterKeyId"):
        raise unsupported("Keys of KMS have no effect here, and this service is configured to refuse them.")
    if found.get("FifoThroughputLimit") == "perMessageGroupId" and found.get("DeduplicationScope") == "queue":
        raise invalid(
            "The perMessageGroupId value for FifoThroughputLimit is allowed only when the value for DeduplicationScope "
            "is messageGroup."
        )
    return found


def _value(name: str, value: str, *, creating: bool) -> str:
    if name in NUMBERS:
        least, most = NUMBERS[name]
        text = value.strip()
        if not text.isascii() or not text.isdigit() or len(text) > 9 or not least <= int(text) <= most:
            raise wrong_attribute(name)
        return str(int(text))
    if name in BOOLEANS:
        text = value.strip().lower()
        if text not in ("true", "false"):
            raise wrong_attribute(name)
        if name == "FifoQueue" and (text == "false" or not creating):
            if text == "true":
                return text                 # it is one already
            raise wrong_attribute(name, "" if creating else "Modifying queue type is not supported.")
        return text
    if name in CHOICES:
        if value not in CHOICES[name]:
            raise wrong_attribute(name)
        return value
    return value


def merged(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes after a change: an empty policy is none, and one kind of encryption ends the other."""
    found = {**old, **new}
    if new.get("KmsMasterKeyId"):
        found["SqsManagedSseEnabled"] = "false"
    elif new.get("SqsManagedSseEnabled") == "true":
        found.pop("KmsMasterKeyId", None)
        found.pop("KmsDataKeyReusePeriodSeconds", None)
    for name in (*JSON, "KmsMasterKeyId"):
        if found.get(name) in ("", "{}", "null") or (found.get(name) or "x").isspace():
            del found[name]
    return found


def defaults(*, fifo: bool) -> dict[str, str]:
    """Return the attributes of a queue for which none were given."""
    return {**DEFAULTS, **FIFO_DEFAULTS} if fifo else DEFAULTS


def checked_names(names: Iterable[str]) -> list[str]:
    """Return the names of attributes to read, all of them for "All". Raises SqsError."""
    asked = list(names)
    for name in asked:
        if name != "All" and name not in READABLE:
            raise unknown_attribute(name)
    return sorted(READABLE) if "All" in asked else asked


def parsed_policy(name: str, text: str) -> dict[str, object]:
    """Return the JSON object of an attribute. Raises SqsError."""
    try:
        policy = json.loads(text)
    except (ValueError, RecursionError):
        policy = None
    if not isinstance(policy, dict):
        if name == "RedrivePolicy":
            raise wrong(text, name, "Redrive policy is not a valid JSON map.")
        if name == "RedriveAllowPolicy":
            raise wrong(text, name, UNSUPPORTED_FORMAT)
        raise wrong_attribute(name)
    return policy


def check_policy(text: str) -> None:
    """Check the policy of a queue, which must at least be a JSON object of a moderate size. Raises SqsError."""
    if len(text.encode()) > POLICY_BYTES_MAX:
        raise SqsError("OverLimit", f"The policy has more than {POLICY_BYTES_MAX} bytes.", 403)
    parsed_policy("Policy", text)
