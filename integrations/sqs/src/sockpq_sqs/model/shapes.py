"""Bases, lists and maps that the requests and answers share.

A struct's encoded names are those of Amazon's service model, which JSON uses as they are. The Query protocol numbers
the elements of lists and maps under a name in the singular (`AttributeName.1`, `Attribute.1.Name`): the `extra` of such
a field's type has that name as `member`, and for maps those of `key` and `value`.
"""

from typing import Annotated

from msgspec import Meta, Struct


class Request(Struct, rename="pascal"):
    """Base of requests. Members that a struct does not have are ignored, as Amazon's service ignores them."""


class Answer(Struct, rename="pascal", omit_defaults=True):
    """Base of answers. Members without a value are left out."""


QueueAttributeNames = Annotated[list[str], Meta(extra={"member": "AttributeName"})]
MessageAttributeNames = Annotated[list[str], Meta(extra={"member": "MessageAttributeName"})]
AccountIds = Annotated[list[str], Meta(extra={"member": "AWSAccountId"})]
ActionNames = Annotated[list[str], Meta(extra={"member": "ActionName"})]
QueueUrls = Annotated[list[str], Meta(extra={"member": "QueueUrl"})]
TagKeys = Annotated[list[str], Meta(extra={"member": "TagKey"})]
Attributes = Annotated[dict[str, str], Meta(extra={"member": "Attribute", "key": "Name", "value": "Value"})]
Tags = Annotated[dict[str, str], Meta(extra={"member": "Tag", "key": "Key", "value": "Value"})]


class AttributeValue(Struct, rename="pascal", omit_defaults=True):
    """One attribute of a message: text or bytes, and its type: String, Number or Binary, and what senders add to it.

    The two lists are in Amazon's model and not implemented there either.
    """

    data_type: str
    string_value: str | None = None
    binary_value: bytes | None = None
    string_list_values: Annotated[list[str], Meta(extra={"member": "StringListValue"})] | None = None
    binary_list_values: Annotated[list[bytes], Meta(extra={"member": "BinaryListValue"})] | None = None


MessageAttributes = Annotated[
    dict[str, AttributeValue], Meta(extra={"member": "MessageAttribute", "key": "Name", "value": "Value"}),
]
SystemAttributes = Annotated[
    dict[str, AttributeValue], Meta(extra={"member": "MessageSystemAttribute", "key": "Name", "value": "Value"}),
]


class FailedEntry(Answer):
    """An entry of a batch that failed."""

    id: str
    sender_fault: bool
    code: str
    message: str | None = None


FailedEntries = Annotated[list[FailedEntry], Meta(extra={"member": "BatchResultErrorEntry"})]
