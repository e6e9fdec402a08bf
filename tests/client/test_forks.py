"""A forked child ends nothing of its parent, however it ends itself, and says so when it tries."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pytest
from sockpq import Client, Inherited, aio
from sockpq.testing import Server

from tests.client.real_server import RealServer
from tests.client.test_client import in_a_child
from tests.client.test_failover import at_most
from tests.waiting import until

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning")

CHILD_S = 30
JOBS = 2


class Oops(Exception):
    """The exception by which a child ends."""


def normally() -> None:
    """Let the child leave the block at its end."""


def by_an_exception() -> NoReturn:
    raise Oops


def by_leaving() -> NoReturn:
    raise SystemExit(1)


ENDINGS = [normally, by_an_exception, by_leaving]


class Fork:
    """Called in the middle of a block: the child ends that, the parent checks its jobs."""

    def __init__(self, server: RealServer, ending: Callable[[], None]) -> None:
        self._server = server
        self._ending = ending
        self._parent = os.getpid()

    def __call__(self, running: int) -> bool:
        """Fork; returns True in a child that continues. `running`: the number of jobs that the parent holds."""
        child = os.fork()
        if child == 0:
            signal.alarm(CHILD_S)
            self._ending()
            return True
        os.waitpid(child, 0)
        assert self._server.ready_and_running("q") == (JOBS - running, running)
        return False

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        """End the child with whatever leaves this block in it."""
        try:
            yield
        finally:
            if os.getpid() != self._parent:
                os._exit(0)


# One form of using jobs each, for the blocking client and for asyncio.


def job_block(client: Client, fork: Fork) -> None:
    with client.get("q", expire=60) as job:         # type: ignore[union-attr]
        assert job
        fork(1)


async def aio_job_block(client: aio.Client, fork: Fork) -> None:
    async with client.get("q", expire=60):
        fork(1)


def loop(client: Client, fork: Fork) -> None:
    for _ in client.consume("q", expire=60, wait=0.05):
        if fork(1):
            break
        break


async def aio_loop(client: aio.Client, fork: Fork) -> None:
    async for _ in client.consume("q", expire=60, wait=0.05):
        if fork(1):
            break
        break


def loop_with_prefetch(client: Client, fork: Fork) -> None:
    for _ in client.consume("q", expire=60, wait=0.05, prefetch=2, heartbeat=True):
        fork(2)
        break


async def aio_loop_with_prefetch(client: aio.Client, fork: Fork) -> None:
    async for _ in client.consume("q", expire=60, wait=0.05, prefetch=2, heartbeat=True):
        fork(2)
        break


def consumer(client: Client, fork: Fork) -> None:
    with client.consumer() as taking:
        assert len(taking.get_many(2, "q")) == 2
        fork(2)


async def aio_consumer(client: aio.Client, fork: Fork) -> None:
    async with client.consumer() as taking:
        assert len(await taking.get_many(2, "q")) == 2
        fork(2)


def connected(client: Client, fork: Fork) -> None:
    client.connect()
    with client.consumer() as taking, client.events("PUT") as events:
        events.open()
        assert len(taking.get_many(1, "q")) == 1
        fork(1)


async def aio_connected(client: aio.Client, fork: Fork) -> None:
    await client.connect()
    async with client.consumer() as taking, client.events("PUT") as events:
        await events.open()
        assert len(await taking.get_many(1, "q")) == 1
        fork(1)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("form", [job_block, loop, loop_with_prefetch, consumer, connected])
def test_what_a_forked_child_leaves_goes_on_in_its_parent(
    form: Callable[[Client, Fork], None], ending: Callable[[], None]
) -> None:
    with RealServer() as server, at_most(60):
        fork = Fork(server, ending)
        with fork.around(), Client(server.address) as client:
            client.put_many("q", [b"1", b"2"])
            form(client, fork)
        assert server.ready_and_running("q")[1] == 0


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("form", [aio_job_block, aio_loop, aio_loop_with_prefetch, aio_consumer, aio_connected])
def test_likewise_in_asyncio(form: Callable[[aio.Client, Fork], Any], ending: Callable[[], None]) -> None:
    async def main() -> None:
        async with aio.Client(server.address) as client:
            await client.put_many("q", [b"1", b"2"])
            await form(client, fork)
            await client.put("q", b"3")         # its connections are as good as before

    with RealServer() as server, at_most(60):
        fork = Fork(server, ending)
        with fork.around():
            asyncio.run(main())
        assert server.ready_and_running("q")[1] == 0


@pytest.fixture
def server() -> Iterator[RealServer]:
    with RealServer() as one:
        yield one


def test_a_child_that_uses_what_is_its_parents_is_told_so(server: RealServer) -> None:
    def try_everything() -> None:
        for use in (
            job.done, job.later, job.touch, job.bury, lambda: job.move("other"), lambda: job.change(data=b"x"),
            lambda: client.done(job), lambda: client.done_many([job]), lambda: client.touch(job),
            lambda: next(taken), lambda: consumer.get_many(1, "q"), lambda: next(iter(events)), events.open, commit,
        ):
            with pytest.raises(Inherited):
                use()
        consumer.wake()
        consumer.close()
        events.stop()
        events.close()
        taken.close()                           # type: ignore[attr-defined]
        client.put("q", b"child's")
        with client.get("q", expire=60) as own:     # type: ignore[union-attr]
            assert own
        client.close()

    def commit() -> None:
        with open_transaction:
            pass

    with Client(server.address) as client, client.consumer() as consumer, client.events("PUT", "told") as events:
        client.put_many("q", [b"1", b"2", b"3"])
        open_transaction = client.transaction()
        open_transaction.put("q", b"twice")
        events.open()
        taken = iter(client.consume("q", expire=60))
        next(taken)
        job = client.get("q", expire=60)
        assert job
        assert len(consumer.get_many(1, "q")) == 1
        assert in_a_child(try_everything) == 0
        assert server.ready_and_running("q") == (0, 3)
        client.put("told", b"x")
        assert next(iter(events)).name == "told"        # its connection is as good as before
        assert consumer.get_many(1, "q", wait=0.05) == []
        job.done()
        assert server.ready_and_running("q") == (0, 2)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_turn_has_the_result_that_its_parent_tells(server: RealServer, ending: Callable[[], None]) -> None:
    def results() -> int:
        return sum(kind == "GiveResult" for kinds in server.entries() for kind in kinds)

    fork = Fork(server, ending)
    with fork.around(), Client(server.address) as client:
        client.put_many("q", [b"1", b"2"])
        client.pulse_create("p", rate=100)
        with client.pulse("p").turn(within=5):
            if not fork(0):
                assert results() == 0
    assert results() == 1


def test_an_asyncio_client_belongs_to_the_loop_of_its_process(server: RealServer) -> None:
    async def main() -> None:
        async with aio.Client(server.address) as client, aio.Client(server.address) as unused:
            await client.put("q", b"1")

            async def use() -> None:
                with pytest.raises(Inherited):
                    await client.put("q", b"2")
                await client.close()
                await unused.put("q", b"child's")

            assert in_a_child(lambda: asyncio.run(use())) == 0
            await client.put("q", b"3")
            await unused.put("q", b"4")

    with at_most(60):
        asyncio.run(main())
    assert server.ready_and_running("q") == (4, 0)


def test_a_get_that_waits_in_a_thread_survives_a_child(server: RealServer) -> None:
    found: list[object] = []
    with Client(server.address) as client, client.consumer() as consumer, at_most(60):
        client.queue_create("q")
        taking = threading.Thread(target=lambda: found.extend(consumer.get_many(1, "q")), daemon=True)
        taking.start()
        until(lambda: client.queue_stat("q")["waiters"] == 1)
        assert in_a_child(lambda: (consumer.wake(), client.close())) == 0
        client.put("q", b"x")
        taking.join(60)
        assert len(found) == 1


def test_a_process_of_multiprocessing(server: RealServer) -> None:
    with Client(server.address) as client:
        client.put("q", b"1")
        with client.get("q", expire=60) as job:         # type: ignore[union-attr]
            for target in (by_an_exception, job.done, lambda: client.put("q", b"2")):
                process = multiprocessing.get_context("fork").Process(target=target)
                process.start()
                process.join(CHILD_S)
                assert process.exitcode == (0 if target not in (by_an_exception, job.done) else 1)
            assert server.ready_and_running("q") == (1, 1)


def test_a_test_server_is_not_ended_by_a_child() -> None:
    with Server() as server, Client(server.address) as client:
        client.put("q", b"1")
        assert in_a_child(server.stop) == 0
        client.put("q", b"2")
