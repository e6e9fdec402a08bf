"""Messages in the cluster: their queues, priorities and times, and the outcome of failures."""

from __future__ import annotations

import json
import time
from typing import Any

import dramatiq
import pytest
from dramatiq.errors import ConnectionClosed, QueueJoinTimeout, QueueNotFound
from sockpq import Client, JobNotFound, Number, QueueFull
from sockpq_dramatiq import SockpqBroker

from tests.dramatiq.conftest import Brokers
from tests.dramatiq.workers import filled, work_off, working
from tests.waiting import until


def test_a_message_is_a_job_that_operators_find(broker: SockpqBroker, own_client: Client) -> None:
    @dramatiq.actor(queue_name="mail")
    def send(to: str) -> None: ...

    sent = send.send("ann")
    (job,) = own_client.peek_queue("mail", headers=True)
    assert job.headers == {"actor": "send", "message": sent.message_id}
    assert json.loads(job.data)["args"] == ["ann"]
    assert job.number == sent.number
    assert [found.number for found in own_client.find("mail", header=("actor", "send"))] == [job.number]


def test_names_have_a_prefix_and_may_be_any_text(brokers: Brokers, own_client: Client) -> None:
    broker = brokers(prefix="shop.")
    broker.declare_queue("Größe")
    broker.enqueue(dramatiq.Message("Größe", "nobody", (), {}, {}))
    assert [queue.name for queue in own_client.queues("shop.")] == ["shop.Gr:C3:B6:C3:9Fe"]


def test_a_delayed_message_waits_in_the_cluster_for_as_long_as_it_is_told(
    broker: SockpqBroker, own_client: Client,
) -> None:
    @dramatiq.actor
    def later() -> None: ...

    month_s = 30 * 86_400
    before = time.time()
    later.send_with_options(delay=1000 * month_s)
    (job,) = own_client.peek_queue("default", "delayed")
    assert job.at is not None
    assert before + month_s <= job.at <= time.time() + month_s + 1
    assert "eta" not in json.loads(job.data)["options"]
    assert broker.get_declared_delay_queues() == set()
    with working(broker) as worker:
        assert list(worker.consumers) == ["default"]


def test_the_queue_keeps_priorities(broker: SockpqBroker, own_client: Client) -> None:
    @dramatiq.actor(priority=10)
    def low() -> None: ...

    @dramatiq.actor(priority=3)
    def high() -> None: ...

    @dramatiq.actor(broker_priority=7)
    def first() -> None: ...

    for one in (low, high, first):
        one.send()
    low.send_with_options(broker_priority=8)
    jobs = own_client.peek_queue("default", count=10)
    assert [(job.priority, json.loads(job.data)["actor_name"]) for job in jobs] == [
        (8, "low"), (7, "first"), (-3, "high"), (-10, "low"),
    ]


def test_what_fails_for_good_is_a_dead_letter_with_its_error(broker: SockpqBroker, own_client: Client) -> None:
    @dramatiq.actor(max_retries=0)
    def fail() -> None:
        raise RuntimeError("the printer is on fire")

    fail.send()
    work_off(broker)
    (dead,) = own_client.peek_queue("default", "dead")
    assert (dead.queue, dead.reason) == ("default_dead", "RuntimeError")
    assert dead.number is not None
    assert "the printer is on fire" in (own_client.job_error(Number(dead.number)) or "")


def test_a_dead_letter_that_is_brought_back_has_all_its_retries(broker: SockpqBroker, own_client: Client) -> None:
    ran: list[int] = []

    @dramatiq.actor(max_retries=1, min_backoff=1, max_backoff=1)
    def fail() -> None:
        message = dramatiq.middleware.CurrentMessage.get_current_message()
        ran.append(message.options.get("retries", 0))
        raise RuntimeError("no")

    fail.send()
    work_off(broker)
    assert ran == [0, 1]
    assert own_client.kick("default", 10) == 1
    work_off(broker)
    assert ran == [0, 1, 0, 1]
    assert len(own_client.peek_queue("default", "dead", 10)) == 1


def test_a_message_for_an_actor_that_nobody_has_is_a_dead_letter(broker: SockpqBroker, own_client: Client) -> None:
    broker.declare_queue("default")
    broker.enqueue(dramatiq.Message("default", "nobody", (), {}, {}))
    work_off(broker)
    assert [job.reason for job in own_client.peek_queue("default", "dead", 10)] == ["ActorNotFound"]


def test_what_is_no_message_is_a_dead_letter_and_holds_nothing_up(broker: SockpqBroker, own_client: Client) -> None:
    ran: list[int] = []

    @dramatiq.actor
    def one() -> None:
        ran.append(1)

    own_client.put("default", b"no JSON", priority=5)
    one.send()
    work_off(broker)
    assert ran == [1]
    (dead,) = own_client.peek_queue("default", "dead", 10)
    assert (dead.data, dead.reason) == (b"no JSON", "DecodeError")


