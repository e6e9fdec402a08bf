"""Creating, finding, listing, changing, purging and deleting queues."""

from __future__ import annotations

import json

import pytest
from sockpq_sqs.options import Options

from tests.client.real_server import RealServer
from tests.sqs.running_engine import ORIGIN, RunningEngine


def test_a_url_ends_with_account_and_name(engine: RunningEngine) -> None:
    assert engine.queue("orders") == f"{ORIGIN}/000000000000/orders"
    assert engine("GetQueueUrl", QueueName="orders")["QueueUrl"] == f"{ORIGIN}/000000000000/orders"
    assert engine.arn(f"{ORIGIN}/000000000000/orders") == "arn:aws:sqs:eu-west-1:000000000000:orders"


def test_of_a_url_only_the_end_of_the_path_counts(engine: RunningEngine) -> None:
    engine.queue("orders")
    for url in ("orders", "http://other:1/base/000000000000/orders", "http://x/queue/orders", "/000000000000/orders/"):
        engine.send(url)
    assert len(engine.receive("orders")) == 4
    for url in ("http://x/", "http://x", "http://x/000000000000/a.b"):
        assert engine.refused("SendMessage", QueueUrl=url, MessageBody="x").code == "QueueDoesNotExist"
    for url in ("a b", "ftp://x/", ""):
        assert engine.refused("SendMessage", QueueUrl=url, MessageBody="x").code == "InvalidAddress"


