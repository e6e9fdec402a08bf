"""FIFO queues: order, deduplication, ids."""

from __future__ import annotations

import concurrent.futures
import hashlib
import re
import time

from tests.sqs.conformance.endpoint import Check, check, equal, md5, refused, true


@check("fifo", "doc")
def order_in_a_group(t: Check) -> None:
    url = t.queue(fifo=True)
    for n in range(25):
        t.put(url, str(n))
    found = []
    while len(found) < 25:
        messages = t.receive(url, MaxNumberOfMessages=10)
        true(messages, f"only {found}")
        for message in messages:
            found.append(message["Body"])
            t.delete(url, message)
    equal(found, [str(n) for n in range(25)], "order")


@check("fifo", "aws")
def group_id_is_a_must(t: Check) -> None:
    refused("MissingParameter", t.send, t.queue(fifo=True), MessageDeduplicationId="d")


@check("fifo", "aws")
def deduplication_id_is_a_must(t: Check) -> None:
    refused("InvalidParameterValue", t.send, t.queue(fifo=True), MessageGroupId="g")


@check("fifo", "doc")
def the_same_deduplication_id_is_one_message(t: Check) -> None:
    url = t.queue(fifo=True)
    first = t.put(url, "first", dedup="d1")
    second = t.put(url, "second", dedup="d1")
    equal(second["MD5OfMessageBody"], md5("second"), "digest of the body that was sent")
    third = t.put(url, "third", dedup="d2")
    equal([m["Body"] for m in t.receive(url, MaxNumberOfMessages=10)], ["first", "third"])
    true(first["MessageId"] != third["MessageId"], "the same message id for two messages")


@check("fifo", "free")
def a_duplicate_is_answered_with_the_first_ones_id(t: Check) -> None:
    url = t.queue(fifo=True)
    equal(t.put(url, "second", dedup="d1")["MessageId"], t.put(url, "first", dedup="d1")["MessageId"], "message id")


@check("fifo", "aws")
def a_duplicate_of_a_deleted_message_is_none_either(t: Check) -> None:
    url = t.queue(fifo=True)
    t.put(url, "first", dedup="d1")
    t.delete(url, t.one(url))
    t.put(url, "second", dedup="d1")
    t.none(url, wait=1)


@check("fifo", "doc")
def content_can_be_the_deduplication_id(t: Check) -> None:
    url = t.queue(fifo=True, ContentBasedDeduplication="true")
    for body in ("a", "a", "b"):
        t.send(url, body, MessageGroupId="g")
    t.send(url, "a", MessageGroupId="g", MessageDeduplicationId="other")
    t.send(url, "c", MessageGroupId="g", MessageAttributes={"n": {"DataType": "Number", "StringValue": "1"}})
    t.send(url, "c", MessageGroupId="g", MessageAttributes={"n": {"DataType": "Number", "StringValue": "2"}})
    t.send(url, "d", MessageGroupId="g", MessageDeduplicationId=hashlib.sha256(b"b").hexdigest())
    messages = t.receive(url, MaxNumberOfMessages=10, AttributeNames=["All"])
    equal([m["Body"] for m in messages], ["a", "b", "a", "c"])
    equal(messages[0]["Attributes"]["MessageDeduplicationId"], hashlib.sha256(b"a").hexdigest(), "SHA-256 of the body")


@check("fifo", "aws")
def deduplication_is_for_all_groups(t: Check) -> None:
    url = t.queue(fifo=True)
    t.put(url, "one", group="g1", dedup="d")
    t.put(url, "two", group="g2", dedup="d")
    equal([m["Body"] for m in t.receive(url, MaxNumberOfMessages=10)], ["one"])


@check("fifo", "aws")
def deduplication_by_group(t: Check) -> None:
    url = t.queue(fifo=True, DeduplicationScope="messageGroup", FifoThroughputLimit="perMessageGroupId")
    t.put(url, "one", group="g1", dedup="d")
    t.put(url, "two", group="g2", dedup="d")
    t.put(url, "three", group="g2", dedup="d")
    equal(sorted(m["Body"] for m in t.drain(url, 2)), ["one", "two"])


@check("fifo", "doc")
def a_group_waits_for_what_is_in_flight(t: Check) -> None:
    url = t.queue(fifo=True)
    t.put(url, "a1", group="a")
    t.put(url, "a2", group="a")
    t.put(url, "b1", group="b")
    first = t.one(url)
    equal(first["Body"], "a1")
    second = t.one(url)
    equal(second["Body"], "b1", "the other group's")
    t.none(url)
    t.delete(url, first)
    equal(t.one(url)["Body"], "a2")


@check("fifo", "aws", timed=True)
def waiting_receivers_wake_when_the_group_is_free(t: Check) -> None:
    url = t.queue(fifo=True)
    t.put(url, "1")
    t.put(url, "2")
    first = t.one(url)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(t.receive, url, WaitTimeSeconds=10)
        time.sleep(1)
        start = time.monotonic()
        t.delete(url, first)
        equal([m["Body"] for m in waiting.result()], ["2"])
        true(time.monotonic() - start < 4, "woke too late")


