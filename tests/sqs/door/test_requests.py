"""Requests of programs: boto3 and HTTP by hand, with users and without."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import boto3
import botocore.config
import botocore.exceptions
import pytest
from sockpq_sqs.door.refusals_log import RefusalsLog
from sockpq_sqs.model.errors import SqsError

from tests.sqs.door.doors import FORM, SECRET, RunningDoor, ask, json_headers, send, users_file
from tests.waiting import until


@pytest.fixture
def door() -> Iterator[RunningDoor]:
    with RunningDoor() as door:
        yield door


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[RunningDoor]:
    with RunningDoor(users_file(tmp_path)) as door:
        yield door


def boto(door: RunningDoor, secret: str = SECRET, **more: Any) -> Any:
    return boto3.session.Session().client(
        "sqs", endpoint_url=door.url, region_name="eu-west-1", aws_access_key_id="shop", aws_secret_access_key=secret,
        config=botocore.config.Config(retries={"total_max_attempts": 1}), **more)


def test_a_program_with_boto3(guarded: RunningDoor) -> None:
    answer = boto(guarded).send_message(QueueUrl=f"{guarded.url}/111122223333/orders", MessageBody="hi")
    assert answer["MessageId"] == "1"
    call, = guarded.engine.calls
    assert (call.action, call.request.message_body) == ("SendMessage", "hi")
    assert (call.user.name, call.user.client.name) == ("shop", "shop")
    assert (call.account, call.region, call.origin) == ("111122223333", "eu-west-1", guarded.url)
    assert len(call.invocation) == 36
    assert answer["ResponseMetadata"]["HTTPHeaders"]["server"] == "sockpq-sqs"
    assert len(answer["ResponseMetadata"]["RequestId"]) == 36


def test_without_users_a_signature_says_only_the_region(door: RunningDoor) -> None:
    boto(door, "any-other-secret").list_queues()
    assert ask(f"{door.url}/", body=b"{}", headers=json_headers("ListQueues"), key=None)[0] == 200
    first, second = door.engine.calls
    assert (first.user.name, first.user.client, first.account) == (None, door.clients.own, "000000000000")
    assert (first.region, second.region) == ("eu-west-1", "us-east-1")


def test_errors_reach_boto3_by_name(door: RunningDoor) -> None:
    door.engine.failure = SqsError("QueueDoesNotExist", "No such queue.")
    client = boto(door)
    with pytest.raises(client.exceptions.QueueDoesNotExist) as caught:
        client.get_queue_url(QueueName="none")
    assert caught.value.response["Error"]["QueryErrorCode"] == "QueueDoesNotExist"
    status, headers, body = ask(f"{door.url}/", body=b"{}", headers=json_headers("ListQueues"))
    assert (status, headers["x-amzn-query-error"]) == (400, "AWS.SimpleQueueService.NonExistentQueue;Sender")
    status, _, body = ask(f"{door.url}/", body=b"Action=ListQueues", headers=FORM)
    assert (status, b"<Code>AWS.SimpleQueueService.NonExistentQueue</Code>" in body) == (400, True)


def test_a_wrong_secret_reaches_boto3_by_name(guarded: RunningDoor) -> None:
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        boto(guarded, "not-the-secret-of-the-shop").list_queues()
    assert caught.value.response["Error"]["Code"] == "SignatureDoesNotMatch"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    assert not guarded.engine.calls


def test_a_form_by_post_and_by_get(guarded: RunningDoor) -> None:
    url = f"{guarded.url}/111122223333/orders"
    status, headers, body = ask(url, body=b"Action=SendMessage&MessageBody=hi", headers=FORM)
    assert (status, headers["content-type"]) == (200, "text/xml")
    root = ElementTree.fromstring(body)
    assert root.tag.endswith("SendMessageResponse")
    assert root.findtext(".//{*}RequestId") == headers["x-amzn-requestid"]
    assert ask(f"{url}?Action=SendMessage&MessageBody=ho", "GET")[0] == 200
    assert ask(f"{url}?Action=SendMessage&MessageBody=h%20a", "GET", presigned=True)[0] == 200
    assert [(call.request.message_body, call.request.queue_url) for call in guarded.engine.calls] == [
        ("hi", url), ("ho", url), ("h a", url)]


def test_json_may_be_sent_to_the_url_of_a_queue(guarded: RunningDoor) -> None:
    status, headers, _ = ask(
        f"{guarded.url}/111122223333/orders", body=b'{"QueueUrl": "q"}', headers=json_headers("PurgeQueue"))
    assert (status, headers["content-type"]) == (200, "application/x-amz-json-1.0")


def test_without_an_action_there_is_no_operation(door: RunningDoor) -> None:
    for path in ("/", "/000000000000/orders", "/nothing?x=1"):
        assert ask(f"{door.url}{path}", "GET")[::2] == (404, b"<UnknownOperationException/>")
    status, _, body = ask(f"{door.url}/", "PUT", b"{}", json_headers("ListQueues"))
    assert (status, json.loads(body)["__type"]) == (405, "com.amazonaws.sqs#UnsupportedOperation")


def test_an_action_that_is_no_text_is_unknown(door: RunningDoor) -> None:
    status, _, body = ask(f"{door.url}/", body=b"{}", headers=json_headers("Send\xe9"), key=None)
    assert (status, json.loads(body)["__type"]) == (400, "com.amazon.coral.service#UnknownOperationException")


@pytest.mark.parametrize(
    ("headers", "changes", "code"),
    [
        ({}, {"key": None}, "MissingAuthenticationTokenException"),
        ({}, {"key": "nobody"}, "UnrecognizedClientException"),
        ({}, {"secret": "not-the-secret-of-the-shop"}, "InvalidSignatureException"),
        ({"X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD"}, {}, "IncompleteSignatureException"),
    ],
)
def test_who_is_not_known_is_refused_and_the_connection_ends(
    guarded: RunningDoor, headers: dict[str, str], changes: dict[str, Any], code: str,
) -> None:
    status, answered, body = ask(
        f"{guarded.url}/", body=b"{}", headers={**json_headers("ListQueues"), **headers}, **changes)
    assert status in (400, 403)
    assert json.loads(body)["__type"] == f"com.amazon.coral.service#{code}"
    assert answered["connection"] == "close"
    assert not guarded.engine.calls


def test_refusals_are_logged_together_without_secrets(guarded: RunningDoor, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "sockpq-sqs"):
        for _ in range(3):
            ask(f"{guarded.url}/", body=b"{}", headers=json_headers("ListQueues"), secret="not-the-secret-0123456789")
        until(lambda: sum("from 127.0.0.1 (InvalidSignatureException)" in line for line in caplog.messages))
    assert "secret" not in caplog.text
    assert "Signature=" not in caplog.text


def test_refusals_of_many_are_one_line_in_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    refusals = RefusalsLog()
    for number in range(30):
        refusals.add(f"10.0.0.{number}", "RequestExpired")
    refusals.add("10.0.0.0", "RequestExpired")
    with caplog.at_level(logging.WARNING, "sockpq-sqs"):
        refusals.write(100.0)
        refusals.write(120.0)                   # there are none
        refusals.add("10.0.0.1", "RequestExpired")
        refusals.write(121.0)
        refusals.add("10.0.0.2", "RequestExpired")
        refusals.write(130.0)
        assert len(caplog.messages) == 2
        refusals.write(131.0)
    first, second, third = caplog.messages
    assert first.startswith("refused requests: 2 from 10.0.0.0 (RequestExpired), 1 from 10.0.0.1 (RequestExpired)")
    assert first.endswith(", 10 others")
    assert second == "refused requests: 1 from 10.0.0.1 (RequestExpired)"
    assert third == "refused requests: 1 from 10.0.0.2 (RequestExpired)"


def test_users_are_read_again(guarded: RunningDoor, tmp_path: Path) -> None:
    def status(secret: str) -> int:
        return ask(f"{guarded.url}/", body=b"{}", headers=json_headers("ListQueues"), secret=secret)[0]

    assert status(SECRET) == 200
    users_file(tmp_path, "the-new-secret-of-the-shop")
    until(lambda: status("the-new-secret-of-the-shop") == 200)
    assert status(SECRET) == 403


def test_a_digest_of_the_body_is_compared(door: RunningDoor) -> None:
    def answered(digest: str) -> tuple[int, Any]:
        status, _, body = ask(f"{door.url}/", body=b"{}", headers={**json_headers("ListQueues"), "Content-MD5": digest})
        return status, json.loads(body).get("__type", "").rpartition("#")[2]

    right = base64.b64encode(hashlib.md5(b"{}", usedforsecurity=False).digest()).decode()
    wrong = base64.b64encode(hashlib.md5(b"[]", usedforsecurity=False).digest()).decode()
    assert answered(right) == (200, "")
    assert answered(wrong) == (400, "BadDigest")
    assert answered("rubbish") == answered("AAAA") == (400, "InvalidDigest")


def test_the_trace_of_http_reaches_the_engine(door: RunningDoor) -> None:
    ask(f"{door.url}/", body=b"{}", headers={**json_headers("ListQueues"), "X-Amzn-Trace-Id": "Root=1-2-3"})
    assert door.engine.calls[0].trace == "Root=1-2-3"


def test_a_fault_of_the_engine_is_answered_and_logged(door: RunningDoor, caplog: pytest.LogCaptureFixture) -> None:
    door.engine.failure = ZeroDivisionError("a bug")
    with caplog.at_level(logging.ERROR, "sockpq-sqs"):
        status, headers, body = ask(f"{door.url}/", body=b"{}", headers=json_headers("ListQueues"))
    assert (status, json.loads(body)["__type"]) == (500, "com.amazon.coral.service#InternalFailure")
    assert headers["x-amzn-query-error"] == "InternalFailure;Receiver"
    assert b"bug" not in body
    assert "a request failed by a fault of this program: ListQueues" in caplog.text


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}])
def test_without_users_a_web_page_is_no_client(door: RunningDoor, headers: dict[str, str]) -> None:
    for body, kind in ((b"Action=ListQueues", FORM), (b"{}", json_headers("ListQueues"))):
        assert send(f"{door.url}/", "POST", body, {**kind, **headers})[0] == 403
    assert send(f"{door.url}/?Action=ListQueues", "GET", b"", headers)[0] == 403
    assert not door.engine.calls


def test_without_users_a_foreign_name_gets_no_answer() -> None:
    with RunningDoor(http={"hosts": ["Queues.test."]}) as door:
        for host in ("evil.example", "evil.example:9324", "localhost.evil.example", "[::1", "@"):
            assert send(f"{door.url}/?Action=ListQueues", "GET", b"", {"Host": host})[0] == 421, host
            assert send(f"{door.url}/healthz", "GET", b"", {"Host": host})[0] == 421, host
        assert not door.engine.calls
        for host in ("localhost:1", "127.0.0.1", "10.1.2.3:9324", "[::1]:9324", "queues.test:80"):
            assert send(f"{door.url}/?Action=ListQueues", "GET", b"", {"Host": host})[0] == 200, host


def test_urls_begin_as_the_request_or_the_settings_say(tmp_path: Path) -> None:
    def origins(**http: Any) -> list[str]:
        with RunningDoor(users_file(tmp_path), http=http) as door:
            for host in ("queues.example.com", "queues.example.com:8080"):
                ask(f"{door.url}/", body=b"{}", headers={**json_headers("ListQueues"), "Host": host})
            return [call.origin for call in door.engine.calls]

    assert origins() == ["http://queues.example.com", "http://queues.example.com:8080"]
    assert origins(base="/a/b") == ["http://queues.example.com/a/b", "http://queues.example.com:8080/a/b"]
    assert origins(url="https://q.example", base="/sqs") == ["https://q.example/sqs"] * 2


def test_only_the_last_parts_of_a_path_count(door: RunningDoor) -> None:
    for path in ("/000000000000/orders", "/a/b/000000000000/orders/", "/000000000000/orders%2Efifo"):
        ask(f"{door.url}{path}", body=b"Action=PurgeQueue", headers=FORM)
    assert [call.request.queue_url.removeprefix(door.url) for call in door.engine.calls] == [
        "/000000000000/orders", "/000000000000/orders", "/000000000000/orders.fifo"]


def test_pages_for_operators(guarded: RunningDoor) -> None:
    def page(path: str) -> tuple[int, bytes]:
        return send(f"{guarded.url}{path}", "GET", b"", {})[::2]

    assert page("/healthz") == (200, b"ok\n")
    assert page("/readyz") == (200, b"ok\n")
    boto(guarded).list_queues()
    ask(f"{guarded.url}/", body=b"Action=FooBar", headers=FORM)
    ask(f"{guarded.url}/", key=None)
    status, text = page("/metrics")
    assert status == 200
    lines = text.decode().splitlines()
    assert 'sockpq_sqs_requests_total{action="ListQueues",code="OK"} 1.0' in lines
    assert 'sockpq_sqs_requests_total{action="-",code="UnknownOperationException"} 1.0' in lines
    assert 'sockpq_sqs_requests_total{action="-",code="MissingAuthenticationTokenException"} 1.0' in lines
    assert 'sockpq_sqs_request_seconds_count{action="ListQueues"} 1.0' in lines
    assert "sockpq_sqs_in_progress 0.0" in lines
    assert any(line.startswith("sockpq_sqs_connections ") for line in lines)


def test_a_page_of_a_browser_does_not_read_the_figures(guarded: RunningDoor) -> None:
    assert send(f"{guarded.url}/metrics", "GET", b"", {"Host": "evil.example"})[0] == 421
    assert send(f"{guarded.url}/readyz", "GET", b"", {"Host": "balancer.example"})[0] == 200


def test_it_is_not_ready_while_the_cluster_does_not_answer(door: RunningDoor) -> None:
    door.clients.ready = False
    until(lambda: send(f"{door.url}/readyz", "GET", b"", {})[0] == 503)
    assert send(f"{door.url}/readyz", "GET", b"", {})[2] == b"the cluster does not answer (Unavailable)\n"
    assert send(f"{door.url}/healthz", "GET", b"", {})[0] == 200
    door.clients.ready = True
    until(lambda: send(f"{door.url}/readyz", "GET", b"", {})[0] == 200)
