"""Sending: only public addresses are reached, however the host is written."""

from __future__ import annotations

import asyncio

import pytest
from sockpq_http.push.answers import Answer, Failure
from sockpq_http.push.configuration import Target
from sockpq_http.push.sending import Sender

from tests.http.push.receivers import LOOPBACK, answer, receiver


async def send(url: str, *allow: str) -> Answer | Failure:
    async with Sender(Target(queues=("q",), url=url, allow=allow, timeout_s=30)) as sender:
        return await sender.send({}, b"")


@pytest.mark.parametrize("host", [
    "localhost", "LOCALHOST", "localhost.", "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1",
    "017700000001", "0177.0.0.1", "0", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
    "[64:ff9b::7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "127.0.0.1%2f", "\uff11\uff12\uff17.0.0.1", "127\u30020.0.1",
])
def test_this_host_is_not_reached(host: str) -> None:
    async def main() -> None:
        async with receiver(answer(200)) as victim:
            found = await send(f"http://{host}:{victim.port}/")
            assert isinstance(found, Failure)
            assert found.reason in ("refused_address", "bad_request", "dns", "connect")
            assert victim.connections == 0
    asyncio.run(main())


def test_it_is_reached_if_that_is_allowed() -> None:
    async def main() -> None:
        async with receiver(answer(200)) as seen:
            assert await send(seen.url, *LOOPBACK) == Answer(200, None, b"", True)
            assert seen.connections == 1
    asyncio.run(main())


def test_an_address_that_nobody_listens_at_is_a_failure_without_the_path() -> None:
    async def main() -> None:
        async with receiver(answer(200)) as seen:
            port = seen.port
        found = await send(f"http://127.0.0.1:{port}/path?token=x", *LOOPBACK)
        assert isinstance(found, Failure)
        assert found.reason == "connect"
        assert "token" not in found.text
    asyncio.run(main())


def test_a_connection_is_used_again() -> None:
    async def main() -> None:
        async with receiver(answer(500, body=b"x" * 10_000)) as seen:
            async with Sender(Target(queues=("q",), url=seen.url, allow=tuple(LOOPBACK))) as sender:
                for _ in range(5):
                    found = await sender.send({}, b"x")
                    assert isinstance(found, Answer)
                    assert (found.status, len(found.body), found.whole) == (500, 10_000, True)
            assert (seen.connections, len(seen.requests)) == (1, 5)
    asyncio.run(main())
