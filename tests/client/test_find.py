"""find() against real servers, by both clients: page after page, at any server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sockpq import BadArguments, Client

from devcluster.cluster import LocalCluster
from tests.client.conftest import MakeClient

pytestmark = pytest.mark.usefixtures("filled")
QUEUES = ("found.a", "found.b")


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(nodes=3) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def filled(cluster: LocalCluster) -> None:
    with Client(cluster.servers, timeout=60) as client:
        for queue in QUEUES:
            assert cluster.say(cluster.wait_for_leader(), f"QUEUE CREATE {queue} RETAIN 3600", 60) == "200 OK"
            client.put_many(queue, [b"%d" % number for number in range(25)])
        headers = {"task": "send mail", "empty": ""}
        client.put("found.a", b"body", headers=headers, number=True, key="order.17", item="i")
        client.put("found.a", b"", key="order.18", group="ann", delay=3600)
        client.put("found.b", b"x", 9, number=True)
        with client.get("found.b", expire=3600) as job:     # type: ignore[union-attr]
            job.done(result=b"y")
        client.put("found.b", b"lost", 9)
        client.get("found.b", expire=3600).bury(reason="lost", here=True)      # type: ignore[union-attr]
    cluster.wait_until_level()      # each server shows what it has itself: a follower may not even be connected yet


@pytest.fixture
def client(cluster: LocalCluster, make_client: MakeClient) -> Client:
    return make_client(cluster.servers, timeout=60)


def test_pages_make_one_list(client: Client, cluster: LocalCluster) -> None:
    everything = list(client.find(QUEUES, count=1000))
    assert len(everything) == len({(job.queue, job.place) for job in everything}) == 53
    for server in (None, *cluster.servers):
        assert list(client.find(QUEUES, count=7, server=server)) == everything


@pytest.mark.parametrize(("wanted", "count"), [
    ({"state": "ready"}, 51), ({"state": ["delayed", "buried"]}, 2), ({"state": "done"}, 1), ({"key": "order."}, 2),
    ({"header": ("task", "send mail")}, 1), ({"header": ("task", "send")}, 0), ({"header": ("empty", "")}, 1),
    ({"item": "i"}, 1), ({"group": "ann"}, 1), ({"reason": "lost"}, 1), ({"until": 1000}, 0), ({"since": 1000}, 53),
])
def test_jobs_are_found_by_what_they_are(client: Client, wanted: dict[str, Any], count: int) -> None:
    assert len(list(client.find(QUEUES, **wanted))) == count
    assert len(list(client.find(**wanted))) == count


def test_a_job_that_is_found_is_described(client: Client) -> None:
    (job,) = client.find(header=("task", "send mail"))
    assert (job.id, job.queue, job.priority, job.length, job.state, job.item) == (None, "found.a", 0, 4, "ready", "i")
    assert (job.meta.key, job.meta.attempt, job.number) == ("order.17", 0, job.meta.number)
    (job,) = client.find("found.b", state="done")
    assert (job.state, job.length, job.meta.attempt) == ("done", 1, 1)
    assert job.meta.ended is not None
    assert client.job_result(job.number) == b"y"       # type: ignore[arg-type]


def test_a_wrong_wish_is_refused_before_it_is_sent(client: Client) -> None:
    for wanted in ({"state": "lost"}, {"state": []}, {"count": 1001}, {"key": "a b"}, {"header": ("a b", "")}):
        with pytest.raises(BadArguments):
            list(client.find(**wanted))      # type: ignore[arg-type]
