"""The transport against a real server: the outcome of messages, queues and bindings, and what is left behind."""

from __future__ import annotations

import contextlib
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import kombu
import pytest
from kombu.exceptions import OperationalError
from kombu.pidbox import Mailbox
from kombu.transport import virtual
from sockpq import Client
from sockpq.testing import Server

from tests.kombu import leftovers
from tests.waiting import PATIENCE_S, until


@pytest.fixture
def connect(own_server: Server) -> Iterator[Callable[..., kombu.Connection]]:
    made: list[kombu.Connection] = []

    def make(vhost: str = "", **options: Any) -> kombu.Connection:
        made.append(kombu.Connection(f"sockpq://{own_server.address}/{vhost}", transport_options=options))
        return made[-1]

    yield make
    for connection in made:
        connection.release()


def plain(name: str, **settings: Any) -> kombu.Queue:
    """A queue of the default exchange."""
    return kombu.Queue(name, routing_key=name, **settings)


def send(connection: kombu.Connection, queue: kombu.Queue, *bodies: Any, **options: Any) -> None:
    producer = connection.Producer()
    for body in bodies:
        producer.publish(body, exchange=queue.exchange, routing_key=queue.routing_key, declare=[queue], **options)


def consume(
    connection: kombu.Connection, queue: kombu.Queue, found: list[Any], prefetch: int = 0, **options: Any
) -> kombu.Consumer:
    """A consumer that only notes its messages."""
    consumer = connection.Consumer([queue], on_message=found.append, **options)
    if prefetch:
        consumer.qos(prefetch_count=prefetch)
    consumer.consume()
    return consumer


def drain(connection: kombu.Connection, found: list[Any], count: int) -> None:
    end = time.monotonic() + PATIENCE_S
    while len(found) < count:
        assert time.monotonic() < end
        with contextlib.suppress(TimeoutError):
            connection.drain_events(timeout=0.2)


def test_a_prefetch_limit_is_never_exceeded(connect: Any, own_client: Client) -> None:
    connection, queue, found = connect(), plain("prefetch"), []
    send(connection, queue, *range(10))
    consume(connection, queue, found, prefetch=3)
    drain(connection, found, 3)
    time.sleep(0.3)
    assert own_client.queue_stat("prefetch")["running"] == 3
    found[0].ack()
    drain(connection, found, 4)
    def held() -> tuple[int, int]:
        stat = own_client.queue_stat("prefetch")
        return stat["ready"], stat["running"]

    until(lambda: held() == (6, 3))         # the next job may be taken before the acknowledgement of the first is told
    time.sleep(0.3)
    assert (held(), len(found)) == ((6, 3), 4)


@pytest.mark.parametrize("limit", ["prefetch", "free"])
def test_a_message_counts_at_every_moment_of_its_delivery(connect: Any, own_client: Client, limit: str) -> None:
    connection, queue, found = connect(), plain("counted"), []
    channel, running = connection.default_channel, []

    def look() -> None:
        """Let the fetcher look for room, now that a message is out of its hands."""
        channel.poll()
        time.sleep(0.3)
        running.append(own_client.queue_stat("counted")["running"])

    class SlowMessage(virtual.Message):        # type: ignore[misc]  # kombu has no types
        def __init__(self, *args: Any, **options: Any) -> None:
            look()
            super().__init__(*args, **options)

    def slow_callback(message: Any) -> None:
        look()
        found.append(message)

    channel.Message = SlowMessage
    if limit == "free":
        channel.limit_to(lambda: 1 - len(found))
    send(connection, queue, *range(3))
    consumer = connection.Consumer([queue], on_message=slow_callback)
    consumer.qos(prefetch_count=1 if limit == "prefetch" else 0)
    consumer.consume()
    drain(connection, found, 1)
    assert running == [1, 1]


