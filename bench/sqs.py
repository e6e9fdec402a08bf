"""Figures of a service with the protocol of Amazon SQS: requests a second, processor time, and waking from a long poll.

    python -m bench.sqs http://127.0.0.1:9324 --pid 4711 [--pid ..] [--connections 32] [--seconds 5] [--only send]

The processes of --pid are the service's; the processor time that they used is printed for each request and message.
Each kind of request has its own queue; `receive` takes what was sent before it. Without --key nothing verifies the
signatures; with it each request is signed once for all of its repetitions, as signing costs more than all else here.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import click
import uvloop

TICKS = os.sysconf("SC_CLK_TCK")
BODY = "x" * 500
WAKES = 300


Signed = Callable[[str, str, bytes], bytes]             # host, action and body -> the head of the request


def unsigned(host: str, action: str, body: bytes) -> bytes:
    """Return a head with the form of a signature."""
    return (
        f"POST / HTTP/1.1\r\nHost: {host}\r\nX-Amz-Target: AmazonSQS.{action}\r\nContent-Type: "
        "application/x-amz-json-1.0\r\nAuthorization: AWS4-HMAC-SHA256 Credential=x/20261130/us-east-1/sqs/"
        f"aws4_request, SignedHeaders=host, Signature=0\r\nContent-Length: {len(body)}\r\n\r\n").encode()


def signer(key: str, secret: str) -> Signed:
    """Return a function that signs, and remembers the head of each request for its repetitions."""
    credentials = botocore.credentials.Credentials(key, secret)

    @cache
    def signed(host: str, action: str, body: bytes) -> bytes:
        request = botocore.awsrequest.AWSRequest(
            "POST", f"http://{host}/", data=body,
            headers={"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"AmazonSQS.{action}"})
        botocore.auth.SigV4Auth(credentials, "sqs", "us-east-1").add_auth(request)
        headers = {"Host": host, **dict(request.headers.items()), "Content-Length": str(len(body))}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"POST / HTTP/1.1\r\n{lines}\r\n".encode()

    return signed


class SqsConnection:
    """A connection that sends one request after the other."""

    def __init__(
        self, host: str, port: int, signed: Signed, reader: asyncio.StreamReader, writer: asyncio.StreamWriter,
    ) -> None:
        self._host = f"{host}:{port}"
        self._signed = signed
        self._reader = reader
        self._writer = writer

    async def ask(self, action: str, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its answer. Raises ValueError if it was refused."""
        body = json.dumps(request).encode()
        self._writer.write(self._signed(self._host, action, body) + body)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        answer = await self._reader.readexactly(length)
        if b" 200 " not in head[:15]:
            raise ValueError(f"{action}: {head[:40]!r} {answer[:300]!r}")
        found: dict[str, Any] = json.loads(answer) if answer else {}
        return found

    def close(self) -> None:
        self._writer.close()


class RequestFigures(NamedTuple):
    """The figures of one kind of request."""

    requests: int
    messages: int
    seconds: float
    processor_s: float
    latencies_s: list[float]

    def line(self, name: str) -> str:
        found = sorted(self.latencies_s)
        p50, p99 = (found[int(len(found) * part)] * 1000 for part in (0.5, 0.99))
        each = self.processor_s / max(self.requests, 1) * 1e6
        of_message = self.processor_s / max(self.messages, 1) * 1e6
        rates = f"{self.requests / self.seconds:9,.0f} requests/s {self.messages / self.seconds:9,.0f} messages/s"
        costs = f"{each:7.0f} us a request {of_message:7.0f} us a message"
        return f"{name:<14} {rates} {costs}  p50 {p50:.2f} ms  p99 {p99:.2f} ms"


One = Callable[[SqsConnection, str], Awaitable[int]]       # a request; returns its messages


async def send(connection: SqsConnection, url: str) -> int:
    """Send a message."""
    await connection.ask("SendMessage", {"QueueUrl": url, "MessageBody": BODY})
    return 1


async def send_ten(connection: SqsConnection, url: str) -> int:
    """Send a batch."""
    entries = [{"Id": str(number), "MessageBody": BODY} for number in range(10)]
    answer = await connection.ask("SendMessageBatch", {"QueueUrl": url, "Entries": entries})
    return len(answer["Successful"])


def receive(count: int) -> One:
    """Return a request for this number of messages."""
    async def request(connection: SqsConnection, url: str) -> int:
        answer = await connection.ask("ReceiveMessage", {"QueueUrl": url, "MaxNumberOfMessages": count})
        return len(answer.get("Messages", ()))
    return request


