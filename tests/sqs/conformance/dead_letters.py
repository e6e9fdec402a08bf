"""Dead letters, and the tasks that move them."""

from __future__ import annotations

import json
import time

from tests.sqs.conformance.endpoint import Check, check, equal, refused, true


def with_dead_letters(t, count=1, fifo=False, **more):
    dead = t.queue(fifo=fifo)
    policy = json.dumps({"deadLetterTargetArn": t.arn(dead), "maxReceiveCount": count})
    return t.queue(fifo=fifo, RedrivePolicy=policy, **more), dead


@check("dead", "doc")
def redrive_policy_comes_back(t: Check) -> None:
    url, dead = with_dead_letters(t, 3)
    found = json.loads(t.attributes(url, "RedrivePolicy")["RedrivePolicy"])
    equal((found["deadLetterTargetArn"], int(found["maxReceiveCount"])), (t.arn(dead), 3))


@check("dead", "aws")
def redrive_policy_is_taken_away_by_an_empty_one(t: Check) -> None:
    url, _ = with_dead_letters(t, 3)
    t.sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": ""})
    equal(t.attributes(url, "RedrivePolicy"), {})


@check("dead", "doc")
def dead_after_so_many_receives(t: Check) -> None:
    url, dead = with_dead_letters(t, 2)
    attributes = {"a": {"DataType": "String", "StringValue": "v"}}
    sent = t.send(url, "bad", MessageAttributes=attributes)
    for _ in range(2):
        t.one(url, VisibilityTimeout=0)
    t.none(url, wait=1)
    message = t.one(dead, AttributeNames=["All"], MessageAttributeNames=["All"], WaitTimeSeconds=5)
    equal((message["MessageId"], message["Body"], message["MessageAttributes"]), (sent["MessageId"], "bad", attributes))


@check("dead", "doc", timed=True)
def dead_after_timeouts(t: Check) -> None:
    url, dead = with_dead_letters(t, 1, VisibilityTimeout=1)
    t.send(url, "bad")
    t.one(url)
    time.sleep(1.4)
    t.none(url, wait=1)
    equal(t.one(dead, WaitTimeSeconds=5)["Body"], "bad")


@check("dead", "doc")
def receive_count_goes_on_in_the_dead_letter_queue(t: Check) -> None:
    url, dead = with_dead_letters(t, 1)
    t.send(url)
    first = t.one(url, VisibilityTimeout=0, AttributeNames=["All"])["Attributes"]
    t.none(url, wait=1)
    found = t.one(dead, AttributeNames=["All"], WaitTimeSeconds=5)["Attributes"]
    equal(found["ApproximateReceiveCount"], "2", "receive count across all queues")
    equal(found["SentTimestamp"], first["SentTimestamp"], "SentTimestamp")


@check("dead", "aws")
def dead_letter_tells_where_it_came_from(t: Check) -> None:
    url, dead = with_dead_letters(t, 1)
    t.send(url)
    t.one(url, VisibilityTimeout=0)
    t.none(url, wait=1)
    found = t.one(dead, AttributeNames=["All"], WaitTimeSeconds=5)["Attributes"]
    equal(found.get("DeadLetterQueueSourceArn"), t.arn(url))


@check("dead", "doc")
def sources_of_a_dead_letter_queue(t: Check) -> None:
    url, dead = with_dead_letters(t, 1)
    equal(t.sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"], [url])
    equal(t.sqs.list_dead_letter_source_queues(QueueUrl=url).get("queueUrls") or [], [])


@check("dead", "aws")
def bad_redrive_policies_are_refused(t: Check) -> None:
    url = t.queue()
    arn, wrong = t.arn(t.queue()), []
    for what, policy in {
        "no count": {"deadLetterTargetArn": arn},
        "no arn": {"maxReceiveCount": 3},
        "count x": {"deadLetterTargetArn": arn, "maxReceiveCount": "x"},
        "count 0": {"deadLetterTargetArn": arn, "maxReceiveCount": 0},
        "count 1001": {"deadLetterTargetArn": arn, "maxReceiveCount": 1001},
        "no such queue": {"deadLetterTargetArn": arn + "x", "maxReceiveCount": 3},
        "no arn at all": {"deadLetterTargetArn": "dummy", "maxReceiveCount": 3},
    }.items():
        try:
            refused(
                {"InvalidParameterValue", "InvalidAttributeValue", "QueueDoesNotExist"},
                t.sqs.set_queue_attributes,
                QueueUrl=url,
                Attributes={"RedrivePolicy": json.dumps(policy)},
            )
        except AssertionError as error:
            wrong.append(f"{what}: {error}")
    equal(wrong, [], "accepted, or refused with another error")


@check("dead", "doc")
def dead_letters_of_a_fifo_queue(t: Check) -> None:
    url, dead = with_dead_letters(t, 1, fifo=True)
    t.put(url, "a1", group="a")
    t.put(url, "a2", group="a")
    sent = t.one(url, VisibilityTimeout=0, AttributeNames=["All"])
    second = t.one(url, AttributeNames=["All"])
    equal(second["Body"], "a2", "the next of the group")
    found = t.one(dead, AttributeNames=["All"], WaitTimeSeconds=5)
    equal((found["Body"], found["MessageId"], found["Attributes"]["MessageGroupId"]), ("a1", sent["MessageId"], "a"))


@check("dead", "doc")
def fifo_queue_needs_fifo_dead_letters(t: Check) -> None:
    arn = t.arn(t.queue())
    refused(
        {"InvalidParameterValue", "InvalidAttributeValue"},
        t.sqs.create_queue,
        QueueName=t.name(fifo=True),
        Attributes={
            "FifoQueue": "true",
            "RedrivePolicy": json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1}),
        },
    )


