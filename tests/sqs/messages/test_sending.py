"""SendMessage and SendMessageBatch: digests, sizes, delays, attributes, and refusals."""

from __future__ import annotations

import uuid
from hashlib import md5
from typing import Any

import pytest
from sockpq import Key
from sockpq_sqs.options import Options

from tests.client.real_server import RealServer
from tests.sqs.running_engine import RunningEngine

MIB = 1_048_576
TEXT = {"DataType": "String", "StringValue": "v"}


def digest(text: str) -> str:
    """Return the digest of a body."""
    return md5(text.encode(), usedforsecurity=False).hexdigest()


def test_a_message_goes_from_sender_to_receiver(engine: RunningEngine) -> None:
    url = engine.queue()
    body = "grün €, 漢字, \U0001f600 <a>\r\n\t"
    sent = engine.send(url, body)
    assert sent["MD5OfMessageBody"] == digest(body)
    assert str(uuid.UUID(sent["MessageId"])) == sent["MessageId"]
    assert "SequenceNumber" not in sent
    message = engine.one(url)
    assert set(message) == {"MessageId", "ReceiptHandle", "MD5OfBody", "Body"}
    assert (message["Body"], message["MD5OfBody"], message["MessageId"]) == (body, digest(body), sent["MessageId"])
    engine("DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    assert engine.receive(url) == []
    assert engine.attributes(url, "ApproximateNumberOfMessages") == {"ApproximateNumberOfMessages": "0"}


ATTRIBUTES = {
    "text": {"DataType": "String", "StringValue": "grün"},
    "lines": {"DataType": "String", "StringValue": "a\tb\nc"},
    "number": {"DataType": "Number", "StringValue": "-17.50e3"},
    "bytes": {"DataType": "Binary", "BinaryValue": b"\x00\x01\xff"},
    "typed.one": {"DataType": "String.json", "StringValue": "{}"},
    "typed-two": {"DataType": "Binary.png", "BinaryValue": b"png"},
    "sqs.own": TEXT,
    "n" * 256: {"DataType": "String", "StringValue": "x" * 5000},
}


def test_attributes_of_all_kinds_come_back(engine: RunningEngine) -> None:
    url = engine.queue(VisibilityTimeout="0")
    sent = engine.send(url, MessageAttributes=ATTRIBUTES)
    message = engine.one(url, MessageAttributeNames=["All"])
    assert message["MessageAttributes"] == ATTRIBUTES
    assert message["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    assert message["Body"] == "body"
    for asked, found in (
        (["text"], {"text"}), (["typed.*"], {"typed.one", "typed-two"}), (["te.*"], {"text"}), (["nothing"], set()),
        ([".*"], set(ATTRIBUTES)), (["text", "bytes", "none"], {"text", "bytes"}), (["TEXT"], set()),
    ):
        message = engine.one(url, MessageAttributeNames=asked)
        assert set(message.get("MessageAttributes", {})) == found
        assert ("MD5OfMessageAttributes" in message) == bool(found)
    assert "MessageAttributes" not in engine.one(url)


def test_the_digest_of_attributes_is_amazons(engine: RunningEngine) -> None:
    """The digests are those that boto3's own check, and the service itself, compute for these attributes."""
    url = engine.queue()
    sent = engine.send(url, MessageAttributes={"timestamp": {"DataType": "Number", "StringValue": "1493147359900"}})
    assert sent["MD5OfMessageAttributes"] == "235c5c510d26fb653d073faed50ae77c"


def test_attributes_are_headers_for_programs_of_the_clusters_own_protocol(engine: RunningEngine) -> None:
    url = engine.queue()
    engine.send(url, "hello", MessageAttributes={"task": TEXT, "n": {"DataType": "Number", "StringValue": "1"}})
    (job,) = engine.client("get_many", 1, "orders", expire=30, headers=True)
    length = int(job.headers.pop("sqs.attrs"))
    assert job.headers == {"task": "v"}
    assert job.data[length:] == b"hello"
    engine.client("put", "orders", b"native \xff\x00", headers={"kind": "k"})
    message = engine.one(url, MessageAttributeNames=["All"])
    assert message["Body"] == "native \ufffd\ufffd"
    assert message["MD5OfBody"] == digest("native \ufffd\ufffd")
    assert message["MessageAttributes"] == {"kind": {"DataType": "String", "StringValue": "k"}}


@pytest.mark.parametrize(("name", "value", "code"), [
    ("AWS.x", TEXT, "InvalidParameterValue"), ("amazon.x", TEXT, "InvalidParameterValue"),
    (".x", TEXT, "InvalidParameterValue"), ("x.", TEXT, "InvalidParameterValue"),
    ("a..b", TEXT, "InvalidParameterValue"), ("a!b", TEXT, "InvalidParameterValue"),
    ("n" * 257, TEXT, "InvalidParameterValue"), ("", TEXT, "InvalidParameterValue"),
    ("a", {"DataType": "Text", "StringValue": "v"}, "InvalidParameterValue"),
    ("a", {"DataType": "", "StringValue": "v"}, "InvalidParameterValue"),
    ("a", {"DataType": "Number." + "t" * 250, "StringValue": "1"}, "InvalidParameterValue"),
    ("a", {"DataType": "String", "StringValue": ""}, "InvalidParameterValue"),
    ("a", {"DataType": "String"}, "InvalidParameterValue"),
    ("a", {"DataType": "String", "BinaryValue": b"x"}, "InvalidParameterValue"),
    ("a", {"DataType": "Binary", "StringValue": "x"}, "InvalidParameterValue"),
    ("a", {"DataType": "String", "StringValue": "\x08"}, "InvalidMessageContents"),
    ("a", {"DataType": "Number", "StringValue": "x"}, "InvalidParameterValue"),
    ("a", {"DataType": "String", "StringValue": "v", "StringListValues": ["v"]}, "InvalidParameterValue"),
])
def test_bad_attributes_are_refused(engine: RunningEngine, name: str, value: dict[str, Any], code: str) -> None:
    url = engine.queue()
    error = engine.refused("SendMessage", QueueUrl=url, MessageBody="x", MessageAttributes={name: value})
    assert error.query_code == code
    assert engine.receive(url) == []


def test_a_message_has_ten_attributes(engine: RunningEngine) -> None:
    url = engine.queue()
    attributes = {f"a{n}": TEXT for n in range(11)}
    assert engine.refused(
        "SendMessage", QueueUrl=url, MessageBody="x", MessageAttributes=attributes).code.startswith("InvalidParameter")
    del attributes["a0"]
    engine.send(url, MessageAttributes=attributes)


@pytest.mark.parametrize("body", ["a\x08b", "a\x0bb", "a\uffffb", "\x00", "\ufffe"])
def test_characters_that_xml_has_not_are_refused(engine: RunningEngine, body: str) -> None:
    error = engine.refused("SendMessage", QueueUrl=engine.queue(), MessageBody=body)
    assert error.code == "InvalidMessageContents"


def test_an_empty_body_is_refused(engine: RunningEngine) -> None:
    error = engine.refused("SendMessage", QueueUrl=engine.queue(), MessageBody="")
    assert error.query_code == "MissingParameter"


def test_the_size_counts_bytes_of_body_and_attributes(engine: RunningEngine) -> None:
    url = engine.queue(MaximumMessageSize="1024")
    eight = {"a": TEXT}
    engine.send(url, "x" * 1024)
    engine.send(url, "x" * 1016, MessageAttributes=eight)
    for body, more in (("ä" * 513, {}), ("x" * 1017, {"MessageAttributes": eight})):
        error = engine.refused("SendMessage", QueueUrl=url, MessageBody=body, **more)
        assert error.query_code == "InvalidParameterValue"
    for value in ({"DataType": "Binary", "BinaryValue": b"\xff" * (MIB - 8)},
                  {"DataType": "String", "StringValue": "\n" * (MIB - 8)}):
        engine.send(engine.queue("attributes"), "x", MessageAttributes={"a": value})
        message = engine.one("attributes", MessageAttributeNames=["All"])
        assert message["MessageAttributes"] == {"a": value}
    large = engine.queue("large")
    engine.send(large, "x" * MIB)
    assert len(engine.one(large)["Body"]) == MIB
    assert engine.refused("SendMessage", QueueUrl=large, MessageBody="x" * (MIB + 1)).status == 400


def test_a_message_is_delayed_by_itself_or_by_its_queue(server: RealServer, engine: RunningEngine) -> None:
    url = engine.queue(DelaySeconds="20")
    engine.send(url, "slow")
    engine.send(url, "slower", DelaySeconds=40)
    engine.send(url, "fast", DelaySeconds=0)
    assert engine.attributes(url, "ApproximateNumberOfMessagesDelayed") == {"ApproximateNumberOfMessagesDelayed": "2"}
    assert engine.bodies(url) == ["fast"]
    server.pass_time(20.1)
    assert engine.bodies(url) == ["slow"]
    server.pass_time(20.1)
    assert engine.bodies(url, 1) == ["slower"]
    for delay in (901, -1):
        error = engine.refused("SendMessage", QueueUrl=url, MessageBody="x", DelaySeconds=delay)
        assert error.query_code == "InvalidParameterValue"


def test_the_trace_is_a_system_attribute(engine: RunningEngine) -> None:
    url = engine.queue()
    trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988-bd862e3f"}}
    sent = engine.send(url, MessageSystemAttributes=trace)
    assert sent["MD5OfMessageSystemAttributes"]
    assert "MD5OfMessageAttributes" not in sent
    assert engine.one(url, AttributeNames=["AWSTraceHeader"])["Attributes"] == {
        "AWSTraceHeader": "Root=1-5759e988-bd862e3f"}
    engine.call["trace"] = "Root=1-of-http"
    engine.send(url)
    assert engine.one(url, MessageSystemAttributeNames=["All"])["Attributes"]["AWSTraceHeader"] == "Root=1-of-http"
    long = {"DataType": "String", "StringValue": "\U0001f600" * 256}
    del engine.call["trace"]
    engine.send(url, MessageSystemAttributes={"AWSTraceHeader": long})
    message = engine.one(url, MessageSystemAttributeNames=["AWSTraceHeader"])
    assert message["Attributes"] == {"AWSTraceHeader": long["StringValue"]}
    for bad in ({"Foo": TEXT}, {"AWSTraceHeader": {**TEXT, "StringValue": "x" * 257}},
                {"AWSTraceHeader": {**TEXT, "StringValue": "a\nb"}},
                {"AWSTraceHeader": {**TEXT, "DataType": "Number"}}):
        error = engine.refused("SendMessage", QueueUrl=url, MessageBody="x", MessageSystemAttributes=bad)
        assert error.query_code == "InvalidParameterValue"


# batches


def entries(*bodies: str, **more: Any) -> list[dict[str, Any]]:
    """Return entries with these bodies, and ids from 0 on."""
    return [{"Id": str(number), "MessageBody": body, **more} for number, body in enumerate(bodies)]


def test_a_batch_is_sent_in_order_with_an_answer_for_each(engine: RunningEngine) -> None:
    url = engine.queue()
    batch = entries(*"abcdefghij")
    batch[3]["MessageAttributes"] = {"k": TEXT}
    answer = engine("SendMessageBatch", QueueUrl=url, Entries=batch)
    assert "Failed" not in answer
    assert [one["Id"] for one in answer["Successful"]] == [str(number) for number in range(10)]
    found = engine.receive(url, MessageAttributeNames=["All"])
    assert [one["Body"] for one in found] == list("abcdefghij")
    assert [one["MessageId"] for one in found] == [one["MessageId"] for one in answer["Successful"]]
    assert found[3]["MD5OfMessageAttributes"] == answer["Successful"][3]["MD5OfMessageAttributes"]


def test_one_bad_entry_does_not_stop_the_others(engine: RunningEngine) -> None:
    url = engine.queue(MaximumMessageSize="1024")
    answer = engine("SendMessageBatch", QueueUrl=url, Entries=entries("good", "x" * 1025, "\x08", "fine"))
    assert [one["Id"] for one in answer["Successful"]] == ["0", "3"]
    assert [(one["Id"], one["Code"], one["SenderFault"]) for one in answer["Failed"]] == [
        ("1", "InvalidParameterValue", True), ("2", "InvalidMessageContents", True)]
    assert answer["Failed"][0]["Message"] == (
        "One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes.")
    assert engine.bodies(url) == ["good", "fine"]


@pytest.mark.parametrize(("batch", "code"), [
    ([], "EmptyBatchRequest"), (entries(*"abcdefghijk"), "TooManyEntriesInBatchRequest"),
    (entries("a") * 2, "BatchEntryIdsNotDistinct"), ([{"Id": "a b", "MessageBody": "x"}], "InvalidBatchEntryId"),
    ([{"Id": "i" * 81, "MessageBody": "x"}], "InvalidBatchEntryId"),
    (entries("x" * 700_000, "x" * 400_000), "BatchRequestTooLong"),
    ([{"Id": "a", "MessageBody": "x" * (MIB - 8), "MessageAttributes": {"k": {**TEXT, "StringValue": "x"}}},
      {"Id": "b", "MessageBody": "y"}], "BatchRequestTooLong"),
])
def test_bad_batches_are_refused_as_a_whole(engine: RunningEngine, batch: list[Any], code: str) -> None:
    url = engine.queue()
    assert engine.refused("SendMessageBatch", QueueUrl=url, Entries=batch).code == code
    assert engine.receive(url) == []


# repetitions by SDKs


def test_a_repetition_of_an_sdk_sends_once_where_that_is_configured(server: RealServer) -> None:
    with RunningEngine(server, Options(once=True)) as engine:
        url = engine.queue()
        engine.call["invocation"] = "5c0d9d1f-8a30-4d0e-b1f5-6f2f3f5d3d59"
        first = engine.send(url, "x")
        assert engine.send(url, "x")["MessageId"] == first["MessageId"]
        batch = entries("a", "b")
        ids = [engine("SendMessageBatch", QueueUrl=url, Entries=batch)["Successful"] for _ in range(2)]
        assert ids[0] == ids[1]
        assert engine.bodies(url, VisibilityTimeout=300) == ["x", "a", "b"]
        engine.call["invocation"] = "another"
        engine.send(url, "x")
        server.pass_time(61)
        engine.send(url, "x")
        assert engine.bodies(url) == ["x", "x"]


def test_without_that_a_repetition_is_another_message(engine: RunningEngine) -> None:
    url = engine.queue()
    engine.call["invocation"] = "same"
    engine.send(url)
    engine.send(url)
    assert len(engine.receive(url)) == 2
    assert engine.client("peek", Key("sqs:registry", "orders")) is not None
