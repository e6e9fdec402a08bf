"""`queue_order_strategy`: which queue of several a consumer is given messages of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kombu
import pytest
from sockpq import Client
from sockpq.testing import Server

from tests.kombu.test_transport import plain, send
from tests.waiting import PATIENCE_S


def order_of(server: Server, strategy: str, prepare: Callable[[Client], None] = lambda client: None) -> str:
    """The queues b and a, of which three messages each were taken one after the other."""
    found: list[str] = []

    def take(message: Any) -> None:
        found.append(message.decode())
        message.ack()

    url = f"sockpq://{server.address}/{strategy}"
    with kombu.Connection(url, transport_options={"queue_order_strategy": strategy}) as connection:
        queues = [plain("b"), plain("a")]
        for queue in queues:
            send(connection, queue, *queue.name * 3)
        with Client(server.address) as client:
            prepare(client)
        consumer = connection.Consumer(queues, on_message=take)
        consumer.qos(prefetch_count=1)
        with consumer:
            while len(found) < 6:
                connection.drain_events(timeout=PATIENCE_S)
    return "".join(found)


def use_up(client: Client) -> None:
    """Work of an hour on a job of queue b, of no other one."""
    client.put("fair.b", b"", 200)
    job = client.get("fair.b", policy="fair")
    assert job
    job.done(ran=3600)


def test_queues_are_served_in_the_order_that_is_asked_for(own_server: Server) -> None:
    # The first message may come before the second queue is consumed, and the turns of both begin then.
    assert order_of(own_server, "round_robin") in ("bababa", "ababab", "bbabaa")
    assert order_of(own_server, "priority") == "bbbaaa"
    assert order_of(own_server, "sorted") in ("aaabbb", "baaabb")
    assert order_of(own_server, "fair", use_up) in ("aaabbb", "baaabb")


@pytest.mark.parametrize("strategy", ["random", "", 5, ["fair"], {}])
def test_an_unknown_strategy_is_an_error(own_server: Server, strategy: Any) -> None:
    options = {"queue_order_strategy": strategy}
    connection = kombu.Connection(f"sockpq://{own_server.address}/", transport_options=options)
    with pytest.raises(ValueError, match="queue_order_strategy is one of round_robin, priority, sorted, fair"):
        connection.channel()
