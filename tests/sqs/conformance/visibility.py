"""Visibility timeouts, delays and long polls."""

from __future__ import annotations

import concurrent.futures
import contextlib
import http.client
import json
import threading
import time
import urllib.parse

import botocore.auth
import botocore.awsrequest
import botocore.credentials
from botocore.exceptions import ClientError

from tests.sqs.conformance.endpoint import Check, check, equal, refused, true


@check("visibility", "doc", timed=True)
def hidden_then_back(t: Check) -> None:
    url = t.queue()
    sent = t.send(url)
    first = t.one(url, VisibilityTimeout=2)
    t.none(url)
    second = t.one(url, WaitTimeSeconds=5)
    equal(second["MessageId"], sent["MessageId"])
    true(second["ReceiptHandle"] != first["ReceiptHandle"], "the same receipt handle")


@check("visibility", "doc", timed=True)
def timeout_of_the_queue(t: Check) -> None:
    url = t.queue(VisibilityTimeout=2)
    t.send(url)
    t.one(url)
    t.none(url)
    time.sleep(2.2)
    t.one(url)


@check("visibility", "doc", timed=True)
def change_prolongs(t: Check) -> None:
    url = t.queue()
    t.send(url)
    message = t.one(url, VisibilityTimeout=1)
    t.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=4)
    t.none(url, wait=2)
    t.one(url, WaitTimeSeconds=5)


@check("visibility", "doc")
def change_to_zero_shows(t: Check) -> None:
    url = t.queue()
    t.send(url)
    message = t.one(url)
    t.none(url)
    t.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)
    equal(t.one(url)["MessageId"], message["MessageId"])


@check("visibility", "doc", timed=True)
def change_is_for_this_time_only(t: Check) -> None:
    url = t.queue(VisibilityTimeout=1)
    t.send(url)
    message = t.one(url)
    t.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=2)
    t.one(url, WaitTimeSeconds=4)
    t.one(url, WaitTimeSeconds=3)


@check("visibility", "doc")
def twelve_hours_at_most(t: Check) -> None:
    url = t.queue()
    t.send(url)
    handle = t.one(url)["ReceiptHandle"]
    refused(
        "InvalidParameterValue",
        t.sqs.change_message_visibility,
        QueueUrl=url,
        ReceiptHandle=handle,
        VisibilityTimeout=43201,
    )
    t.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=43199)


@check("visibility", "doc", timed=True)
def twelve_hours_from_the_first_moment(t: Check) -> None:
    url = t.queue()
    t.send(url)
    handle = t.one(url)["ReceiptHandle"]
    time.sleep(1.5)
    refused(
        "InvalidParameterValue",
        t.sqs.change_message_visibility,
        QueueUrl=url,
        ReceiptHandle=handle,
        VisibilityTimeout=43200,
    )


@check("visibility", "aws", timed=True)
def garbage_is_no_receipt_handle(t: Check) -> None:
    url = t.queue()
    refused(
        "ReceiptHandleIsInvalid",
        t.sqs.change_message_visibility,
        QueueUrl=url,
        ReceiptHandle="garbage",
        VisibilityTimeout=3,
    )
    refused("ReceiptHandleIsInvalid", t.sqs.delete_message, QueueUrl=url, ReceiptHandle="garbage")


@check("visibility", "aws", timed=True)
def receipt_handle_of_another_queue(t: Check) -> None:
    one, two = t.queue(), t.queue()
    t.send(one)
    message = t.one(one, VisibilityTimeout=2)
    with contextlib.suppress(ClientError):
        t.delete(two, message)
    time.sleep(2.2)
    equal(t.one(one)["MessageId"], message["MessageId"], "a delete with another queue's URL")


@check("visibility", "aws")
def delete_twice(t: Check) -> None:
    url = t.queue()
    t.send(url)
    message = t.one(url)
    for _ in range(3):
        t.delete(url, message)


@check("visibility", "aws", timed=True)
def delete_after_the_timeout(t: Check) -> None:
    url = t.queue()
    t.send(url)
    message = t.one(url, VisibilityTimeout=1)
    time.sleep(1.5)
    t.delete(url, message)
    t.none(url, wait=1)


@check("visibility", "aws")
def delete_with_the_handle_of_a_receive_with_timeout_zero(t: Check) -> None:
    url = t.queue()
    t.send(url)
    message = t.one(url, VisibilityTimeout=0)
    equal(t.one(url, VisibilityTimeout=0)["MessageId"], message["MessageId"], "not visible at once")
    t.delete(url, t.one(url, VisibilityTimeout=0))
    t.none(url, wait=1)


@check("visibility", "doc", timed=True)
def change_after_delete_is_refused(t: Check) -> None:
    url = t.queue()
    t.send(url)
    message = t.one(url)
    t.delete(url, message)
    refused(
        {"InvalidParameterValue", "MessageNotInflight"},
        t.sqs.change_message_visibility,
        QueueUrl=url,
        ReceiptHandle=message["ReceiptHandle"],
        VisibilityTimeout=3,
    )


@check("visibility", "aws", timed=True)
def change_after_the_timeout_of_a_standard_queue(t: Check) -> None:
    url = t.queue()
    t.send(url)
    message = t.one(url, VisibilityTimeout=1)
    time.sleep(1.5)
    t.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=2)


