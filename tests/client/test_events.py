"""Loops over events and messages, of both clients, against real servers; one of them is killed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest
from sockpq import BadArguments, Client, DataTooLarge, Event, EventsLost, Unavailable, aio
from sockpq.testing import Server

from devcluster.cluster import LocalCluster, say
from tests.waiting import until

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(3) as started:
        yield started


def finish(client: Client, item: str) -> None:
    """Put and finish a job of the item."""
    client.put("orders", b"", item=item)
    job = client.get("orders", expire=60, item=item)
    assert job is not None
    job.done()


def test_types_fields_and_the_end_of_the_wait(own_server: Server) -> None:
    with Client(own_server.address) as client:
        events = client.events(["PUT", "TAKE", "DONE", "FINQ", "FINI", "MSG"], wait=1.0)
        heard: list[Event] = []

        def work() -> None:
            while events.position is None:
                time.sleep(0.01)
            finish(client, "i")
            client.notify("c", b"x\r\ny")

        worker = threading.Thread(target=work)
        worker.start()
        heard += events
        worker.join()
        assert [(event.type, event.name, event.priority, event.data) for event in heard] == [
            ("PUT", "orders", 0, b""), ("TAKE", "orders", 0, b""), ("DONE", "orders", 0, b""),
            ("FINQ", "orders", None, b""), ("FINI", "i", None, b""), ("MSG", "c", None, b"x\r\ny"),
        ]
        assert heard[1].id == heard[2].id
        first = heard[0].seq
        assert [event.seq for event in heard] == [*range(first, first + 5), first + 4]
        assert events.position == first + 4
        again = client.events("FINI", after=first, wait=0.2)        # other types are a matter of the servers' memory
        assert [event.name for event in again] == ["i"]


def test_many_messages_are_told_in_order(own_server: Server) -> None:
    with Client(own_server.address) as client, client.events("MSG", "c*") as events:
        begun = threading.Event()

        def send() -> None:
            begun.wait(PATIENCE_S)
            while client.notify("c") == 0:
                time.sleep(0.01)
            for number in range(100):
                assert client.notify("c.1", str(number)) == 1

        sender = threading.Thread(target=send)
        sender.start()
        begun.set()
        heard = [next(events).data.decode() for _ in range(101)]
        sender.join()
        assert heard == ["", *map(str, range(100))]


def test_what_is_no_subscription_is_refused_before_it_is_sent() -> None:
    with Client("127.0.0.1:1") as client:
        for types, names in (("NOTHING", None), ([], None), ("FINI", "a b"), ("FINI", []), ("FINI", "a*b")):
            with pytest.raises(BadArguments):
                client.events(types, names)     # type: ignore[arg-type]
        with pytest.raises(DataTooLarge):
            client.notify("c", b"x" * ((1 << 20) + 1))


def test_without_a_server_it_ends_after_the_timeout() -> None:
    with Client("127.0.0.1:1") as client, pytest.raises(Unavailable):
        next(client.events("FINI", timeout=0.3))


def test_events_that_nobody_has_any_more_are_lost(own_server: Server) -> None:
    with Client(own_server.address) as client:
        client.put("q", b"")
        newest = client.events("EXPIRED", wait=0.1)
        assert list(newest) == []
        assert newest.position is not None
        events = client.events("DEAD", after=newest.position - 1, wait=0.1)
        with pytest.raises(EventsLost) as lost:
            next(events)
        assert (lost.value.first, lost.value.last) == (newest.position, newest.position)
        assert list(events) == []               # it goes on


def all_record(cluster: LocalCluster, client: Client) -> bool:
    """Return whether every server has recorded an event that happens now: with FROM it would report a gap otherwise."""
    events = client.events("FINI")
    events.open()
    position = events.position
    events.close()
    finish(client, "recorded")
    answers = [say(server, f"SUBSCRIBE FINI FROM {position}", PATIENCE_S) for server in cluster.servers]
    return all(answer is not None and answer.startswith("200") for answer in answers)


def test_a_loop_goes_on_at_another_server_when_its_own_is_killed(cluster: LocalCluster) -> None:
    heard: list[Event] = []
    count = 60
    with Client(cluster.servers) as client, Client(cluster.servers) as watcher:
        finish(client, "warm_up")
        events = watcher.events("FINI", "order_*")

        def listen() -> None:
            for event in events:
                heard.append(event)
                if len(heard) == count:
                    return

        loop = threading.Thread(target=listen)
        loop.start()
        while events.position is None:
            time.sleep(0.05)
        until(lambda: all_record(cluster, watcher), "all servers know what is subscribed")
        killed = []
        for number in range(count):
            if number in (20, 40):      # the one that tells us, then whoever leads
                slot = events._stream._slot
                assert slot is not None
                assert slot.connection is not None
                port = slot.connection.peer().port
                name = next(name for name in cluster.names if cluster.server(name).endswith(f":{port}"))
                if number == 40:
                    cluster.restart(killed[0])
                    cluster.wait_until_level()
                    time.sleep(0.5)
                    name = cluster.wait_for_leader()
                killed.append(name)
                cluster.kill(name)
            finish(client, f"order_{number}")
        loop.join(PATIENCE_S)
        cluster.restart(killed[1])
    assert [event.name for event in heard] == [f"order_{number}" for number in range(count)]
    assert [event.seq for event in heard] == sorted({event.seq for event in heard})


def test_asyncio_loops_do_not_hold_up_other_calls(own_server: Server) -> None:
    async def watch() -> list[str]:
        async with aio.Client(own_server.address) as client:
            events = client.events("FINI", wait=PATIENCE_S)

            async def listen() -> list[str]:
                names = []
                async for event in events:
                    names.append(event.name)
                    if len(names) == 3:
                        break
                await events.close()
                return names

            loop = asyncio.create_task(listen())
            while events.position is None:
                await asyncio.sleep(0.01)
            for item in ("a", "b", "c"):
                await client.put("q", b"", item=item)
                job = await client.get("q", expire=60, item=item)
                assert job is not None
                await job.done()
            return await loop

    assert asyncio.run(watch()) == ["a", "b", "c"]


def test_close_ends_a_loop(own_server: Server) -> None:
    client = Client(own_server.address)
    ended: list[Exception] = []

    def listen() -> None:
        try:
            for _ in client.events("FINI"):
                pass
        except Exception as error:
            ended.append(error)

    loop = threading.Thread(target=listen)
    loop.start()
    time.sleep(0.3)
    client.close()
    loop.join(PATIENCE_S)
    assert not loop.is_alive()
    assert len(ended) == 1




def test_a_loop_that_is_stopped_does_not_say_that_the_server_has_closed_the_connection(
    own_server: Server, caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "sockpq")
    with Client(own_server.address) as client:
        events = client.events("FINI")
        events.open()
        loop = threading.Thread(target=lambda: list(events))
        loop.start()
        time.sleep(0.3)         # until it waits
        events.stop()
        loop.join(PATIENCE_S)
        assert not loop.is_alive()
    assert "closed" not in caplog.text
