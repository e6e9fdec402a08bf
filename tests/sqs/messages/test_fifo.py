"""FIFO queues: order in groups, deduplication, and attempts that are repeated."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from tests.client.real_server import RealServer
from tests.sqs.running_engine import RunningEngine
from tests.waiting import until

NAME = "orders.fifo"


@pytest.fixture
def url(engine: RunningEngine) -> str:
    """Return the URL of a FIFO queue."""
    return engine.queue(NAME)


def delete(engine: RunningEngine, url: str, message: dict[str, str]) -> None:
    """Delete a message."""
    engine("DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def visibility(engine: RunningEngine, url: str, message: dict[str, str], seconds: int) -> None:
    """Hide a message for so many seconds from now on."""
    engine("ChangeMessageVisibility", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=seconds)


# order


def test_messages_of_a_group_come_in_order(engine: RunningEngine, url: str) -> None:
    for number in range(25):
        engine.put(url, str(number))
    found = []
    while messages := engine.receive(url):
        for message in messages:
            found.append(message["Body"])
            delete(engine, url, message)
    assert found == [str(number) for number in range(25)]


def test_a_group_waits_for_what_is_in_flight(engine: RunningEngine, url: str) -> None:
    for body in ("a1", "a2", "b1"):
        engine.put(url, body, group=body[0])
    first, second = engine.one(url, count=1), engine.one(url, count=1)
    assert (first["Body"], second["Body"]) == ("a1", "b1")
    assert engine.receive(url) == []
    delete(engine, url, first)
    assert engine.bodies(url) == ["a2"]


def test_a_receiver_gets_one_group_first_then_the_next(engine: RunningEngine, url: str) -> None:
    for body in ("a1", "b1", "a2", "b2"):
        engine.put(url, body, group=body[0])
    assert engine.bodies(url, 2) == ["a1", "a2"]
    assert engine.bodies(url) == ["b1", "b2"]


def test_a_group_is_free_when_all_of_it_is_deleted(engine: RunningEngine, url: str) -> None:
    for number in range(4):
        engine.put(url, f"a{number}")
    messages = engine.receive(url, 2)
    delete(engine, url, messages[0])
    assert engine.receive(url) == []
    delete(engine, url, messages[1])
    assert engine.bodies(url) == ["a2", "a3"]


def test_a_poll_ends_when_the_group_is_free(engine: RunningEngine, url: str) -> None:
    engine.put(url, "1")
    engine.put(url, "2")
    first = engine.one(url, count=1)
    poll = engine.start("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20)
    until(lambda: engine.client("queue_stat", NAME)["waiters"] == 1, "the poll waits")
    delete(engine, url, first)
    assert [one["Body"] for one in poll.result(60)["Messages"]] == ["2"]


def test_what_comes_back_comes_first(server: RealServer, engine: RunningEngine, url: str) -> None:
    for number in range(4):
        engine.put(url, f"a{number}")
    engine.one(url, count=1, VisibilityTimeout=5)
    server.pass_time(6)
    messages = engine.receive(url, 2)
    assert [one["Body"] for one in messages] == ["a0", "a1"]
    for message in messages:
        visibility(engine, url, message, 0)
    assert engine.bodies(url) == ["a0", "a1", "a2", "a3"]


def test_groups_take_turns(engine: RunningEngine, url: str) -> None:
    for body in ("g1-m1", "g2-m1", "g2-m2", "g3-m1", "g1-m2"):
        engine.put(url, body, group=body[:2])
    assert engine.bodies(url, 3, VisibilityTimeout=0) == ["g1-m1", "g1-m2", "g2-m1"]
    found = engine.bodies(url, VisibilityTimeout=0)
    assert found[0] == "g3-m1"
    assert [one for one in found if one.startswith("g1")] == ["g1-m1", "g1-m2"]
    assert [one for one in found if one.startswith("g2")] == ["g2-m1", "g2-m2"]


def test_an_earlier_message_in_flight_holds_later_ones_only(
    server: RealServer, engine: RunningEngine, url: str,
) -> None:
    for body in ("foo", "bar", "baz"):
        engine.put(url, body)
    messages = engine.receive(url, VisibilityTimeout=5)
    visibility(engine, url, messages[1], 30)
    server.pass_time(6)
    assert engine.bodies(url) == ["foo"]


def test_a_queue_may_delay_and_a_message_may_not(server: RealServer, engine: RunningEngine) -> None:
    url = engine.queue(NAME, DelaySeconds="20")
    engine.put(url, "x", DelaySeconds=0)
    error = engine.refused("SendMessage", QueueUrl=url, MessageBody="y", MessageGroupId="g", DelaySeconds=2)
    assert error.query_code == "InvalidParameterValue"
    assert engine.receive(url) == []
    server.pass_time(21)
    assert engine.bodies(url) == ["x"]


# deduplication


def test_the_same_id_is_one_message_for_five_minutes(server: RealServer, engine: RunningEngine, url: str) -> None:
    """Whatever has become of the first one, and although it may still wait afterwards."""
    first = engine.put(url, "first", dedup="d")
    server.pass_time(240)
    again = engine.put(url, "swallowed", dedup="d")
    assert (again["MessageId"], again["SequenceNumber"]) == (first["MessageId"], first["SequenceNumber"])
    assert again["MD5OfMessageBody"] != first["MD5OfMessageBody"]
    server.pass_time(61)
    assert engine.put(url, "again", dedup="d")["MessageId"] != first["MessageId"]
    messages = engine.receive(url)
    assert [one["Body"] for one in messages] == ["first", "again"]
    for message in messages:
        delete(engine, url, message)
    engine.put(url, "gone", dedup="d")
    assert engine.receive(url) == []


def test_content_may_be_the_id(engine: RunningEngine) -> None:
    url = engine.queue(NAME, ContentBasedDeduplication="true")
    for body in ("a", "a", "b"):
        engine.send(url, body, MessageGroupId="g")
    engine.send(url, "a", MessageGroupId="g", MessageDeduplicationId="other")
    engine.send(url, "d", MessageGroupId="g", MessageDeduplicationId=sha256(b"b").hexdigest())
    messages = engine.receive(url, AttributeNames=["All"])
    assert [one["Body"] for one in messages] == ["a", "b", "a"]
    assert messages[0]["Attributes"]["MessageDeduplicationId"] == sha256(b"a").hexdigest()


@pytest.mark.parametrize(("attributes", "found"), [
    ({}, ["one"]),
    ({"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}, ["one", "two"]),
])
def test_ids_are_of_the_queue_or_of_the_group(
    engine: RunningEngine, attributes: dict[str, Any], found: list[str],
) -> None:
    url = engine.queue(NAME, **attributes)
    for body, group in (("one", "g1"), ("two", "g2"), ("three", "g2")):
        engine.put(url, body, group=group, dedup="d")
    assert sorted(engine.bodies(url)) == found


def test_a_purge_forgets_ids(engine: RunningEngine, url: str) -> None:
    engine.put(url, "1", dedup="d")
    engine("PurgeQueue", QueueUrl=url)
    engine.put(url, "2", dedup="d")
    assert engine.bodies(url) == ["2"]


# ids and numbers


def test_sequence_numbers_rise_and_have_20_digits(engine: RunningEngine, url: str) -> None:
    sent = [engine.put(url, str(number), group=str(number % 2))["SequenceNumber"] for number in range(4)]
    assert sent == sorted(set(sent))
    assert {len(number) for number in sent} == {20}


def test_a_message_tells_its_ids(engine: RunningEngine, url: str) -> None:
    text = "azAZ09!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
    engine.put(url, "x", group=text, dedup=text)
    engine.put(url, "y", group="g" * 128, dedup="d" * 128)
    sent = engine.put(url, "z", group="plain", dedup="id")
    found = {one["Body"]: one["Attributes"] for one in engine.receive(url, AttributeNames=["All"])}
    assert (found["x"]["MessageGroupId"], found["x"]["MessageDeduplicationId"]) == (text, text)
    assert (found["y"]["MessageGroupId"], found["y"]["MessageDeduplicationId"]) == ("g" * 128, "d" * 128)
    assert (found["z"]["MessageGroupId"], found["z"]["SequenceNumber"]) == ("plain", sent["SequenceNumber"])
    names = [job.group for job in engine.client("peek_queue", NAME, "running", 10)]
    assert names[2].endswith(".plain")
    assert len(set(names)) == 3


def test_groups_of_two_queues_have_nothing_to_do_with_each_other(engine: RunningEngine, url: str) -> None:
    """One that was busy elsewhere is not put behind the others."""
    other = engine.queue("other.fifo")
    for body in ("a1", "b1", "a2", "b2"):
        engine.put(url, body, group=body[0])
    engine.put(other, "elsewhere", group="a")
    engine.one(other)
    engine.server.pass_time(1)
    assert engine.bodies(url, 2) == ["a1", "a2"]


@pytest.mark.parametrize(("group", "dedup"), [
    ("g g", "d"), ("g" * 129, "d"), ("g", "d d"), ("g", "d" * 129), ("ä", "d"),
])
def test_bad_ids_are_refused(engine: RunningEngine, url: str, group: str, dedup: str) -> None:
    error = engine.refused(
        "SendMessage", QueueUrl=url, MessageBody="x", MessageGroupId=group, MessageDeduplicationId=dedup)
    assert error.query_code == "InvalidParameterValue"


def test_ids_are_a_must(engine: RunningEngine, url: str) -> None:
    error = engine.refused("SendMessage", QueueUrl=url, MessageBody="x", MessageDeduplicationId="d")
    assert error.query_code == "MissingParameter"
    error = engine.refused("SendMessage", QueueUrl=url, MessageBody="x", MessageGroupId="g")
    assert error.query_code == "InvalidParameterValue"
    good = {"Id": "a", "MessageBody": "a", "MessageGroupId": "g", "MessageDeduplicationId": "1"}
    for bad in ({"Id": "b", "MessageBody": "b", "MessageGroupId": "g"},
                {"Id": "b", "MessageBody": "b", "MessageDeduplicationId": "2"}):
        error = engine.refused("SendMessageBatch", QueueUrl=url, Entries=[good, bad])
        assert error.query_code == "InvalidParameterValue"
    assert engine.receive(url) == []
    standard = engine.queue("standard")
    error = engine.refused("SendMessage", QueueUrl=standard, MessageBody="x", MessageDeduplicationId="d")
    assert error.query_code == "InvalidParameterValue"


def test_a_batch_keeps_its_order(engine: RunningEngine, url: str) -> None:
    entries = [
        {"Id": str(n), "MessageBody": str(n), "MessageGroupId": "g", "MessageDeduplicationId": str(n)}
        for n in range(10)
    ]
    entries[5]["MessageDeduplicationId"] = "4"
    sent = engine("SendMessageBatch", QueueUrl=url, Entries=entries)["Successful"]
    assert sent[5]["MessageId"] == sent[4]["MessageId"]
    numbers = [one["SequenceNumber"] for one in sent]
    assert numbers == sorted(numbers)
    assert engine.bodies(url) == [str(n) for n in range(10) if n != 5]


# handles and attempts


def test_an_expired_handle_does_not_delete(server: RealServer, engine: RunningEngine, url: str) -> None:
    engine.put(url, "x")
    old = engine.one(url, VisibilityTimeout=5)
    server.pass_time(6)
    for action, more in (("DeleteMessage", {}), ("ChangeMessageVisibility", {"VisibilityTimeout": 9})):
        error = engine.refused(action, QueueUrl=url, ReceiptHandle=old["ReceiptHandle"], **more)
        assert error.query_code == "InvalidParameterValue"
    new = engine.one(url)
    delete(engine, url, new)
    delete(engine, url, old)            # it is not there any more


def test_an_attempt_is_repeated(server: RealServer, engine: RunningEngine, url: str) -> None:
    for number in range(4):
        engine.put(url, str(number), group=str(number % 2))
    first = engine.receive(url, 2, ReceiveRequestAttemptId="attempt", VisibilityTimeout=60)
    server.pass_time(50)
    assert engine.receive(url, 2, ReceiveRequestAttemptId="attempt", VisibilityTimeout=60) == first
    server.pass_time(50)                # hidden again from the repetition on
    assert engine.receive(url, 2, ReceiveRequestAttemptId="attempt", VisibilityTimeout=60) == first
    delete(engine, url, first[0])
    third = engine.receive(url, 2, ReceiveRequestAttemptId="attempt", VisibilityTimeout=60)
    assert [one["Body"] for one in third] == ["1", "3"]


# standard queues


def test_a_standard_queue_is_shared_among_groups(engine: RunningEngine) -> None:
    url = engine.queue("standard")
    for number in range(6):
        engine.send(url, f"a{number}", MessageGroupId="a")
    assert engine.client("queue_config", "standard")["sched"] == "FAIR"
    engine.send(url, "b0", MessageGroupId="b")
    assert "b0" in engine.bodies(url, 3)
    (message,) = engine.receive(url, 1, AttributeNames=["MessageGroupId"])
    assert message["Attributes"] == {"MessageGroupId": "a"}