@check("dead", "doc", timed=True)
def redrive_allow_policy_is_kept(t: Check) -> None:
    policy = {"redrivePermission": "denyAll"}
    url = t.queue(RedriveAllowPolicy=json.dumps(policy))
    equal(json.loads(t.attributes(url, "RedriveAllowPolicy")["RedriveAllowPolicy"]), policy)


def fill_dead_letters(t, url, dead, count):
    for n in range(count):
        t.send(url, f"m{n}")
    end = time.monotonic() + 60
    while int(t.attributes(dead)["ApproximateNumberOfMessages"]) < count and time.monotonic() < end:
        t.receive(url, VisibilityTimeout=0, WaitTimeSeconds=0, MaxNumberOfMessages=10)
    equal(t.attributes(dead)["ApproximateNumberOfMessages"], str(count), "dead letters")


def task_ends(t, arn, status="COMPLETED", limit=60):
    end = time.monotonic() + limit
    while True:
        task = t.sqs.list_message_move_tasks(SourceArn=arn)["Results"][0]
        if task["Status"] == status or time.monotonic() > end:
            equal(task["Status"], status, "status of the task")
            return task
        time.sleep(0.3)


@check("move", "aws")
def move_to_another_queue(t: Check) -> None:
    url, dead = with_dead_letters(t)
    target = t.queue()
    fill_dead_letters(t, url, dead, 3)
    handle = t.sqs.start_message_move_task(SourceArn=t.arn(dead), DestinationArn=t.arn(target))["TaskHandle"]
    true(handle, "no handle")
    equal(sorted(m["Body"] for m in t.drain(target, 3, limit=60)), ["m0", "m1", "m2"])
    task = task_ends(t, t.arn(dead))
    equal(
        (task["SourceArn"], task["DestinationArn"], task["ApproximateNumberOfMessagesMoved"]),
        (t.arn(dead), t.arn(target), 3),
    )


@check("move", "aws")
def move_back_to_where_they_came_from(t: Check) -> None:
    url, dead = with_dead_letters(t)
    fill_dead_letters(t, url, dead, 3)
    t.sqs.start_message_move_task(SourceArn=t.arn(dead))
    equal(sorted(m["Body"] for m in t.drain(url, 3, limit=60)), ["m0", "m1", "m2"])


@check("move", "aws")
def source_must_be_a_dead_letter_queue(t: Check) -> None:
    refused(
        {"InvalidParameterValue", "ResourceNotFoundException"},
        t.sqs.start_message_move_task,
        SourceArn=t.arn(t.queue()),
        DestinationArn=t.arn(t.queue()),
    )


@check("move", "aws")
def destination_must_exist(t: Check) -> None:
    _, dead = with_dead_letters(t)
    refused(
        {"ResourceNotFoundException", "QueueDoesNotExist"},
        t.sqs.start_message_move_task,
        SourceArn=t.arn(dead),
        DestinationArn=t.arn(dead) + "-not",
    )


@check("move", "aws")
def move_is_slowed_and_cancelled(t: Check) -> None:
    url, dead = with_dead_letters(t)
    target = t.queue()
    fill_dead_letters(t, url, dead, 8)
    handle = t.sqs.start_message_move_task(
        SourceArn=t.arn(dead), DestinationArn=t.arn(target), MaxNumberOfMessagesPerSecond=1
    )["TaskHandle"]
    t.one(target, WaitTimeSeconds=10)
    running = t.sqs.list_message_move_tasks(SourceArn=t.arn(dead))["Results"][0]
    equal((running["Status"], running["TaskHandle"], running["MaxNumberOfMessagesPerSecond"]), ("RUNNING", handle, 1))
    refused(
        {"InvalidParameterValue", "UnsupportedOperation"},
        t.sqs.start_message_move_task,
        SourceArn=t.arn(dead),
        DestinationArn=t.arn(target),
    )
    answer = t.sqs.cancel_message_move_task(TaskHandle=handle)
    true(answer["ApproximateNumberOfMessagesMoved"] >= 1, "nothing moved")
    task_ends(t, t.arn(dead), "CANCELLED")
    true(int(t.attributes(dead)["ApproximateNumberOfMessages"]) > 0, "all were moved")


@check("move", "aws")
def bad_task_handle(t: Check) -> None:
    refused(
        {"InvalidParameterValue", "ResourceNotFoundException"}, t.sqs.cancel_message_move_task, TaskHandle="foobared"
    )
