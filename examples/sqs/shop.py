"""A producer and a consumer with boto3, as they would be written for Amazon SQS.

    python -m shop consume      # until Ctrl-C
    python -m shop produce      # an order every half second, until Ctrl-C

Where the service is, and who asks, say AWS_ENDPOINT_URL_SQS, AWS_ACCESS_KEY_ID and the other variables of AWS.
"""

import sys
import time
from contextlib import suppress

import boto3

QUEUE = "orders.fifo"
CUSTOMERS = ("ann", "ben", "cleo")


def queue(sqs) -> str:
    """Create the queue, or find it; return its URL."""
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true", "VisibilityTimeout": "30"}
    return sqs.create_queue(QueueName=QUEUE, Attributes=attributes)["QueueUrl"]


def produce(sqs) -> None:
    """Send orders of several customers; those of one customer are worked on in their order."""
    url, number = queue(sqs), 0
    while True:
        number += 1
        customer = CUSTOMERS[number % len(CUSTOMERS)]
        sqs.send_message(QueueUrl=url, MessageBody=f"order {number} at {time.time():.0f}", MessageGroupId=customer)
        time.sleep(0.5)


def consume(sqs) -> None:
    """Work on orders as they come."""
    url = queue(sqs)
    while True:
        received = sqs.receive_message(
            QueueUrl=url, WaitTimeSeconds=20, MaxNumberOfMessages=10, AttributeNames=["MessageGroupId"])
        for message in received.get("Messages", []):
            print(message["Attributes"]["MessageGroupId"], message["Body"], flush=True)
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        {"produce": produce, "consume": consume}[sys.argv[1]](boto3.client("sqs"))
