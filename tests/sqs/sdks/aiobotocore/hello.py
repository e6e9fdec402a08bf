"""aiobotocore, pointed at a service by AWS_ENDPOINT_URL_SQS: python hello.py"""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from aiobotocore.session import get_session

WAITING = 5
ATTRIBUTES = {
    "lang": {"DataType": "String", "StringValue": "aio"}, "raw": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
}


async def receive(sqs: Any, queue: str, count: int = 1) -> list[Any]:
    """Receive messages with all that is known of them."""
    answer = await sqs.receive_message(
        QueueUrl=queue, WaitTimeSeconds=5, MessageAttributeNames=["All"], AttributeNames=["All"],
        MaxNumberOfMessages=count)
    found: list[Any] = answer.get("Messages", [])
    return found


async def standard(sqs: Any, name: str) -> None:
    """Let several wait at the same time for what is sent then."""
    url = (await sqs.create_queue(QueueName=name))["QueueUrl"]
    waiting = [asyncio.create_task(receive(sqs, url)) for _ in range(WAITING)]
    await asyncio.gather(*(
        sqs.send_message(QueueUrl=url, MessageBody=f"m{n}", MessageAttributes=ATTRIBUTES) for n in range(WAITING)))
    messages = [one for batch in await asyncio.gather(*waiting) for one in batch]
    assert sorted(one["Body"] for one in messages) == [f"m{n}" for n in range(WAITING)]
    assert all(one["MessageAttributes"] == ATTRIBUTES for one in messages)
    await sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=messages[0]["ReceiptHandle"], VisibilityTimeout=0)
    (again,) = await receive(sqs, url)
    assert again["Attributes"]["ApproximateReceiveCount"] == "2"
    answer = await sqs.delete_message_batch(QueueUrl=url, Entries=[
        {"Id": str(n), "ReceiptHandle": one["ReceiptHandle"]} for n, one in enumerate([again, *messages[1:]])])
    assert len(answer["Successful"]) == WAITING
    await sqs.delete_queue(QueueUrl=url)


async def fifo(sqs: Any, name: str) -> None:
    """Receive each message once and in order; equal bodies are one message."""
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    url = (await sqs.create_queue(QueueName=name + ".fifo", Attributes=attributes))["QueueUrl"]
    for body in ("f0", "f1", "f1", "f2"):
        await sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId="g")
    order: list[str] = []
    while len(order) < 3:
        batch = await receive(sqs, url, 10)
        assert batch, order
        for message in batch:
            order.append(message["Body"])
            await sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    assert order == ["f0", "f1", "f2"]
    await sqs.delete_queue(QueueUrl=url)


async def main() -> None:
    """Be a program that knows nothing of the service but this variable."""
    async with get_session().create_client("sqs") as sqs:
        name = f"hello-aio-{uuid.uuid4().hex[:8]}"
        await standard(sqs, name)
        await fifo(sqs, name)
    print("ok aiobotocore")


asyncio.run(main())
