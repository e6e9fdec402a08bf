"""Messages: bodies, sizes, attributes and refusals."""

from __future__ import annotations

import time
import uuid

from tests.sqs.conformance.endpoint import KIB, Check, Skip, attributes_md5, check, equal, md5, refused, supports, true


@check("message", "doc")
def send_receive_delete(t: Check) -> None:
    url = t.queue()
    sent = t.send(url, "hello")
    message = t.one(url)
    equal((message["Body"], message["MessageId"]), ("hello", sent["MessageId"]))
    equal((message["MD5OfBody"], sent["MD5OfMessageBody"]), (md5("hello"),) * 2)
    equal(str(uuid.UUID(sent["MessageId"])), sent["MessageId"], "message id as a UUID")
    true("Attributes" not in message and "MessageAttributes" not in message, "attributes that nobody asked for")
    t.delete(url, message)
    t.none(url, wait=1)
    equal(t.attributes(url, "ApproximateNumberOfMessages"), {"ApproximateNumberOfMessages": "0"})


@check("message", "aws")
def receive_of_nothing_has_no_list(t: Check) -> None:
    equal(t.sqs.receive_message(QueueUrl=t.queue()).get("Messages"), None, "Messages")


@check("message", "doc")
def bodies_of_all_kinds(t: Check) -> None:
    url = t.queue()
    bodies = [
        "grün €, 漢字 and \U0001f600",
        '<a href="x">&amp;</a>',
        "line\r\nline\ttab",
        " leading and trailing ",
        '{"a": [1, 2]}',
        "+%20&=?",
        "\ud7ff\ue000\ufffd",
    ]
    for body in bodies:
        equal(t.send(url, body)["MD5OfMessageBody"], md5(body), f"digest of {body!r}")
    equal(sorted(m["Body"] for m in t.drain(url, len(bodies))), sorted(bodies))


@check("message", "aws")
def characters_that_xml_has_not_are_refused(t: Check) -> None:
    url = t.queue()
    for body in ("a\x08b", "a\x0bb", "a\uffffb", "\x00"):
        refused("InvalidMessageContents", t.send, url, body)


@check("message", "aws")
def empty_body_is_refused(t: Check) -> None:
    refused({"MissingParameter", "InvalidParameterValue"}, t.send, t.queue(), "", status=400)


@check("message", "doc")
def one_mib_and_not_more(t: Check) -> None:
    url = t.queue()
    t.send(url, "x" * (1024 * KIB))
    equal(len(t.one(url)["Body"]), 1024 * KIB)
    refused("InvalidParameterValue", t.send, url, "x" * (1024 * KIB + 1))


@check("message", "doc")
def size_counts_utf8_and_attributes(t: Check) -> None:
    url = t.queue(MaximumMessageSize=1024)
    t.send(url, "x" * 1024)
    refused("InvalidParameterValue", t.send, url, "ä" * 513)
    attribute = {"a": {"DataType": "String", "StringValue": "v"}}  # 8 bytes
    t.send(url, "x" * 1016, MessageAttributes=attribute)
    refused("InvalidParameterValue", t.send, url, "x" * 1017, MessageAttributes=attribute)


ATTRIBUTES = {
    "text": {"DataType": "String", "StringValue": "grün"},
    "number": {"DataType": "Number", "StringValue": "-17.50"},
    "bytes": {"DataType": "Binary", "BinaryValue": b"\x00\x01\xff"},
    "typed.one": {"DataType": "String.json", "StringValue": "{}"},
    "typed.two": {"DataType": "Number.int", "StringValue": "3"},
    "typed-three": {"DataType": "Binary.png", "BinaryValue": b"png"},
}


@check("attribute", "doc")
def message_attributes_come_back(t: Check) -> None:
    url = t.queue()
    sent = t.send(url, MessageAttributes=ATTRIBUTES)
    equal(sent["MD5OfMessageAttributes"], attributes_md5(ATTRIBUTES), "digest in the answer of SendMessage")
    message = t.one(url, MessageAttributeNames=["All"])
    equal(message["MessageAttributes"], ATTRIBUTES)
    equal(message["MD5OfMessageAttributes"], attributes_md5(ATTRIBUTES), "digest in ReceiveMessage")