def test_programs_of_the_clusters_own_protocol_use_the_same_queues(engine: RunningEngine) -> None:
    url, odd = engine.queue("orders"), engine.queue("-_odd-")
    engine.client("put", "orders", b"native")
    engine.client("put", "+-_odd-", b"odd")
    (message,) = engine.receive(url)
    assert message["Body"] == "native"
    engine("DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    assert engine.bodies(odd) == ["odd"]
    assert odd.rsplit("/", 1)[1] == "-_odd-"
    assert engine("ListQueues")["QueueUrls"] == [odd, url]


@pytest.mark.parametrize("name", ["a b", "a/b", "a.b", "ä", "a!", "", "n" * 81, "x.fifo"])
def test_bad_names_are_refused(engine: RunningEngine, name: str) -> None:
    assert engine.refused("CreateQueue", QueueName=name).query_code == "InvalidParameterValue"


def test_a_fifo_queue_and_its_name_go_together(engine: RunningEngine) -> None:
    error = engine.refused("CreateQueue", QueueName="orders", Attributes={"FifoQueue": "true"})
    assert error.query_code == "InvalidParameterValue"
    engine.queue("n" * 75 + ".fifo")
    engine.refused("CreateQueue", QueueName="n" * 76 + ".fifo", Attributes={"FifoQueue": "true"})


def test_to_create_again_finds_the_queue_unless_it_differs(engine: RunningEngine) -> None:
    url = engine.queue("orders", VisibilityTimeout="77", DelaySeconds="3")
    assert engine.queue("orders") == url
    assert engine.queue("orders", DelaySeconds="3") == url
    assert engine.queue("orders", MaximumMessageSize="1048576") == url
    for attributes in ({"DelaySeconds": "4"}, {"ReceiveMessageWaitTimeSeconds": "1"}):
        error = engine.refused("CreateQueue", QueueName="orders", Attributes=attributes)
        assert (error.code, error.query_code) == ("QueueNameExists", "QueueAlreadyExists")
    assert engine.attributes(url, "VisibilityTimeout", "DelaySeconds") == {
        "VisibilityTimeout": "77", "DelaySeconds": "3"}


def test_every_action_needs_an_existing_queue(engine: RunningEngine) -> None:
    url = f"{ORIGIN}/000000000000/none"
    for action, more in (
        ("SendMessage", {"MessageBody": "x"}), ("ReceiveMessage", {}), ("PurgeQueue", {}), ("DeleteQueue", {}),
        ("GetQueueAttributes", {"AttributeNames": ["All"]}), ("ListQueueTags", {}), ("TagQueue", {"Tags": {"a": "b"}}),
        ("SetQueueAttributes", {"Attributes": {"DelaySeconds": "1"}}), ("UntagQueue", {"TagKeys": ["a"]}),
        ("SendMessageBatch", {"Entries": [{"Id": "1", "MessageBody": "x"}]}), ("ListDeadLetterSourceQueues", {}),
        ("DeleteMessage", {"ReceiptHandle": "x"}),
        ("ChangeMessageVisibility", {"ReceiptHandle": "x", "VisibilityTimeout": 0}),
        ("DeleteMessageBatch", {"Entries": [{"Id": "1", "ReceiptHandle": "x"}]}),
        ("AddPermission", {"Label": "x", "AWSAccountIds": ["1" * 12], "Actions": ["*"]}),
        ("RemovePermission", {"Label": "x"}),
    ):
        assert engine.refused(action, QueueUrl=url, **more).code == "QueueDoesNotExist", action
    assert engine.refused("GetQueueUrl", QueueName="none").code == "QueueDoesNotExist"


def test_queues_are_listed_by_prefix_and_in_pages(engine: RunningEngine) -> None:
    assert engine("ListQueues") == {}
    urls = [engine.queue(f"page-{number}") for number in range(5)]
    other = engine.queue("other")
    assert engine("ListQueues")["QueueUrls"] == [other, *urls]
    assert engine("ListQueues", QueueNamePrefix="none") == {}
    assert engine("ListQueues", QueueNamePrefix="a b") == {}
    found, token, pages = [], None, 0
    while pages == 0 or token:
        answer = engine("ListQueues", QueueNamePrefix="page-", MaxResults=2, NextToken=token)
        found += answer["QueueUrls"]
        token, pages = answer.get("NextToken"), pages + 1
    assert (found, pages) == (urls, 3)
    for more in ({"MaxResults": 0}, {"MaxResults": 1001}, {"MaxResults": 1, "NextToken": "ü"}):
        assert engine.refused("ListQueues", **more).query_code == "InvalidParameterValue"


def test_a_deleted_queue_is_gone_with_its_messages(engine: RunningEngine) -> None:
    url = engine.queue("orders", VisibilityTimeout="77")
    engine.send(url)
    engine.send(url)
    engine.receive(url, 1)
    engine("DeleteQueue", QueueUrl=url)
    assert engine("ListQueues") == {}
    assert engine.refused("ReceiveMessage", QueueUrl=url).code == "QueueDoesNotExist"
    assert engine.queue("orders", VisibilityTimeout="5") == url
    assert engine.receive(url) == []


def test_a_purge_takes_what_waits_and_what_is_in_flight(server: RealServer, engine: RunningEngine) -> None:
    url = engine.queue()
    engine.send(url, "in flight")
    engine.one(url, VisibilityTimeout=5)
    engine.send(url, "waits")
    engine.send(url, "delayed", DelaySeconds=5)
    engine("PurgeQueue", QueueUrl=url)
    server.pass_time(6)
    assert engine.receive(url) == []
    error = engine.refused("PurgeQueue", QueueUrl=url)
    assert (error.code, error.status) == ("PurgeQueueInProgress", 403)
    server.pass_time(61)
    engine("PurgeQueue", QueueUrl=url)


def test_another_front_end_sees_changes_and_both_may_change(server: RealServer, engine: RunningEngine) -> None:
    url = engine.queue()
    with RunningEngine(server) as other:
        assert other.attributes(url, "DelaySeconds") == {"DelaySeconds": "0"}
        engine("SetQueueAttributes", QueueUrl=url, Attributes={"DelaySeconds": "7"})
        changes = [
            front_end.start("TagQueue", QueueUrl=url, Tags={f"{number}{place}": "x"})
            for number in range(5) for place, front_end in enumerate((engine, other))
        ]
        for change in changes:
            change.result(60)
        assert other.attributes(url, "DelaySeconds") == {"DelaySeconds": "7"}
        assert len(other("ListQueueTags", QueueUrl=url)["Tags"]) == 10


def test_front_ends_that_create_a_queue_at_once_agree(server: RealServer, engine: RunningEngine) -> None:
    with RunningEngine(server) as other:
        asked = [
            front_end.start("CreateQueue", QueueName="orders", Attributes={"VisibilityTimeout": seconds})
            for front_end, seconds in ((engine, "11"), (other, "22"))
        ]
        failures = [one.exception(60) for one in asked]
        assert [getattr(one, "code", None) for one in failures].count("QueueNameExists") == 1
        chosen = "11" if failures[0] is None else "22"
        assert other.attributes("orders", "VisibilityTimeout") == {"VisibilityTimeout": chosen}
        assert engine.client("queue_config", "orders")["expire"].split()[0] == chosen


def test_accounts_are_prefixes_of_names(server: RealServer) -> None:
    options = Options(accounts={"111122223333": "shop."})
    with RunningEngine(server, options) as engine:
        own = engine.queue("orders")
        engine.call["account"] = "111122223333"
        url = engine.queue("orders")
        assert url == f"{ORIGIN}/111122223333/orders"
        engine.send("orders", "of the shop")
        assert engine("ListQueues")["QueueUrls"] == [url]
        assert engine.client("queue_stat", "shop.orders")["ready"] == 1
        assert engine.receive(own) == []
        assert engine.bodies(url) == ["of the shop"]
        engine.call["account"] = "999999999999"
        assert engine.refused("ListQueues").code == "QueueDoesNotExist"


# permissions and tags


def test_permissions_become_a_policy(engine: RunningEngine) -> None:
    url = engine.queue()
    permission = {"QueueUrl": url, "AWSAccountIds": ["668614515564"], "Actions": ["ReceiveMessage"]}
    engine("AddPermission", Label="one", **permission)
    policy = json.loads(engine.attributes(url, "Policy")["Policy"])
    assert policy["Statement"] == [{
        "Sid": "one", "Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::668614515564:root"},
        "Action": "SQS:ReceiveMessage", "Resource": engine.arn(url),
    }]
    engine("AddPermission", **{**permission, "Label": "two", "Actions": ["SendMessage", "*"]})
    assert len(json.loads(engine.attributes(url, "Policy")["Policy"])["Statement"]) == 2
    for changed in ({"Label": "one"}, {"Label": "a b"}, {"Label": "x", "Actions": ["Fly"]},
                    {"Label": "x", "AWSAccountIds": ["bob"]}, {"Label": "x", "AWSAccountIds": []},
                    {"Label": "x", "Actions": ["DeleteQueue"]}):
        error = engine.refused("AddPermission", **{**permission, **changed})
        assert error.query_code == "InvalidParameterValue"
    engine("RemovePermission", QueueUrl=url, Label="one")
    assert engine.refused("RemovePermission", QueueUrl=url, Label="one").query_code == "InvalidParameterValue"
    engine("RemovePermission", QueueUrl=url, Label="two")
    assert engine.attributes(url, "Policy") == {}


