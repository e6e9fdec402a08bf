"""Consumers, of both clients, against real servers: jobs bound to a session, the wake, the end, a killed leader."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from sockpq import BadArguments, Client, aio
from sockpq.testing import Server

from devcluster.cluster import LocalCluster
from tests.waiting import PATIENCE_S, until


def test_jobs_stay_beyond_the_ttl_while_the_consumer_lives_and_go_back_in_order_at_its_end(own_client: Client) -> None:
    own_client.put_many("stay", [b"1", b"2", b"3"])
    with own_client.consumer(ttl=4) as consumer:
        held = consumer.get_many(3, "stay")
        time.sleep(6)
        assert own_client.queue_stat("stay")["running"] == 3
        held[0].done()
    assert [own_client.get("stay", expire=60).data for _ in "23"] == [b"2", b"3"]      # type: ignore[union-attr]


def test_jobs_of_a_consumer_that_gives_no_sign_of_life_go_back(own_client: Client) -> None:
    own_client.put("dead", b"x")
    consumer = own_client.consumer(ttl=1)
    assert consumer.get_many(1, "dead")
    consumer._keep_alive.stop()
    until(lambda: own_client.queue_stat("dead")["ready"] == 1)
    consumer.close()


def test_nothing_is_said_of_the_session_of_a_client_that_was_closed(
    own_client: Client, caplog: pytest.LogCaptureFixture,
) -> None:
    own_client.put("closed", b"x")
    consumer = own_client.consumer(ttl=1)
    assert consumer.get_many(1, "closed")
    own_client.close()
    time.sleep(1)                           # three beats
    assert "kept alive" not in caplog.text
    consumer.close()


def test_a_wake_ends_the_wait_and_takes_nothing(own_client: Client) -> None:
    own_client.queue_create("empty")
    with own_client.consumer() as consumer:
        found: list[object] = []
        thread = threading.Thread(target=lambda: found.append(consumer.get_many(5, "empty")))
        thread.start()
        until(lambda: own_client.queue_stat("empty")["waiters"] == 1)
        consumer.wake()
        thread.join(PATIENCE_S)
        assert found == [[]]
        own_client.put("empty", b"x")
        assert own_client.queue_stat("empty")["ready"] == 1         # nobody waits any more
        assert [job.data for job in consumer.get_many(5, "empty")] == [b"x"]
        consumer.wake()                                         # before the call
        assert consumer.get_many(5, "empty") == []


def test_wakes_and_puts_at_the_same_time_lose_and_double_nothing(own_client: Client) -> None:
    with own_client.consumer() as consumer:
        found: list[bytes] = []

        def take() -> None:
            while len(found) < 200:
                for job in consumer.get_many(7, "race"):
                    found.append(job.data)
                    job.done()

        thread = threading.Thread(target=take)
        thread.start()
        for number in range(200):
            own_client.put("race", str(number))
            consumer.wake()
        thread.join(PATIENCE_S)
        assert sorted(map(int, found)) == list(range(200))
        assert not [job for job in own_client.running() if job.queue == "race"]


def test_bad_arguments(own_client: Client) -> None:
    with pytest.raises(BadArguments):
        own_client.consumer(ttl=0)
    with own_client.consumer() as consumer, pytest.raises(BadArguments):
        consumer.get_many(0, "q")


def test_many_jobs_go_back_to_their_places(own_client: Client) -> None:
    own_client.put_many("places", [b"1", b"2", b"3"])
    taken = own_client.get_many(2, "places", expire=60)
    assert own_client.later_many([*taken, 12345678], first=True) == [True, True, False]
    assert [job.data for job in own_client.get_many(3, "places", expire=60)] == [b"1", b"2", b"3"]


def test_connect_needs_a_leader(own_server: Server) -> None:
    with Client(own_server.address) as client:
        client.connect()
        assert client.stats().connects == 1
        client.put("connected", b"")
        assert client.stats().connects == 1


def test_asyncio(own_server: Server) -> None:
    async def main() -> None:
        async with aio.Client(own_server.address) as client, client.consumer(ttl=4) as consumer:
            waiting = asyncio.create_task(consumer.get_many(2, "aio"))
            await asyncio.sleep(0.1)
            consumer.wake()
            assert await waiting == []
            await client.put("aio", b"x")
            held = await consumer.get_many(2, "aio")
            await asyncio.sleep(6)
            assert (await client.queue_stat("aio"))["running"] == 1
            await held[0].done()
    asyncio.run(main())


def test_a_consumer_goes_on_behind_a_killed_leader() -> None:
    with LocalCluster(3) as cluster, Client(cluster.servers) as client, client.consumer(ttl=5) as consumer:
        client.put_many("on", [b"1", b"2"])
        held = consumer.get_many(1, "on")
        found: list[bytes] = []

        def take() -> None:
            while len(found) < 2:
                for job in consumer.get_many(1, "on"):
                    found.append(job.data)
                    job.done()

        thread = threading.Thread(target=take)
        thread.start()
        until(lambda: len(found) == 1)
        cluster.kill(cluster.wait_for_leader())
        client.put("on", b"3")
        thread.join(PATIENCE_S)
        assert found == [b"2", b"3"]
        time.sleep(6)                       # bound all the same, in the session that went on
        assert client.queue_stat("on")["running"] == 1
        held[0].done()
