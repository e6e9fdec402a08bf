"""get(meta="life"), and touch_many() with a time for each job, against the real gateway in memory."""

from __future__ import annotations

import pytest
from sockpq import BadArguments, Client, Life

from tests.client.conftest import MakeClient
from tests.client.real_server import RealServer

START_S = 1_700_000_000.0


@pytest.fixture
def client(server: RealServer, make_client: MakeClient) -> Client:
    return make_client(server.address, timeout=60)


def test_a_numbered_job_shows_its_life(server: RealServer, client: Client) -> None:
    number = client.put("q", b"x", number=True, headers={"task": "send"}).number
    assert number is not None
    server.pass_time(2)
    job = client.get("q", expire=5, meta="life")
    assert job is not None
    assert job.meta is not None
    assert job.meta.life == Life(START_S, START_S + 2, START_S + 2, 1)
    assert (job.number, job.attempt) == (number, 1)
    server.pass_time(6)
    (job,) = client.get_many(9, "q", expire=5, meta="life", headers=True)
    assert job.meta is not None
    assert job.meta.life == Life(START_S, START_S + 2, START_S + 8, 2)
    assert (job.data, job.headers) == (b"x", {"task": "send"})
    client.bury(job)
    job = client.get("q_dead", expire=5, wait=60, meta="life")
    assert job is not None
    assert job.meta is not None
    assert job.meta.life is not None
    assert job.meta.life.died_in == "q"
    client.later(job)
    job = client.get_number(number, 5, meta="life")
    assert job.meta is not None
    assert job.meta.life is not None
    assert job.meta.life.taken == 4


def test_a_job_without_a_number_has_none(client: Client) -> None:
    client.put("q", b"x")
    job = client.get("q", expire=5, meta="life")
    assert job is not None
    assert job.meta is not None
    assert (job.meta.attempt, job.meta.life) == (1, None)


def test_each_job_may_have_a_lease_of_its_own(server: RealServer, client: Client) -> None:
    client.put_many("q", [b"a", b"b", b"c", b"d"])
    taken = client.get_many(4, "q", expire=10)
    assert client.touch_many([*taken[:3], 999_999], [50, 20, 50, 20]) == [True, True, True, False]
    server.pass_time(11)
    assert [job.data for job in client.get_many(4, "q", expire=300)] == [b"d"]
    server.pass_time(10)
    assert [job.data for job in client.get_many(4, "q", expire=300)] == [b"b"]
    server.pass_time(30)
    assert [job.data for job in client.get_many(4, "q", expire=300)] == [b"a", b"c"]
    assert client.touch_many([], []) == []
    with pytest.raises(BadArguments, match="2 jobs, and 1 times"):
        client.touch_many(taken[:2], [5])
