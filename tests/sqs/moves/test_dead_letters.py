"""Dead letters: how messages die, and the tasks that move them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sockpq_sqs.model.errors import SqsError
from sockpq_sqs.options import Options

from tests.client.real_server import RealServer
from tests.sqs.running_engine import RunningEngine
from tests.waiting import until


class Pair:
    """A queue, and the one to which its dead letters go."""

    def __init__(self, engine: RunningEngine, count: int = 1, suffix: str = "") -> None:
        self.engine = engine
        self.dead = engine.queue(f"dead{suffix}")
        policy = {"deadLetterTargetArn": engine.arn(self.dead), "maxReceiveCount": count}
        self.url = engine.queue(f"orders{suffix}", RedrivePolicy=policy)
        self.arn = engine.arn(self.dead)

    def fill(self, count: int) -> None:
        """Let so many messages die: m0, m1, .."""
        for number in range(count):
            self.engine.send(self.url, f"m{number}")
        while self.engine.receive(self.url, VisibilityTimeout=0):
            pass

    def task(self) -> Any:
        """Return the newest task."""
        return self.engine("ListMessageMoveTasks", SourceArn=self.arn)["Results"][0]

    def ends(self, status: str = "COMPLETED") -> Any:
        """Wait for the end of the newest task, and return it."""
        until(lambda: self.task()["Status"] == status, lambda: f"the task is {self.task()}")
        return self.task()


@pytest.fixture
def pair(engine: RunningEngine) -> Pair:
    """Return a queue with dead letters after one receive."""
    return Pair(engine)


def test_a_message_dies_after_so_many_receives(engine: RunningEngine) -> None:
    pair = Pair(engine, 2)
    attributes = {"a": {"DataType": "Number", "StringValue": "1"}}
    sent = engine.send(pair.url, "bad", MessageAttributes=attributes)
    for _ in range(2):
        first = engine.one(pair.url, VisibilityTimeout=0, AttributeNames=["All"])["Attributes"]
    assert engine.receive(pair.url) == []
    message = engine.one(pair.dead, AttributeNames=["All"], MessageAttributeNames=["All"])
    assert (message["MessageId"], message["Body"], message["MessageAttributes"]) == (
        sent["MessageId"], "bad", attributes)
    found = message["Attributes"]
    assert found["ApproximateReceiveCount"] == "3"
    assert found["SentTimestamp"] == first["SentTimestamp"]
    assert found["DeadLetterQueueSourceArn"] == engine.arn(pair.url)


def test_a_message_dies_when_its_last_timeout_ends(server: RealServer, engine: RunningEngine, pair: Pair) -> None:
    engine.send(pair.url)
    old = engine.one(pair.url, VisibilityTimeout=5)
    server.pass_time(6)
    assert engine.attributes(pair.dead, "ApproximateNumberOfMessages") == {"ApproximateNumberOfMessages": "1"}
    engine("DeleteMessage", QueueUrl=pair.url, ReceiptHandle=old["ReceiptHandle"])      # it was done after all
    assert engine.receive(pair.dead) == []


def test_a_fifo_group_goes_on_after_a_dead_letter(engine: RunningEngine) -> None:
    pair = Pair(engine, suffix=".fifo")
    for body in ("a1", "a2"):
        engine.put(pair.url, body, group="a")
    sent = engine.one(pair.url, count=1, VisibilityTimeout=0)
    assert engine.bodies(pair.url) == ["a2"]
    found = engine.one(pair.dead, AttributeNames=["All"])
    assert (found["Body"], found["MessageId"], found["Attributes"]["MessageGroupId"]) == ("a1", sent["MessageId"], "a")
    assert found["Attributes"]["MessageDeduplicationId"] == sent["MessageId"]


def test_dead_letters_of_a_fifo_queue_are_kept_from_their_death_on(
    server: RealServer, engine: RunningEngine,
) -> None:
    """Those of a standard queue are dropped when they are as old as the dead-letter queue keeps messages."""
    for suffix, found in ((".fifo", ["old"]), ("", [])):
        pair = Pair(engine, suffix=suffix)
        engine("SetQueueAttributes", QueueUrl=pair.dead, Attributes={"MessageRetentionPeriod": "60"})
        engine.put(pair.url, "old") if suffix else engine.send(pair.url, "old")
        server.pass_time(50)
        engine.one(pair.url, VisibilityTimeout=0)
        server.pass_time(20)
        assert engine.bodies(pair.dead) == found


def test_dead_letters_stay_when_their_queue_is_deleted_or_purged(engine: RunningEngine, pair: Pair) -> None:
    pair.fill(2)
    engine("PurgeQueue", QueueUrl=pair.url)
    engine("DeleteQueue", QueueUrl=pair.url)
    assert sorted(engine.bodies(pair.dead)) == ["m0", "m1"]


# tasks


def test_dead_letters_move_to_another_queue(engine: RunningEngine, pair: Pair) -> None:
    target = engine.queue("target")
    pair.fill(3)
    engine.send(pair.dead, "sent to it")
    handle = engine(
        "StartMessageMoveTask", SourceArn=pair.arn, DestinationArn=engine.arn(target))["TaskHandle"]
    assert handle
    task = pair.ends()
    assert (task["SourceArn"], task["DestinationArn"], task["ApproximateNumberOfMessagesMoved"]) == (
        pair.arn, engine.arn(target), 4)
    assert task["ApproximateNumberOfMessagesToMove"] == 4
    assert "TaskHandle" not in task
    assert sorted(engine.bodies(target)) == ["m0", "m1", "m2", "sent to it"]
    error = engine.refused("CancelMessageMoveTask", TaskHandle=handle)
    assert error.query_code == "InvalidParameterValue"


def test_dead_letters_go_back_to_where_each_came_from(engine: RunningEngine, pair: Pair) -> None:
    policy = json.dumps({"deadLetterTargetArn": pair.arn, "maxReceiveCount": 1})
    second = engine.queue("second", RedrivePolicy=policy)
    pair.fill(3)
    engine.send(second, "of the second")
    engine.one(second, VisibilityTimeout=0)
    engine.send(pair.dead, "stays")
    engine("StartMessageMoveTask", SourceArn=pair.arn)
    assert pair.ends()["ApproximateNumberOfMessagesMoved"] == 4
    assert sorted(engine.bodies(pair.url)) == ["m0", "m1", "m2"]
    assert engine.bodies(second) == ["of the second"]
    assert engine.bodies(pair.dead) == ["stays"]


def test_a_task_is_slowed_and_cancelled(engine: RunningEngine, pair: Pair) -> None:
    target = engine.queue("target")
    pair.fill(30)
    start = {"SourceArn": pair.arn, "DestinationArn": engine.arn(target), "MaxNumberOfMessagesPerSecond": 1}
    handle = engine("StartMessageMoveTask", **start)["TaskHandle"]
    until(lambda: pair.task()["ApproximateNumberOfMessagesMoved"] >= 1, "one is moved")
    running = pair.task()
    assert (running["Status"], running["TaskHandle"], running["MaxNumberOfMessagesPerSecond"]) == ("RUNNING", handle, 1)
    assert engine.refused("StartMessageMoveTask", **start).query_code == "InvalidParameterValue"
    moved = engine("CancelMessageMoveTask", TaskHandle=handle)["ApproximateNumberOfMessagesMoved"]
    assert moved >= 1
    pair.ends("CANCELLED")
    assert engine.attributes(pair.dead, "ApproximateNumberOfMessages") != {"ApproximateNumberOfMessages": "0"}


def test_another_front_end_goes_on_with_a_task(server: RealServer, engine: RunningEngine, pair: Pair) -> None:
    target = engine.queue("target")
    pair.fill(5)
    with RunningEngine(server) as other:
        until(lambda: engine.client("queue_stat", "sqs:moves")["waiters"] == 2, "both wait for tasks")
        other("StartMessageMoveTask", SourceArn=pair.arn, DestinationArn=engine.arn(target),
              MaxNumberOfMessagesPerSecond=2)
        until(lambda: pair.task()["ApproximateNumberOfMessagesMoved"] >= 1, "one is moved")
    pair.ends()
    assert len(engine.receive(target)) == 5


def test_a_task_fails_when_its_destination_is_deleted(engine: RunningEngine, pair: Pair) -> None:
    target = engine.queue("target")
    pair.fill(30)
    engine("StartMessageMoveTask", SourceArn=pair.arn, DestinationArn=engine.arn(target),
           MaxNumberOfMessagesPerSecond=1)
    until(lambda: pair.task()["ApproximateNumberOfMessagesMoved"] >= 1, "one is moved")
    engine("DeleteQueue", QueueUrl=target)
    assert pair.ends("FAILED")["FailureReason"] == "AWS.SimpleQueueService.NonExistentQueue"


def test_a_front_end_leaves_tasks_of_other_accounts_to_others(server: RealServer, engine: RunningEngine) -> None:
    with RunningEngine(server, Options(accounts={"111122223333": "shop."})) as other:
        other.call["account"] = "111122223333"
        pair = Pair(other)
        pair.fill(2)
        for _ in range(5):
            other("StartMessageMoveTask", SourceArn=pair.arn)
            until(lambda: server.pass_time(1) or pair.task()["Status"] == "COMPLETED", "it does not end")


def test_the_tasks_of_a_deleted_queue_end(engine: RunningEngine, pair: Pair) -> None:
    pair.fill(30)
    engine("StartMessageMoveTask", SourceArn=pair.arn, MaxNumberOfMessagesPerSecond=1)
    until(lambda: pair.task()["ApproximateNumberOfMessagesMoved"] >= 1, "one is moved")
    engine("DeleteQueue", QueueUrl=pair.dead)
    until(lambda: not engine.client("running"), "the task is not worked on any more")
    engine.queue("dead")
    assert engine("ListMessageMoveTasks", SourceArn=pair.arn) == {}


def test_a_task_whose_job_is_lost_does_not_stop_the_next(engine: RunningEngine, pair: Pair) -> None:
    pair.fill(30)
    engine("StartMessageMoveTask", SourceArn=pair.arn, MaxNumberOfMessagesPerSecond=1)
    engine.client("queue_purge", "sqs:moves", "own")
    until(lambda: started(engine, pair), "the next task starts")
    assert pair.ends()["ApproximateNumberOfMessagesMoved"] > 20
    assert engine("ListMessageMoveTasks", SourceArn=pair.arn, MaxResults=2)["Results"][1]["Status"] == "FAILED"


def started(engine: RunningEngine, pair: Pair) -> bool:
    """Start a task; returns whether none was running."""
    try:
        engine("StartMessageMoveTask", SourceArn=pair.arn)
    except SqsError:
        return False
    return True


@pytest.mark.parametrize(("members", "code"), [
    ({"SourceArn": "arn:aws:sqs:eu-west-1:000000000000:orders"}, "InvalidParameterValue"),
    ({"SourceArn": "arn:aws:sqs:eu-west-1:000000000000:none"}, "ResourceNotFoundException"),
    ({"SourceArn": "garbage"}, "ResourceNotFoundException"),
    ({"DestinationArn": "arn:aws:sqs:eu-west-1:000000000000:none"}, "ResourceNotFoundException"),
    ({"DestinationArn": "arn:aws:sqs:eu-west-1:000000000000:dead"}, "InvalidParameterValue"),
    ({"MaxNumberOfMessagesPerSecond": 501}, "InvalidParameterValue"),
])
def test_bad_tasks_are_refused(engine: RunningEngine, pair: Pair, members: dict[str, Any], code: str) -> None:
    assert engine.refused("StartMessageMoveTask", **{"SourceArn": pair.arn, **members}).query_code == code
    assert engine("ListMessageMoveTasks", SourceArn=pair.arn) == {}


def test_tasks_are_listed_newest_first(engine: RunningEngine, pair: Pair) -> None:
    for _ in range(12):
        engine("StartMessageMoveTask", SourceArn=pair.arn)
        pair.ends()
    found = engine("ListMessageMoveTasks", SourceArn=pair.arn, MaxResults=10)["Results"]
    assert len(found) == 10
    for handle, code in (("foobared", "InvalidParameterValue"), ("e30=", "InvalidParameterValue")):
        error = engine.refused("CancelMessageMoveTask", TaskHandle=handle)
        assert (error.query_code, error.message) == (code, "Value for parameter TaskHandle is invalid.")
    assert engine.refused("ListMessageMoveTasks", SourceArn=pair.arn, MaxResults=11).code.startswith("InvalidParam")