@check("fifo", "aws")
def many_of_one_group_at_once_in_order(t: Check) -> None:
    url = t.queue(fifo=True)
    for n in range(6):
        t.put(url, f"a{n}", group="a")
    equal([m["Body"] for m in t.receive(url, MaxNumberOfMessages=5)], [f"a{n}" for n in range(5)])
    t.none(url)


@check("fifo", "aws")
def one_group_first_then_the_next(t: Check) -> None:
    url = t.queue(fifo=True)
    for body in ("a1", "b1", "a2", "b2"):
        t.put(url, body, group=body[0])
    equal([m["Body"] for m in t.receive(url, MaxNumberOfMessages=2)], ["a1", "a2"])
    equal([m["Body"] for m in t.receive(url, MaxNumberOfMessages=10)], ["b1", "b2"])


@check("fifo", "aws")
def partial_delete_keeps_the_group_in_flight(t: Check) -> None:
    url = t.queue(fifo=True)
    for n in range(4):
        t.put(url, f"a{n}", group="a")
    messages = t.receive(url, MaxNumberOfMessages=2)
    t.delete(url, messages[0])
    t.none(url, wait=1)
    t.delete(url, messages[1])
    equal([m["Body"] for m in t.receive(url, MaxNumberOfMessages=10)], ["a2", "a3"])


@check("fifo", "aws", timed=True)
def what_comes_back_comes_first(t: Check) -> None:
    url = t.queue(fifo=True)
    for n in range(4):
        t.put(url, f"a{n}", group="a")
    first = t.one(url, VisibilityTimeout=1)
    equal(first["Body"], "a0")
    time.sleep(1.4)
    messages = t.receive(url, MaxNumberOfMessages=2)
    equal([m["Body"] for m in messages], ["a0", "a1"], "after the timeout")
    for message in messages:
        t.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)
    equal([m["Body"] for m in t.receive(url, MaxNumberOfMessages=10)], ["a0", "a1", "a2", "a3"], "after a change to 0")


@check("fifo", "aws")
def groups_take_turns(t: Check) -> None:
    """Messages that were received and came back do not stand before groups that were not received yet."""
    url = t.queue(fifo=True)
    for body in ("g1-m1", "g2-m1", "g2-m2", "g3-m1", "g1-m2"):
        t.put(url, body, group=body[:2])
    equal([m["Body"] for m in t.receive(url, MaxNumberOfMessages=3, VisibilityTimeout=0)], ["g1-m1", "g1-m2", "g2-m1"])
    found = [m["Body"] for m in t.receive(url, MaxNumberOfMessages=10, VisibilityTimeout=0)]
    equal(found[0], "g3-m1", "first after the others have come back")
    equal(
        [[b for b in found if b.startswith(g)] for g in ("g1", "g2")],
        [["g1-m1", "g1-m2"], ["g2-m1", "g2-m2"]],
        "order in groups",
    )


@check("fifo", "aws", timed=True)
def an_earlier_message_in_flight_holds_later_ones_only(t: Check) -> None:
    url = t.queue(fifo=True, VisibilityTimeout=1)
    for body in ("foo", "bar", "baz"):
        t.put(url, body, group="1")
    messages = t.receive(url, MaxNumberOfMessages=5)
    equal([m["Body"] for m in messages], ["foo", "bar", "baz"])
    t.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=messages[1]["ReceiptHandle"], VisibilityTimeout=5)
    time.sleep(2)
    equal([m["Body"] for m in t.receive(url, MaxNumberOfMessages=5)], ["foo"], "before the one that is still in flight")


@check("fifo", "doc")
def sequence_numbers_rise(t: Check) -> None:
    url = t.queue(fifo=True)
    sent = [int(t.put(url, str(n), group=str(n % 2))["SequenceNumber"]) for n in range(4)]
    equal(sent, sorted(set(sent)), "sequence numbers")


@check("fifo", "doc")
def sequence_numbers_have_20_digits(t: Check) -> None:
    true(re.fullmatch(r"\d{20}", t.put(t.queue(fifo=True), "x")["SequenceNumber"]) is not None, "not 20 digits")


@check("fifo", "doc")
def system_attributes_of_a_fifo_message(t: Check) -> None:
    url = t.queue(fifo=True)
    sent = t.put(url, "x", group="my-group", dedup="my-id")
    found = t.one(url, AttributeNames=["All"])["Attributes"]
    equal(
        [found.get(k) for k in ("MessageGroupId", "MessageDeduplicationId", "SequenceNumber")],
        ["my-group", "my-id", sent["SequenceNumber"]],
    )


@check("fifo", "aws", timed=True)
def no_delay_for_single_messages(t: Check) -> None:
    url = t.queue(fifo=True)
    refused("InvalidParameterValue", t.put, url, "x", DelaySeconds=2)
    t.put(url, "y", DelaySeconds=0)


