"""A message ends in one step: with its retry, with what follows it, and with what an atomic actor sends."""

from __future__ import annotations

import json
import pickle
from typing import Any

import dramatiq
import dramatiq.worker
import pytest
from dramatiq.middleware import AsyncIO
from sockpq import Client, DataTooLarge, Number
from sockpq_dramatiq import SockpqBroker
from sockpq_dramatiq.step import COMMANDS_MAX

from tests.dramatiq.workers import filled, work_off, working
from tests.waiting import until


def queued(client: Client, queue: str = "default") -> list[str]:
    """The actors of the messages that wait or are delayed in a queue."""
    jobs = [*client.peek_queue(queue, "ready", 1000), *client.peek_queue(queue, "delayed", 1000)]
    return sorted(json.loads(job.data)["actor_name"] for job in jobs)


def test_a_retry_is_the_same_job_with_its_error(broker: SockpqBroker, own_client: Client) -> None:
    @dramatiq.actor(max_retries=5, min_backoff=3_600_000, max_backoff=3_600_000)
    def fail() -> None:
        raise RuntimeError("not today")

    number = fail.send().number
    with working(broker):
        until(lambda: own_client.peek(Number(number)).state == "delayed")      # type: ignore[union-attr]
    job = own_client.peek(Number(number))
    assert job is not None
    assert (job.reason, job.attempt) == ("RuntimeError", 1)
    assert json.loads(job.data)["options"]["retries"] == 1
    assert "not today" in (own_client.job_error(Number(number)) or "")
    totals = {queue.name: queue for queue in own_client.queues()}
    assert (totals["default"].ready, totals["default"].delayed, totals["default"].running) == (0, 1, 0)


def test_a_retry_of_a_message_that_was_taken_over_makes_no_copy(broker: SockpqBroker, own_client: Client) -> None:
    @dramatiq.actor(max_retries=5, min_backoff=1)
    def taken_over() -> None:
        message = dramatiq.middleware.CurrentMessage.get_current_message()
        own_client.bury(message.job.id)         # as when its session had ended and another worker has given it up
        raise RuntimeError

    taken_over.send()
    work_off(broker)
    assert queued(own_client) == []
    assert len(own_client.peek_queue("default", "dead", 10)) == 1


def test_an_atomic_actor_sends_when_it_has_succeeded(broker: SockpqBroker, own_client: Client) -> None:
    seen: list[list[str]] = []

    @dramatiq.actor(queue_name="leaves")
    def leaf(number: int) -> None: ...

    @dramatiq.actor(atomic=True, max_retries=1, min_backoff=1, max_backoff=1)
    def fan_out() -> None:
        for number in range(3):
            leaf.send(number)
        seen.append(queued(own_client, "leaves"))
        if len(seen) == 1:
            raise RuntimeError

    fan_out.send()
    with working(broker, queues={"default"}):
        until(lambda: len(seen) == 2)
        broker.join("default", timeout=120_000)
    assert seen == [[], []]
    assert queued(own_client, "leaves") == ["leaf"] * 3


def test_an_atomic_actor_whose_message_was_taken_over_sends_nothing(broker: SockpqBroker, own_client: Client) -> None:
    @dramatiq.actor(queue_name="leaves")
    def leaf() -> None: ...

    @dramatiq.actor(atomic=True)
    def fan_out() -> None:
        leaf.send()
        own_client.bury(dramatiq.middleware.CurrentMessage.get_current_message().job.id)

    fan_out.send()
    with working(broker, queues={"default"}):
        broker.join("default", timeout=120_000)
    assert queued(own_client, "leaves") == []


def test_what_is_not_atomic_is_sent_at_once(broker: SockpqBroker, own_client: Client) -> None:
    seen: list[list[str]] = []

    @dramatiq.actor(queue_name="leaves")
    def leaf() -> None: ...

    @dramatiq.actor(max_retries=0)
    def plain() -> None:
        leaf.send()
        seen.append(queued(own_client, "leaves"))
        raise RuntimeError

    plain.send()
    with working(broker, queues={"default"}):
        broker.join("default", timeout=120_000)
    assert seen == [["leaf"]]


def test_a_message_may_be_atomic_by_an_option(broker: SockpqBroker, own_client: Client) -> None:
    seen: list[list[str]] = []

    @dramatiq.actor(queue_name="leaves")
    def leaf() -> None: ...

    @dramatiq.actor
    def plain() -> None:
        leaf.send()
        seen.append(queued(own_client, "leaves"))

    plain.send_with_options(atomic=True)
    with working(broker, queues={"default"}):
        broker.join("default", timeout=120_000)
    assert seen == [[]]
    assert queued(own_client, "leaves") == ["leaf"]


