"""Attributes of messages: their rules, their size, and the choice of those that a receiver asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sockpq_sqs.messages.checks import check_text
from sockpq_sqs.model.errors import invalid, unknown_attribute
from sockpq_sqs.model.shapes import AttributeValue

NAME = re.compile(r"[A-Za-z0-9_.-]{1,256}")
TYPE = re.compile(r"(?:String|Number|Binary)(?:\..+)?", re.DOTALL)
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
TYPE_CHARACTERS_MAX = 256
ATTRIBUTES_MAX = 10
TRACE = "AWSTraceHeader"
TRACE_CHARACTERS_MAX = 256      # of 4 bytes at most: what a header of a job has room for
SYSTEM = (      # those that receivers may ask for
    "SenderId", "SentTimestamp", "ApproximateReceiveCount", "ApproximateFirstReceiveTimestamp", "SequenceNumber",
    "MessageDeduplicationId", "MessageGroupId", TRACE, "DeadLetterQueueSourceArn",
)
ALL = frozenset(SYSTEM)


def check_attributes(attributes: Mapping[str, AttributeValue]) -> None:
    """Check the attributes of a message to send. Raises SqsError."""
    if len(attributes) > ATTRIBUTES_MAX:
        raise invalid(
            f"Number of message attributes [{len(attributes)}] exceeds the allowed maximum [{ATTRIBUTES_MAX}]."
        )
    for name, value in attributes.items():
        _check(name, value)


def attributes_size(attributes: Mapping[str, AttributeValue]) -> int:
    """Return how many bytes the attributes count for the size of their message: names, types and values."""
    if not attributes:
        return 0
    return sum(
        len(name.encode()) + len(value.data_type.encode()) + len(value.binary_value or b"")
        + len((value.string_value or "").encode())
        for name, value in attributes.items()
    )


def check_system_attributes(attributes: Mapping[str, AttributeValue]) -> None:
    """Check the system attributes of a message to send: only AWSTraceHeader, a text. Raises SqsError."""
    for name, value in attributes.items():
        if name != TRACE:
            raise invalid(
                f"Message system attribute name '{name[:300]}' is invalid. The only allowed name is {TRACE}."
            )
        if value.data_type != "String" or not value.string_value:
            raise invalid(f"The message system attribute '{name}' must be a non-empty value of type String.")
        check_text(value.string_value)
        if len(value.string_value) > TRACE_CHARACTERS_MAX or not value.string_value.isprintable():
            raise invalid(f"{TRACE} must be printable, with at most {TRACE_CHARACTERS_MAX} characters.")


def _check(name: str, value: AttributeValue) -> None:
    if not name:
        raise invalid("The request must contain non-empty message attribute name.")
    lower = name.lower()
    if not NAME.fullmatch(name):
        raise invalid(
            f"The message attribute name '{name[:300]}' is invalid. Attribute name can contain A-Z, a-z, 0-9, "
            "underscore (_), hyphen (-), and period (.) characters."
        )
    if name.startswith(".") or name.endswith(".") or ".." in name:
        raise invalid("You can't use message attribute names beginning or ending with '.', or with two in a row.")
    if lower.startswith(("aws.", "amazon.")):
        raise invalid("You can't use message attribute names beginning with 'AWS.' or 'Amazon.'.")
    kind = value.data_type
    if not kind:
        raise invalid(f"The message attribute '{name}' must contain non-empty message attribute type.")
    if not TYPE.fullmatch(kind) or len(kind) > TYPE_CHARACTERS_MAX:
        raise invalid(
            f"The message attribute '{name}' has an invalid message attribute type, the set of supported type prefixes "
            "is Binary, Number, and String."
        )
    if value.string_list_values or value.binary_list_values:
        raise invalid("Message attribute list values in SendMessage operation are not supported.")
    _check_value(name, value)


def _check_value(name: str, value: AttributeValue) -> None:
    prefix = value.data_type[:6]
    if prefix == "Binary":
        if not value.binary_value or value.string_value is not None:
            raise invalid(f"The message attribute '{name}' must contain a non-empty value of type 'Binary'.")
        return
    text = value.string_value
    if not text or value.binary_value is not None:
        raise invalid(
            f"The message attribute '{name}' with type '{prefix}' must use field 'String'." if value.binary_value
            else f"Message (user) attribute '{name}' must contain a non-empty value of type 'String'."
        )
    check_text(text)
    if prefix == "Number" and not NUMBER.fullmatch(text):
        raise invalid(f"Can't cast the value of message (user) attribute '{name}' to a number.")


class Wanted:
    """The message attributes that a receiver asked for: by name, or by prefix ("te.*" is the prefix "te")."""

    def __init__(self, names: Iterable[str]) -> None:
        names = list(names)
        self.all = "All" in names or ".*" in names
        self._names = frozenset(names)
        self._prefixes = tuple(name.removesuffix(".*") for name in names if name.endswith(".*"))

    def of(self, attributes: dict[str, AttributeValue]) -> dict[str, AttributeValue]:
        """Return the attributes of a message that were asked for."""
        if self.all or not attributes:
            return attributes
        return {
            name: value for name, value in attributes.items()
            if name in self._names or (self._prefixes and name.startswith(self._prefixes))
        }


def system_names(names: Iterable[str]) -> frozenset[str]:
    """Return the system attributes that a receiver asked for. Raises SqsError."""
    asked = frozenset(names)
    for name in asked:
        if name != "All" and name not in ALL:
            raise unknown_attribute(name)
    return ALL if "All" in asked else asked
