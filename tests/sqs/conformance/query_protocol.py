"""The Query protocol, by HTTP without an SDK."""

from __future__ import annotations

import base64
import json
import urllib.parse
import xml.etree.ElementTree as ET

from tests.sqs.conformance.endpoint import Check, attributes_md5, check, equal, md5, true

NS = "{http://queue.amazonaws.com/doc/2012-11-05/}"


def xml(body):
    return ET.fromstring(body.decode())


def texts(root, name):
    return [e.text for e in root.iter() if e.tag.rsplit("}", 1)[-1] == name]


@check("query", "doc")
def query_round_trip(t: Check) -> None:
    name = t.name()
    status, headers, body = t.query(
        "CreateQueue", {"QueueName": name, "Attribute.1.Name": "VisibilityTimeout", "Attribute.1.Value": "7"}
    )
    equal(status, 200, f"status ({body[:200]!r})")
    root = xml(body)
    equal(root.tag, NS + "CreateQueueResponse", "root element")
    url = root.find(f"{NS}CreateQueueResult/{NS}QueueUrl").text
    t.made.append(url)
    true(root.find(f"{NS}ResponseMetadata/{NS}RequestId") is not None, "no RequestId")
    true("xml" in headers["content-type"], headers["content-type"])
    path = t.endpoint.url + urllib.parse.urlsplit(url).path
    body_text = "<b> & ü\r\n+%"
    status, _, body = t.query("SendMessage", {"MessageBody": body_text}, url=path)
    equal((status, texts(xml(body), "MD5OfMessageBody")), (200, [md5(body_text)]))
    status, _, body = t.query("ReceiveMessage", {"AttributeName.1": "All", "WaitTimeSeconds": "2"}, url=path)
    root = xml(body)
    equal((texts(root, "Body"), texts(root, "MD5OfBody")), ([body_text], [md5(body_text)]))
    true("ApproximateReceiveCount" in texts(root, "Name"), "no attributes")
    status, _, body = t.query("DeleteMessage", {"ReceiptHandle": texts(root, "ReceiptHandle")[0]}, url=path)
    equal((status, xml(body).tag), (200, NS + "DeleteMessageResponse"))


@check("query", "doc")
def query_with_the_url_as_parameter(t: Check) -> None:
    url = t.queue()
    status, _, body = t.query("SendMessage", {"QueueUrl": url, "MessageBody": "x"})
    equal(status, 200, f"status ({body[:200]!r})")
    equal(t.one(url)["Body"], "x")


@check("query", "aws")
def query_error_looks_right(t: Check) -> None:
    status, _, body = t.query("GetQueueUrl", {"QueueName": t.name()})
    root = xml(body)
    equal((status, root.tag.rsplit("}", 1)[-1]), (400, "ErrorResponse"))
    equal((texts(root, "Code"), texts(root, "Type")), (["AWS.SimpleQueueService.NonExistentQueue"], ["Sender"]))
    true(texts(root, "Message") and texts(root, "RequestId"), "no Message or RequestId")


@check("query", "aws")
def query_unknown_action(t: Check) -> None:
    status, _, body = t.query("FooBar")
    equal((status, texts(xml(body), "Code")), (400, ["InvalidAction"]))


@check("query", "aws")
def query_missing_parameter(t: Check) -> None:
    url = t.queue()
    status, _, body = t.query("SendMessage", {}, url=t.endpoint.url + urllib.parse.urlsplit(url).path)
    equal((status, texts(xml(body), "Code")), (400, ["MissingParameter"]))


@check("query", "aws")
def query_by_get(t: Check) -> None:
    url = t.queue()
    path = t.endpoint.url + urllib.parse.urlsplit(url).path
    status, _, body = t.query("GetQueueAttributes", {"AttributeName.1": "All"}, url=path, method="GET")
    equal(status, 200, f"status ({body[:200]!r})")
    found = dict(zip(texts(xml(body), "Name"), texts(xml(body), "Value"), strict=False))
    equal(found["VisibilityTimeout"], "30")


@check("query", "aws")
def query_by_get_creates_and_lists_nothing(t: Check) -> None:
    path = t.endpoint.url + urllib.parse.urlsplit(t.queue()).path
    for action, more in (("CreateQueue", {"QueueName": t.name()}), ("ListQueues", {})):
        status, _, body = t.query(action, more, url=path, method="GET")
        equal((status, texts(xml(body), "Code")), (400, ["InvalidAction"]), action)