def test_a_worker_has_at_most_as_many_messages_as_it_may(broker: SockpqBroker, own_client: Client) -> None:
    broker.declare_queue("default")
    for _ in range(10):
        broker.enqueue(dramatiq.Message("default", "nobody", (), {}, {}))
    consumer = broker.consume("default", prefetch=3, timeout=50)
    messages = [next(consumer) for _ in range(3)]
    assert next(consumer) is None
    assert own_client.queue_stat("default")["running"] == 3
    consumer.ack(messages[0])
    assert next(consumer) is not None
    consumer.requeue(messages[1:])
    consumer.close()
    stat = own_client.queue_stat("default")
    assert (stat["ready"], stat["running"]) == (8, 1)       # one is worked on: it stays until it has ended


def test_messages_that_were_not_begun_do_not_count_as_tried(broker: SockpqBroker, own_client: Client) -> None:
    broker.declare_queue("default")
    broker.enqueue(dramatiq.Message("default", "nobody", (), {}, {}))
    consumer = broker.consume("default", timeout=50)
    consumer.requeue([next(consumer)])
    consumer.close()
    assert own_client.get("default", expire=60, meta=True).attempt == 1     # type: ignore[union-attr]


def test_messages_of_a_consumer_stay_while_another_one_goes_on(broker: SockpqBroker, own_client: Client) -> None:
    """As after a lost connection: the worker makes another consumer, and works on what the first one has taken."""
    broker.declare_queue("default")
    for _ in range(2):
        broker.enqueue(dramatiq.Message("default", "nobody", (), {}, {}))
    first = broker.consume("default", prefetch=1, timeout=50)
    message = next(first)
    first.close()
    second = broker.consume("default", prefetch=2, timeout=50)
    other = next(second)
    assert next(second) is None                 # the first one's is not handed out again
    second.ack(message)
    assert own_client.queue_stat("default")["running"] == 1
    for _ in range(3):
        broker.enqueue(dramatiq.Message("default", "nobody", (), {}, {}))
    another = next(second)
    assert next(second) is None                 # that one was not its own, so there is no room for a third
    for one in other, another:
        second.ack(one)
    second.close()
    assert own_client.queue_stat("default")["ready"] == 2


def test_flush_removes_what_waits(broker: SockpqBroker, own_client: Client) -> None:
    @dramatiq.actor
    def one() -> None: ...

    one.send()
    one.send_with_options(delay=60_000)
    broker.flush_all()
    assert filled(own_client) == []
    broker.flush("default")                     # nothing is there


def test_join_waits_for_delayed_messages_and_not_for_dead_ones(broker: SockpqBroker) -> None:
    ran: list[int] = []

    @dramatiq.actor(max_retries=0)
    def one(number: int) -> None:
        ran.append(number)
        if number == 1:
            raise RuntimeError

    one.send(1)
    one.send_with_options(args=(2,), delay=100)
    work_off(broker)
    assert ran == [1, 2]


def test_join_has_an_end(broker: SockpqBroker) -> None:
    @dramatiq.actor
    def one() -> None: ...

    one.send()
    with pytest.raises(QueueJoinTimeout):
        broker.join("default", timeout=100)
    with pytest.raises(QueueNotFound):
        broker.join("nothing", timeout=100)
    with pytest.raises(QueueNotFound):
        broker.consume("nothing")


def test_a_queue_that_is_full_refuses(broker: SockpqBroker, own_client: Client) -> None:
    @dramatiq.actor
    def one() -> None: ...

    own_client.queue_create("default", capacity=1)
    one.send()
    with pytest.raises(QueueFull):
        one.send()


def test_without_a_cluster_the_connection_is_closed(broker: SockpqBroker) -> None:
    alone = SockpqBroker("127.0.0.1:1", timeout=0.1)
    alone.declare_queue("default")
    message: Any = dramatiq.Message("default", "nobody", (), {}, {})
    with pytest.raises(ConnectionClosed):
        alone.enqueue(message)
    consumer = alone.consume("default", timeout=50)
    with pytest.raises(ConnectionClosed):
        next(consumer)
    alone.close()


def test_a_worker_that_dies_loses_its_messages(brokers: Brokers) -> None:
    ran: list[int] = []
    first, second = brokers(ttl=1.0), brokers()

    @dramatiq.actor(broker=second)
    def one(number: int) -> None:
        ran.append(number)

    first.declare_queue("default")
    one.send(1)
    consumer = first.consume("default", timeout=50)
    until(lambda: next(consumer))
    first.client.close()                        # it gives no more signs of life, as a process that was killed
    with working(second):
        until(lambda: ran == [1])


def test_a_message_that_was_taken_over_is_left_alone(broker: SockpqBroker, own_client: Client) -> None:
    broker.declare_queue("default")
    broker.enqueue(dramatiq.Message("default", "nobody", (), {}, {}))
    consumer = broker.consume("default", timeout=50)
    message: Any = next(consumer)
    message.job.later()                         # as when its session had ended
    with pytest.raises(JobNotFound):
        message.job.done()
    consumer.ack(message)
    assert own_client.queue_stat("default")["ready"] == 1
    consumer.close()
