"""Both protocols: requests that are decoded, requests that are refused, and the form of answers."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest
from sockpq_sqs.model import ACTIONS
from sockpq_sqs.model.answers import (
    ListQueuesAnswer,
    Message,
    Nothing,
    QueueTagsAnswer,
    ReceiveMessageAnswer,
    SendMessageBatchAnswer,
    SentEntry,
)
from sockpq_sqs.model.errors import SqsError
from sockpq_sqs.model.shapes import AttributeValue, FailedEntry
from sockpq_sqs.wire import Exchange, exchange_of
from sockpq_sqs.wire.limits import ELEMENTS_MAX, NAME_PARTS_MAX, PARAMETERS_MAX
from sockpq_sqs.wire.shapes import shape_of

URL = "http://127.0.0.1:9324/000000000000/orders"
ENTRY = "SendMessageBatchRequestEntry"
NAMESPACE = "{http://queue.amazonaws.com/doc/2012-11-05/}"


def query(method: str = "POST", text: str = "", url: str | None = None) -> Exchange:
    return exchange_of(method, text, None, "application/x-www-form-urlencoded", url, "an-id")


def by_json(action: str) -> Exchange:
    return exchange_of("POST", "", f"AmazonSQS.{action}", "application/x-amz-json-1.0", None, "an-id")


def form(text: str, url: str | None = URL) -> Any:
    return query(url=url).decode(text.encode())[1]


def refusal(exchange: Exchange, body: bytes) -> SqsError:
    with pytest.raises(SqsError) as caught:
        exchange.decode(body)
    return caught.value


@pytest.mark.parametrize("action", ACTIONS.values(), ids=lambda action: action.name)
def test_both_protocols_read_every_action(action: Any) -> None:
    lists = {"Entries": [], "Attributes": {}, "Tags": {}, "TagKeys": [], "AWSAccountIds": [], "Actions": []}
    required: dict[str, Any] = {
        member.name: lists.get(member.name, 5 if member.name == "VisibilityTimeout" else "text")
        for member in shape_of(action.request).members if member.required
    }
    by_form = query().decode(("Action=" + action.name + "".join(
        f"&{name}={value}" for name, value in required.items() if not isinstance(value, list | dict))).encode())
    assert by_form == by_json(action.name).decode(json.dumps(required).encode())
    assert by_form[0] is action


def test_a_form_has_lists_maps_and_structs() -> None:
    request = form(
        f"Action=SendMessageBatch&Version=2012-11-05&{ENTRY}.10.Id=b&{ENTRY}.9.Id=a&{ENTRY}.9.MessageBody=1%20%26+2"
        f"&{ENTRY}.9.DelaySeconds=0&{ENTRY}.10.MessageBody=%C3%BC%0D%0A&{ENTRY}.10.MessageAttribute.1.Name=n"
        f"&{ENTRY}.10.MessageAttribute.1.Value.DataType=Binary&{ENTRY}.10.MessageAttribute.1.Value.BinaryValue=AP8%3D"
        f"&{ENTRY}.10.MessageAttribute.2.Name=m&{ENTRY}.10.MessageAttribute.2.Value.DataType=Number"
        f"&{ENTRY}.10.MessageAttribute.2.Value.StringValue=0")
    assert request.queue_url == URL
    first, second = request.entries
    assert (first.id, first.message_body, first.delay_seconds, first.message_attributes) == ("a", "1 & 2", 0, None)
    assert (second.message_body, second.delay_seconds) == ("ü\r\n", None)
    assert second.message_attributes == {
        "n": AttributeValue(data_type="Binary", binary_value=b"\0\xff"),
        "m": AttributeValue(data_type="Number", string_value="0"),
    }


def test_a_form_names_a_single_entry_without_a_number() -> None:
    assert form("Action=GetQueueAttributes&AttributeName=All").attribute_names == ["All"]
    request = form("Action=SetQueueAttributes&Attribute.Name=DelaySeconds&Attribute.Value=1")
    assert request.attributes == {"DelaySeconds": "1"}


def test_the_url_of_the_queue_is_used_where_the_form_names_none() -> None:
    assert form("Action=PurgeQueue").queue_url == URL
    assert form("Action=PurgeQueue&QueueUrl=other").queue_url == "other"
    assert refusal(query(), b"Action=PurgeQueue").message == "The request must contain the parameter QueueUrl."


def test_a_list_without_entries_is_empty() -> None:
    assert form("Action=SendMessageBatch").entries == []
    assert form("Action=SetQueueAttributes").attributes == {}


def test_by_get_the_url_of_a_queue_takes_only_actions_on_it() -> None:
    assert query("GET", "Action=GetQueueAttributes", URL).decode(b"")[1].queue_url == URL
    for action in ("CreateQueue&QueueName=q", "ListQueues"):
        error = refusal(query("GET", f"Action={action}", URL), b"")
        assert (error.status, error.query_code) == (400, "InvalidAction")
        query("GET", f"Action={action}").decode(b"")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"Action=FooBar", "InvalidAction"),
        (b"Action=SendMessage", "MissingParameter"),
        (b"Action=ReceiveMessage&MaxNumberOfMessages=many", "MalformedInput"),
        (b"Action=ReceiveMessage&AttributeName.x=All", "MalformedInput"),
        (b"Action=ReceiveMessage&AttributeName.-1=All", "MalformedInput"),
        (b"Action=ReceiveMessage&AttributeName.\xc2\xb9=All", "MalformedInput"),
        (b"Action=ReceiveMessage&AttributeName.1111111111=All", "MalformedInput"),
        (b"Action=ReceiveMessage&AttributeName.1.1=All", "MalformedInput"),
        (b"Action=ReceiveMessage&AttributeName.1=a&AttributeName.1.1=b", "MalformedInput"),
        (b"Action=ReceiveMessage&AttributeName.1.1=a&AttributeName.1=b", "MalformedInput"),
        (b"Action=ReceiveMessage&WaitTimeSeconds.1=5", "MalformedInput"),
        (b"Action=SetQueueAttributes&Attribute=5", "MalformedInput"),
        (b"Action=SetQueueAttributes&Attribute.1.Value=5", "MalformedInput"),
        (b"Action=SetQueueAttributes&Attribute.1.Name.x=5", "MalformedInput"),
        (b"Action=SendMessage&MessageBody=%ff", "MalformedInput"),
        (b"Action=SendMessage&MessageBody=b&" + b".".join([b"a"] * (NAME_PARTS_MAX + 1)) + b"=1", "MalformedInput"),
        (b"Action=SendMessage&MessageBody=b&" + b".".join([b"a"] * 100_000) + b"=1", "MalformedInput"),
        (b"&".join([b"a=1"] * (PARAMETERS_MAX + 1)), "MalformedInput"),
    ],
)
def test_a_form_that_is_none_is_refused(text: bytes, code: str) -> None:
    assert refusal(query(url=URL), text).query_code == code


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_without_an_action_there_is_no_operation(method: str) -> None:
    exchange = query(method, "Version=2012-11-05")
    document = exchange.error(refusal(exchange, b""))
    assert (document.status, document.body) == (404, b"<UnknownOperationException/>")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{not json", "SerializationException"),
        (b"[]", "SerializationException"),
        (b'{"QueueUrl": "u", "MessageBody": 5}', "SerializationException"),
        (b'{"QueueUrl": "u", "MessageBody": "b", "DelaySeconds": "5"}', "SerializationException"),
        (b'{"QueueUrl": "u", "MessageBody": "b", "MessageAttributes": {"a": {"DataType": "B", "BinaryValue": "-"}}}',
         "SerializationException"),
        (b'{"QueueUrl": "u", "MessageBody": "\xff"}', "SerializationException"),
        (b'{"x": ' + b"[" * 100_000, "SerializationException"),
        (b'{"x": ' + b'{"a":' * 100_000, "SerializationException"),
        (b'{"QueueUrl": "u", "MessageBody": "b", "MessageAttributes": {%b}}' % b",".join(
            b'"%d": {"DataType": "String"}' % number for number in range(ELEMENTS_MAX + 1)), "SerializationException"),
        (b"", "MissingRequiredParameterException"),
        (b'{"QueueUrl": "u"}', "MissingRequiredParameterException"),
    ],
)
def test_json_that_is_none_is_refused(body: bytes, code: str) -> None:
    error = refusal(by_json("SendMessage"), body)
    assert (error.status, error.code) == (400, code)


def test_lists_of_very_many_elements_are_refused() -> None:
    entry = {"Id": "a", "MessageBody": "b"}

    def decode(entries: list[dict[str, Any]]) -> Any:
        return by_json("SendMessageBatch").decode(json.dumps({"QueueUrl": "u", "Entries": entries}).encode())[1]

    assert len(decode([entry] * ELEMENTS_MAX).entries) == ELEMENTS_MAX
    many = {str(number): {"DataType": "String"} for number in range(ELEMENTS_MAX + 1)}
    for entries in ([entry] * (ELEMENTS_MAX + 1), [entry, {**entry, "MessageAttributes": many}]):
        with pytest.raises(SqsError, match="more than 1000 elements"):
            decode(entries)


def test_members_that_are_not_known_are_ignored() -> None:
    _, request = by_json("ListQueues").decode(b'{"Unknown": [1, {"a": null}], "MaxResults": 3}')
    assert request.max_results == 3


@pytest.mark.parametrize("target", ["AmazonSQS.FooBar", "AmazonSNS.SendMessage", "SendMessage", ""])
def test_an_unknown_target_is_refused(target: str) -> None:
    exchange = exchange_of("POST", "", target, "application/x-amz-json-1.0", None, "an-id")
    document = exchange.error(refusal(exchange, b"{}"))
    assert json.loads(document.body)["__type"] == "com.amazon.coral.service#UnknownOperationException"


def test_an_error_in_json_has_the_codes_of_both_protocols() -> None:
    document = by_json("GetQueueUrl").error(SqsError("QueueDoesNotExist", "No such queue."))
    assert json.loads(document.body) == {"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "No such queue."}
    assert document[:2] == (400, "application/x-amz-json-1.0")
    assert document.query_error == "AWS.SimpleQueueService.NonExistentQueue;Sender"
    assert by_json("X").error(SqsError("InternalFailure", "", 500)).query_error == "InternalFailure;Receiver"


def test_an_error_in_xml() -> None:
    document = query().error(SqsError("QueueDoesNotExist", "json", query_message="<no> & \r"))
    root = ElementTree.fromstring(document.body)
    assert root.tag == f"{NAMESPACE}ErrorResponse"
    texts = {element.tag.removeprefix(NAMESPACE): element.text for element in root.iter()}
    assert texts["Type"] == "Sender"
    assert texts["Code"] == "AWS.SimpleQueueService.NonExistentQueue"
    assert texts["Message"] == "<no> & \r"
    assert texts["RequestId"] == "an-id"


def answered(action: str, answer: Any) -> ElementTree.Element:
    exchange = query(url=URL)
    exchange.action = ACTIONS[action]
    document = exchange.answer(answer)
    assert document[:2] == (200, "text/xml")
    return ElementTree.fromstring(document.body)


def plain(element: ElementTree.Element) -> Any:
    children = [(child.tag.removeprefix(NAMESPACE), plain(child)) for child in element]
    return children or element.text or ""


def test_messages_in_xml() -> None:
    root = answered("ReceiveMessage", ReceiveMessageAnswer(messages=[Message(
        message_id="1", receipt_handle="h", md5_of_body="m", body='<b> & "ü"\r\n]]>', attributes={"SenderId": "s"},
        message_attributes={"n": AttributeValue(data_type="Binary", binary_value=b"\0\xff")},
    )] * 2))
    assert root.tag == f"{NAMESPACE}ReceiveMessageResponse"
    result, metadata = plain(root)
    assert metadata == ("ResponseMetadata", [("RequestId", "an-id")])
    assert [name for name, _ in result[1]] == ["Message", "Message"]
    assert result[1][0][1] == [
        ("MessageId", "1"), ("ReceiptHandle", "h"), ("MD5OfBody", "m"), ("Body", '<b> & "ü"\r\n]]>'),
        ("Attribute", [("Name", "SenderId"), ("Value", "s")]),
        ("MessageAttribute", [("Name", "n"), ("Value", [("DataType", "Binary"), ("BinaryValue", "AP8=")])]),
    ]


def test_a_batch_in_xml() -> None:
    result, _ = plain(answered("SendMessageBatch", SendMessageBatchAnswer(
        successful=[SentEntry(id="a", message_id="1", md5_of_message_body="m")],
        failed=[FailedEntry(id="b", sender_fault=True, code="c")])))
    assert result == ("SendMessageBatchResult", [
        ("SendMessageBatchResultEntry", [("Id", "a"), ("MessageId", "1"), ("MD5OfMessageBody", "m")]),
        ("BatchResultErrorEntry", [("Id", "b"), ("SenderFault", "true"), ("Code", "c")]),
    ])


def test_tags_and_urls_in_xml() -> None:
    assert plain(answered("ListQueueTags", QueueTagsAnswer(tags={"k": "v"})))[0] == (
        "ListQueueTagsResult", [("Tag", [("Key", "k"), ("Value", "v")])])
    assert plain(answered("ListQueues", ListQueuesAnswer(queue_urls=["u", "v"], next_token="t")))[0] == (
        "ListQueuesResult", [("QueueUrl", "u"), ("QueueUrl", "v"), ("NextToken", "t")])


def test_an_action_without_a_result_has_none() -> None:
    assert [name for name, _ in plain(answered("DeleteMessage", Nothing()))] == ["ResponseMetadata"]
    exchange = by_json("DeleteMessage")
    assert exchange.answer(Nothing()).body == b"{}"


def test_lists_that_are_empty_are_left_out_of_json() -> None:
    assert by_json("ReceiveMessage").answer(ReceiveMessageAnswer()).body == b"{}"
    assert by_json("SendMessageBatch").answer(SendMessageBatchAnswer()).body == b"{}"
