"""Batches of up to ten messages."""

from __future__ import annotations

from tests.sqs.conformance.endpoint import KIB, Check, attributes_md5, check, code_names, equal, md5, refused, true


@check("batch", "doc")
def send_ten(t: Check) -> None:
    url = t.queue()
    entries = [
        {
            "Id": f"id_{n}-x",
            "MessageBody": f"b{n}",
            "MessageAttributes": {"n": {"DataType": "Number", "StringValue": str(n)}},
        }
        for n in range(10)
    ]
    answer = t.sqs.send_message_batch(QueueUrl=url, Entries=entries)
    equal(answer.get("Failed"), None, "Failed")
    by_id = {one["Id"]: one for one in answer["Successful"]}
    equal(set(by_id), {e["Id"] for e in entries})
    for entry in entries:
        equal(by_id[entry["Id"]]["MD5OfMessageBody"], md5(entry["MessageBody"]))
        equal(by_id[entry["Id"]]["MD5OfMessageAttributes"], attributes_md5(entry["MessageAttributes"]))
    found = t.drain(url, 10)
    equal({m["MessageId"] for m in found}, {one["MessageId"] for one in by_id.values()}, "message ids")


@check("batch", "aws")
def empty_batch_is_refused(t: Check) -> None:
    refused({"EmptyBatchRequest", "MissingParameter"}, t.sqs.send_message_batch, QueueUrl=t.queue(), Entries=[])


@check("batch", "aws")
def eleven_entries_are_refused(t: Check) -> None:
    url = t.queue()
    refused(
        "TooManyEntriesInBatchRequest",
        t.sqs.send_message_batch,
        QueueUrl=url,
        Entries=[{"Id": str(n), "MessageBody": "x"} for n in range(11)],
    )
    refused(
        "TooManyEntriesInBatchRequest",
        t.sqs.delete_message_batch,
        QueueUrl=url,
        Entries=[{"Id": str(n), "ReceiptHandle": "x"} for n in range(11)],
    )
    t.none(url)


@check("batch", "doc")
def ids_must_be_distinct(t: Check) -> None:
    refused(
        "BatchEntryIdsNotDistinct",
        t.sqs.send_message_batch,
        QueueUrl=t.queue(),
        Entries=[{"Id": "a", "MessageBody": "x"}, {"Id": "a", "MessageBody": "y"}],
    )


@check("batch", "aws")
def bad_ids_are_refused(t: Check) -> None:
    url = t.queue()
    for bad in ("a:b", "a b", "i" * 81):
        refused(
            "InvalidBatchEntryId", t.sqs.send_message_batch, QueueUrl=url, Entries=[{"Id": bad, "MessageBody": "x"}]
        )
        refused(
            "InvalidBatchEntryId", t.sqs.delete_message_batch, QueueUrl=url, Entries=[{"Id": bad, "ReceiptHandle": "x"}]
        )


@check("batch", "aws")
def one_bad_entry_does_not_stop_the_others(t: Check) -> None:
    url = t.queue(MaximumMessageSize=1024)
    answer = t.sqs.send_message_batch(
        QueueUrl=url, Entries=[{"Id": "good", "MessageBody": "good"}, {"Id": "bad", "MessageBody": "x" * 1025}]
    )
    equal([one["Id"] for one in answer["Successful"]], ["good"])
    failed = answer["Failed"][0]
    equal((failed["Id"], failed["SenderFault"]), ("bad", True))
    true(failed["Code"] in code_names(["InvalidParameterValue"]), f"code {failed['Code']}")
    equal(t.one(url)["Body"], "good")
    t.none(url)


@check("batch", "aws")
def batch_of_more_than_one_mib_is_refused(t: Check) -> None:
    url = t.queue()
    refused(
        "BatchRequestTooLong",
        t.sqs.send_message_batch,
        QueueUrl=url,
        Entries=[{"Id": "a", "MessageBody": "x" * (700 * KIB)}, {"Id": "b", "MessageBody": "x" * (400 * KIB)}],
    )
    t.none(url)


@check("batch", "aws")
def size_of_a_batch_counts_attributes(t: Check) -> None:
    url = t.queue()
    attribute = {"k": {"DataType": "String", "StringValue": "x"}}  # 8 bytes
    refused(
        "BatchRequestTooLong",
        t.sqs.send_message_batch,
        QueueUrl=url,
        Entries=[
            {"Id": "a", "MessageBody": "x" * (1024 * KIB - 8), "MessageAttributes": attribute},
            {"Id": "b", "MessageBody": "y"},
        ],
    )


@check("batch", "doc")
def delete_batch_with_one_bad_handle(t: Check) -> None:
    url = t.queue()
    t.send(url)
    message = t.one(url)
    answer = t.sqs.delete_message_batch(
        QueueUrl=url,
        Entries=[{"Id": "a", "ReceiptHandle": message["ReceiptHandle"]}, {"Id": "b", "ReceiptHandle": "garbage"}],
    )
    equal([one["Id"] for one in answer["Successful"]], ["a"])
    failed = answer["Failed"][0]
    equal((failed["Id"], failed["SenderFault"], failed["Code"]), ("b", True, "ReceiptHandleIsInvalid"))


@check("batch", "doc")
def change_visibility_of_several(t: Check) -> None:
    url = t.queue()
    for body in "ab":
        t.send(url, body)
    messages = []
    while len(messages) < 2:
        got = t.receive(url, MaxNumberOfMessages=10)
        true(got, "not both received")
        messages += got
    entries = [
        {"Id": str(n), "ReceiptHandle": m["ReceiptHandle"], "VisibilityTimeout": 0} for n, m in enumerate(messages)
    ]
    entries.append({"Id": "bad", "ReceiptHandle": "garbage", "VisibilityTimeout": 0})
    answer = t.sqs.change_message_visibility_batch(QueueUrl=url, Entries=entries)
    equal(sorted(one["Id"] for one in answer["Successful"]), ["0", "1"])
    equal([one["Id"] for one in answer["Failed"]], ["bad"])
    t.drain(url, 2)


@check("batch", "doc", timed=True)
def delay_of_single_entries(t: Check) -> None:
    url = t.queue()
    t.sqs.send_message_batch(
        QueueUrl=url,
        Entries=[{"Id": "a", "MessageBody": "later", "DelaySeconds": 2}, {"Id": "b", "MessageBody": "now"}],
    )
    equal(t.one(url)["Body"], "now")
    t.none(url)
    equal(t.one(url, WaitTimeSeconds=6)["Body"], "later")
