"""The page for those who watch the program."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from sockpq_http.push import listener as listener_module
from sockpq_http.push.listener import CONNECTIONS_MAX, Listener


@pytest.fixture(autouse=True)
def _on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener_module, "REQUEST_S", 60.0)


async def ask(place: tuple[str, int], request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(*place)
    try:
        writer.write(request)
        return await reader.read()
    except OSError:                 # cut off before all of the request was read
        return b""
    finally:
        await hang_up(writer)


async def hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


def test_each_path_has_its_answer() -> None:
    ready = False

    async def main() -> None:
        nonlocal ready
        listener = Listener(lambda: ready, lambda: b"sockpq_push_lost_total 0\n")
        await listener.start("127.0.0.1", 0)
        expected = {
            b"GET /healthz": b"200 OK", b"GET /readyz": b"503 Service Unavailable", b"GET /metrics": b"200 OK",
            b"GET /": b"404 Not Found", b"POST /metrics": b"405 Method Not Allowed", b"nonsense": b"405 Method",
        }
        for first, status in expected.items():
            found = await ask(listener.place, first + b" HTTP/1.1\r\nHost: x\r\n\r\n")
            assert found.startswith(b"HTTP/1.1 " + status)
        ready = True
        assert b"200 OK" in await ask(listener.place, b"GET /readyz?x HTTP/1.1\r\n\r\n")
        assert b"sockpq_push_lost_total 0" in await ask(listener.place, b"GET /metrics HTTP/1.1\r\n\r\n")
        assert await ask(listener.place, b"x" * 100_000) == b""
        listener.close()

    asyncio.run(main())


def test_silent_connections_have_few_places() -> None:
    async def main() -> None:
        listener = Listener(lambda: True, lambda: b"")
        await listener.start("127.0.0.1", 0)
        silent = [await asyncio.open_connection(*listener.place) for _ in range(CONNECTIONS_MAX)]
        assert await ask(listener.place, b"GET /healthz HTTP/1.1\r\n\r\n") == b""
        for _, writer in silent:
            await hang_up(writer)
        while not await ask(listener.place, b"GET /healthz HTTP/1.1\r\n\r\n"):
            await asyncio.sleep(0.01)
        listener.close()

    asyncio.run(main())