def cycle(count: int) -> One:
    """Return the way of messages from their sender to their deletion: three requests, which count as one."""
    async def request(connection: SqsConnection, url: str) -> int:
        await (send if count == 1 else send_ten)(connection, url)
        answer = await connection.ask("ReceiveMessage", {"QueueUrl": url, "MaxNumberOfMessages": count})
        found = answer.get("Messages", ())
        if len(found) == 1:
            await connection.ask("DeleteMessage", {"QueueUrl": url, "ReceiptHandle": found[0]["ReceiptHandle"]})
        elif found:
            entries = [{"Id": str(number), "ReceiptHandle": one["ReceiptHandle"]} for number, one in enumerate(found)]
            await connection.ask("DeleteMessageBatch", {"QueueUrl": url, "Entries": entries})
        return len(found)
    return request


KINDS: dict[str, tuple[str, One]] = {
    "send": ("one", send), "receive": ("one", receive(1)), "send-ten": ("ten", send_ten),
    "receive-ten": ("ten", receive(10)), "receive-none": ("none", receive(1)), "cycle": ("cycle", cycle(1)),
    "cycle-ten": ("cycle10", cycle(10)),
}


def processor_s(pids: tuple[int, ...]) -> float:
    """Return the processor time of these processes so far."""
    found = 0.0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        found += (int(fields[11]) + int(fields[12])) / TICKS
    return found


async def measure(
    connections: list[SqsConnection], one: One, url: str, seconds: float, pids: tuple[int, ...],
) -> RequestFigures:
    """Let all connections send this request for so long."""
    counts = [0, 0]
    latencies: list[float] = []
    end = time.monotonic() + seconds

    async def run(connection: SqsConnection) -> None:
        while (begun := time.monotonic()) < end:
            messages = await one(connection, url)
            counts[0] += 1
            counts[1] += messages
            latencies.append(time.monotonic() - begun)

    begun, before = time.monotonic(), processor_s(pids)
    await asyncio.gather(*(run(connection) for connection in connections))
    return RequestFigures(counts[0], counts[1], time.monotonic() - begun, processor_s(pids) - before, latencies)


async def wakes(connections: list[SqsConnection], url: str) -> list[float]:
    """Return how long messages take from their sender to a receiver that has been waiting, in seconds."""
    sender, receiver = connections[:2]
    found = []
    for _ in range(WAKES):
        waiting = asyncio.create_task(receiver.ask("ReceiveMessage", {"QueueUrl": url, "WaitTimeSeconds": 20}))
        await asyncio.sleep(0.03)
        begun = time.monotonic()
        await send(sender, url)
        answer = await waiting
        found.append(time.monotonic() - begun)
        handle = answer["Messages"][0]["ReceiptHandle"]
        await sender.ask("DeleteMessage", {"QueueUrl": url, "ReceiptHandle": handle})
    return sorted(found)


async def run(
    endpoint: str, pids: tuple[int, ...], count: int, seconds: float, only: tuple[str, ...], signed: Signed,
) -> None:
    """Measure all kinds of requests, and print what was found."""
    parts = urlsplit(endpoint)
    host, port = parts.hostname or "127.0.0.1", parts.port or 80
    connections = [SqsConnection(host, port, signed, *await asyncio.open_connection(host, port)) for _ in range(count)]
    for name, (queue, one) in KINDS.items():
        if not only or name in only:
            made = await connections[0].ask("CreateQueue", {
                "QueueName": f"bench-{queue}-{os.getpid()}", "Attributes": {"VisibilityTimeout": "600"}})
            measured = await measure(connections, one, made["QueueUrl"], seconds, pids)
            click.echo(measured.line(name))
    if not only or "wake" in only:
        made = await connections[0].ask("CreateQueue", {"QueueName": f"bench-wake-{os.getpid()}"})
        found = await wakes(connections, made["QueueUrl"])
        click.echo(f"{'wake':<14} p50 {found[len(found) // 2] * 1000:.2f} ms  "
                   f"p99 {found[int(len(found) * 0.99)] * 1000:.2f} ms")
    for connection in connections:
        connection.close()


@click.command()
@click.argument("endpoint")
@click.option("--pid", "pids", type=int, multiple=True, help="A process of the service.")
@click.option("--connections", type=click.IntRange(2), default=32, show_default=True)
@click.option("--seconds", type=float, default=5.0, show_default=True, help="For each kind of request.")
@click.option("--only", type=click.Choice([*KINDS, "wake"]), multiple=True)
@click.option("--key", metavar="KEY:SECRET", help="Sign the requests.")
def main(
    endpoint: str, pids: tuple[int, ...], connections: int, seconds: float, only: tuple[str, ...], key: str | None,
) -> None:
    """Measure the service at ENDPOINT."""
    name, _, secret = (key or "").partition(":")
    signed = unsigned if key is None else signer(name, secret)
    uvloop.run(run(endpoint, pids, connections, seconds, only, signed))


if __name__ == "__main__":
    main()
