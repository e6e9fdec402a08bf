"""Moving ready and dead jobs to another queue, and removing running ones, against the real gateway in memory."""

from __future__ import annotations

import pytest
from sockpq import (
    BadArguments,
    Client,
    Job,
    JobExists,
    JobNotFound,
    Moved,
    QueueFull,
    QueueNotEmpty,
    QueueNotFound,
)

from tests.client.conftest import MakeClient
from tests.client.real_server import RealServer


@pytest.fixture
def client(server: RealServer, make_client: MakeClient) -> Client:
    return make_client(server.address, timeout=60)


def take(client: Client, queue: str) -> Job:
    job = client.get(queue, expire=30)
    assert job is not None
    return job


def bodies(client: Client, queue: str) -> list[bytes]:
    return [job.data for job in client.peek_queue(queue, "ready", 10)]


def test_ready_jobs_go_to_another_queue_in_their_order(client: Client) -> None:
    client.put_many("old", [b"a", b"b", b"c"])
    assert client.queue_move("old", "new", 2) == Moved(2)
    assert (bodies(client, "new"), bodies(client, "old")) == ([b"a", b"b"], [b"c"])
    assert client.queue_move("old", "new") == (1, None)
    with pytest.raises(QueueNotFound):
        client.queue_move("old", "new")


def test_the_result_says_why_jobs_stay(client: Client) -> None:
    client.put_many("old", [b"a", b"b", b"c"], keys=["a", "b", "c"])
    client.queue_create("small", capacity=1)
    moved = client.queue_move("old", "small")
    assert moved.jobs == 1
    assert isinstance(moved.refusal, QueueFull)
    client.put("new", b"c", key="c")
    moved = client.queue_move("old", "new")
    assert (moved.jobs, type(moved.refusal), str(moved.refusal)) == (1, JobExists, "409 Job Exists")
    assert bodies(client, "old") == [b"c"]


def test_dead_jobs_of_one_queue_are_moved_out_of_those_of_several(client: Client) -> None:
    for queue in "a", "b":
        client.queue_create(queue, tries=1, dead="dead")
        client.put(queue, queue)
        take(client, queue).bury()
    assert client.queue_move("dead", "look", died="b") == Moved(1)
    assert (bodies(client, "look"), bodies(client, "dead")) == ([b"b"], [b"a"])


def test_running_jobs_are_purged(client: Client) -> None:
    client.put_many("q", [b"a", b"b"])
    job = take(client, "q")
    assert client.queue_purge("q", "running") == 1
    with pytest.raises(JobNotFound):
        job.done()
    take(client, "q")
    client.put("q", b"c")
    assert client.queue_purge("q", "own") == 2


def test_a_deleted_queue_leaves_its_dead_jobs(client: Client) -> None:
    client.put("q", b"a")
    take(client, "q").bury()
    with pytest.raises(QueueNotEmpty):
        client.queue_delete("q")
    with pytest.raises(BadArguments):
        client.queue_delete("q", leave=True)
    client.queue_delete("q", force=True, leave=True)
    assert bodies(client, "q_dead") == [b"a"]
    assert client.kick("q", 1) == 0