@check("fifo", "aws", timed=True)
def delay_of_a_fifo_queue(t: Check) -> None:
    url = t.queue(fifo=True, DelaySeconds=2)
    t.put(url, "x")
    t.none(url)
    t.one(url, WaitTimeSeconds=6)


@check("fifo", "doc")
def batch_keeps_its_order(t: Check) -> None:
    url = t.queue(fifo=True)
    entries = [
        {"Id": str(n), "MessageBody": str(n), "MessageGroupId": "g", "MessageDeduplicationId": str(n)}
        for n in range(10)
    ]
    entries[5]["MessageDeduplicationId"] = "4"
    answer = t.sqs.send_message_batch(QueueUrl=url, Entries=entries)
    equal(len(answer["Successful"]), 10)
    numbers = [int(one["SequenceNumber"]) for one in sorted(answer["Successful"], key=lambda one: int(one["Id"]))]
    equal(numbers, sorted(numbers), "sequence numbers")
    equal([m["Body"] for m in t.receive(url, MaxNumberOfMessages=10)], [str(n) for n in range(10) if n != 5])


@check("fifo", "aws")
def entry_without_ids_fails_the_batch(t: Check) -> None:
    url = t.queue(fifo=True)
    good = {"Id": "a", "MessageBody": "a", "MessageGroupId": "g", "MessageDeduplicationId": "1"}
    for bad in (
        {"Id": "b", "MessageBody": "b", "MessageGroupId": "g"},
        {"Id": "b", "MessageBody": "b", "MessageDeduplicationId": "2"},
    ):
        refused(
            {"InvalidParameterValue", "MissingParameter"}, t.sqs.send_message_batch, QueueUrl=url, Entries=[good, bad]
        )
    t.none(url)


@check("fifo", "aws", timed=True)
def expired_handle_does_not_delete(t: Check) -> None:
    url = t.queue(fifo=True)
    t.put(url, "x")
    message = t.one(url, VisibilityTimeout=1)
    time.sleep(1.5)
    refused("InvalidParameterValue", t.sqs.delete_message, QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    t.delete(url, t.one(url))


@check("fifo", "aws")
def purge_forgets_deduplication_ids(t: Check) -> None:
    url = t.queue(fifo=True)
    t.put(url, "1", dedup="d")
    t.sqs.purge_queue(QueueUrl=url)
    t.put(url, "2", dedup="d")
    equal(t.one(url)["Body"], "2")


@check("fifo", "doc")
def receive_attempt_can_be_repeated(t: Check) -> None:
    url = t.queue(fifo=True)
    for n in range(4):
        t.put(url, str(n))
    first = t.receive(url, MaxNumberOfMessages=2, ReceiveRequestAttemptId="attempt")
    second = t.receive(url, MaxNumberOfMessages=2, ReceiveRequestAttemptId="attempt")
    equal([m["MessageId"] for m in second], [m["MessageId"] for m in first], "the same messages")


@check("fifo", "doc")
def ids_of_all_characters(t: Check) -> None:
    url = t.queue(fifo=True)
    text = "azAZ09!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
    t.put(url, "x", group=text, dedup=text)
    t.put(url, "y", group="g" * 128, dedup="d" * 128)
    found = {m["Body"]: m["Attributes"] for m in t.drain(url, 2, AttributeNames=["All"])}
    equal((found["x"]["MessageGroupId"], found["x"]["MessageDeduplicationId"]), (text, text))
    equal(found["y"]["MessageGroupId"], "g" * 128)


@check("fifo", "aws")
def bad_ids_of_messages_are_refused(t: Check) -> None:
    url, wrong = t.queue(fifo=True), []
    for group, dedup in (("g g", "d"), ("g" * 129, "d"), ("g", "d d"), ("g", "d" * 129), ("ä", "d")):
        try:
            refused("InvalidParameterValue", t.put, url, "x", group=group, dedup=dedup)
        except AssertionError as error:
            wrong.append(f"{group:.9} {dedup:.9}: {error}")
    equal(wrong, [], "accepted, or refused with another error")


@check("fifo", "aws")
def standard_queues_have_groups_too(t: Check) -> None:
    url = t.queue()
    t.send(url, "x", MessageGroupId="tenant")
    t.send(url, "y", MessageGroupId="tenant")
    found = []
    for _ in range(4):
        found += t.receive(url, WaitTimeSeconds=1, AttributeNames=["MessageGroupId"])
    equal(
        [m["Attributes"]["MessageGroupId"] for m in found],
        ["tenant"] * 2,
        "groups; a group does not hold up a standard queue",
    )


@check("fifo", "doc", slow=True)
def deduplication_ends_after_five_minutes(t: Check) -> None:
    url = t.queue(fifo=True)
    t.put(url, "first", dedup="d")  # nobody takes it: it waits all the time
    time.sleep(240)
    t.put(url, "swallowed", dedup="d")
    time.sleep(75)
    t.put(url, "again", dedup="d")
    equal([m["Body"] for m in t.receive(url, MaxNumberOfMessages=10)], ["first", "again"])