@check("query", "doc")
def query_presigned(t: Check) -> None:
    """A URL with the signature in it, as AWS documents for GET requests."""
    url = t.queue()
    path = t.endpoint.url + urllib.parse.urlsplit(url).path
    status, _, body = t.query("SendMessage", {"MessageBody": "presigned"}, url=path, method="GET", query_auth=True)
    equal(status, 200, f"status ({body[:200]!r})")
    equal(t.one(url)["Body"], "presigned")


@check("query", "doc")
def query_batches(t: Check) -> None:
    url = t.queue()
    path = t.endpoint.url + urllib.parse.urlsplit(url).path
    entry = "SendMessageBatchRequestEntry"
    status, _, body = t.query(
        "SendMessageBatch",
        {
            f"{entry}.1.Id": "a",
            f"{entry}.1.MessageBody": "one",
            f"{entry}.2.Id": "b",
            f"{entry}.2.MessageBody": "two",
            f"{entry}.2.MessageAttribute.1.Name": "n",
            f"{entry}.2.MessageAttribute.1.Value.StringValue": "v",
            f"{entry}.2.MessageAttribute.1.Value.DataType": "String",
        },
        url=path,
    )
    root = xml(body)
    equal((status, sorted(texts(root, "Id"))), (200, ["a", "b"]), "SendMessageBatch")
    equal(texts(root, "MD5OfMessageAttributes"), [attributes_md5({"n": {"DataType": "String", "StringValue": "v"}})])
    handles = []
    for _ in range(4):
        _, _, body = t.query(
            "ReceiveMessage",
            {"MaxNumberOfMessages": "10", "WaitTimeSeconds": "1", "MessageAttributeName.1": "All"},
            url=path,
        )
        handles += texts(xml(body), "ReceiptHandle")
        if len(handles) == 2:
            break
    entry = "DeleteMessageBatchRequestEntry"
    _, _, body = t.query(
        "DeleteMessageBatch",
        {
            f"{entry}.1.Id": "x",
            f"{entry}.1.ReceiptHandle": handles[0],
            f"{entry}.2.Id": "y",
            f"{entry}.2.ReceiptHandle": handles[1],
        },
        url=path,
    )
    equal(sorted(texts(xml(body), "Id")), ["x", "y"], "DeleteMessageBatch")


@check("query", "doc")
def query_message_attributes(t: Check) -> None:
    url = t.queue()
    path = t.endpoint.url + urllib.parse.urlsplit(url).path
    t.query(
        "SendMessage",
        {
            "MessageBody": "x",
            "MessageAttribute.1.Name": "b",
            "MessageAttribute.1.Value.DataType": "Binary",
            "MessageAttribute.1.Value.BinaryValue": base64.b64encode(b"\x00\xff").decode(),
            "MessageAttribute.2.Name": "s",
            "MessageAttribute.2.Value.DataType": "String",
            "MessageAttribute.2.Value.StringValue": "<v>",
        },
        url=path,
    )
    _, _, body = t.query("ReceiveMessage", {"MessageAttributeName.1": "All", "WaitTimeSeconds": "2"}, url=path)
    root = xml(body)
    wanted = {
        "b": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
        "s": {"DataType": "String", "StringValue": "<v>"},
    }
    equal(texts(root, "MD5OfMessageAttributes"), [attributes_md5(wanted)])
    equal((texts(root, "BinaryValue"), texts(root, "StringValue")), ([base64.b64encode(b"\x00\xff").decode()], ["<v>"]))


@check("query", "doc")
def query_tags(t: Check) -> None:
    name = t.name()
    _, _, body = t.query("CreateQueue", {"QueueName": name, "Tag.1.Key": "k", "Tag.1.Value": "v"})
    url = texts(xml(body), "QueueUrl")[0]
    t.made.append(url)
    equal(t.sqs.list_queue_tags(QueueUrl=url).get("Tags"), {"k": "v"})
    t.query("TagQueue", {"QueueUrl": url, "Tag.1.Key": "k2", "Tag.1.Value": "v2"})
    t.query("UntagQueue", {"QueueUrl": url, "TagKey.1": "k"})
    _, _, body = t.query("ListQueueTags", {"QueueUrl": url})
    equal((texts(xml(body), "Key"), texts(xml(body), "Value")), (["k2"], ["v2"]))


@check("query", "aws")
def both_protocols_see_the_same(t: Check) -> None:
    url = t.queue()
    t.query("SendMessage", {"QueueUrl": url, "MessageBody": "by query"})
    _, _, body = t.json("ReceiveMessage", {"QueueUrl": url, "WaitTimeSeconds": 2})
    message = json.loads(body)["Messages"][0]
    equal(message["Body"], "by query")
    status, _, _ = t.query("DeleteMessage", {"QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"]})
    equal(status, 200, "delete by the other protocol")