def test_while_acknowledgements_cannot_be_told_no_more_than_twice_the_prefetch_limit_is_held(
    connect: Any, own_client: Client, monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection, queue, found = connect(), plain("slow"), []
    link, told = connection.transport.link, threading.Event()
    slow, acknowledgements = link.client, link.acknowledgements
    at_once, add = slow.done_many, acknowledgements.add

    def late(jobs: Any) -> Any:
        assert told.wait(PATIENCE_S)
        return at_once(jobs)

    def slowly(*args: Any) -> None:
        """Let the fetcher look for room before the acknowledgement counts."""
        connection.default_channel.poll()
        time.sleep(0.1)
        add(*args)

    monkeypatch.setattr(slow, "done_many", late)
    monkeypatch.setattr(acknowledgements, "add", slowly)
    send(connection, queue, *range(20))
    consumer = connection.Consumer([queue], on_message=lambda message: (found.append(message), message.ack()))
    consumer.qos(prefetch_count=3)
    consumer.consume()
    drain(connection, found, 6)
    with pytest.raises(TimeoutError):
        connection.drain_events(timeout=0.5)
    assert own_client.queue_stat("slow")["running"] == 6
    told.set()
    drain(connection, found, 20)
    until(lambda: own_client.queue_stat("slow")["running"] == 0)


def test_unacknowledged_messages_go_back_in_order_and_are_flagged(connect: Any) -> None:
    first, queue, found = connect(), plain("back"), []
    send(first, queue, 1, 2, 3)
    consume(first, queue, found)
    drain(first, found, 3)
    first.release()
    second, again = connect(), []
    consume(second, queue, again)
    drain(second, again, 3)
    assert [message.decode() for message in again] == [1, 2, 3]
    assert [message.delivery_info["redelivered"] for message in again] == [True] * 3
    assert not found[0].delivery_info["redelivered"]


def test_a_message_that_is_worked_on_for_three_times_the_ttl_is_not_delivered_again(connect: Any) -> None:
    connection, queue, found = connect(session_ttl=3), plain("long"), []
    send(connection, queue, 1, 2)
    consume(connection, queue, found)
    drain(connection, found, 2)
    time.sleep(9)
    other, again = connect(), []
    consume(other, queue, again)
    with pytest.raises(TimeoutError):
        other.drain_events(timeout=0.5)


def test_a_cancelled_consumer_gives_back_what_was_not_delivered(connect: Any, own_client: Client) -> None:
    connection, queue, found = connect(), plain("cancel"), []
    send(connection, queue, *range(5))
    consumer = consume(connection, queue, found)
    until(lambda: own_client.queue_stat("cancel")["running"] == 5)
    consumer.cancel()
    until(lambda: own_client.queue_stat("cancel")["ready"] == 5)
    assert not found


def test_what_goes_back_is_there_before_what_is_published_after_it(
    connect: Any, own_client: Client, monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection, queue, found = connect(), plain("order"), []
    client, later_many = connection.transport.link.client, connection.transport.link.client.later_many
    send(connection, queue, *range(3))
    consumer = consume(connection, queue, found)
    drain(connection, found, 3)
    consumer.cancel()
    told, seen = threading.Event(), []

    def late(*arguments: Any, **options: Any) -> Any:
        told.wait(0.5)
        return later_many(*arguments, **options)

    def put(*arguments: Any, **options: Any) -> Any:
        seen.append(own_client.queue_stat("order")["ready"])
        told.set()
        return None

    monkeypatch.setattr(client, "later_many", late)
    monkeypatch.setattr(client, "put", put)
    for message in found:
        message.requeue()
    send(connection, queue, 3)
    assert seen == [3]


def test_a_cancelled_consumer_takes_nothing_more(
    connect: Any, own_client: Client, monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection, queue, found = connect(), plain("after"), []
    client, make = connection.transport.link.client, connection.transport.link.client.consumer

    def slow(*arguments: Any) -> Any:
        consumer = make(*arguments)
        wake = consumer.wake
        monkeypatch.setattr(consumer, "wake", lambda: threading.Timer(0.5, wake).start())
        return consumer

    monkeypatch.setattr(client, "consumer", slow)
    consumer = consume(connection, queue, found)
    send(connection, queue, 1)
    drain(connection, found, 1)
    found[0].ack()
    consumer.cancel()
    own_client.put("after", "2")
    assert own_client.queue_stat("after")["ready"] == 1


def test_reject(connect: Any, own_client: Client) -> None:
    connection, queue, found = connect(bury_rejected=True), plain("reject"), []
    send(connection, queue, 1, 2)
    consume(connection, queue, found, prefetch=1)
    drain(connection, found, 1)
    found[0].reject()
    drain(connection, found, 2)
    # the server is told behind the back of the program: the next message may come before that
    until(lambda: own_client.queue_stat("reject")["dead"] == 1)
    assert own_client.queue_stat("reject")["running"] == 1


def test_a_kept_fanout_reaches_each_queue_also_of_publishers_that_did_not_declare_it(connect: Any) -> None:
    exchange = kombu.Exchange("broadcast", "fanout")
    queues = [kombu.Queue(f"broadcast.{name}", exchange) for name in "ab"]
    hearing, telling = connect(), connect()
    for queue in queues:
        queue(hearing.default_channel).declare()
    telling.Producer().publish("x", exchange="broadcast", routing_key="whatever")
    for queue in queues:
        found = queue(hearing.default_channel).get()
        assert found.decode() == "x"
        found.ack()


def test_topics(connect: Any) -> None:
    exchange = kombu.Exchange("weather", "topic")
    connection = connect()
    queue = kombu.Queue("weather.north", exchange, routing_key="north.*.#")(connection.default_channel)
    queue.declare()
    for key in ("north", "north.wind", "south.wind", "north.wind.cold"):
        connection.Producer().publish(key, exchange=exchange, routing_key=key)
    assert [queue.get(no_ack=True).decode() for _ in range(2)] == ["north.wind", "north.wind.cold"]
    assert queue.get() is None


def test_settings_reach_the_server(connect: Any, own_client: Client) -> None:
    queue = plain("settings", expires=600, message_ttl=60, max_length=2)
    connection = connect()
    send(connection, queue, 1, 2, 3)
    until(lambda: own_client.queue_stat("settings")["ready"] == 2)
    assert queue(connection.default_channel).get(no_ack=True).decode() == 2


def test_a_refusal_is_an_operational_error_that_says_why(connect: Any, own_client: Client) -> None:
    own_client.queue_create("full", capacity=1)
    connection = connect()
    connection.Producer().publish(1, routing_key="full")
    with pytest.raises(OperationalError, match="503"):
        connection.Producer().publish(2, routing_key="full")


def test_virtual_hosts_do_not_see_each_other(connect: Any, own_client: Client) -> None:
    queue = plain("same")
    send(connect("one"), queue, 1)
    assert queue(connect("two").default_channel).get() is None
    assert own_client.queue_stat("one.same")["ready"] == 1


def test_remote_control_leaves_nothing_behind_and_nothing_in_the_log(connect: Any, own_client: Client) -> None:
    mailbox = Mailbox("control", type="fanout")
    hearing, asking = connect(), connect()
    node = mailbox(hearing).Node("n", handlers={"ping": lambda state, **_: "pong"}, channel=hearing.default_channel)
    node.listen()
    before = own_client.total()
    names = [one.name for one in own_client.queues()]
    stop = threading.Event()

    def hear() -> None:
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                hearing.drain_events(timeout=0.1)

    thread = threading.Thread(target=hear)
    thread.start()
    try:
        for _ in range(5):
            assert mailbox(asking).multi_call("ping", timeout=PATIENCE_S, limit=1) == [{"n": "pong"}]
    finally:
        stop.set()
        thread.join()
    assert [one.name for one in own_client.queues()] == names
    assert own_client.total() == before


def test_what_is_told_comes_before_the_messages_of_queues_that_wait(connect: Any, own_client: Client) -> None:
    connection, queue, order = connect(transient_exchanges=["control"]), plain("work"), []
    control = kombu.Queue("mine", kombu.Exchange("control", "fanout", durable=False), durable=False)
    hearing = connection.channel()

    def work(message: kombu.Message) -> None:
        order.append("work")
        connection.Producer().publish("", exchange="control", routing_key="")
        until(lambda: connection.transport.link.local_queues["mine"].messages)

    consumer = connection.Consumer([queue], on_message=work)
    consumer.consume()
    kombu.Consumer(hearing, [control], on_message=lambda message: order.append("told"), no_ack=True).consume()
    send(connection, queue, 1, 2)
    until(lambda: own_client.queue_stat("work")["running"] == 2)
    connection.Producer().publish("", exchange="control", routing_key="")
    until(lambda: connection.transport.link.local_queues["mine"].messages)
    while len(order) < 4:
        connection.drain_events(timeout=PATIENCE_S)
    assert order == ["told", "work", "told", "work"]


def test_killed_programs_leave_nothing(own_server: Server, own_client: Client) -> None:
    before = leftovers.there(own_client)
    had = leftovers.kill_programs([own_server.address], own_client, 3)
    assert [len(had.queues), len(had.bindings), len(had.running)] == [3, 3, 3]
    assert len(had.sessions) == 6       # of each its messages' and its publishing's
    until(lambda: not any(leftovers.there(own_client).beyond(before)))


def _close(connection: kombu.Connection) -> None:
    connection.collect()


def test_a_forked_child_closes_nothing_of_its_parent(connect: Any) -> None:
    connection, queue, found = connect(), plain("fork"), []
    send(connection, queue, 1)
    consume(connection, queue, found)
    drain(connection, found, 1)
    child = multiprocessing.get_context("fork").Process(target=_close, args=(connection,))
    child.start()
    child.join(PATIENCE_S)
    assert child.exitcode == 0
    send(connection, queue, 2)
    drain(connection, found, 2)
    for message in found:
        message.ack()


def test_no_server(connect: Any) -> None:
    connection = kombu.Connection("sockpq://127.0.0.1:1/", connect_timeout=1)
    with pytest.raises(connection.connection_errors):
        connection.connect()
