"""Signatures, for a server that verifies them."""

from __future__ import annotations

import json

import botocore.auth
import botocore.awsrequest
import botocore.credentials

from tests.sqs.conformance.endpoint import Check, check, equal, true


@check("auth", "doc", needs=("auth",))
def wrong_secret_is_refused(t: Check) -> None:
    status, _, body = t.json("ListQueues", {}, secret="not-the-secret-not-the-secret")
    equal(
        (status, b"SignatureDoesNotMatch" in body or b"InvalidSignature" in body),
        (403, True),
        f"status, error ({body[:200]!r})",
    )


@check("auth", "doc", needs=("auth",))
def unknown_key_is_refused(t: Check) -> None:
    status, _, body = t.json("ListQueues", {}, access="AKIANOBODYNOBODY")
    equal(
        (status, b"InvalidClientTokenId" in body or b"UnrecognizedClient" in body),
        (403, True),
        f"status, error ({body[:200]!r})",
    )


@check("auth", "doc", needs=("auth",))
def missing_signature_is_refused(t: Check) -> None:
    status, _, body = t.json("ListQueues", {}, sign=False)
    equal(
        (status, b"MissingAuthenticationToken" in body or b"IncompleteSignature" in body),
        (403, True),
        f"status, error ({body[:200]!r})",
    )


@check("auth", "doc", needs=("auth",))
def old_signature_is_refused(t: Check) -> None:
    status, _, body = t.json("ListQueues", {}, at=-3600)
    true(status in (400, 403), f"status {status} for a request signed an hour ago ({body[:200]!r})")


@check("auth", "doc", needs=("auth",))
def changed_body_is_refused(t: Check) -> None:
    url = t.queue()
    data = json.dumps({"QueueUrl": url, "MessageBody": "signed"}).encode()
    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.SendMessage"}
    request = botocore.awsrequest.AWSRequest("POST", t.endpoint.url + "/", data=data, headers=headers)
    botocore.auth.SigV4Auth(
        botocore.credentials.Credentials(t.endpoint.access, t.endpoint.secret), "sqs", t.endpoint.region
    ).add_auth(request)
    status, _, body = t.http(
        "POST", t.endpoint.url + "/", data.replace(b"signed", b"FORGED"), dict(request.headers.items()), sign=False
    )
    equal(status, 403, f"status ({body[:200]!r})")
