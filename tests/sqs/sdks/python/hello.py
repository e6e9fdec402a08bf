"""boto3, pointed at a service by AWS_ENDPOINT_URL_SQS: python hello.py"""

from __future__ import annotations

import uuid
from typing import Any

import boto3

ATTRIBUTES = {
    "lang": {"DataType": "String", "StringValue": "python"},
    "n": {"DataType": "Number", "StringValue": "17"},
    "raw": {"DataType": "Binary", "BinaryValue": b"\x00\x01\xff"},
}


def receive(sqs: Any, queue: str, count: int = 1) -> list[Any]:
    """Receive messages with all that is known of them."""
    found: list[Any] = sqs.receive_message(
        QueueUrl=queue, WaitTimeSeconds=5, MessageAttributeNames=["All"], AttributeNames=["All"],
        MaxNumberOfMessages=count,
    ).get("Messages", [])
    return found


def standard(sqs: Any, name: str) -> None:
    """Send, receive, show again, delete; the same in batches."""
    url = sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "30"})["QueueUrl"]
    sent = sqs.send_message(QueueUrl=url, MessageBody="hello", MessageAttributes=ATTRIBUTES)
    (message,) = receive(sqs, url)
    assert message["Body"] == "hello"
    assert message["MessageId"] == sent["MessageId"]
    assert message["MessageAttributes"] == ATTRIBUTES
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)
    (message,) = receive(sqs, url)
    assert message["Attributes"]["ApproximateReceiveCount"] == "2"
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    answer = sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": str(n), "MessageBody": f"b{n}"} for n in range(3)])
    assert len(answer["Successful"]) == 3
    found: list[str] = []
    while len(found) < 3:
        batch = receive(sqs, url, 10)
        assert batch, found
        found += [one["Body"] for one in batch]
        done = sqs.delete_message_batch(QueueUrl=url, Entries=[
            {"Id": str(n), "ReceiptHandle": one["ReceiptHandle"]} for n, one in enumerate(batch)])
        assert "Failed" not in done
    assert sorted(found) == ["b0", "b1", "b2"]
    sqs.delete_queue(QueueUrl=url)


def fifo(sqs: Any, name: str) -> None:
    """Receive each message once and in order."""
    url = sqs.create_queue(QueueName=name + ".fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    for n in (0, 1, 1, 2):
        sqs.send_message(QueueUrl=url, MessageBody=f"f{n}", MessageGroupId="g", MessageDeduplicationId=f"d{n}")
    order: list[str] = []
    while len(order) < 3:
        batch = receive(sqs, url, 10)
        assert batch, order
        for message in batch:
            order.append(message["Body"])
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    assert order == ["f0", "f1", "f2"]
    sqs.delete_queue(QueueUrl=url)


def main() -> None:
    """Be a program that knows nothing of the service but this variable."""
    sqs = boto3.client("sqs")
    name = f"hello-python-{uuid.uuid4().hex[:8]}"
    standard(sqs, name)
    try:
        sqs.get_queue_url(QueueName="none-" + name)
    except sqs.exceptions.QueueDoesNotExist:
        pass
    else:
        raise SystemExit("there is a queue that was never created")
    fifo(sqs, name)
    print("ok python")


main()
