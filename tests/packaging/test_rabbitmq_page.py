"""Lines of docs/RABBITMQ.md about behaviour, each tried on a server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sockpq import Client, JobExists
from sockpq.errors import QueueFull
from sockpq.testing import Server

from tests.packaging.blocks import ROOT
from tests.waiting import until

PAGE = (ROOT / "docs/RABBITMQ.md").read_text()


@pytest.fixture(scope="module")
def process() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def client(process: Server) -> Iterator[Client]:
    process.empty()
    with Client(process.address) as client:
        yield client


def test_a_job_that_is_requeued_keeps_place_and_priority(client: Client) -> None:
    assert "`job.later(first=True)`: to its place in the queue, with its priority" in PAGE
    for text, priority in ("a", 7), ("b", 7), ("c", 1):
        client.put("q", text, priority=priority)
    job = client.get("q", expire=60)
    assert job is not None
    job.later(first=True)
    again = client.get("q", expire=60, meta=True)
    assert again is not None
    assert (again.text, again.priority, again.attempt) == ("a", 7, 2)


def test_a_rejected_job_is_in_the_dead_letter_queue_and_comes_back(client: Client) -> None:
    client.queue_config("q", tries=5, dead="q_failed")
    client.put("q", "x")
    job = client.get("q", expire=60)
    assert job is not None
    job.bury("Reason")
    assert [(dead.queue, dead.reason) for dead in client.peek_queue("q_failed")] == [("q_failed", "Reason")]
    client.kick("q", 1)
    assert client.queue_stat("q")["ready"] == 1


def test_an_expired_job_is_not_dead_lettered(client: Client) -> None:
    client.queue_config("q", tries=5, dead="q_failed")
    client.put("q", "x", ttl=0.05)
    until(lambda: client.queue_stat("q")["ready"] == 0)
    assert [one.name for one in client.queues() if one.ready or one.dead] == []


def test_what_a_full_queue_does(client: Client) -> None:
    client.queue_config("q", capacity=1, overflow="drop_oldest")
    client.put("q", "old")
    client.put("q", "new")
    assert [job.data for job in client.peek_queue("q", count=9)] == [b"new"]
    client.queue_config("q", overflow="refuse")
    with pytest.raises(QueueFull):
        client.put("q", "more")


def test_a_topic_without_bindings_and_a_key_twice(client: Client) -> None:
    assert client.publish("nobody", "x") == 0
    client.put("q", "x", key="k")
    with pytest.raises(JobExists):
        client.put("q", "x", key="k")


def test_one_active_consumer(client: Client) -> None:
    client.queue_config("q", limit=1)
    client.put("q", "a")
    client.put("q", "b")
    job = client.get("q", expire=60)
    assert client.get("q", expire=60) is None
    assert job is not None
    job.done()
    assert client.get("q", expire=60) is not None


def test_a_queue_of_its_own_goes_with_its_author(client: Client, process: Server) -> None:
    with Client(process.address) as author:
        author.queue_create("mine", bound=True)
        assert "mine" in [one.name for one in client.queues()]
    until(lambda: "mine" not in [one.name for one in client.queues()])


def test_unfinished_work_of_a_consumer_without_leases_goes_back(client: Client) -> None:
    client.put("films", "alien")
    with client.consumer(ttl=30) as consumer:
        (job,) = consumer.get_many(10, "films")
        assert [running.expires_at for running in client.running()] == [None], job
        assert client.queue_stat("films")["running"] == 1
    until(lambda: client.queue_stat("films")["ready"] == 1)
