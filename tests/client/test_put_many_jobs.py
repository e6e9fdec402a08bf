"""put_many(jobs=): many jobs in one command, each with options of its own, and an answer for each."""

from __future__ import annotations

import asyncio

import pytest
from sockpq import BadArguments, Client, JobExists, Number, Put, QueuePaused, Stored, aio

from tests.client.conftest import MakeClient
from tests.client.real_server import RealServer


@pytest.fixture
def client(server: RealServer, make_client: MakeClient) -> Client:
    return make_client(server.address, timeout=60)


def test_each_job_has_its_own_options_and_answer(client: Client) -> None:
    first, taken, plain, numbered, known = client.put_many("mail", jobs=[
        Put("a", key="k", group="ann", priority=3), Put("b", key="k"), Put(json={"c": 1}, headers={"task": "t"}),
        Put(b"d", number=True, delay=60), Put("e", key="k", on_duplicate="ignore"),
    ])
    assert first == Stored(key="k")
    assert isinstance(taken, JobExists)
    assert plain == Stored()
    assert isinstance(numbered, Stored)
    assert numbered.number is not None
    assert known == Stored(key="k", outcome="exists")
    found = client.peek(Number(numbered.number))
    assert found is not None
    assert (found.data, found.state) == (b"d", "delayed")
    job = client.get("mail", expire=9, meta=True)
    assert job is not None
    assert (job.data, job.priority, job.meta.group) == (b"a", 3, "ann")


def test_a_queue_that_takes_none_refuses_each(client: Client) -> None:
    client.queue_pause("mail", "in")
    assert [type(one) for one in client.put_many("mail", jobs=[Put("a"), Put("b")])] == [QueuePaused] * 2
    assert client.put_many("mail", jobs=[]) == []


def test_the_asyncio_client_does_the_same(server: RealServer) -> None:
    async def put() -> list[object]:
        async with aio.Client([server.address]) as found:
            return list(await found.put_many("mail", jobs=[Put("a", item="i"), Put("b")]))

    assert asyncio.run(put()) == [Stored(item="i"), Stored()]


def test_options_for_all_are_refused_beside_jobs(client: Client) -> None:
    with pytest.raises(BadArguments, match="each Put has its own"):
        client.put_many("mail", jobs=[Put("a")], priority=3)       # type: ignore[call-overload]
    with pytest.raises(TypeError, match="needs data, json or value"):
        client.put_many("mail", jobs=[Put()])
