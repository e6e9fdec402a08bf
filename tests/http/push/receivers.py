"""HTTP receivers in this process, good and hostile ones, and a pusher that sends to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from sockpq.aio import Client
from sockpq_http.push.configuration import read
from sockpq_http.push.guard import Lookup
from sockpq_http.push.pusher import Pusher

from tests.waiting import PATIENCE_S

LOOPBACK = ["127.0.0.0/8"]
LIMIT_S = 60        # where no limit is what is tested


@dataclass
class Request:
    """A request as it arrived, its headers by names in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes


Behaviour = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Receiver:
    """The requests that have arrived at an address of this process."""

    url: str = ""
    port: int = 0
    connections: int = 0
    requests: list[Request] = field(default_factory=list)

    @property
    def bodies(self) -> list[bytes]:
        """The bodies in the order of arrival."""
        return [request.body for request in self.requests]


def answer(status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> Behaviour:
    """Answer each request in this way."""
    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer_bytes(status, headers, body))
        await writer.drain()
    return behave


def answer_bytes(status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> bytes:
    """Return a whole answer of HTTP."""
    lines = [f"HTTP/1.1 {status} x", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def one_after_the_other(*behaviours: Behaviour) -> Behaviour:
    """Behave differently at each request, and at the last for ever."""
    left = list(behaviours)

    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(request, writer)
    return behave


@asynccontextmanager
async def receiver(behave: Behaviour, host: str = "127.0.0.1") -> AsyncIterator[Receiver]:
    """Listen on a free port."""
    seen = Receiver()
    tasks: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        tasks.add(task)
        seen.connections += 1
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while (request := await _read(reader)) is not None:
                seen.requests.append(request)
                await behave(request, writer)
                if writer.is_closing():
                    break
        writer.close()
        tasks.discard(task)

    server = await asyncio.start_server(serve, host, 0)
    seen.port = server.sockets[0].getsockname()[1]
    seen.url = f"http://{host}:{seen.port}/hook"
    try:
        yield seen
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> Request | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Request(first.split(" ")[1], headers, await reader.readexactly(int(headers.get("content-length", "0"))))


def target(url: str, *queues: str, **settings: Any) -> dict[str, Any]:
    """Return a target's table, which may reach this host. Its time limits are those of a busy machine."""
    limits = {"timeout_s": LIMIT_S, "connect_timeout_s": LIMIT_S}
    return {"queues": list(queues) or ["hooks"], "url": url, "allow": LOOPBACK, **limits, **settings}


@asynccontextmanager
async def pushing(
    address: str, lookup: Lookup | None = None, push: dict[str, Any] | None = None, **targets: dict[str, Any]
) -> AsyncIterator[tuple[Pusher, Client]]:
    """Run a pusher at the server of this address, with these targets; yields it and a client."""
    document = {"push": {"ttl_s": LIMIT_S, "stop_s": LIMIT_S, **(push or {})}, "targets": targets}
    async with Client(address) as client, Client(address) as own:
        pusher = Pusher(read(document), own, lookup)
        running = asyncio.create_task(pusher.run())
        try:
            yield pusher, client
        finally:
            if not pusher.stopping:
                pusher.stop()
            await running


async def soon(condition: Callable[[], object] | Callable[[], Awaitable[object]], what: str = "") -> None:
    """Wait for a condition, which may be a coroutine function."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = condition()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return
            await asyncio.sleep(0.01)


def counted(pusher: Pusher, name: str = "jobs_total", **labels: str) -> float:
    """Return the sum of a metric's samples that have these labels."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(pusher.metrics().decode())
        for sample in family.samples
        if sample.name == f"sockpq_push_{name}" and labels.items() <= sample.labels.items()
    )
