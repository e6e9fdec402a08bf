"""Programs that only take jobs, and are refused nowhere, find jobs in another cluster soon after the map has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sockpq import Client, Moving
from sockpq._routing import known_clusters

from tests.client.caller import Caller
from tests.client.conftest import MakeClient
from tests.client.pair import Pair
from tests.waiting import eventually, until


@pytest.fixture
def pair(clusters: Pair, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """b owns names that begin with "b."; clients read the map again only after an hour, unless there is a reason."""
    monkeypatch.setattr(known_clusters, "READ_AGAIN_S", 3600.0)
    clusters.clear()
    clusters.set({"b.": "b"})
    return clusters


def consumed(client: Client) -> Any:
    with client.consumer(ttl=30) as consumer:
        (job,) = consumer.get_many(1, "b.q")
        job.done()
        return job


def looks(client: Client) -> int:
    """Return how often the client has asked for the map where it waited."""
    calls = client.stats().calls
    return calls["MAP"].calls if "MAP" in calls else 0


TAKING: dict[str, Callable[[Client], Any]] = {
    "get": lambda client: client.get("b.q", block=True, expire=60),
    "get_many": lambda client: client.get_many(1, "b.q", block=True, expire=60)[0],
    "of both": lambda client: client.get(["q", "b.q"], block=True, expire=60),
    "consume": lambda client: next(client.consume("b.q", expire=60)),
}


@pytest.mark.parametrize("taking", TAKING)
def test_a_wait_ends_soon_after_a_move(pair: Pair, make_client: MakeClient, taking: str) -> None:
    client = make_client(pair.b.servers, timeout=60)
    client.total("b.q")             # so the map is known
    waiting = Caller(lambda: TAKING[taking](client))
    assert not eventually(lambda: not waiting.runs, 0.3)
    pair.set({}, {"b.": Moving("b", "a")})
    with pair.only("a") as a:
        a.put("b.q", b"moved")
        assert waiting.result().data == b"moved"


def test_a_consumer_finds_what_has_moved(pair: Pair) -> None:
    with Client(pair.b.servers, timeout=60) as client:
        client.total("b.q")
        waiting = Caller(lambda: consumed(client))
        assert not eventually(lambda: not waiting.runs, 0.3)
        pair.set({}, {"b.": Moving("b", "a")})
        with pair.only("a") as a:
            a.put("b.q", b"moved")
            assert waiting.result().data == b"moved"


def test_who_asks_now_and_then_finds_what_has_moved(pair: Pair, make_client: MakeClient) -> None:
    client = make_client(pair.b.servers, timeout=60)
    assert client.get("b.q", expire=60) is None
    pair.set({"b.": "a"})
    with pair.only("a") as a:
        a.put_many("b.q", [b"1", b"2"])
    until(lambda: client.get("b.q", expire=60))
    assert client.get("b.q", expire=60).data == b"2"


def test_many_waits_look_once_a_second(pair: Pair) -> None:
    """Ten waits of one client ask as often as one, and a job ends each of them as before."""
    with Client(pair.b.servers, timeout=60) as client:
        client.total("b.q")
        waits = [Caller(lambda: client.get("b.q", block=True, expire=60)) for _ in range(10)]
        until(lambda: looks(client) >= 3)
        before = looks(client)
        client.put_many("b.q", [b""] * 10)
        assert all(wait.result() for wait in waits)
        assert before < 10


def test_without_home_waits_go_on() -> None:
    """The cluster that is asked for the map is down: clients that wait in others get their jobs."""
    with Pair() as dying, Client(dying.b.servers, timeout=60, server_timeout=0.5, connect_timeout=0.3) as client:
        dying.set({"b.": "b"})
        client.total("b.q")
        waiting = Caller(lambda: client.get("b.q", block=True, expire=60))
        dying.a.kill("n1")
        assert not eventually(lambda: not waiting.runs, 1.5)
        with dying.only("b") as b:
            b.put("b.q", b"x")
        assert waiting.result().data == b"x"


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_client_in_use_follows_the_first_map(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Jobs that it held before belong to its own cluster; the next call goes where the map points."""
    monkeypatch.setattr(known_clusters, "READ_AGAIN_S", 0.3)
    with Pair() as fresh:
        client = make_client(getattr(fresh, name).servers, timeout=60)
        client.put_many("old", [b"1", b"2"])
        held = client.get("old", expire=60)
        fresh.set({"b.": "b", "old": name})
        client.put("b.film", b"3")
        client.put("mail", b"4")
        assert (fresh.count("b", "b.film"), fresh.count("a", "mail")) == ((1, 0), (1, 0))
        held.done()
        assert client.get("old", expire=60).data == b"2"
        assert fresh.count(name, "old") == (0, 1)


def test_who_only_takes_follows_the_first_map(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_clusters, "READ_AGAIN_S", 0.3)
    with Pair() as fresh:
        client = make_client(fresh.a.servers, timeout=60)
        assert client.get("b.q", expire=60) is None
        fresh.set({"b.": "b"})
        with fresh.only("b") as b:
            b.put("b.q", b"x")
        until(lambda: client.get("b.q", expire=60))
