"""Hostile receivers: none delays the jobs of others, and none makes this program break its rules."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Coroutine
from typing import Any

import pytest
from sockpq import Number

from tests.http.push.hostile import (
    body_without_end,
    continues,
    headers_without_end,
    never,
    raw,
    trickle,
    trickle_body,
)
from tests.http.push.receivers import (
    Behaviour,
    Request,
    answer,
    answer_bytes,
    counted,
    pushing,
    receiver,
    soon,
    target,
)
from tests.http.push.test_delivery import gone

MIB = 1 << 20


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


@pytest.mark.parametrize(("behave", "reason"), [
    (never, "timeout"),
    (trickle, "timeout"),
    (continues, "timeout"),
    (trickle_body, "http_500"),
    (raw(b""), "closed"),
    (raw(b"HTTP/1.1 20"), "closed"),
    (raw(b"SSH-2.0-OpenSSH_9.2\r\n"), "bad_answer"),
    (raw(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"), "bad_answer"),
    (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nxxxxx"), "bad_answer"),
    (raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), "bad_answer"),
    (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), "closed"),
    (headers_without_end(b"x: y\r\n" * 1000), "bad_answer"),
    (headers_without_end(b"x" * 10_000), "bad_answer"),
], ids=lambda value: getattr(value, "__name__", str(value)).split(".")[-1])
def test_a_bad_answer_is_a_failure_and_others_go_on(address: str, behave: Behaviour, reason: str) -> None:
    limits = {"timeout_s": 1, "connect_timeout_s": 1} if reason == "timeout" else {}

    async def main() -> None:
        async with receiver(behave) as bad, receiver(answer(200)) as good, pushing(
            address, bad=target(bad.url, "bad", result=True, concurrency=2, failures=1, **limits),
            good=target(good.url, "good"),
        ) as (pusher, client):
            await client.put_many("bad", [b"1"] * 5)
            await soon(lambda: bad.requests)
            await client.put_many("good", [b"1"] * 5)
            await soon(lambda: gone(client, "good"))
            await soon(lambda: counted(pusher, target="bad", outcome="later"))
            assert counted(pusher, target="bad") == counted(pusher, target="bad", outcome="later", reason=reason)
            await soon(lambda: counted(pusher, "rests_total", target="bad"))
    run(main())


@pytest.mark.parametrize("length", [b"Content-Length: 9999999999999\r\n\r\n", b"\r\n"])
@pytest.mark.parametrize("result", [True, False])
def test_a_body_without_end_is_not_read_to_its_end(address: str, length: bytes, result: bool) -> None:
    sent: list[int] = []

    async def main() -> None:
        async with receiver(body_without_end(length, sent)) as bad, pushing(
            address, bad=target(bad.url, result=result)
        ) as (_, client):
            await client.queue_create("hooks", retain=60)
            number = (await client.put("hooks", b"1", number=True)).number
            assert number
            end = await client.await_job(Number(number), wait=60)
            assert end
            assert (end.state, end.data) == ("done", b"")
            assert len(bad.requests) == 1
            assert sum(sent) < 32 * MIB             # what the kernel holds, and a few reads
    run(main())


def test_a_compressed_answer_stays_compressed(address: str) -> None:
    bomb = gzip.compress(bytes(16 * MIB))

    async def main() -> None:
        async with receiver(answer(200, {"Content-Encoding": "gzip"}, bomb)) as seen, pushing(
            address, a=target(seen.url, result=True)
        ) as (_, client):
            await client.queue_create("hooks", retain=60)
            number = (await client.put("hooks", b"1", number=True)).number
            assert number
            end = await client.await_job(Number(number), wait=60)
            assert end
            assert end.data == bomb
    run(main())


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(address: str, status: int) -> None:
    async def main() -> None:
        async with receiver(answer(200)) as victim, receiver(answer(status, {"Location": victim.url})) as bad, pushing(
            address, a=target(bad.url, failures=1)
        ) as (pusher, client):
            await client.put("hooks", b"1")
            await soon(lambda: counted(pusher, outcome="later", reason=f"http_{status}"))
            assert victim.connections == 0
            await soon(lambda: counted(pusher, "rests_total"))
    run(main())


def test_429_for_ever_keeps_only_its_own_jobs_waiting(address: str) -> None:
    async def main() -> None:
        async with receiver(answer(429, {"Retry-After": "99999999999"})) as bad, receiver(answer(200)) as good, pushing(
            address, bad=target(bad.url, "bad"), good=target(good.url, "good")
        ) as (pusher, client):
            await client.put_many("bad", [b"1"] * 20)
            await soon(lambda: counted(pusher, "resting", target="bad"))
            await client.put_many("good", [b"1"] * 20)
            await soon(lambda: gone(client, "good"))
            assert len(bad.requests) <= 10              # those of the first moment

            async def all_wait() -> bool:
                found = await client.queue_stat("bad")
                return found["ready"] + found["delayed"] == 20

            await soon(all_wait)
    run(main())


def test_a_name_whose_address_changes_reaches_nothing_else(address: str) -> None:
    answers = [["127.0.0.2"], ["127.0.0.1"], ["127.0.0.1", "127.0.0.2"]]
    asked: list[str] = []

    async def lookup(host: str) -> list[str]:
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer_bytes(200, {"Connection": "close"}))
        await writer.drain()
        writer.close()

    async def main() -> None:
        async with receiver(behave, "127.0.0.2") as good:
            victims = 0

            async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                nonlocal victims
                victims += 1
                writer.close()

            victim = await asyncio.start_server(count, "127.0.0.1", good.port)
            one = target(f"http://rebinding.example.com:{good.port}/", concurrency=1, failures=100)
            async with pushing(address, lookup, a={**one, "allow": ["127.0.0.2"]}) as (pusher, client):
                for number in range(3):
                    await client.put("hooks", b"%d" % number)
                    await soon(lambda: gone(client, "hooks"))
                assert counted(pusher, outcome="later", reason="refused_address") == 1
            victim.close()
            assert (victims, len(good.requests), len(asked)) == (0, 3, 4)
    run(main())


def test_a_name_server_that_does_not_answer_holds_up_its_own_target_alone(address: str) -> None:
    async def lookup(host: str) -> list[str]:
        if host == "slow.example.com":
            await asyncio.Event().wait()
        return ["127.0.0.1"]

    async def main() -> None:
        async with receiver(answer(200)) as good, pushing(
            address, lookup, slow=target("http://slow.example.com/", "slow", timeout_s=1, connect_timeout_s=1),
            good=target(f"http://good.example.com:{good.port}/", "good"),
        ) as (pusher, client):
            await client.put_many("slow", [b"1"] * 20)
            await client.put_many("good", [b"1"] * 20)
            await soon(lambda: gone(client, "good"))
            await soon(lambda: counted(pusher, outcome="later", reason="timeout", target="slow"))
    run(main())
