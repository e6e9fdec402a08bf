"""The transport on two clusters that are used as one."""

from __future__ import annotations

from typing import Any

import kombu

from tests.client.pair import Pair
from tests.waiting import until


def test_queues_of_two_clusters() -> None:
    with Pair() as pair:
        pair.set({"b.": "b"})
        found: list[Any] = []

        def note(body: Any, message: Any) -> None:
            found.append(body)
            message.ack()

        with kombu.Connection(f"sockpq://{pair.a.servers[0]}/") as connection:
            queues = [kombu.Queue(name, routing_key=name) for name in ("mail", "b.film")]
            with connection.Producer() as producer:
                for number in range(10):
                    for queue in queues:
                        producer.publish(number, routing_key=queue.name, declare=[queue])
                waiting = (sum(pair.count("a", "mail")), sum(pair.count("b", "b.film")))
                assert waiting == (10, 10)
                with connection.Consumer(queues, callbacks=[note]):
                    while len(found) < 20:
                        connection.drain_events(timeout=30)
                assert sorted(found) == sorted([*range(10), *range(10)])
        until(lambda: (pair.count("a", "mail"), pair.count("b", "b.film")) == ((0, 0), (0, 0)))


def test_connections_that_are_made_later_follow_the_map() -> None:
    """All of a process stay with the cluster of the first one, and with those that its map names."""
    with Pair() as pair:
        pair.set({"b.": "b"})
        for number in range(2):
            with kombu.Connection(f"sockpq://{pair.a.servers[0]}/") as connection:
                connection.ensure_connection(max_retries=0)
                queue = kombu.Queue("b.film", routing_key="b.film")
                connection.Producer().publish(number, routing_key=queue.name, declare=[queue])
        assert pair.count("b", "b.film") == (2, 0)