@check("attribute", "doc")
def no_attributes_unless_asked_for(t: Check) -> None:
    url = t.queue()
    t.send(url, MessageAttributes=ATTRIBUTES)
    message = t.one(url)
    true(
        "MessageAttributes" not in message and "MD5OfMessageAttributes" not in message,
        "attributes without being asked for",
    )


@check("attribute", "aws")
def attributes_by_name_and_prefix(t: Check) -> None:
    url = t.queue(VisibilityTimeout=0)
    t.send(url, MessageAttributes=ATTRIBUTES)
    for asked, wanted in (
        (["text"], {"text"}),
        (["typed.*"], {"typed.one", "typed.two", "typed-three"}),
        (["te.*"], {"text"}),
        ([".*"], set(ATTRIBUTES)),
        (["text", "nothing", "bytes"], {"text", "bytes"}),
        (["nothing"], set()),
        (["TEXT"], set()),
    ):
        message = t.one(url, MessageAttributeNames=asked)
        found = message.get("MessageAttributes", {})
        equal(set(found), wanted, f"names for {asked}")
        equal(message.get("MD5OfMessageAttributes"), attributes_md5(found) if found else None, f"digest for {asked}")


@check("attribute", "aws")
def bad_attributes_are_refused(t: Check) -> None:
    url = t.queue()
    text = {"DataType": "String", "StringValue": "v"}
    bad = {
        "name AWS.": {"AWS.x": text},
        "name amazon.": {"amazon.x": text},
        "name .x": {".x": text},
        "name x.": {"x.": text},
        "name with !": {"a!b": text},
        "name of 257": {"n" * 257: text},
        "type": {"a": {"DataType": "Text", "StringValue": "v"}},
        "type of 257": {"a": {"DataType": "Number." + "t" * 250, "StringValue": "1"}},
        "empty value": {"a": {"DataType": "String", "StringValue": ""}},
        "no value": {"a": {"DataType": "String"}},
        "control character": {"a": {"DataType": "String", "StringValue": "\x08"}},
    }
    wrong = []
    for what, attributes in bad.items():
        try:
            refused({"InvalidParameterValue", "InvalidMessageContents"}, t.send, url, MessageAttributes=attributes)
        except AssertionError as error:
            wrong.append(f"{what}: {error}")
    equal(wrong, [], "accepted, or refused with another error")


@check("attribute", "doc")
def number_must_be_a_number(t: Check) -> None:
    refused(
        "InvalidParameterValue", t.send, t.queue(), MessageAttributes={"a": {"DataType": "Number", "StringValue": "x"}}
    )


@check("attribute", "doc")
def eleven_attributes_are_refused(t: Check) -> None:
    url = t.queue()
    attributes = {f"a{n}": {"DataType": "String", "StringValue": "v"} for n in range(11)}
    refused("InvalidParameterValue", t.send, url, MessageAttributes=attributes)
    del attributes["a0"]
    t.send(url, MessageAttributes=attributes)


TRACE = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1"}}


@check("attribute", "aws")
def trace_header_is_a_system_attribute(t: Check) -> None:
    url = t.queue()
    sent = t.send(url, MessageSystemAttributes=TRACE, MessageAttributes=ATTRIBUTES)
    equal(sent["MD5OfMessageAttributes"], attributes_md5(ATTRIBUTES), "digest of the message attributes")
    message = t.one(url, AttributeNames=["AWSTraceHeader"], MessageAttributeNames=["All"])
    equal(message["Attributes"], {"AWSTraceHeader": TRACE["AWSTraceHeader"]["StringValue"]})
    equal(message["MessageAttributes"], ATTRIBUTES)


