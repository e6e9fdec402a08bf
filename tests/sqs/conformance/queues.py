"""Queues: names, URLs, attributes, tags, policies, lists and purges."""

from __future__ import annotations

import json
import re
import time
import urllib.parse

from botocore.exceptions import ClientError

from tests.sqs.conformance.endpoint import Check, check, equal, refused, true


@check("queue", "doc")
def create_answers_url_that_ends_with_the_name(t: Check) -> None:
    name = t.name()
    url = t.queue(name=name)
    true(urllib.parse.urlsplit(url).scheme in ("http", "https"), f"no URL: {url}")
    equal(url.rsplit("/", 1)[1], name, "last part of the URL")
    true(re.fullmatch(r"\d{12}|queue", url.rsplit("/", 2)[1]) is not None, f"no account of 12 digits in {url}")


@check("queue", "aws")
def create_again_without_attributes(t: Check) -> None:
    name = t.name()
    equal(t.queue(name=name), t.queue(name=name), "URL")


@check("queue", "aws")
def create_again_without_attributes_after_other_ones(t: Check) -> None:
    name = t.name()
    url = t.queue(name=name, VisibilityTimeout=77)
    equal(t.queue(name=name), url, "URL")
    equal(t.attributes(url, "VisibilityTimeout"), {"VisibilityTimeout": "77"})


@check("queue", "aws", timed=True)
def create_again_with_the_same_attributes(t: Check) -> None:
    name = t.name()
    equal(t.queue(name=name, DelaySeconds=3), t.queue(name=name, DelaySeconds=3), "URL")


@check("queue", "aws", timed=True)
def create_again_with_other_attributes_is_refused(t: Check) -> None:
    name = t.name()
    t.queue(name=name, DelaySeconds=3)
    refused("QueueNameExists", t.sqs.create_queue, QueueName=name, Attributes={"DelaySeconds": "4"}, status=400)


@check("queue", "doc")
def names_of_80_characters(t: Check) -> None:
    t.queue(name=t.name() + "-" + "n" * (80 - 15))
    refused("InvalidParameterValue", t.sqs.create_queue, QueueName="n" * 81)


@check("queue", "doc")
def bad_names_are_refused(t: Check) -> None:
    for name in ("a b", "a/b", "a.b", "ä", "a!"):
        refused({"InvalidParameterValue", "InvalidAddress"}, t.sqs.create_queue, QueueName=name)


@check("queue", "doc")
def names_with_all_allowed_characters(t: Check) -> None:
    name = "-_" + t.name() + "_AZ09-"
    equal(t.queue(name=name).rsplit("/", 1)[1], name)
    equal(t.sqs.get_queue_url(QueueName=name)["QueueUrl"].rsplit("/", 1)[1], name)


@check("queue", "doc")
def names_are_case_sensitive(t: Check) -> None:
    name = t.name()
    true(t.queue(name=name + "x") != t.queue(name=name + "X"), "the same URL")


@check("queue", "doc")
def fifo_queue_needs_suffix(t: Check) -> None:
    refused("InvalidParameterValue", t.sqs.create_queue, QueueName=t.name(), Attributes={"FifoQueue": "true"})


@check("queue", "aws")
def suffix_needs_fifo_queue(t: Check) -> None:
    refused("InvalidParameterValue", t.sqs.create_queue, QueueName=t.name(fifo=True))


@check("queue", "doc")
def get_queue_url_finds_it(t: Check) -> None:
    name = t.name()
    equal(t.queue(name=name), t.sqs.get_queue_url(QueueName=name)["QueueUrl"], "URL")


@check("queue", "aws")
def get_queue_url_of_none(t: Check) -> None:
    refused("QueueDoesNotExist", t.sqs.get_queue_url, QueueName=t.name(), status=400)


@check("queue", "sdk")
def modeled_exceptions_are_raised(t: Check) -> None:
    try:
        t.sqs.get_queue_url(QueueName=t.name())
    except t.sqs.exceptions.QueueDoesNotExist:
        return
    raise AssertionError("no error")


@check("queue", "doc", timed=True)
def every_action_needs_an_existing_queue(t: Check) -> None:
    url = t.queue().rsplit("/", 1)[0] + "/" + t.name()
    for call, more in (
        (t.sqs.send_message, {"MessageBody": "x"}),
        (t.sqs.receive_message, {}),
        (t.sqs.purge_queue, {}),
        (t.sqs.get_queue_attributes, {"AttributeNames": ["All"]}),
        (t.sqs.list_queue_tags, {}),
        (t.sqs.set_queue_attributes, {"Attributes": {"DelaySeconds": "1"}}),
        (t.sqs.tag_queue, {"Tags": {"a": "b"}}),
        (t.sqs.delete_queue, {}),
        (t.sqs.send_message_batch, {"Entries": [{"Id": "1", "MessageBody": "x"}]}),
    ):
        refused("QueueDoesNotExist", call, QueueUrl=url, **more)


