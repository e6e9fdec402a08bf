"""The endpoint under test, and what checks are made of."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import struct
import time
import urllib.parse
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import boto3
import botocore.auth
import botocore.awsrequest
import botocore.config
import botocore.credentials
from botocore.exceptions import ClientError

from tests.sqs.conformance.shifted_clock import ShiftedClock

KIB = 1024


class Skip(Exception):
    """The check does not apply to this endpoint or this SDK."""


class OneCheck(NamedTuple):
    """A check that was registered."""

    area: str
    name: str
    truth: str
    slow: bool
    timed: bool
    needs_auth: bool
    function: Callable[[Check], None]


CHECKS: list[OneCheck] = []


def check(
    area: str, truth: str, *, slow: bool = False, timed: bool = False, needs: tuple[str, ...] = (),
) -> Callable[[Callable[[Check], None]], Callable[[Check], None]]:
    """Register a check.

    `slow`: it takes more than five seconds. `timed`: it fails where the machine or a failover is slower than some
    seconds. `needs`: "auth": only for a server that verifies.
    """

    def register(function: Callable[[Check], None]) -> Callable[[Check], None]:
        CHECKS.append(OneCheck(area, function.__name__, truth, slow, timed, "auth" in needs, function))
        return function

    return register


# What an error is called: by its shape (JSON, and QueryErrorCode of botocore), and in the Query protocol.
QUERY_CODES = {
    "QueueDoesNotExist": "AWS.SimpleQueueService.NonExistentQueue",
    "QueueNameExists": "QueueAlreadyExists",
    "EmptyBatchRequest": "AWS.SimpleQueueService.EmptyBatchRequest",
    "TooManyEntriesInBatchRequest": "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
    "BatchEntryIdsNotDistinct": "AWS.SimpleQueueService.BatchEntryIdsNotDistinct",
    "InvalidBatchEntryId": "AWS.SimpleQueueService.InvalidBatchEntryId",
    "BatchRequestTooLong": "AWS.SimpleQueueService.BatchRequestTooLong",
    "PurgeQueueInProgress": "AWS.SimpleQueueService.PurgeQueueInProgress",
    "MessageNotInflight": "AWS.SimpleQueueService.MessageNotInflight",
    "UnsupportedOperation": "AWS.SimpleQueueService.UnsupportedOperation",
    "QueueDeletedRecently": "AWS.SimpleQueueService.QueueDeletedRecently",
    "MissingRequiredParameterException": "MissingParameter",
    "InvalidParameterValueException": "InvalidParameterValue",
}


def code_names(names: Any) -> set[str]:
    """Return all the names under which one of these errors may come."""
    found = set()
    for name in names:
        found |= {name, QUERY_CODES.get(name, name)}
        found |= {shape for shape, query in QUERY_CODES.items() if query == name}
    return found


class Endpoint:
    """The endpoint, and an SDK's client of it."""

    def __init__(self, options: Any) -> None:
        self.url = options.endpoint.rstrip("/")
        self.region = options.region
        self.access, self.secret = options.access_key, options.secret_key
        self.client = self.make_client()
        self.protocol = self.client.meta.service_model.metadata["protocol"]

    def make_client(self, **changes: Any) -> Any:
        """Return a client of the SDK, without repetitions and without checks of its own."""
        settings = {
            "endpoint_url": self.url,
            "region_name": self.region,
            "aws_access_key_id": self.access,
            "aws_secret_access_key": self.secret,
            "config": botocore.config.Config(
                retries={"total_max_attempts": 1},
                read_timeout=40,
                max_pool_connections=20,
                parameter_validation=False,
            ),
        }
        settings.update(changes)
        return boto3.session.Session().client("sqs", **settings)


