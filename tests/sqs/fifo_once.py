"""A load for FIFO queues that judges itself: each message exactly once and in order, whatever fails meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from tests.sqs.service import Service

GROUPS = 4
RECEIVERS = 2
BREAK_S = 2.0           # between two faults
TIMEOUT_S = 30          # visibility: a message whose delivery was lost comes back then


class Outcome(NamedTuple):
    """The findings: `wrong` is empty if all is well; `again` messages were delivered twice, as an answer was lost."""

    received: int
    again: int
    faults: int
    slowest_send_s: float
    wrong: list[str]


class FifoLoad:
    """Sends messages of four groups and receives them, while `fault` is called again and again."""

    def __init__(self, service: Service, messages: int) -> None:
        """`messages`: the number of messages in each group."""
        self._service = service
        self._messages = messages
        self._queue: str = service.client().create_queue(
            QueueName="load.fifo", Attributes={"FifoQueue": "true", "VisibilityTimeout": str(TIMEOUT_S)})["QueueUrl"]
        self._lock = threading.Lock()
        self._found: dict[str, list[int]] = {f"g{group}": [] for group in range(GROUPS)}
        self._ids: dict[str, str] = {}          # of messages, by their ids: a second one is a duplicate in the queue
        self._wrong: list[str] = []
        self._again = 0
        self._slowest_s = 0.0
        self._faults = 0
        self._ended = threading.Event()

    def run(self, fault: Callable[[], None], faults: int) -> Outcome:
        """Send and receive everything; returns what was found."""
        with ThreadPoolExecutor(GROUPS + RECEIVERS) as pool:
            work = [pool.submit(self._send, group) for group in self._found]
            work += [pool.submit(self._receive) for _ in range(RECEIVERS)]
            for one in work:
                one.add_done_callback(self._over)
            for _ in range(faults):
                time.sleep(BREAK_S)
                fault()
                self._faults += 1
            for one in work:
                one.result()
        return Outcome(sum(map(len, self._found.values())), self._again, self._faults, self._slowest_s, self._wrong)

    def _over(self, work: Future[None]) -> None:
        """End the receivers when anything has failed."""
        if work.exception():
            self._ended.set()

    def _send(self, group: str) -> None:
        client = self._service.client()
        for number in range(self._messages):
            begun = time.monotonic()
            sent = client.send_message(
                QueueUrl=self._queue, MessageBody=f"{group} {number}", MessageGroupId=group,
                MessageDeduplicationId=f"{group}-{number}",
            )
            with self._lock:
                self._slowest_s = max(self._slowest_s, time.monotonic() - begun)
                self._ids[sent["MessageId"]] = f"{group} {number}"

    def _receive(self) -> None:
        client = self._service.client()
        while not self._ended.is_set():
            answer = client.receive_message(QueueUrl=self._queue, MaxNumberOfMessages=10, WaitTimeSeconds=1)
            messages = answer.get("Messages", [])
            for message in messages:
                self._note(message)
            if messages:
                client.delete_message_batch(QueueUrl=self._queue, Entries=[
                    {"Id": str(place), "ReceiptHandle": one["ReceiptHandle"]} for place, one in enumerate(messages)])

    def _note(self, message: Any) -> None:
        """Compare a message with those of its group before it."""
        group, number = message["Body"].split(" ")
        with self._lock:
            found = self._found[group]
            if int(number) == len(found):
                found.append(int(number))
            elif int(number) < len(found):
                self._again += 1
            else:
                self._wrong.append(f"{message['Body']} came when {len(found)} was next")
            if all(len(one) == self._messages for one in self._found.values()):
                self._ended.set()