@check("visibility", "doc")
def counts(t: Check) -> None:
    url = t.queue()
    for body in "abc":
        t.send(url, body)
    t.send(url, "d", DelaySeconds=60)
    t.one(url)
    found = t.attributes(url)
    equal(
        [found["ApproximateNumberOfMessages" + what] for what in ("", "NotVisible", "Delayed")],
        ["2", "1", "1"],
        "visible, in flight, delayed",
    )


@check("delay", "doc", timed=True)
def delayed_message(t: Check) -> None:
    url = t.queue()
    t.send(url, DelaySeconds=2)
    t.none(url)
    start = time.monotonic()
    t.one(url, WaitTimeSeconds=6)
    true(time.monotonic() - start > 1, "too early")


@check("delay", "doc", timed=True)
def delay_of_the_queue_and_of_the_message(t: Check) -> None:
    url = t.queue(DelaySeconds=2)
    t.send(url, "slow")
    t.send(url, "fast", DelaySeconds=0)
    equal(t.one(url)["Body"], "fast")
    t.none(url)
    equal(t.one(url, WaitTimeSeconds=6)["Body"], "slow")


@check("delay", "doc")
def more_than_15_minutes_is_refused(t: Check) -> None:
    url = t.queue()
    for value in (901, -1):
        refused("InvalidParameterValue", t.send, url, DelaySeconds=value)


@check("poll", "doc", timed=True)
def waits_as_long_as_told(t: Check) -> None:
    url = t.queue()
    start = time.monotonic()
    t.none(url, wait=2)
    true(1.5 < time.monotonic() - start < 4, f"{time.monotonic() - start:.1f} s instead of 2")


@check("poll", "doc", timed=True)
def does_not_wait_without_being_told(t: Check) -> None:
    start = time.monotonic()
    t.none(t.queue(), wait=0)
    true(time.monotonic() - start < 1, "waited")


@check("poll", "aws", timed=True)
def waits_as_the_queue_says(t: Check) -> None:
    url = t.queue(ReceiveMessageWaitTimeSeconds=2)
    start = time.monotonic()
    equal(t.sqs.receive_message(QueueUrl=url).get("Messages"), None)
    true(1.5 < time.monotonic() - start < 4, f"{time.monotonic() - start:.1f} s instead of 2")
    start = time.monotonic()
    t.none(url, wait=0)
    true(time.monotonic() - start < 1, "WaitTimeSeconds=0 of the call does not count")


@check("poll", "aws", timed=True)
def does_not_wait_for_more_messages(t: Check) -> None:
    url = t.queue()
    t.send(url)
    start = time.monotonic()
    equal(len(t.receive(url, WaitTimeSeconds=10, MaxNumberOfMessages=10)), 1)
    true(time.monotonic() - start < 5, "waited for more")


@check("poll", "doc", timed=True)
def wakes_when_a_message_comes(t: Check) -> None:
    url = t.queue()
    timer = threading.Timer(1.0, lambda: t.send(url, "now"))
    timer.start()
    start = time.monotonic()
    equal(t.one(url, WaitTimeSeconds=10)["Body"], "now")
    true(0.8 < time.monotonic() - start < 4, f"after {time.monotonic() - start:.1f} s instead of 1")


@check("poll", "doc", timed=True)
def wakes_when_a_message_becomes_visible(t: Check) -> None:
    url = t.queue()
    t.send(url)
    t.one(url, VisibilityTimeout=2)
    start = time.monotonic()
    t.one(url, WaitTimeSeconds=10)
    true(time.monotonic() - start < 5, "too late")


@check("poll", "sdk", timed=True)
def several_wait_and_each_gets_one(t: Check) -> None:
    url = t.queue()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(t.receive, url, WaitTimeSeconds=8) for _ in range(4)]
        time.sleep(0.7)
        for n in range(4):
            t.send(url, str(n))
        found = sorted(m["Body"] for one in waiting for m in one.result())
    equal(found, ["0", "1", "2", "3"])


@check("poll", "sdk", slow=True)
def client_that_hangs_up_takes_nothing_away(t: Check) -> None:
    url = t.queue(VisibilityTimeout=300)
    parts = urllib.parse.urlsplit(t.endpoint.url)
    body = json.dumps({"QueueUrl": url, "WaitTimeSeconds": 20}).encode()
    request = botocore.awsrequest.AWSRequest(
        "POST",
        t.endpoint.url + "/",
        data=body,
        headers={"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.ReceiveMessage"},
    )
    botocore.auth.SigV4Auth(
        botocore.credentials.Credentials(t.endpoint.access, t.endpoint.secret), "sqs", t.endpoint.region
    ).add_auth(request)
    connection = http.client.HTTPConnection(parts.hostname, parts.port or 80)
    connection.request("POST", "/", body=body, headers=dict(request.prepare().headers.items()))
    time.sleep(1)
    connection.sock.close()
    connection.close()
    time.sleep(1.5)
    t.send(url, "for who is there")
    equal(t.one(url, WaitTimeSeconds=3)["Body"], "for who is there")
