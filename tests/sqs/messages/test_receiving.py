"""ReceiveMessage: system attributes, long polls, retention, and clients that hang up."""

from __future__ import annotations

import pytest
from sockpq import Key

from tests.client.real_server import RealServer
from tests.sqs.running_engine import RunningEngine
from tests.waiting import until


def test_nothing_is_an_empty_answer(engine: RunningEngine) -> None:
    assert engine("ReceiveMessage", QueueUrl=engine.queue()) == {}


def test_one_message_unless_more_are_asked_for(engine: RunningEngine) -> None:
    url = engine.queue()
    for body in "abc":
        engine.send(url, body)
    assert len(engine("ReceiveMessage", QueueUrl=url)["Messages"]) == 1
    assert len(engine.receive(url)) == 2


def test_system_attributes_tell_the_life_of_a_message(server: RealServer, engine: RunningEngine) -> None:
    url = engine.queue(VisibilityTimeout="5")
    sent_ms = server.cluster.now_ms
    engine.send(url)
    server.pass_time(2)
    first = engine.one(url, AttributeNames=["All"])["Attributes"]
    assert first == {
        "SenderId": "000000000000", "SentTimestamp": str(sent_ms), "ApproximateReceiveCount": "1",
        "ApproximateFirstReceiveTimestamp": str(sent_ms + 2000),
    }
    server.pass_time(6)
    second = engine.one(url, MessageSystemAttributeNames=["All"])["Attributes"]
    assert second == {**first, "ApproximateReceiveCount": "2"}
    error = engine.refused("ReceiveMessage", QueueUrl=url, AttributeNames=["Foo"])
    assert error.code == "InvalidAttributeName"


@pytest.mark.parametrize(("member", "values"), [
    ("MaxNumberOfMessages", (0, 11)), ("WaitTimeSeconds", (-1, 21)), ("VisibilityTimeout", (-1, 43_201)),
])
def test_numbers_out_of_range_are_refused(engine: RunningEngine, member: str, values: tuple[int, int]) -> None:
    url = engine.queue()
    for value in values:
        error = engine.refused("ReceiveMessage", QueueUrl=url, **{member: value})
        assert error.query_code == "InvalidParameterValue"


def test_a_poll_waits_for_the_first_message(server: RealServer, engine: RunningEngine) -> None:
    url = engine.queue()
    polls = [engine.start("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20) for _ in range(3)]
    until(lambda: engine.client("queue_stat", "orders")["waiters"] == 3, "three polls wait")
    engine("SendMessageBatch", QueueUrl=url, Entries=[{"Id": body, "MessageBody": body} for body in "abc"])
    found = sorted(poll.result(60)["Messages"][0]["Body"] for poll in polls)
    assert found == ["a", "b", "c"]


def test_a_poll_ends_without_a_message(engine: RunningEngine) -> None:
    url = engine.queue(ReceiveMessageWaitTimeSeconds="1")
    assert engine("ReceiveMessage", QueueUrl=url) == {}
    assert engine("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=0) == {}


def test_a_client_that_hangs_up_takes_nothing_away(server: RealServer, engine: RunningEngine) -> None:
    url = engine.queue(VisibilityTimeout="300")
    poll = engine.start("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20)
    until(lambda: engine.client("queue_stat", "orders")["waiters"] == 1, "the poll waits")
    poll.cancel()
    until(lambda: engine.client("queue_stat", "orders")["waiters"] == 0, "the poll has ended")
    engine.send(url, "for others")
    assert engine.bodies(url) == ["for others"]


def test_what_is_older_than_the_queue_keeps_it_is_gone(server: RealServer, engine: RunningEngine) -> None:
    url = engine.queue(MessageRetentionPeriod="100")
    engine.send(url, "old")
    server.pass_time(90)
    engine.send(url, "new")
    assert engine.bodies(url, VisibilityTimeout=20) == ["old", "new"]
    server.pass_time(21)
    assert engine.bodies(url, VisibilityTimeout=0) == ["new"]
    engine("SetQueueAttributes", QueueUrl=url, Attributes={"MessageRetentionPeriod": "60"})
    server.pass_time(61)
    assert engine.bodies(url) == []
    assert engine.attributes(url, "ApproximateNumberOfMessages") == {"ApproximateNumberOfMessages": "0"}


def test_registry_and_keys_are_never_handed_out(engine: RunningEngine) -> None:
    """A consumer of any queue does not get what the front ends keep in the cluster."""
    url = engine.queue()
    engine.send(url)
    assert [job.queue for job in engine.client("get_many", 10, expire=30)] == ["orders"]
    assert engine.client("peek", Key("sqs:keys", "handles")).state == "ready"


def test_two_front_ends_understand_each_others_handles(server: RealServer, engine: RunningEngine) -> None:
    url = engine.queue()
    sent = engine.send(url)
    message = engine.one(url)
    with RunningEngine(server) as other:
        other("DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        assert other.send(url)["MessageId"] != sent["MessageId"]
        assert other.one(url)["MessageId"] != message["MessageId"]