def test_a_policy_with_odd_statements_does_no_harm(engine: RunningEngine) -> None:
    url = engine.queue(Policy='{"Statement": [1, null, {"Sid": ["x"]}]}')
    engine("AddPermission", QueueUrl=url, Label="one", AWSAccountIds=["668614515564"], Actions=["*"])
    assert len(json.loads(engine.attributes(url, "Policy")["Policy"])["Statement"]) == 4
    engine("RemovePermission", QueueUrl=url, Label="one")
    deep = '{"a":' * 1600 + "1" + "}" * 1600
    for name in ("Policy", "RedrivePolicy", "RedriveAllowPolicy"):
        error = engine.refused("SetQueueAttributes", QueueUrl=url, Attributes={name: deep})
        assert error.status < 500
        assert len(error.message) < 1000


def test_tags_are_added_replaced_and_removed(engine: RunningEngine) -> None:
    url = engine("CreateQueue", QueueName="orders", tags={"team": "a", "Team": "b"})["QueueUrl"]
    engine("TagQueue", QueueUrl=url, Tags={"team": "c", "empty": ""})
    assert engine("ListQueueTags", QueueUrl=url) == {"Tags": {"team": "c", "Team": "b", "empty": ""}}
    engine("UntagQueue", QueueUrl=url, TagKeys=["team", "Team", "none", "empty"])
    assert engine("ListQueueTags", QueueUrl=url) == {}
    for tags in ({"": "x"}, {"k" * 129: "x"}, {"k": "v" * 257}, {"aws:x": "y"}, {str(n): "x" for n in range(51)}):
        assert engine.refused("TagQueue", QueueUrl=url, Tags=tags).query_code == "InvalidParameterValue"
    assert engine.refused("TagQueue", QueueUrl=url, Tags={}).query_code == "MissingParameter"
    assert engine.refused("UntagQueue", QueueUrl=url, TagKeys=[]).query_code == "InvalidParameterValue"
