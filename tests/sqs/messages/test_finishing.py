"""DeleteMessage, ChangeMessageVisibility and their batches: visibility timeouts, handles and their limits."""

from __future__ import annotations

import pytest

from tests.client.real_server import RealServer
from tests.sqs.running_engine import RunningEngine

HOURS_12 = 43_200


def visibility(engine: RunningEngine, url: str, message: dict[str, str], seconds: int) -> None:
    """Hide a message for so many seconds from now on."""
    engine("ChangeMessageVisibility", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=seconds)


def delete(engine: RunningEngine, url: str, message: dict[str, str]) -> None:
    """Delete a message."""
    engine("DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def test_a_message_is_hidden_then_back(server: RealServer, engine: RunningEngine) -> None:
    url = engine.queue(VisibilityTimeout="20")
    sent = engine.send(url)
    first = engine.one(url)
    server.pass_time(19)
    assert engine.receive(url) == []
    server.pass_time(2)
    second = engine.one(url, VisibilityTimeout=5)
    assert second["MessageId"] == sent["MessageId"]
    assert second["ReceiptHandle"] != first["ReceiptHandle"]
    server.pass_time(6)
    engine.one(url)


def test_a_change_is_for_this_time_only(server: RealServer, engine: RunningEngine) -> None:
    url = engine.queue(VisibilityTimeout="10")
    engine.send(url)
    visibility(engine, url, engine.one(url), 30)
    server.pass_time(20)
    assert engine.receive(url) == []
    server.pass_time(11)
    engine.one(url)
    server.pass_time(11)
    visibility(engine, url, engine.one(url), 0)
    engine.one(url)


def test_a_timeout_of_zero_shows_at_once(engine: RunningEngine) -> None:
    url = engine.queue()
    sent = engine.send(url)
    handles = {engine.one(url, VisibilityTimeout=0)["ReceiptHandle"] for _ in range(3)}
    assert len(handles) == 3
    message = engine.one(url, VisibilityTimeout=0)
    assert message["MessageId"] == sent["MessageId"]
    delete(engine, url, message)
    assert engine.receive(url) == []


def test_to_delete_twice_does_no_harm(engine: RunningEngine) -> None:
    url = engine.queue()
    engine.send(url)
    message = engine.one(url)
    for _ in range(3):
        delete(engine, url, message)
    error = engine.refused(
        "ChangeMessageVisibility", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=3)
    assert error.query_code == "InvalidParameterValue"


def test_a_standard_queue_deletes_after_the_timeout(server: RealServer, engine: RunningEngine) -> None:
    url = engine.queue(VisibilityTimeout="5")
    engine.send(url)
    message = engine.one(url)
    server.pass_time(6)
    delete(engine, url, message)
    assert engine.receive(url) == []


def test_an_old_handle_does_not_delete_from_the_new_receiver(server: RealServer, engine: RunningEngine) -> None:
    url = engine.queue(VisibilityTimeout="5")
    engine.send(url)
    old = engine.one(url)
    server.pass_time(6)
    new = engine.one(url, VisibilityTimeout=60)
    delete(engine, url, old)
    visibility(engine, url, new, 0)
    engine.one(url)


def test_an_old_handle_hides_and_shows_as_with_amazon(server: RealServer, engine: RunningEngine) -> None:
    url = engine.queue(VisibilityTimeout="5")
    engine.send(url)
    old = engine.one(url)
    server.pass_time(6)
    new = engine.one(url)
    visibility(engine, url, old, 100)
    server.pass_time(60)
    assert engine.receive(url) == []
    entry = {"Id": "a", "ReceiptHandle": old["ReceiptHandle"], "VisibilityTimeout": 0}
    answer = engine("ChangeMessageVisibilityBatch", QueueUrl=url, Entries=[entry])
    assert answer["Successful"] == [{"Id": "a"}]
    engine.one(url)
    delete(engine, url, new)


def test_a_standard_queue_hides_after_the_timeout(server: RealServer, engine: RunningEngine) -> None:
    url = engine.queue(VisibilityTimeout="5")
    engine.send(url)
    message = engine.one(url)
    server.pass_time(6)
    visibility(engine, url, message, 20)
    assert engine.receive(url) == []
    server.pass_time(21)
    engine.one(url)


def test_twelve_hours_count_from_the_receipt(server: RealServer, engine: RunningEngine) -> None:
    url = engine.queue()
    engine.send(url)
    message = engine.one(url)
    visibility(engine, url, message, HOURS_12)
    server.pass_time(1)
    for seconds in (HOURS_12, HOURS_12 + 1, -1):
        error = engine.refused(
            "ChangeMessageVisibility", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=seconds)
        assert error.query_code == "InvalidParameterValue"
    visibility(engine, url, message, HOURS_12 - 1)


def test_handles_are_for_their_own_queue(engine: RunningEngine) -> None:
    one, two = engine.queue("one"), engine.queue("two")
    engine.send(one)
    message = engine.one(one)
    forged = message["ReceiptHandle"][:-2] + ("AA" if message["ReceiptHandle"][-2:] != "AA" else "BB")
    for url, handle in ((two, message["ReceiptHandle"]), (one, "garbage"), (one, forged), (one, "ü" * 48), (one, "")):
        for action, more in (("DeleteMessage", {}), ("ChangeMessageVisibility", {"VisibilityTimeout": 0})):
            assert engine.refused(action, QueueUrl=url, ReceiptHandle=handle, **more).code == "ReceiptHandleIsInvalid"
    delete(engine, one, message)


def test_a_batch_deletes_what_it_can(engine: RunningEngine) -> None:
    url = engine.queue()
    for body in "abc":
        engine.send(url, body)
    found = engine.receive(url, 2)
    entries = [{"Id": str(n), "ReceiptHandle": one["ReceiptHandle"]} for n, one in enumerate([*found, found[0]])]
    answer = engine("DeleteMessageBatch", QueueUrl=url, Entries=[*entries, {"Id": "bad", "ReceiptHandle": "garbage"}])
    assert [one["Id"] for one in answer["Successful"]] == ["0", "1", "2"]
    assert [(one["Id"], one["Code"], one["SenderFault"]) for one in answer["Failed"]] == [
        ("bad", "ReceiptHandleIsInvalid", True)]
    assert engine.bodies(url) == ["c"]


def test_a_batch_has_a_time_for_each_message(server: RealServer, engine: RunningEngine) -> None:
    url = engine.queue()
    for body in "abcde":
        engine.send(url, body)
    messages = engine.receive(url)
    times = [0, 50, 20, 20]
    entries = [
        {"Id": one["Body"], "ReceiptHandle": one["ReceiptHandle"], "VisibilityTimeout": seconds}
        for one, seconds in zip(messages, times, strict=False)
    ]
    entries += [
        {"Id": "bad", "ReceiptHandle": "garbage", "VisibilityTimeout": 1},
        {"Id": "long", "ReceiptHandle": messages[4]["ReceiptHandle"], "VisibilityTimeout": HOURS_12 + 1},
        {"Id": "none", "ReceiptHandle": messages[4]["ReceiptHandle"]},
    ]
    answer = engine("ChangeMessageVisibilityBatch", QueueUrl=url, Entries=entries)
    assert sorted(one["Id"] for one in answer["Successful"]) == list("abcd")
    assert {one["Id"]: one["Code"] for one in answer["Failed"]} == {
        "bad": "ReceiptHandleIsInvalid", "long": "InvalidParameterValue", "none": "MissingParameter"}
    assert engine.bodies(url, VisibilityTimeout=300) == ["a"]
    server.pass_time(21)
    assert engine.bodies(url, VisibilityTimeout=300) == ["c", "d"]
    server.pass_time(30)
    assert engine.bodies(url, VisibilityTimeout=300) == ["b", "e"]


@pytest.mark.parametrize(("action", "more"), [
    ("DeleteMessageBatch", {}), ("ChangeMessageVisibilityBatch", {"VisibilityTimeout": 1}),
])
def test_bad_batches_are_refused(engine: RunningEngine, action: str, more: dict[str, int]) -> None:
    url = engine.queue()
    for ids, code in (
        ([], "EmptyBatchRequest"), (list("abcdefghijk"), "TooManyEntriesInBatchRequest"),
        (["a", "a"], "BatchEntryIdsNotDistinct"), (["a:b"], "InvalidBatchEntryId"),
    ):
        entries = [{"Id": one, "ReceiptHandle": "x", **more} for one in ids]
        assert engine.refused(action, QueueUrl=url, Entries=entries).code == code
