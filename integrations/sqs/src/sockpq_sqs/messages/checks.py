"""Checks of a message to send: its characters, ids, delay and size."""

from __future__ import annotations

import re

from sockpq_sqs.model.errors import SqsError, invalid, missing, wrong

# Amazon's: what XML 1.0 allows. One search instead of a loop: bodies have up to a megabyte.
INVALID = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
ID = re.compile(r"[A-Za-z0-9!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}")
OTHER_KIND = "The request include parameter that is not valid for this queue type."
DELAY_S_MAX = 900
TIMEOUT_S_MAX = 43_200
RECEIVED_MAX = 10
WAIT_S_MAX = 20


def check_text(text: str) -> None:
    """Check the characters of a body or of an attribute's value. Raises SqsError."""
    if text.isascii() and text.isprintable():       # most are, and it takes half as long to find out
        return
    if INVALID.search(text):
        raise SqsError(
            "InvalidMessageContents",
            "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to "
            "#xFFFD | #x10000 to #x10FFFF",
        )


def utf8_size(text: str) -> int:
    """Return how many bytes a text has."""
    return len(text) if text.isascii() else len(text.encode())


def check_body(body: str) -> None:
    """Check a body. Raises SqsError."""
    if not body:
        raise missing("MessageBody")
    check_text(body)


def check_id(value: str, parameter: str) -> None:
    """Check the id of a group or of deduplication. Raises SqsError."""
    if not ID.fullmatch(value):
        raise wrong(
            value[:200], parameter,
            f"{parameter} can only include alphanumeric and punctuation characters. 1 to 128 in length.",
        )


def check_delay(delay_s: int | None, *, fifo: bool) -> None:
    """Check the delay of a single message, which FIFO queues do not have. Raises SqsError."""
    if delay_s is None:
        return
    if fifo and delay_s:
        raise wrong(delay_s, "DelaySeconds", OTHER_KIND)
    if not 0 <= delay_s <= DELAY_S_MAX:
        raise wrong(delay_s, "DelaySeconds", f"DelaySeconds must be >= 0 and <= {DELAY_S_MAX}.")


def check_size(size: int, size_max: int, *, in_batch: bool) -> None:
    """Check the size of a message, body and attributes. Raises SqsError."""
    if size > size_max:
        what = "cannot be validated" if in_batch else "are invalid"
        raise invalid(f"One or more parameters {what}. Reason: Message must be shorter than {size_max} bytes.")


def check_timeout(timeout_s: int | None) -> None:
    """Check a visibility timeout. Raises SqsError."""
    if timeout_s is not None and not 0 <= timeout_s <= TIMEOUT_S_MAX:
        raise wrong(timeout_s, "VisibilityTimeout", f"Must be >= 0 and <= {TIMEOUT_S_MAX}, if provided.")


def check_received(count: int | None, wait_s: int | None) -> None:
    """Check how many messages are wanted, and for how long to wait for them. Raises SqsError."""
    if count is not None and not 1 <= count <= RECEIVED_MAX:
        raise wrong(count, "MaxNumberOfMessages", f"Must be between 1 and {RECEIVED_MAX}, if provided.")
    if wait_s is not None and not 0 <= wait_s <= WAIT_S_MAX:
        raise wrong(wait_s, "WaitTimeSeconds", f"Must be >= 0 and <= {WAIT_S_MAX}, if provided.")
