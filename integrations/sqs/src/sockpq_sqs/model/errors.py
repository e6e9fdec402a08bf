"""The errors of the service: their names in both protocols, their texts and HTTP status.

The texts are Amazon's own, as clients and their tests compare them.
"""

from __future__ import annotations

# Names in the service model; the others are errors that every service of Amazon has.
MODELLED = frozenset({
    "BatchEntryIdsNotDistinct", "BatchRequestTooLong", "EmptyBatchRequest", "InvalidAddress", "InvalidAttributeName",
    "InvalidAttributeValue", "InvalidBatchEntryId", "InvalidIdFormat", "InvalidMessageContents", "InvalidSecurity",
    "MessageNotInflight", "OverLimit", "PurgeQueueInProgress", "QueueDeletedRecently", "QueueDoesNotExist",
    "QueueNameExists", "ReceiptHandleIsInvalid", "RequestThrottled", "ResourceNotFoundException",
    "TooManyEntriesInBatchRequest", "UnsupportedOperation",
})
_OLD = "AWS.SimpleQueueService."
# Names that the Query protocol has for errors of the model, where they differ.
QUERY_CODES = {
    "BatchEntryIdsNotDistinct": f"{_OLD}BatchEntryIdsNotDistinct",
    "BatchRequestTooLong": f"{_OLD}BatchRequestTooLong",
    "EmptyBatchRequest": f"{_OLD}EmptyBatchRequest",
    "InvalidBatchEntryId": f"{_OLD}InvalidBatchEntryId",
    "MessageNotInflight": f"{_OLD}MessageNotInflight",
    "PurgeQueueInProgress": f"{_OLD}PurgeQueueInProgress",
    "QueueDeletedRecently": f"{_OLD}QueueDeletedRecently",
    "QueueDoesNotExist": f"{_OLD}NonExistentQueue",
    "QueueNameExists": "QueueAlreadyExists",
    "TooManyEntriesInBatchRequest": f"{_OLD}TooManyEntriesInBatchRequest",
    "UnsupportedOperation": f"{_OLD}UnsupportedOperation",
    "InvalidParameterValueException": "InvalidParameterValue",
    "MissingRequiredParameterException": "MissingParameter",
    "AccessDeniedException": "AccessDenied",
}

SHOWN_CHARACTERS_MAX = 300      # of a value in a message


class SqsError(Exception):
    """The request failed.

    `code`: the name of the error; `query_code`: its name in the Query protocol; `status`: of HTTP; `query_message`: the
    text in the Query protocol, where it is another one.
    """

    def __init__(
        self, code: str, message: str, status: int = 400, query_code: str | None = None,
        query_message: str | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status
        self.query_code = query_code or QUERY_CODES.get(code, code)
        self.query_message = message if query_message is None else query_message

    @property
    def type(self) -> str:
        """The name with its namespace, as in `__type` of an error document in JSON."""
        return f"com.amazonaws.sqs#{self.code}" if self.code in MODELLED else f"com.amazon.coral.service#{self.code}"

    @property
    def sender_fault(self) -> bool:
        """True if the request is to blame, so that repeating it is pointless."""
        return self.status < 500


def no_queue() -> SqsError:
    """Return the error for a queue that does not exist."""
    return SqsError(
        "QueueDoesNotExist", "The specified queue does not exist.",
        query_message="The specified queue does not exist for this wsdl version.",
    )


def invalid(message: str) -> SqsError:
    """Return the error for a parameter with a wrong value."""
    return SqsError("InvalidParameterValueException", message)


def wrong(value: object, parameter: str, reason: str) -> SqsError:
    """Return the error for this value of a parameter."""
    return invalid(f"Value {_short(value)} for parameter {parameter} is invalid. Reason: {reason}")


def _short(value: object) -> str:
    """Return a value, shortened for a message: a sender must not get a megabyte back."""
    return str(value)[:SHOWN_CHARACTERS_MAX]


def missing(parameter: str) -> SqsError:
    """Return the error for a parameter that is missing."""
    return SqsError(
        "MissingRequiredParameterException", f"The request must contain the parameter {parameter}.",
    )


def unknown_attribute(name: str) -> SqsError:
    """Return the error for the name of an attribute that a queue does not have."""
    return SqsError("InvalidAttributeName", f"Unknown Attribute {_short(name)}.")


def only_fifo(name: str) -> SqsError:
    """Return the error for an attribute that only FIFO queues have."""
    return SqsError("InvalidAttributeName", f"You can specify the {name} only when FifoQueue is set to true.")


def wrong_attribute(name: str, reason: str = "") -> SqsError:
    """Return the error for an attribute of a queue with a wrong value."""
    why = f" Reason: {reason}" if reason else ""
    return SqsError("InvalidAttributeValue", f"Invalid value for the parameter {name}.{why}")


def no_resource(parameter: str) -> SqsError:
    """Return the error for an ARN of a queue that does not exist."""
    message = f"The resource that you specified for the {parameter} parameter doesn't exist."
    return SqsError("ResourceNotFoundException", message, 404)


def unsupported(message: str) -> SqsError:
    """Return the error for a part of the service that is switched off here."""
    return SqsError("UnsupportedOperation", message)


def denied(user: str | None) -> SqsError:
    """Return the error for a user without the right."""
    message = f"User {user or 'anonymous'} is not authorized to perform this action on this queue."
    return SqsError("AccessDeniedException", message, 403)


def unavailable() -> SqsError:
    """Return the error for a cluster that does not answer; SDKs repeat the request."""
    return SqsError("ServiceUnavailable", "The queue servers do not answer; the request may be repeated.", 503)


def throttled() -> SqsError:
    """Return the error for a cluster without room; SDKs repeat the request later."""
    return SqsError("RequestThrottled", "The queue servers are overloaded; repeat the request later.", 403)