class Check:
    """A client for one check, and its queues with names of their own that are deleted in the end."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.sqs = endpoint.client
        self.made: list[str] = []

    def name(self, fifo: bool = False, prefix: str = "c") -> str:
        """Return a name that no queue has."""
        return f"{prefix}-{uuid.uuid4().hex[:12]}" + (".fifo" if fifo else "")

    def queue(self, *, fifo: bool = False, name: str | None = None, tags: Any = None, **attributes: Any) -> str:
        """Create a queue and return its URL."""
        name = name or self.name(fifo)
        if fifo:
            attributes.setdefault("FifoQueue", "true")
        more = {"tags": tags} if tags else {}
        given = {key: str(value) for key, value in attributes.items()}
        url: str = self.sqs.create_queue(QueueName=name, Attributes=given, **more)["QueueUrl"]
        self.made.append(url)
        return url

    def arn(self, url: str) -> str:
        """Return the ARN of a queue."""
        return self.attributes(url, "QueueArn")["QueueArn"]

    def attributes(self, url: str, *names: str) -> Any:
        """Return attributes of a queue, all of them without names."""
        return self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(names) or ["All"]).get("Attributes", {})

    def send(self, url: str, body: str = "body", **more: Any) -> Any:
        """Send a message."""
        return self.sqs.send_message(QueueUrl=url, MessageBody=body, **more)

    def put(self, url: str, body: str, group: str = "g", dedup: str | None = None, **more: Any) -> Any:
        """Send a message to a FIFO queue."""
        return self.send(url, body, MessageGroupId=group, MessageDeduplicationId=dedup or uuid.uuid4().hex, **more)

    def receive(self, url: str, **more: Any) -> list[Any]:
        """Receive messages; waits for two seconds."""
        more.setdefault("WaitTimeSeconds", 2)
        found: list[Any] = self.sqs.receive_message(QueueUrl=url, **more).get("Messages", [])
        return found

    def one(self, url: str, **more: Any) -> Any:
        """Receive one message, which must be there."""
        messages = self.receive(url, **more)
        equal(len(messages), 1, "messages received")
        return messages[0]

    def none(self, url: str, wait: int = 0, **more: Any) -> None:
        """Check that nothing is received within `wait` seconds."""
        messages = self.receive(url, WaitTimeSeconds=wait, **more)
        equal([m["Body"] for m in messages], [], "messages received")

    def drain(self, url: str, count: int, limit: float = 60.0, **more: Any) -> list[Any]:
        """Receive and delete until there are `count`; a standard queue may give fewer at a time."""
        found: list[Any] = []
        end = time.monotonic() + limit
        more.setdefault("WaitTimeSeconds", 1)
        more.setdefault("MaxNumberOfMessages", 10)
        while len(found) < count and time.monotonic() < end:
            for message in self.sqs.receive_message(QueueUrl=url, **more).get("Messages", []):
                found.append(message)
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        equal(len(found), count, "messages in the queue")
        return found

    def delete(self, url: str, message: Any) -> None:
        """Delete a message that was received."""
        self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])

    def close(self) -> None:
        """Delete the queues that were created; failures are ignored."""
        for url in self.made:
            with contextlib.suppress(Exception):
                self.sqs.delete_queue(QueueUrl=url)

    # HTTP by hand

    def http(
        self, method: str, url: str, body: bytes = b"", headers: Any = None, *, sign: bool = True,
        secret: str | None = None, access: str | None = None, at: float | None = None, query_auth: bool = False,
    ) -> tuple[int, dict[str, str], bytes]:
        """Send one request, by default signed; returns status, headers and body."""
        headers = dict(headers or {})
        request = botocore.awsrequest.AWSRequest(method=method, url=url, data=body, headers=headers)
        if sign:
            credentials = botocore.credentials.Credentials(
                access or self.endpoint.access, secret or self.endpoint.secret
            )
            kind = botocore.auth.SigV4QueryAuth if query_auth else botocore.auth.SigV4Auth
            signer = kind(credentials, "sqs", self.endpoint.region)
            if at is None:
                signer.add_auth(request)
            else:
                with ShiftedClock(at):
                    signer.add_auth(request)
        prepared = request.prepare()
        parts = urllib.parse.urlsplit(prepared.url)
        connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=40)
        try:
            target = parts.path or "/"
            if parts.query:
                target += "?" + parts.query
            connection.request(method, target, body=prepared.body or None, headers=dict(prepared.headers.items()))
            answer = connection.getresponse()
            data = answer.read()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, data
        finally:
            connection.close()

    def json(self, action: str, parameters: Any, **more: Any) -> tuple[int, dict[str, str], bytes]:
        """Send a request of the JSON protocol."""
        url = more.pop("url", self.endpoint.url + "/")
        body = more.pop("body", None)
        headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS." + action}
        headers.update(more.pop("headers", {}))
        data = json.dumps(parameters).encode() if body is None else body
        return self.http("POST", url, data, headers, **more)

    def query(
        self, action: str, parameters: Any = (), *, url: str | None = None, method: str = "POST", **more: Any,
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request of the Query protocol."""
        fields = {"Action": action, "Version": "2012-11-05", **dict(parameters)}
        text = urllib.parse.urlencode(fields)
        url = url or self.endpoint.url + "/"
        if method == "GET":
            return self.http("GET", f"{url}?{text}", **more)
        return self.http(
            "POST", url, text.encode(), {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}, **more
        )


def equal(found: object, wanted: object, what: str = "value") -> None:
    """Fail unless these are equal."""
    if found != wanted:
        raise AssertionError(f"{what}: {found!r:.300}, not {wanted!r:.300}")


def true(condition: object, what: str) -> None:
    """Raise AssertionError with `what` unless the condition holds."""
    if not condition:
        raise AssertionError(what)


def refused(names: Any, call: Any, *arguments: Any, status: int | None = None, **more: Any) -> Any:
    """Fail unless the call fails with one of these errors."""
    names = {names} if isinstance(names, str) else set(names)
    try:
        answer = call(*arguments, **more)
    except ClientError as error:
        code = error.response["Error"]["Code"]
        other = error.response["Error"].get("QueryErrorCode")
        if code not in code_names(names) and other not in code_names(names):
            raise AssertionError(
                f"error {code} ({error.response['Error'].get('Message')!r:.160}), not {sorted(names)}"
            ) from None
        if status is not None:
            equal(error.response["ResponseMetadata"]["HTTPStatusCode"], status, "HTTP status")
        return error.response
    answer.pop("ResponseMetadata", None)
    raise AssertionError(f"no error, but {answer!r:.200}; wanted {sorted(names)}")


def md5(text: str | bytes) -> str:
    """Return the digest of a body."""
    return hashlib.md5(text if isinstance(text, bytes) else text.encode(), usedforsecurity=False).hexdigest()


def attributes_md5(attributes: Any) -> str:
    """Return the digest of message attributes as Amazon's developer guide defines it."""
    digest = hashlib.md5(usedforsecurity=False)

    def add(data: bytes) -> None:
        digest.update(struct.pack("!I", len(data)) + data)

    for name in sorted(attributes):
        add(name.encode())
        kind = attributes[name]["DataType"]
        add(kind.encode())
        if kind.startswith("Binary"):
            digest.update(b"\x02")
            add(attributes[name]["BinaryValue"])
        else:
            digest.update(b"\x01")
            add(attributes[name]["StringValue"].encode())
    return digest.hexdigest()


def supports(t: Check, operation: str, parameter: str) -> bool:
    """Return whether the SDK has a parameter."""
    return parameter in t.sqs.meta.service_model.operation_model(operation).input_shape.members