@check("queue", "doc", timed=True)
def deleted_queue_is_gone(t: Check) -> None:
    url = t.queue()
    t.send(url)
    t.sqs.delete_queue(QueueUrl=url)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            t.sqs.get_queue_url(QueueName=url.rsplit("/", 1)[1])
        except ClientError:
            return
        time.sleep(0.3)
    raise AssertionError("still there after a minute")


@check("queue", "aws")
def list_queues_by_prefix(t: Check) -> None:
    prefix = t.name(prefix="list")
    urls = {t.queue(name=f"{prefix}-{n}") for n in range(3)}
    t.queue(name=t.name(prefix="other"))
    equal(set(t.sqs.list_queues(QueueNamePrefix=prefix + "-")["QueueUrls"]), urls, "URLs")


@check("queue", "doc")
def list_queues_of_none_has_no_list(t: Check) -> None:
    equal(t.sqs.list_queues(QueueNamePrefix=t.name()).get("QueueUrls"), None, "QueueUrls")


@check("queue", "aws")
def list_queues_in_pages(t: Check) -> None:
    prefix = t.name(prefix="page")
    urls = {t.queue(name=f"{prefix}-{n}") for n in range(5)}
    found, token, pages = [], None, 0
    while True:
        more = {"NextToken": token} if token else {}
        answer = t.sqs.list_queues(QueueNamePrefix=prefix, MaxResults=2, **more)
        found += answer.get("QueueUrls", [])
        token, pages = answer.get("NextToken"), pages + 1
        if not token or pages > 9:
            break
    equal(sorted(found), sorted(urls), "URLs of all pages")
    equal(pages, 3, "pages")
    equal(t.sqs.list_queues(QueueNamePrefix=prefix).get("NextToken"), None, "NextToken without MaxResults")


@check("queue", "aws")
def default_attributes(t: Check) -> None:
    found = t.attributes(t.queue())
    wanted = {
        "VisibilityTimeout": "30",
        "DelaySeconds": "0",
        "MessageRetentionPeriod": "345600",
        "ReceiveMessageWaitTimeSeconds": "0",
        "ApproximateNumberOfMessages": "0",
        "ApproximateNumberOfMessagesNotVisible": "0",
        "ApproximateNumberOfMessagesDelayed": "0",
    }
    equal({name: found.get(name) for name in wanted}, wanted, "attributes")
    for name in ("CreatedTimestamp", "LastModifiedTimestamp"):
        true(abs(int(found[name]) - time.time()) < 60, f"{name} {found[name]} is not now, in seconds")
    true(
        "FifoQueue" not in found and "RedrivePolicy" not in found and "Policy" not in found,
        f"too many: {sorted(found)}",
    )


@check("queue", "aws")
def default_size_is_one_mib(t: Check) -> None:
    equal(t.attributes(t.queue(), "MaximumMessageSize"), {"MaximumMessageSize": "1048576"})


@check("queue", "aws")
def default_encryption_is_by_sqs(t: Check) -> None:
    equal(t.attributes(t.queue(), "SqsManagedSseEnabled"), {"SqsManagedSseEnabled": "true"})


@check("queue", "doc")
def arn_names_the_queue(t: Check) -> None:
    name = t.name()
    arn = t.arn(t.queue(name=name)).split(":")
    equal((arn[0], arn[2], arn[5]), ("arn", "sqs", name), "arn")
    true(re.fullmatch(r"\d{12}", arn[4]) is not None, f"no account in {arn}")


@check("queue", "doc")
def single_attributes(t: Check) -> None:
    equal(sorted(t.attributes(t.queue(), "VisibilityTimeout", "DelaySeconds")), ["DelaySeconds", "VisibilityTimeout"])


@check("queue", "aws")
def unknown_attribute_is_refused(t: Check) -> None:
    url = t.queue()
    refused("InvalidAttributeName", t.sqs.get_queue_attributes, QueueUrl=url, AttributeNames=["Foo"])
    refused("InvalidAttributeName", t.sqs.set_queue_attributes, QueueUrl=url, Attributes={"Foo": "1"})


@check("queue", "doc")
def set_attributes(t: Check) -> None:
    url = t.queue()
    changes = {
        "VisibilityTimeout": "11",
        "DelaySeconds": "12",
        "MessageRetentionPeriod": "60",
        "ReceiveMessageWaitTimeSeconds": "13",
        "MaximumMessageSize": "1024",
    }
    t.sqs.set_queue_attributes(QueueUrl=url, Attributes=changes)
    equal(t.attributes(url, *changes), changes)


@check("queue", "doc")
def attributes_at_creation(t: Check) -> None:
    changes = {
        "VisibilityTimeout": "0",
        "DelaySeconds": "900",
        "MessageRetentionPeriod": "1209600",
        "ReceiveMessageWaitTimeSeconds": "20",
        "MaximumMessageSize": "2048",
    }
    equal(t.attributes(t.queue(**changes), *changes), changes)


