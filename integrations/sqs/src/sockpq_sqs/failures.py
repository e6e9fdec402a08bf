"""Errors of the cluster's client as errors of SQS."""

from __future__ import annotations

from sockpq import (
    AuthError,
    BadArguments,
    BatchFailed,
    Busy,
    DataTooLarge,
    ForbiddenError,
    QueueFull,
    QueueNotFound,
    QueuePaused,
    SockpqError,
)

from sockpq_sqs.model.errors import SqsError, denied, invalid, no_queue, throttled, unavailable


def sqs_error(error: SockpqError, user: str | None) -> SqsError:
    """Return the error that the sender of a request gets. `user`: the name of the sender, if users are configured."""
    if isinstance(error, ForbiddenError):
        return denied(user)
    if isinstance(error, AuthError):
        return SqsError(
            "UnrecognizedClientException", "The security token included in the request is invalid.", 403,
            "InvalidClientTokenId",
        )
    if isinstance(error, QueueNotFound):
        return no_queue()
    if isinstance(error, DataTooLarge):
        return invalid("One or more parameters are invalid. Reason: The message is larger than the queue allows.")
    if isinstance(error, QueueFull):
        return SqsError("OverLimit", "The queue is full.", 403)
    if isinstance(error, Busy | QueuePaused):
        return throttled()
    if isinstance(error, BatchFailed) and isinstance(error.__cause__, SockpqError):
        return sqs_error(error.__cause__, user)
    if isinstance(error, BadArguments):
        return SqsError("InternalFailure", "The request could not be passed on to the queue servers.", 500)
    return unavailable()
