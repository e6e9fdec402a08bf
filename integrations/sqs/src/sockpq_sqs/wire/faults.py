"""The errors of requests that cannot be decoded."""

from __future__ import annotations

import re

import msgspec

from sockpq_sqs.model.errors import SqsError, missing
from sockpq_sqs.reasons import sentence

_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]*)`")
NAME_CHARACTERS_MAX = 80        # of a name that is not ours, in a message


def unknown_action(name: str) -> SqsError:
    """Return the error for an action that does not exist, or not at the URL to which it was sent."""
    known = name[:NAME_CHARACTERS_MAX].encode(errors="replace").decode()    # a header may hold bytes that are no text
    message = f"The action {known} is not valid for this endpoint."
    return SqsError("UnknownOperationException", message, 400, "InvalidAction")


def no_action() -> SqsError:
    """Return the error for a request that names no action."""
    return SqsError("UnknownOperationException", "The request names no action.", 404)


def malformed(message: str) -> SqsError:
    """Return the error for a request that is neither JSON nor a form, or has members of a wrong type."""
    return SqsError("SerializationException", message, 400, "MalformedInput")


def refused_by_msgspec(error: Exception) -> SqsError:
    """Return the error for a request with a member that is missing, of a wrong type, or nested too deeply."""
    if isinstance(error, RecursionError):
        return malformed("The request is nested too deeply.")
    if isinstance(error, msgspec.ValidationError) and (match := _MISSING.match(str(error))):
        return missing(match["name"])
    return malformed(sentence(error))