def test_an_atomic_coroutine_sends_when_it_has_succeeded(broker: SockpqBroker, own_client: Client) -> None:
    broker.add_middleware(AsyncIO())
    seen: list[list[str]] = []

    @dramatiq.actor(queue_name="leaves")
    def leaf() -> None: ...

    @dramatiq.actor(atomic=True)
    async def fan_out() -> None:
        leaf.send()
        seen.append(queued(own_client, "leaves"))

    fan_out.send()
    with working(broker, queues={"default"}):
        broker.join("default", timeout=120_000)
    assert seen == [[]]
    assert queued(own_client, "leaves") == ["leaf"]


def test_an_atomic_actor_that_sends_too_much_fails(broker: SockpqBroker, own_client: Client) -> None:
    errors: list[Exception] = []

    @dramatiq.actor(queue_name="leaves")
    def leaf() -> None: ...

    @dramatiq.actor(atomic=True, max_retries=0)
    def fan_out() -> None:
        try:
            for _ in range(COMMANDS_MAX + 1):
                leaf.send()
        except DataTooLarge as error:
            errors.append(error)
            raise

    fan_out.send()
    with working(broker, queues={"default"}):
        broker.join("default", timeout=120_000)
    assert "without atomic=True" in str(errors[0])
    assert queued(own_client, "leaves") == []


def test_the_next_of_a_pipeline_comes_with_the_acknowledgement(broker: SockpqBroker, own_client: Client) -> None:
    got: list[int] = []

    @dramatiq.actor
    def add(x: int, y: int) -> int:
        return x + y

    @dramatiq.actor
    def keep(x: int) -> None:
        got.append(x)

    (add.message(1, 2) | add.message(3) | keep.message()).run()
    work_off(broker)
    assert got == [6]
    assert filled(own_client) == []


def test_what_is_refused_for_good_makes_a_dead_letter_that_says_why(broker: SockpqBroker, own_client: Client) -> None:
    own_client.queue_create("leaves", data_bytes_max=10)

    @dramatiq.actor(queue_name="leaves")
    def leaf(text: str) -> None: ...

    @dramatiq.actor(atomic=True)
    def fan_out() -> None:
        leaf.send("x" * 100)

    fan_out.send()
    with working(broker, queues={"default"}):
        broker.join("default", timeout=120_000)
    (dead,) = own_client.peek_queue("default", "dead", 10)
    assert dead.number is not None
    assert dead.reason == "Refused"
    assert "413" in (own_client.job_error(Number(dead.number)) or "")


def test_what_a_full_queue_refuses_is_tried_again(
    broker: SockpqBroker, own_client: Client, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dramatiq.worker, "POST_PROCESS_MESSAGE_RETRY_DELAY_SECS", 0.05)
    own_client.queue_create("leaves", capacity=1)
    own_client.put("leaves", b"another one's")
    tries: list[int] = []

    class Counting(dramatiq.Middleware):
        def before_ack(self, broker: Any, message: Any) -> None:
            tries.append(1)

    broker.add_middleware(Counting())

    @dramatiq.actor(queue_name="leaves")
    def leaf() -> None: ...

    @dramatiq.actor(atomic=True)
    def fan_out() -> None:
        leaf.send()

    fan_out.send()
    with working(broker, queues={"default"}):
        until(lambda: len(tries) >= 3)
        assert own_client.queue_stat("default")["running"] == 1
        own_client.queue_purge("leaves", "ready")
        broker.join("default", timeout=120_000)
    assert queued(own_client, "leaves") == ["leaf"]
    assert own_client.peek_queue("default", "dead", 10) == []


def test_callbacks_of_success_and_failure_are_sent(broker: SockpqBroker) -> None:
    got: list[str] = []

    @dramatiq.actor
    def good(message: Any, result: Any) -> None:
        got.append(f"good {result}")

    @dramatiq.actor
    def bad(message: Any, error: Any) -> None:
        got.append(f"bad {error['type']}")

    @dramatiq.actor(max_retries=0)
    def work(fails: bool) -> int:
        if fails:
            raise ValueError
        return 7

    work.send_with_options(args=(False,), on_success=good, on_failure=bad)
    work.send_with_options(args=(True,), on_success=good, on_failure=bad)
    work_off(broker)
    assert sorted(got) == ["bad ValueError", "good 7"]


def test_a_message_is_like_another_with_the_same_contents(broker: SockpqBroker) -> None:
    @dramatiq.actor
    def one() -> None: ...

    sent: Any = one.send()
    plain = dramatiq.Message(**sent.asdict())
    assert sent == plain
    assert plain == sent
    assert pickle.loads(pickle.dumps(sent)) == plain
    assert repr(sent) == repr(plain)
    with pytest.raises(TypeError):
        hash(sent)