@check("queue", "doc")
def values_out_of_range_are_refused(t: Check) -> None:
    url, wrong = t.queue(), []
    for name, values in {
        "VisibilityTimeout": ("-1", "43201", "x"),
        "DelaySeconds": ("-1", "901"),
        "MessageRetentionPeriod": ("59", "1209601"),
        "ReceiveMessageWaitTimeSeconds": ("-1", "21"),
        "MaximumMessageSize": ("1023", "1048577"),
    }.items():
        for value in values:
            try:
                refused(
                    {"InvalidAttributeValue", "InvalidParameterValue"},
                    t.sqs.set_queue_attributes,
                    QueueUrl=url,
                    Attributes={name: value},
                )
            except AssertionError:
                wrong.append(f"{name}={value}")
    equal(wrong, [], "accepted values, or refused with another error")


@check("queue", "aws")
def fifo_attributes(t: Check) -> None:
    found = t.attributes(t.queue(fifo=True))
    wanted = {
        "FifoQueue": "true",
        "ContentBasedDeduplication": "false",
        "DeduplicationScope": "queue",
        "FifoThroughputLimit": "perQueue",
    }
    equal({name: found.get(name) for name in wanted}, wanted)


@check("queue", "aws")
def fifo_attributes_are_for_fifo_queues(t: Check) -> None:
    for name, value in (("ContentBasedDeduplication", "true"), ("FifoQueue", "false")):
        refused("InvalidAttributeName", t.sqs.create_queue, QueueName=t.name(), Attributes={name: value})


@check("queue", "aws")
def type_of_queue_cannot_change(t: Check) -> None:
    refused(
        {"InvalidAttributeValue", "InvalidAttributeName"},
        t.sqs.set_queue_attributes,
        QueueUrl=t.queue(fifo=True),
        Attributes={"FifoQueue": "false"},
    )
    refused("InvalidAttributeName", t.sqs.set_queue_attributes, QueueUrl=t.queue(), Attributes={"FifoQueue": "true"})


@check("queue", "aws")
def policy_is_kept_and_removed(t: Check) -> None:
    url = t.queue()
    policy = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": t.arn(url)}],
    }
    t.sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": json.dumps(policy)})
    equal(json.loads(t.attributes(url, "Policy")["Policy"]), policy, "policy")
    t.sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": ""})
    equal(t.attributes(url, "Policy"), {}, "policy")


@check("queue", "doc")
def tags(t: Check) -> None:
    url = t.queue(tags={"team": "a", "Team": "b"})
    equal(t.sqs.list_queue_tags(QueueUrl=url)["Tags"], {"team": "a", "Team": "b"}, "tags at creation")
    t.sqs.tag_queue(QueueUrl=url, Tags={"team": "c", "empty": ""})
    equal(t.sqs.list_queue_tags(QueueUrl=url)["Tags"], {"team": "c", "Team": "b", "empty": ""}, "tags")
    t.sqs.untag_queue(QueueUrl=url, TagKeys=["team", "Team", "none", "empty"])
    equal(t.sqs.list_queue_tags(QueueUrl=url).get("Tags"), None, "tags")


@check("queue", "aws")
def permissions_become_a_policy(t: Check) -> None:
    url = t.queue()
    t.sqs.add_permission(QueueUrl=url, Label="lab", AWSAccountIds=["668614515564"], Actions=["ReceiveMessage"])
    statement = json.loads(t.attributes(url, "Policy")["Policy"])["Statement"][0]
    equal((statement["Sid"], statement["Effect"], statement["Action"]), ("lab", "Allow", "SQS:ReceiveMessage"))
    refused(
        "InvalidParameterValue",
        t.sqs.add_permission,
        QueueUrl=url,
        Label="lab",
        AWSAccountIds=["668614515564"],
        Actions=["SendMessage"],
    )
    t.sqs.remove_permission(QueueUrl=url, Label="lab")
    refused("InvalidParameterValue", t.sqs.remove_permission, QueueUrl=url, Label="lab")


@check("queue", "aws")
def name_instead_of_url(t: Check) -> None:
    name = t.name()
    url = t.queue(name=name)
    t.sqs.send_message(QueueUrl=name, MessageBody="by name")
    equal(t.one(url)["Body"], "by name")


@check("queue", "doc", timed=True)
def purge_removes_what_waits(t: Check) -> None:
    url = t.queue()
    for body in "abc":
        t.send(url, body)
    t.send(url, "later", DelaySeconds=2)
    t.sqs.purge_queue(QueueUrl=url)
    time.sleep(2.2)
    t.none(url, wait=1)


@check("queue", "aws", timed=True)
def purge_removes_what_is_in_flight(t: Check) -> None:
    url = t.queue()
    t.send(url)
    t.one(url, VisibilityTimeout=2)
    t.sqs.purge_queue(QueueUrl=url)
    time.sleep(2.2)
    t.none(url, wait=1)


@check("queue", "doc")
def purge_twice_within_a_minute_is_refused(t: Check) -> None:
    url = t.queue()
    t.sqs.purge_queue(QueueUrl=url)
    refused("PurgeQueueInProgress", t.sqs.purge_queue, QueueUrl=url, status=403)
