"""Real clusters of one node: two in one list, and one in the place of another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sockpq import Client, ForeignCluster

from devcluster.cluster import LocalCluster
from tests.client.conftest import MakeClient
from tests.replaced import replace


@pytest.fixture
def one() -> Iterator[LocalCluster]:
    with LocalCluster(1) as cluster:
        yield cluster


@pytest.fixture
def another() -> Iterator[LocalCluster]:
    with LocalCluster(1) as cluster:
        yield cluster


def test_what_was_put_into_one_goes_on_into_no_other(
    one: LocalCluster, another: LocalCluster, make_client: MakeClient
) -> None:
    client = make_client([*one.servers, *another.servers], timeout=8)
    mine = client.cluster_id().id
    client.put("q", b"1")
    is_first = one.say("n1", "CLUSTER ID", 5) == f"200 OK {mine} -"
    used, other = (one, another) if is_first else (another, one)
    used.kill("n1")
    with pytest.raises(ForeignCluster) as caught:
        client.put("q", b"2")
    for part in mine, used.servers[0], other.servers[0]:
        assert str(part) in str(caught.value)
    assert other.say("n1", "TOTAL", 60) == "200 OK 0 0 0 0"
    assert other.say("n1", "SESSION LIST", 60) == "200 OK 0"
    used.restart("n1")
    used.wait_for_leader()
    client.put("q", b"2")               # its own cluster is back
    assert client.total("q").jobs == 2


def test_a_consumer_ends_with_the_error_and_no_job_there(one: LocalCluster, make_client: MakeClient) -> None:
    client = make_client(one.servers, timeout=30)
    client.put("q", b"ours")
    jobs = client.consume("q", expire=3)
    ours = next(iter(jobs))
    replace(one)
    with Client(one.servers) as stranger:
        stranger.put("q", b"theirs")
        theirs = stranger.get("q")
        assert theirs
        assert theirs.id == ours.id
        with pytest.raises(ForeignCluster):
            next(jobs)
        assert stranger.total("q").running == 1


def test_events_are_not_heard_of_another(one: LocalCluster) -> None:
    """Their numbers mean something else there: some would be missed, or taken for known."""
    with Client(one.servers, timeout=30) as client, client.events("FINQ").open() as events:
        client.put("q", b"")
        job = client.get("q", expire=60)
        assert job
        job.done()
        assert next(iter(events)).name == "q"
        replace(one)
        with pytest.raises(ForeignCluster):
            next(iter(events))
