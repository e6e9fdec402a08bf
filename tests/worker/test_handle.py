"""The handle of a job of a task: in memory, and the errors that its caller gets for the texts of workers."""

from __future__ import annotations

import asyncio
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sockpq import BadArguments, Client, JobNotFound, NoOutput
from sockpq.testing import inline
from sockpq.worker import App, TaskFailed
from sockpq.worker.envelope import result_body
from sockpq.worker.handle import failure_of
from sockpq.worker.outcome import after_error
from sockpq.worker.policy import Policy

from tests.client.memory_cluster import MemoryCluster
from tests.client.real_server import RealServer


def text_of(error: Exception) -> str:
    """Return the text that a worker leaves with a job whose function raised this."""
    try:
        raise error
    except Exception as raised:
        failure = after_error(raised, 1, Policy()).failure
        assert failure is not None
        return failure.text


class OwnError(Exception):
    """An error of a program, with a module of its own before its name."""


@pytest.mark.parametrize(("error", "kind", "message"), [
    (ValueError("no: 5"), "ValueError", "no: 5"), (KeyError("x"), "KeyError", "'x'"), (OwnError(), "OwnError", ""),
    (OwnError("two\nlines"), "OwnError", "two\nlines"),
])
def test_the_error_is_read_from_its_traceback(error: Exception, kind: str, message: str) -> None:
    text = text_of(error)
    failed = failure_of("dead", text)
    assert (failed.kind, failed.message, failed.trace) == (kind, message, text)
    assert 'raise error' in failed.__notes__[0]
    again = pickle.loads(pickle.dumps(failed))
    assert (again.kind, again.message, again.trace) == (kind, message, text)


def test_the_error_without_a_traceback() -> None:
    failed = failure_of("dead", "ChildDied: its process has ended by signal 9 (SIGKILL)")
    assert (failed.kind, failed.message, failed.trace) == (
        "ChildDied", "its process has ended by signal 9 (SIGKILL)", "")
    assert str(failure_of("cancelled", "")) == "JobCancelled: the job is cancelled"
    assert failure_of("buried", "what a human has written").message == "what a human has written"


def test_in_memory_a_handle_knows_the_end_of_its_job() -> None:
    app = App("127.0.0.1:1")

    @app.task("sum", result=True)
    def add(one: int, two: int) -> int:
        return one + two

    @app.task("sum", retain=60, tries=1)
    def fail() -> None:
        raise RuntimeError("no")

    @app.task("sum")
    def unknown() -> None: ...

    with inline(app) as jobs:
        handle, failing, removed = add.put(1, 2), fail.put(), add.put(3, 4)
        assert (handle.state(), failing.state()) == ("ready", "ready")
        with pytest.raises(TimeoutError):
            handle.result(timeout=0)
        assert removed.cancel()
        assert not removed.cancel()
        jobs.run()
        assert (handle.state(), failing.state(), removed.state()) == ("done", "dead", "cancelled")
        assert handle.result() == 3
        with pytest.raises(TaskFailed, match="RuntimeError: no"):
            failing.result()
        with pytest.raises(TaskFailed, match="cancelled"):
            removed.result()
        assert handle.number is not None
        assert add.handle(handle.number).result() == 3
        with pytest.raises(BadArguments, match="retain="):
            unknown.put().state()
        assert add.handle(77).state() is None
        with pytest.raises(JobNotFound):
            add.handle(77).result()

        async def main() -> tuple[Any, ...]:
            one = await add.aput(5, 6)
            other = await add.aput(7, 8)
            assert await other.cancel()
            await asyncio.to_thread(jobs.run)
            assert one.number is not None
            return await one.state(), await one.result(), await add.ahandle(one.number).result(), await other.state()

        assert asyncio.run(main()) == ("done", 11, 11, "cancelled")


def test_eagerly_a_handle_has_the_result_at_once() -> None:
    app = App("127.0.0.1:1", eager=True)

    @app.task("sum", result=True)
    def add(one: int, two: int) -> int:
        return one + two

    handle = add.put(1, 2)
    assert (handle.state(), handle.result(), handle.cancel(), handle.look()) == ("done", 3, False, None)

    async def main() -> tuple[Any, ...]:
        other = await add.aput(1, 3)
        return await other.state(), await other.result(), await other.cancel(), await other.look()

    assert asyncio.run(main()) == ("done", 4, False, None)


def test_a_put_has_the_task_and_an_id_as_headers_and_a_number_if_it_is_retained() -> None:
    with RealServer() as server, Client(server.address) as client:
        app = App(server.address)

        @app.task("q", name="plain")
        def plain() -> None: ...

        @app.task("q", name="kept", retain=60)
        def kept() -> None: ...

        assert plain.put().number is None
        number = kept.options(headers={"tenant": "ann"}).put().number
        assert kept.options(every=60).put().number is None      # it never ends
        first, second, third = client.get_many(3, "q", expire=30, headers=True, meta=True)
        assert first.headers["task"] == "plain"
        assert len(first.headers["id"]) == 32
        assert (second.headers["task"], second.headers["tenant"], second.number) == ("kept", "ann", number)
        assert third.headers["id"] != second.headers["id"]
        app.close()


def test_a_remote_call_has_the_headers_too() -> None:
    with RealServer() as server, Client(server.address) as client, ThreadPoolExecutor(1) as caller:
        app = App(server.address)

        @app.task("q", name="twice")
        def twice(number: int) -> int:
            return 2 * number

        async def acall(number: int) -> Any:
            try:
                return await twice.acall(number)
            finally:
                await app.close_async_client()

        for call in (twice.call, lambda number: asyncio.run(acall(number))):
            called = caller.submit(call, 4)
            job = client.get("q", block=True, timeout=30, expire=30, headers=True)
            assert job.headers["task"] == "twice"
            assert len(job.headers["id"]) == 32
            client.put("q.results", result_body(app.codec, 8), item=job.item)
            job.done()
            assert called.result(30) == 8
        app.close()


def test_an_older_server_gets_a_remote_call_without_headers() -> None:
    with MemoryCluster() as cluster:
        app = App(cluster.addresses)

        @app.task("q", name="twice")
        def twice(number: int) -> int:
            return 2 * number

        short = twice.options(wait=0.01, timeout=20)

        async def acall() -> None:
            with pytest.raises(NoOutput):
                await short.acall(4)
            await app.close_async_client()

        with pytest.raises(NoOutput):
            short.call(4)
        asyncio.run(acall())
        app.close()
