"""A GET that is interrupted while it waits returns its job at once, also behind a proxy that lost it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest
from sockpq import Client, OutcomeUnknown, aio

from tests.client.hasty_proxy import HastyProxy
from tests.client.real_server import RealServer
from tests.client.scripted_server import ScriptedServer
from tests.waiting import at_most


class Interrupted(BaseException):
    """An exception like KeyboardInterrupt, of these tests alone."""


@pytest.fixture
def proxy(server: RealServer) -> Iterator[HastyProxy]:
    with contextlib.closing(HastyProxy(server.address)) as one:
        yield one


@contextlib.contextmanager
def interrupted_when(happened: threading.Event) -> Iterator[None]:
    """Expect that Interrupted is raised in this thread, by a signal that it is sent once that has happened."""
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    def send() -> None:
        happened.wait(60)
        signal.pthread_kill(main, signal.SIGUSR2)

    main = threading.get_ident()
    before = signal.signal(signal.SIGUSR2, interrupt)
    sending = threading.Thread(target=send, daemon=True)
    try:
        sending.start()
        with pytest.raises(Interrupted):
            yield
        sending.join()
    finally:
        signal.signal(signal.SIGUSR2, before)


@pytest.mark.parametrize("many", [False, True])
def test_a_cancelled_task(server: RealServer, proxy: HastyProxy, many: bool) -> None:
    async def main() -> None:
        async with aio.Client(server.address) as near, aio.Client(proxy.address) as client:
            get = client.get_many(9, "q", block=True, expire=60) if many else client.get("q", block=True, expire=60)
            task = asyncio.ensure_future(get)
            await near.put("q", b"x")
            assert await asyncio.to_thread(proxy.lost.wait, 20)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert server.ready_and_running("q") == (1, 0)
            job = await client.get("q", expire=60, meta=True)
            assert job is not None
            assert job.meta is not None
            assert job.meta.attempt == 1        # nobody was told of the first one

    with at_most(30):
        asyncio.run(main())


def test_a_cancelled_get_that_does_not_wait(server: RealServer, proxy: HastyProxy) -> None:
    async def main() -> None:
        async with aio.Client(server.address) as near, aio.Client(proxy.address) as client:
            await near.put("q", b"x")
            task = asyncio.ensure_future(client.get("q", expire=60))
            assert await asyncio.to_thread(proxy.lost.wait, 20)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert server.ready_and_running("q") == (1, 0)

    with at_most(30):
        asyncio.run(main())


def test_a_signal(server: RealServer, proxy: HastyProxy) -> None:
    with Client(server.address) as near, Client(proxy.address) as client, at_most(30):
        near.put("q", b"x")
        with interrupted_when(proxy.lost):
            client.get("q", block=True, expire=60)
        assert server.ready_and_running("q") == (1, 0)


def test_a_client_that_is_closed(server: RealServer, proxy: HastyProxy) -> None:
    failures: list[Exception] = []

    def take() -> None:
        try:
            client.get("q", block=True, expire=60)
        except OutcomeUnknown as error:
            failures.append(error)

    client = Client(proxy.address)
    with Client(server.address) as near, at_most(30):
        near.put("q", b"x")
        taking = threading.Thread(target=take, daemon=True)
        taking.start()
        assert proxy.lost.wait(60)
        client.close()
        taking.join(60)
        assert len(failures) == 1
        assert server.ready_and_running("q") == (1, 0)
    assert not client._router.first._connections._pool._idle     # what gave it back is closed as well


def test_an_asyncio_client_that_is_closed(server: RealServer, proxy: HastyProxy) -> None:
    async def main() -> None:
        async with aio.Client(server.address) as near:
            client = aio.Client(proxy.address)
            await near.put("q", b"x")
            task = asyncio.ensure_future(client.get("q", block=True, expire=60))
            assert await asyncio.to_thread(proxy.lost.wait, 20)
            await client.close()
            with pytest.raises(OutcomeUnknown):
                await task
            assert server.ready_and_running("q") == (1, 0)

    with at_most(30):
        asyncio.run(main())


def test_a_consumer_that_is_woken_gets_the_job_that_was_on_its_way(server: RealServer, proxy: HastyProxy) -> None:
    found: list[bytes] = []
    with Client(server.address) as near, Client(proxy.address) as client, client.consumer() as consumer, at_most(30):
        near.put("q", b"x")
        taking = threading.Thread(
            target=lambda: found.extend(job.data for job in consumer.get_many(9, "q")), daemon=True,
        )
        taking.start()
        assert proxy.lost.wait(60)
        consumer.wake()
        taking.join(60)
    assert found == [b"x"]


def test_a_consumer_whose_task_is_cancelled_takes_no_more(server: RealServer) -> None:
    async def main() -> None:
        async with aio.Client(server.address) as client, client.consumer() as consumer:
            await client.queue_create("q")
            task = asyncio.ensure_future(consumer.get_many(9, "q"))
            while not (await client.queue_stat("q"))["waiters"]:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await client.put("q", b"x")
            assert server.ready_and_running("q") == (1, 0)
            job, = await consumer.get_many(9, "q", meta=True)
            assert job.meta
            assert job.meta.attempt == 1

    with at_most(30):
        asyncio.run(main())


def test_a_consumer_whose_task_is_cancelled_gives_back_what_was_on_its_way(
    server: RealServer, proxy: HastyProxy
) -> None:
    async def main() -> None:
        async with (
            aio.Client(server.address) as near, aio.Client(proxy.address) as client, client.consumer() as consumer
        ):
            await near.put_many("q", [b"1", b"2", b"3"])
            held = await near.get_many(2, "q", expire=60)
            task = asyncio.ensure_future(consumer.get_many(9, "q"))
            assert await asyncio.to_thread(proxy.lost.wait, 20)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert server.ready_and_running("q") == (1, len(held))
            assert [job.data for job in await consumer.get_many(9, "q")] == [b"3"]

    with at_most(30):
        asyncio.run(main())


def test_a_consumer_that_is_interrupted_by_a_signal(server: RealServer, proxy: HastyProxy) -> None:
    with Client(server.address) as near, Client(proxy.address) as client, client.consumer() as consumer:
        near.put("q", b"x")
        with at_most(30), interrupted_when(proxy.lost):
            consumer.get_many(9, "q")
        assert server.ready_and_running("q") == (1, 0)
        assert len(consumer.get_many(9, "q")) == 1


def test_a_consumer_whose_client_is_closed_by_another_thread(server: RealServer, proxy: HastyProxy) -> None:
    failures: list[Exception] = []

    def take() -> None:
        try:
            consumer.get_many(9, "q")
        except OutcomeUnknown as error:
            failures.append(error)

    client = Client(proxy.address)
    consumer = client.consumer()
    with Client(server.address) as near, at_most(30):
        near.put("q", b"x")
        taking = threading.Thread(target=take, daemon=True)
        taking.start()
        assert proxy.lost.wait(60)
        client.close()
        taking.join(60)
        assert len(failures) == 1
        assert server.ready_and_running("q") == (1, 0)
        consumer.close()


def test_nobody_serves_any_more() -> None:
    """A closed client stops asking for answers that it can no longer receive."""
    asked = threading.Event()
    client = Client("127.0.0.1:1", timeout=30)

    def take() -> None:
        with contextlib.suppress(OutcomeUnknown):
            client.get("q", block=True, expire=60)

    with at_most(4):
        with ScriptedServer(lambda connection, stream, line: asked.set()) as server:
            client = Client(server.address, timeout=30)
            taking = threading.Thread(target=take, daemon=True)
            taking.start()
            assert asked.wait(60)
        client.close()
        taking.join(60)
    assert not taking.is_alive()
