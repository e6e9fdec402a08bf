"""The JSON protocol, by HTTP without an SDK."""

from __future__ import annotations

import base64
import http.client
import json
import urllib.parse

import botocore.auth
import botocore.awsrequest
import botocore.credentials

from tests.sqs.conformance.endpoint import Check, attributes_md5, check, equal, true


@check("json", "doc")
def json_answer_looks_right(t: Check) -> None:
    status, headers, body = t.json("CreateQueue", {"QueueName": t.name()})
    t.made.append(json.loads(body)["QueueUrl"])
    equal((status, headers["content-type"]), (200, "application/x-amz-json-1.0"))
    true(headers.get("x-amzn-requestid"), "no x-amzn-RequestId")
    equal(list(json.loads(body)), ["QueueUrl"], "members")


@check("json", "aws")
def json_error_looks_right(t: Check) -> None:
    status, headers, body = t.json("GetQueueUrl", {"QueueName": t.name()})
    document = json.loads(body)
    equal((status, document["__type"]), (400, "com.amazonaws.sqs#QueueDoesNotExist"))
    equal(headers.get("x-amzn-query-error"), "AWS.SimpleQueueService.NonExistentQueue;Sender", "x-amzn-query-error")
    true(isinstance(document.get("message"), str), f"no message in {document}")


@check("json", "sdk", timed=True)
def json_answer_without_content(t: Check) -> None:
    url = t.queue()
    status, _headers, body = t.json("SetQueueAttributes", {"QueueUrl": url, "Attributes": {"DelaySeconds": "1"}})
    equal((status, body in (b"", b"{}")), (200, True), f"status, empty body ({body!r})")


@check("json", "doc")
def json_of_wrong_type_is_refused(t: Check) -> None:
    url = t.queue()
    status, _, _ = t.json("SendMessage", {"QueueUrl": url, "MessageBody": 5})
    true(400 <= status < 500, f"status {status} for a number as body")
    status, _, _body = t.json("SendMessage", None, body=b"{not json")
    true(400 <= status < 500, f"status {status} for what is not JSON")


@check("json", "sdk")
def json_numbers_may_be_strings_of_old_sdks(t: Check) -> None:
    url = t.queue()
    status, _, _body = t.json(
        "ReceiveMessage", {"QueueUrl": url, "MaxNumberOfMessages": 1, "WaitTimeSeconds": 0, "Unknown": 1}
    )
    equal(status, 200, "an unknown member is ignored")


@check("json", "doc")
def json_unknown_action(t: Check) -> None:
    status, _headers, body = t.json("Frobnicate", {})
    true(400 <= status < 500, f"status {status}")
    true(b"UnknownOperation" in body or b"InvalidAction" in body, f"body {body[:200]!r}")


@check("json", "sdk")
def json_binary_is_base64(t: Check) -> None:
    url = t.queue()
    _, _, body = t.json(
        "SendMessage",
        {
            "QueueUrl": url,
            "MessageBody": "b",
            "MessageAttributes": {"x": {"DataType": "Binary", "BinaryValue": base64.b64encode(b"\x00\xff").decode()}},
        },
    )
    equal(
        json.loads(body)["MD5OfMessageAttributes"],
        attributes_md5({"x": {"DataType": "Binary", "BinaryValue": b"\x00\xff"}}),
    )
    _, _, body = t.json("ReceiveMessage", {"QueueUrl": url, "MessageAttributeNames": ["All"], "WaitTimeSeconds": 2})
    value = json.loads(body)["Messages"][0]["MessageAttributes"]["x"]
    equal((value["DataType"], value["BinaryValue"]), ("Binary", base64.b64encode(b"\x00\xff").decode()))


@check("json", "aws")
def json_to_the_url_of_the_queue(t: Check) -> None:
    """The PHP SDK posts to the queue's URL and not to the root."""
    url = t.queue()
    path = t.endpoint.url + urllib.parse.urlsplit(url).path
    status, headers, _body = t.json("SendMessage", {"QueueUrl": url, "MessageBody": "php"}, url=path)
    equal((status, headers["content-type"]), (200, "application/x-amz-json-1.0"))


@check("json", "sdk")
def url_of_another_host_or_port(t: Check) -> None:
    """Behind a proxy or in a container the client's URL has another host: what counts is the path."""
    url = t.queue()
    other = "http://queues.example.com:1" + urllib.parse.urlsplit(url).path
    status, _, body = t.json("SendMessage", {"QueueUrl": other, "MessageBody": "x"})
    equal(status, 200, f"status ({body[:200]!r})")


@check("json", "sdk")
def one_connection_for_many_requests(t: Check) -> None:
    parts = urllib.parse.urlsplit(t.endpoint.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=10)
    sockets = set()
    for _n in range(3):
        body = json.dumps({"QueueNamePrefix": "none-" + t.name()}).encode()
        request = botocore.awsrequest.AWSRequest(
            "POST",
            t.endpoint.url + "/",
            data=body,
            headers={"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.ListQueues"},
        )
        botocore.auth.SigV4Auth(
            botocore.credentials.Credentials(t.endpoint.access, t.endpoint.secret), "sqs", t.endpoint.region
        ).add_auth(request)
        connection.request("POST", "/", body=body, headers=dict(request.prepare().headers.items()))
        answer = connection.getresponse()
        answer.read()
        equal(answer.status, 200)
        true(connection.sock is not None, "the server closes the connection")
        sockets.add(connection.sock.getsockname())
    connection.close()
    equal(len(sockets), 1, "connections")
