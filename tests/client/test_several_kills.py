"""Names move between two clusters while programs put and take, and while the nodes of both are killed."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from sockpq import Client, Moving
from sockpq._routing import known_clusters

from devcluster.cluster import LocalCluster
from tests.client.pair import Pair
from tests.waiting import until


def restart(cluster: LocalCluster) -> None:
    cluster.kill("n1")
    cluster.restart("n1")
    cluster.wait_for_leader()


def test_nothing_is_lost_or_done_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_clusters, "READ_AGAIN_S", 1.0)
    stop, ended = threading.Event(), threading.Event()
    put: list[str] = []
    done: list[str] = []
    errors: list[Exception] = []

    def produce(number: int, pair: Pair) -> None:
        try:
            with Client(pair.a.servers, timeout=90, server_timeout=0.5) as client:
                for count in range(100_000):
                    if stop.is_set():
                        return
                    if count % 5:
                        client.put("b.q", f"{number} {count}")
                        put.append(f"{number} {count}")
                    else:
                        client.put_many("b.q", [f"{number} {count} {part}" for part in range(3)])
                        put.extend(f"{number} {count} {part}" for part in range(3))
                    stop.wait(0.005)
        except Exception as error:
            errors.append(error)

    def work(pair: Pair, prefetch: int) -> None:
        try:
            with Client(pair.b.servers, timeout=90, server_timeout=0.5) as client:
                while not ended.is_set():
                    for job in client.consume("b.q", expire=120, wait=0.5, prefetch=prefetch):
                        done.append(job.text)
        except Exception as error:
            errors.append(error)

    with Pair() as pair:
        pair.set({"b.": "b"})
        producers = [threading.Thread(target=produce, args=(number, pair)) for number in range(2)]
        workers = [threading.Thread(target=work, args=(pair, prefetch)) for prefetch in (1, 10)]
        for thread in (*producers, *workers):
            thread.start()
        for source, to in (("b", "a"), ("a", "b")):
            before = len(put)
            pair.set({"b.": None})
            restart(getattr(pair, source))
            pair.set({}, {"b.": Moving(source, to)})
            restart(getattr(pair, to))
            until(lambda before=before: len(put) > before + 20 or errors)       # type: ignore[misc]
            until(lambda source=source: pair.count(source, "b.q") == (0, 0) or errors)      # type: ignore[misc]
            pair.set({"b.": None})
            pair.set({"b.": to})
            restart(getattr(pair, source))
        stop.set()
        for thread in producers:
            thread.join(120)
        until(lambda: len(done) >= len(put) or errors)
        ended.set()
        for thread in workers:
            thread.join(120)
        assert errors == []
        assert Counter(done) == Counter(put)
        assert pair.count("a", "b.q") == pair.count("b", "b.q") == (0, 0)
