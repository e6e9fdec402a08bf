"""Attributes of queues: defaults, ranges and effects."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sockpq_sqs.options import Options

from tests.client.real_server import RealServer
from tests.sqs.running_engine import RunningEngine

POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sqs:*"}]}


def change(engine: RunningEngine, url: str, **attributes: str) -> None:
    """Change attributes of a queue."""
    engine("SetQueueAttributes", QueueUrl=url, Attributes=attributes)


def test_defaults_are_amazons(server: RealServer, engine: RunningEngine) -> None:
    now = str(server.cluster.now_ms // 1000)
    standard = {
        "VisibilityTimeout": "30", "DelaySeconds": "0", "MessageRetentionPeriod": "345600",
        "ReceiveMessageWaitTimeSeconds": "0", "ApproximateNumberOfMessages": "0", "MaximumMessageSize": "1048576",
        "ApproximateNumberOfMessagesNotVisible": "0", "ApproximateNumberOfMessagesDelayed": "0",
        "SqsManagedSseEnabled": "true", "CreatedTimestamp": now, "LastModifiedTimestamp": now,
    }
    url = engine.queue("orders")
    assert engine.attributes(url) == {**standard, "QueueArn": "arn:aws:sqs:eu-west-1:000000000000:orders"}
    url = engine.queue("orders.fifo")
    assert engine.attributes(url) == {
        **standard, "QueueArn": "arn:aws:sqs:eu-west-1:000000000000:orders.fifo", "FifoQueue": "true",
        "ContentBasedDeduplication": "false", "DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue",
    }
    assert engine("GetQueueAttributes", QueueUrl=url) == {}
    assert engine.refused("GetQueueAttributes", QueueUrl=url, AttributeNames=["Foo"]).code == "InvalidAttributeName"


CHANGES = {
    "VisibilityTimeout": "0", "DelaySeconds": "900", "MessageRetentionPeriod": "1209600",
    "ReceiveMessageWaitTimeSeconds": "20", "MaximumMessageSize": "2048",
}


def test_attributes_are_set_at_creation_or_later(server: RealServer, engine: RunningEngine) -> None:
    assert engine.attributes(engine.queue("one", **CHANGES), *CHANGES) == CHANGES
    url = engine.queue("two")
    server.pass_time(10)
    change(engine, url, **CHANGES)
    assert engine.attributes(url, *CHANGES) == CHANGES
    found = engine.attributes(url)
    assert int(found["LastModifiedTimestamp"]) == int(found["CreatedTimestamp"]) + 10


@pytest.mark.parametrize(("name", "values"), [
    ("VisibilityTimeout", ("-1", "43201", "x", "", "1.5")), ("DelaySeconds", ("-1", "901", "9" * 50)),
    ("MessageRetentionPeriod", ("59", "1209601")), ("ReceiveMessageWaitTimeSeconds", ("-1", "21")),
    ("MaximumMessageSize", ("1023", "1048577")), ("SqsManagedSseEnabled", ("yes", "")), ("Policy", ("x", "[]")),
    ("KmsDataKeyReusePeriodSeconds", ("59",)),
])
def test_values_out_of_range_are_refused(engine: RunningEngine, name: str, values: tuple[str, ...]) -> None:
    url = engine.queue()
    for value in values:
        error = engine.refused("SetQueueAttributes", QueueUrl=url, Attributes={name: value})
        assert error.code == "InvalidAttributeValue"


def test_fifo_attributes_are_for_fifo_queues(engine: RunningEngine) -> None:
    for name, value in (("ContentBasedDeduplication", "true"), ("FifoQueue", "false"), ("Foo", "x")):
        error = engine.refused("CreateQueue", QueueName="orders", Attributes={name: value})
        assert error.code == "InvalidAttributeName"
    error = engine.refused("CreateQueue", QueueName="orders", Attributes={"DeduplicationScope": "queue"})
    assert (error.code, error.message) == (
        "InvalidAttributeName", "You can specify the DeduplicationScope only when FifoQueue is set to true.")
    standard, fifo = engine.queue("orders"), engine.queue("orders.fifo")
    for url, value, code in (
        (standard, "true", "InvalidAttributeName"), (fifo, "false", "InvalidAttributeValue"),
    ):
        error = engine.refused("SetQueueAttributes", QueueUrl=url, Attributes={"FifoQueue": value})
        assert error.code == code
    assert error.message == "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported."
    change(engine, fifo, ContentBasedDeduplication="true", FifoQueue="true")
    for attributes in ({"DeduplicationScope": "x"}, {"FifoThroughputLimit": "x"}):
        error = engine.refused("SetQueueAttributes", QueueUrl=fifo, Attributes=attributes)
        assert error.code == "InvalidAttributeValue"


def test_a_policy_is_kept_and_taken_away(engine: RunningEngine) -> None:
    url = engine.queue(Policy=POLICY)
    assert json.loads(engine.attributes(url, "Policy")["Policy"]) == POLICY
    change(engine, url, Policy="")
    assert engine.attributes(url, "Policy") == {}
    large = json.dumps({"Statement": ["x" * 8192]})
    assert engine.refused("SetQueueAttributes", QueueUrl=url, Attributes={"Policy": large}).code == "OverLimit"


def test_one_kind_of_encryption_ends_the_other(engine: RunningEngine) -> None:
    url = engine.queue(KmsMasterKeyId="alias/aws/sqs")
    names = "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled"
    assert engine.attributes(url, *names) == {
        "KmsMasterKeyId": "alias/aws/sqs", "KmsDataKeyReusePeriodSeconds": "300", "SqsManagedSseEnabled": "false"}
    change(engine, url, SqsManagedSseEnabled="true")
    assert engine.attributes(url, *names) == {"SqsManagedSseEnabled": "true"}


@pytest.mark.parametrize(("options", "attributes"), [
    (Options(policies="refuse"), {"Policy": POLICY}), (Options(encryption="refuse"), {"KmsMasterKeyId": "x"}),
])
def test_what_has_no_effect_can_be_refused(server: RealServer, options: Options, attributes: dict[str, Any]) -> None:
    with RunningEngine(server, options) as engine:
        url = engine.queue()
        given = {name: value if isinstance(value, str) else json.dumps(value) for name, value in attributes.items()}
        error = engine.refused("SetQueueAttributes", QueueUrl=url, Attributes=given)
        assert error.code == "UnsupportedOperation"
        change(engine, url, Policy="", SqsManagedSseEnabled="true")


# redrive


def policy(arn: str, count: object = 3) -> str:
    """Return a RedrivePolicy: dead letters go to `arn` after `count` receives."""
    return json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": count})


def test_a_redrive_policy_is_kept_and_taken_away(engine: RunningEngine) -> None:
    dead = engine.queue("dead")
    url = engine.queue("orders", RedrivePolicy=policy(engine.arn(dead), "3"))
    assert json.loads(engine.attributes(url, "RedrivePolicy")["RedrivePolicy"]) == json.loads(policy(engine.arn(dead)))
    assert engine("ListDeadLetterSourceQueues", QueueUrl=dead) == {"queueUrls": [url]}
    assert engine("ListDeadLetterSourceQueues", QueueUrl=url) == {}
    assert engine.client("queue_config", "orders")["tries"] == "3 DEAD dead"
    change(engine, url, RedrivePolicy="")
    assert engine.attributes(url, "RedrivePolicy") == {}
    assert engine("ListDeadLetterSourceQueues", QueueUrl=dead) == {}


@pytest.mark.parametrize("changed", [
    {"maxReceiveCount": None}, {"deadLetterTargetArn": None}, {"maxReceiveCount": "x"}, {"maxReceiveCount": 0},
    {"maxReceiveCount": 1001}, {"deadLetterTargetArn": "arn:aws:sqs:eu-west-1:000000000000:none"},
    {"deadLetterTargetArn": "dummy"}, {"deadLetterTargetArn": 5},
])
def test_bad_redrive_policies_are_refused(engine: RunningEngine, changed: dict[str, Any]) -> None:
    arn = engine.arn(engine.queue("dead"))
    url = engine.queue()
    document = {"deadLetterTargetArn": arn, "maxReceiveCount": 3, **changed}
    text = json.dumps({name: value for name, value in document.items() if value is not None})
    error = engine.refused("SetQueueAttributes", QueueUrl=url, Attributes={"RedrivePolicy": text})
    assert error.query_code == "InvalidParameterValue"
    assert engine.attributes(url, "RedrivePolicy") == {}


def test_dead_letters_go_to_a_queue_of_the_same_type_that_allows_it(engine: RunningEngine) -> None:
    standard = engine.queue("dead")
    error = engine.refused("CreateQueue", QueueName="x.fifo", Attributes={
        "FifoQueue": "true", "RedrivePolicy": policy(engine.arn(standard))})
    assert error.query_code == "InvalidParameterValue"
    url = engine.queue("orders")
    for allowed, passes in (
        ({"redrivePermission": "denyAll"}, False),
        ({"redrivePermission": "byQueue", "sourceQueueArns": [engine.arn(standard)]}, False),
        ({"redrivePermission": "byQueue", "sourceQueueArns": [engine.arn(url)]}, True),
        ({"redrivePermission": "allowAll"}, True),
    ):
        change(engine, standard, RedriveAllowPolicy=json.dumps(allowed))
        assert json.loads(engine.attributes(standard, "RedriveAllowPolicy")["RedriveAllowPolicy"]) == allowed
        wanted = {"RedrivePolicy": policy(engine.arn(standard))}
        if passes:
            change(engine, url, **wanted)
        else:
            engine.refused("SetQueueAttributes", QueueUrl=url, Attributes=wanted)
    for bad in ({"redrivePermission": "x"}, {"redrivePermission": "byQueue"}, {},
                {"redrivePermission": "allowAll", "sourceQueueArns": []}):
        if bad:
            error = engine.refused(
                "SetQueueAttributes", QueueUrl=url, Attributes={"RedriveAllowPolicy": json.dumps(bad)})
            assert error.query_code == "InvalidParameterValue"


def test_a_queue_may_name_itself_for_its_dead_letters(server: RealServer, engine: RunningEngine) -> None:
    url = engine.queue()
    change(engine, url, RedrivePolicy=policy(engine.arn(url), 1))
    engine.send(url)
    for _ in range(3):
        engine.one(url, VisibilityTimeout=0)