@check("attribute", "aws")
def trace_header_of_http_is_taken(t: Check) -> None:
    url = t.queue()
    trace = "Root=1-3152b799-8954dae64eda91bc9a23a7e8;Parent=7fa8c0f79203be72;Sampled=1"
    t.json("SendMessage", {"QueueUrl": url, "MessageBody": "x"}, headers={"X-Amzn-Trace-Id": trace})
    equal(t.one(url, AttributeNames=["AWSTraceHeader"]).get("Attributes"), {"AWSTraceHeader": trace})


@check("attribute", "doc")
def trace_header_has_a_digest(t: Check) -> None:
    equal(t.send(t.queue(), MessageSystemAttributes=TRACE).get("MD5OfMessageSystemAttributes"), attributes_md5(TRACE))


@check("attribute", "doc")
def other_system_attributes_are_refused(t: Check) -> None:
    refused(
        "InvalidParameterValue",
        t.send,
        t.queue(),
        MessageSystemAttributes={"Foo": {"DataType": "String", "StringValue": "v"}},
    )


@check("attribute", "doc", timed=True)
def system_attributes_of_a_message(t: Check) -> None:
    url = t.queue(VisibilityTimeout=0)
    before = int(time.time() * 1000)
    t.send(url)
    first = t.one(url, AttributeNames=["All"])["Attributes"]
    equal(first["ApproximateReceiveCount"], "1")
    for name in ("SentTimestamp", "ApproximateFirstReceiveTimestamp"):
        true(before - 2000 <= int(first[name]) <= before + 20000, f"{name} {first[name]} is not now, in milliseconds")
    true(first["SenderId"], "no SenderId")
    true("MessageGroupId" not in first and "SequenceNumber" not in first, f"FIFO attributes: {first}")
    time.sleep(1.1)
    second = t.one(url, AttributeNames=["All"])["Attributes"]
    equal(second["ApproximateReceiveCount"], "2")
    for name in ("SentTimestamp", "ApproximateFirstReceiveTimestamp"):
        equal(second[name], first[name], name)


@check("attribute", "aws")
def new_name_of_the_parameter_for_system_attributes(t: Check) -> None:
    if not supports(t, "ReceiveMessage", "MessageSystemAttributeNames"):
        raise Skip("this botocore is older than the parameter")
    url = t.queue(VisibilityTimeout=0)
    t.send(url)
    equal(list(t.one(url, MessageSystemAttributeNames=["SentTimestamp"])["Attributes"]), ["SentTimestamp"])
    true("SenderId" in t.one(url, MessageSystemAttributeNames=["All"])["Attributes"], "no SenderId")


@check("message", "doc", timed=True)
def ten_at_a_time(t: Check) -> None:
    url = t.queue()
    for start in (0, 10):
        t.sqs.send_message_batch(
            QueueUrl=url, Entries=[{"Id": str(n), "MessageBody": str(start + n)} for n in range(10)]
        )
    found, handles, end = set(), set(), time.monotonic() + 10
    while len(found) < 20 and time.monotonic() < end:
        messages = t.receive(url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
        true(len(messages) <= 10, "more than ten")
        found |= {m["Body"] for m in messages}
        handles |= {m["ReceiptHandle"] for m in messages}
    equal((len(found), len(handles)), (20, 20), "messages, receipt handles")


@check("message", "doc")
def one_at_a_time_unless_told(t: Check) -> None:
    url = t.queue()
    t.sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": str(n), "MessageBody": "x"} for n in range(5)])
    equal(len(t.receive(url)), 1)


@check("message", "aws")
def numbers_out_of_range_are_refused(t: Check) -> None:
    url, wrong = t.queue(), []
    for name, values in {
        "MaxNumberOfMessages": (0, 11),
        "WaitTimeSeconds": (-1, 21),
        "VisibilityTimeout": (-1, 43201),
    }.items():
        for value in values:
            try:
                refused("InvalidParameterValue", t.sqs.receive_message, QueueUrl=url, **{name: value})
            except AssertionError as error:
                wrong.append(f"{name}={value}: {error}")
    equal(wrong, [], "accepted, or refused with another error")
