"""Many jobs by one call: put_many() with options for all or for each, later_many()."""

from __future__ import annotations

import asyncio

import pytest
from sockpq import BadArguments, Client, JobExists, Number, Put, QueuePaused, Stored, aio
from sockpq._protocol.arguments import PLAIN
from sockpq._protocol.commands.batches import puts_of

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
    with pytest.raises(BadArguments, match="each Put has its own"):
        client.put_many("mail", jobs=[Put("a")], number=True)      # type: ignore[call-overload]


def test_all_jobs_of_a_batch_have_numbers_and_a_lease(client: Client) -> None:
    assert client.put_many("mail", ["a", "b"], number=True, lease=300) == 2
    jobs = [client.get("mail", meta=True), client.get("mail", meta=True)]
    numbers = [job.meta.number for job in jobs if job is not None]
    assert None not in numbers
    assert len(set(numbers)) == 2
    assert all(job is not None and job.meta.expires_at is not None for job in jobs)
    with pytest.raises(BadArguments, match="number is for jobs that are done once"):
        client.put_many("mail", ["a"], number=True, every=60)


def test_a_slice_of_each_of_many_jobs_counts_as_no_attempt(client: Client) -> None:
    client.put_many("mail", ["a", "b"])
    assert client.later_many([*client.get_many(2, "mail", expire=300), 10**12], yielded=True) == [True, True, False]
    again = client.get_many(2, "mail", expire=300, meta=True)
    assert [(job.text, job.attempt) for job in again] == [("a", 1), ("b", 1)]
    client.later_many(again)
    assert [job.attempt for job in client.get_many(2, "mail", expire=300, meta=True)] == [2, 2]
    assert client.later_many([], yielded=True) == []


def test_each_job_has_the_command_that_it_has_alone() -> None:
    jobs = [
        Put("a"), Put(b"bb"), Put(json=[1]), Put("c", 1), Put("d", True), Put("e", 1, "i"),
        Put("f", 1, "i", number=True), Put("g", number=True),
        Put("h", number=True, headers={"k": "v"}), Put("i", number=True, dedup=("d", 5.0)),
        Put("j", number=True, dedup=("e", 5.0)), Put("k", delay=0.5), Put("l", delay=0.5), Put("m"),
    ]
    for bad in (jobs[:4] + jobs[5:], jobs[5:] * 2):
        alone = [puts_of("mail", [one], PLAIN)[0] for one in bad]
        together = puts_of("mail", bad, PLAIN)
        assert [(one.line, one.data, one.needs) for one in together] == [
            (one.line, one.data, one.needs) for one in alone]
    with pytest.raises(TypeError, match="priority"):
        puts_of("mail", jobs[3:5], PLAIN)           # True is no priority, though it equals 1
