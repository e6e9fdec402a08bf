"""The Structs are those of Amazon's service model, as botocore has it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from botocore.loaders import Loader
from sockpq_sqs.model import ACTIONS
from sockpq_sqs.model.errors import MODELLED, SqsError
from sockpq_sqs.model.shapes import Answer

MODEL: dict[str, Any] = Loader().load_service_model("sqs", "service-2")
SHAPES = MODEL["shapes"]
TYPES = {"string": "str", "integer": "int", "long": "int", "boolean": "bool", "blob": "bytes"}

# Required by the model of answers, and left out by the service where they are empty.
LISTS = {"Successful", "Failed", "queueUrls"}

# Members whose elements the Query protocol numbers under another name, from the last model of botocore that had it.
QUERY_NAMES = {
    "AWSAccountIds": "AWSAccountId", "Actions": "ActionName", "AttributeNames": "AttributeName",
    "Attributes": "Attribute", "tags": "Tag", "Tags": "Tag", "TagKeys": "TagKey",
    "MessageAttributes": "MessageAttribute", "MessageSystemAttributes": "MessageSystemAttribute",
    "MessageAttributeNames": "MessageAttributeName", "MessageSystemAttributeNames": "MessageSystemAttributeName",
    "QueueUrls": "QueueUrl", "queueUrls": "QueueUrl", "Messages": "Message", "Failed": "BatchResultErrorEntry",
    "Results": "ListMessageMoveTasksResultEntry", "StringListValues": "StringListValue",
    "BinaryListValues": "BinaryListValue",
}


def described(kind: Any) -> Any:
    """Return a type of ours in the terms of the model: members by name, or the name of a plain type."""
    kind = msgspec.inspect.type_info(kind) if not isinstance(kind, msgspec.inspect.Type) else kind
    if isinstance(kind, msgspec.inspect.Metadata):
        kind = kind.type
    if isinstance(kind, msgspec.inspect.UnionType):
        (kind,) = [one for one in kind.types if not isinstance(one, msgspec.inspect.NoneType)]
        return described(kind)
    if isinstance(kind, msgspec.inspect.StructType):
        return {field.encode_name: described(field.type) for field in kind.fields}
    if isinstance(kind, msgspec.inspect.ListType):
        return [described(kind.item_type)]
    if isinstance(kind, msgspec.inspect.DictType):
        return {"": described(kind.value_type)}
    return type(kind).__name__.removesuffix("Type").lower()


def modelled(name: str) -> Any:
    """Return a shape of the model in the same terms."""
    shape = SHAPES[name]
    if shape["type"] == "structure":
        return {member: modelled(one["shape"]) for member, one in shape["members"].items()}
    if shape["type"] == "list":
        return [modelled(shape["member"]["shape"])]
    if shape["type"] == "map":
        return {"": modelled(shape["value"]["shape"])}
    return TYPES[shape["type"]]


def test_there_are_the_actions_of_the_model() -> None:
    assert set(ACTIONS) == set(MODEL["operations"])
    assert all(name == action.name for name, action in ACTIONS.items())


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_requests_and_answers_have_the_members_of_the_model(name: str) -> None:
    operation, action = MODEL["operations"][name], ACTIONS[name]
    assert described(action.request) == modelled(operation["input"]["shape"])
    output = operation.get("output")
    assert described(action.answer) == (modelled(output["shape"]) if output else {})


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_members_that_the_model_requires_are_required(name: str) -> None:
    def check(struct: Any, shape: dict[str, Any]) -> None:
        required = {field.encode_name for field in msgspec.structs.fields(struct) if field.required}
        wanted = set(shape.get("required", ())) - LISTS
        assert required >= wanted if issubclass(struct, Answer) else required == wanted

    operation, action = MODEL["operations"][name], ACTIONS[name]
    check(action.request, SHAPES[operation["input"]["shape"]])
    if "output" in operation:
        check(action.answer, SHAPES[operation["output"]["shape"]])


def lists_and_maps(kind: Any) -> Any:
    """Yield each list and map within a type, with the name of its member and its description for Query."""
    kind = msgspec.inspect.type_info(kind) if not isinstance(kind, msgspec.inspect.Type) else kind
    if isinstance(kind, msgspec.inspect.StructType):
        for field in kind.fields:
            inner, extra = field.type, {}
            if isinstance(inner, msgspec.inspect.UnionType):
                (inner,) = [one for one in inner.types if not isinstance(one, msgspec.inspect.NoneType)]
            if isinstance(inner, msgspec.inspect.Metadata):
                inner, extra = inner.type, inner.extra or {}
            if isinstance(inner, msgspec.inspect.ListType | msgspec.inspect.DictType):
                yield field.encode_name, isinstance(inner, msgspec.inspect.DictType), extra
                yield from lists_and_maps(
                    inner.item_type if isinstance(inner, msgspec.inspect.ListType) else inner.value_type)


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_lists_and_maps_have_the_names_of_the_query_protocol(name: str) -> None:
    for kind, entries in ((ACTIONS[name].request, "RequestEntry"), (ACTIONS[name].answer, "ResultEntry")):
        for member, is_map, extra in lists_and_maps(kind):
            special = {"Entries": f"{name}{entries}", "Successful": f"{name}{entries}"}
            assert extra["member"] == special.get(member) or extra["member"] == QUERY_NAMES[member], member
            assert set(extra) == ({"member", "key", "value"} if is_map else {"member"})


def test_there_are_the_errors_of_the_model() -> None:
    of_actions = {error["shape"] for operation in MODEL["operations"].values() for error in operation["errors"]}
    assert of_actions - MODELLED == {name for name in of_actions if name.startswith("Kms")}
    assert of_actions >= MODELLED


def test_an_error_has_a_name_in_each_protocol() -> None:
    error = SqsError("QueueDoesNotExist", "It does not.")
    assert (error.type, error.query_code, error.status, error.sender_fault) == (
        "com.amazonaws.sqs#QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", 400, True)
    error = SqsError("InvalidParameterValueException", "It is.")
    assert (error.type, error.query_code) == (
        "com.amazon.coral.service#InvalidParameterValueException", "InvalidParameterValue")
    assert not SqsError("ServiceUnavailable", "Nobody.", 503).sender_fault
