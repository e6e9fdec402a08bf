"""Tasks and handlers: declaring them, putting jobs, calling, eagerly and in memory."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from sockpq import BadArguments, Client, JobExists
from sockpq.testing import inline
from sockpq.worker import App, GiveUp, Retry, Sleep, SlowDown, TaskFailed, current_job

from tests.client.real_server import RealServer


def test_a_put_is_a_job_with_the_call_as_json() -> None:
    with RealServer() as server, Client(server.address) as client:
        app = App(server.address)

        @app.task("mail")
        def send(to: str, subject: str = "hi") -> None: ...

        send.put("ann", subject="grün")
        send.options(delay=60, priority=5, key="a1", group="anna").put("bob")
        job = client.get("mail", expire=60, meta=True)
        assert job
        assert job.json() == {
            "task": "tests.worker.test_app.send", "args": ["ann"], "kwargs": {"subject": "grün"},
        }
        assert "grün" in job.text
        (delayed,) = client.peek_queue("mail", "delayed")
        assert client.sched_group("anna").waiting == 1
        assert (delayed.key, delayed.priority, json.loads(delayed.data)["args"]) == ("a1", 5, ["bob"])
        with pytest.raises(JobExists):
            send.options(key="a1").put("carl")
        app.close()


def test_jobs_of_calls_are_put_together() -> None:
    with RealServer() as server, Client(server.address) as client:
        app = App(server.address)

        @app.task("mail", name="send", result=True, group=lambda to: f"of_{to}")
        def send(to: str) -> None: ...

        jobs = [send.as_put("ann"), send.options(priority=5, timeout=3, headers={"x": "y"}).as_put("bob")]
        assert client.put_many(send.queue, jobs=jobs)[0].number is not None
        bob, ann = client.get_many(2, "mail", expire=60, meta=True, headers=True)
        assert bob.json() == {"task": "send", "args": ["bob"], "kwargs": {}}
        assert (bob.priority, bob.group, bob.headers["task"], bob.headers["x"]) == (5, "of_bob", "send", "y")
        assert ann.group == "of_ann"
        assert ann.headers["id"] != bob.headers["id"]
        with pytest.raises(TypeError, match="missing a required argument"):
            send.as_put()
        with pytest.raises(BadArguments, match="wait is for call"):
            send.options(wait=3).as_put("ann")
        app.close()


def test_a_task_says_whose_job_a_call_is() -> None:
    with RealServer() as server, Client(server.address) as client:
        app = App(server.address)

        @app.task("mail", group=lambda customer, *_, to=None: customer)
        def send(customer: int | None, text: str, to: str | None = None) -> None: ...

        send.put(7, "hi")
        send.put(None, "hi")                                # of no group but the queue
        send.options(group="night").put(7, "hi", to="ann")
        with pytest.raises(TypeError, match="missing a required argument"):
            send.put(7)                                     # type: ignore[call-arg]

        async def main() -> None:
            await send.aput(8, "hi")
            await app.async_client.close()

        asyncio.run(main())
        assert {job.meta.group for job in client.find("mail")} == {"7", None, "night", "8"}
        app.close()
    with inline(app) as jobs:
        send.put(9, "hi")
        assert [job.group for job in jobs.jobs] == ["9"]


def test_a_put_in_asyncio() -> None:
    with RealServer() as server, Client(server.address) as client:
        app = App(server.address)

        @app.task("mail", name="send")
        async def send(to: str) -> None: ...

        async def main() -> None:
            await send.aput("ann")
            await app.async_client.close()

        asyncio.run(main())
        job = client.get("mail")
        assert job
        assert job.json()["task"] == "send"


def test_arguments_are_checked_before_anything_is_sent() -> None:
    app = App("127.0.0.1:1")

    @app.task("mail")
    def send(to: str) -> None: ...

    for wrong in ((), ("a", "b")):
        with pytest.raises(TypeError):
            send.put(*wrong)            # type: ignore[call-arg,arg-type]
    with pytest.raises(TypeError, match="JSON"):
        send.put(object())              # type: ignore[arg-type]
    with pytest.raises(BadArguments, match="wait is for call"):
        send.options(wait=5).put("ann")
    with pytest.raises(BadArguments, match="does not take delay"):
        send.options(delay=5).call("ann")


def test_what_is_declared_wrongly_is_refused() -> None:
    app = App()

    @app.task("mail", name="one")
    def one() -> None: ...

    @app.handler("raw")
    def raw(job: Any) -> None: ...

    with pytest.raises(BadArguments, match="there is a task 'one' already"):
        app.task("mail", name="one")(lambda: None)
    with pytest.raises(BadArguments, match="has a handler, which gets all its jobs"):
        app.task("raw", name="two")(lambda: None)
    for taken in ("mail", "raw"):
        with pytest.raises(BadArguments, match="has a handler or tasks already"):
            app.handler(taken)
    with pytest.raises(BadArguments, match="a name is"):
        app.handler("no such name!")
    with pytest.raises(BadArguments, match="needs 0 <= first"):
        app.task("q", backoff=(10, 5))
    with pytest.raises(BadArguments, match="tries 0"):
        app.task("q", tries=0)
    with pytest.raises(BadArguments, match="expire must be"):
        app.task("q", expire=0)
    with pytest.raises(TypeError, match="classes of exceptions"):
        app.task("q", give_up_on="ValueError")      # type: ignore[arg-type]
    assert app.queues == ("mail", "raw")


def test_eagerly_the_function_runs_at_once_with_what_json_makes_of_its_arguments() -> None:
    app = App("127.0.0.1:1", eager=True)
    seen: list[Any] = []

    @app.task("mail")
    def send(to: Any, again: bool = False) -> str:
        seen.append(to)
        if again and len(seen) < 3:
            raise Retry(delay=5)
        return "sent"

    assert send.put(("ann", 1)).outcome == "new"
    assert seen == [["ann", 1]]
    assert send.call("bob") == "sent"
    assert send.put("carl", again=True)
    assert seen[2:] == ["carl"]
    assert send("dora") == "sent"

    @app.task("mail")
    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        fail.put()

    @app.task("mail")
    async def waits(number: int) -> int:
        await asyncio.sleep(0)
        return number + 1

    assert waits.call(1) == 2

    async def main() -> None:
        assert await waits.acall(2) == 3
        await waits.aput(2)

    asyncio.run(main())


def test_in_memory_tasks_put_tasks_fail_and_are_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    app = App("127.0.0.1:1")
    calls: list[Any] = []

    @app.task("a", tries=3)
    def first(number: int) -> None:
        calls.append(number)
        if number > 1:
            raise ValueError("too many")
        second.options(priority=number).put(number)

    @app.task("b")
    async def second(number: int) -> None:
        calls.append(("second", number, current_job().queue))

    @app.handler("raw")
    def raw(job: Any) -> None:
        calls.append(job.data)

    with inline(app) as jobs, caplog.at_level(logging.WARNING, "sockpq.worker"):
        first.put(0)
        first.put(1)
        first.put(7)
        app.client.put("raw", b"bytes", key="k")
        assert len(jobs.jobs) == 4
        ran = jobs.run()
    assert calls == [0, 1, ("second", 1, "b"), 7, b"bytes", ("second", 0, "b"), 7, 7]
    assert [one.outcome.kind for one in ran if one.outcome.kind != "done"] == ["later", "later", "dead"]
    assert [(one.job.data[:16], one.outcome.reason) for one in jobs.dead] == [(b'{"task":"tests.w', "ValueError")]
    assert len(caplog.records) == 3
    fields = caplog.records[-1].__dict__["fields"]
    assert (fields["queue"], fields["attempt"], fields["error"], fields["outcome"]) == ("a", 3, "ValueError", "dead")
    assert "ValueError: too many" in fields["traceback"]


def test_in_memory_a_call_returns_the_result_or_raises() -> None:
    app = App("127.0.0.1:1")

    @app.task("sum")
    def add(one: int, two: int) -> int:
        return one + two

    @app.task("sum", tries=2)
    def fail() -> None:
        raise RuntimeError("no")

    @app.task("sum")
    async def gives_up() -> None:
        raise GiveUp("never")

    with inline(app) as jobs:
        assert add.call(1, 2) == 3
        with pytest.raises(TaskFailed, match="RuntimeError: no"):
            fail.call()
        with pytest.raises(TaskFailed) as failed:
            gives_up.call()
        assert (failed.value.kind, failed.value.message) == ("GiveUp", "never")
        assert asyncio.run(add.acall(3, 4)) == 7
        assert not jobs.jobs


@pytest.mark.parametrize(
    ("error", "kind", "delay"), [(SlowDown("429"), "slow", None), (Sleep(3600), "sleep", 3600)],
)
def test_what_is_raised_for_the_pulse(error: Exception, kind: str, delay: float | None) -> None:
    app = App("127.0.0.1:1")
    raised = [error]

    @app.handler("q")
    def work(job: Any) -> None:
        if raised:
            raise raised.pop()

    with inline(app) as jobs:
        jobs.put("q", b"")
        outcome = jobs.run()[0].outcome
    assert outcome.kind == "later"
    assert (outcome.slow, outcome.sleep) == (kind == "slow", 3600 if kind == "sleep" else None)
    if delay:
        assert outcome.delay == delay


def test_another_codec() -> None:
    class Reversed:
        def encode(self, value: Any) -> bytes:
            return json.dumps(value).encode()[::-1]

        def decode(self, data: bytes) -> Any:
            return json.loads(data[::-1])

    app = App("127.0.0.1:1", codec=Reversed())

    @app.task("q", name="add")
    def add(one: int) -> int:
        return one + 1

    with inline(app) as jobs:
        add.put(1)
        assert jobs.jobs[0].data.startswith(b"}")
        assert add.call(1) == 2


def test_rubbish_is_given_up_at_once_and_an_unknown_task_after_its_tries() -> None:
    app = App("127.0.0.1:1")

    @app.task("q", name="known", tries=2)
    def known(number: int) -> None: ...

    with inline(app) as jobs:
        for body in (b"\xff", b"7", b'{"args": []}', b'{"task": "known", "args": 5}', b'{"task":"known","kwargs":[]}'):
            jobs.put("q", body)
        assert {one.outcome.reason for one in jobs.run()} == {"BadJob"}
        assert len(jobs.dead) == 5
        jobs.put("q", b'{"task": "other"}')
        jobs.put("q", b'{"task": "known", "args": []}')
        assert [one.outcome.reason for one in jobs.run()] == ["UnknownTask", "TypeError"] * 2
