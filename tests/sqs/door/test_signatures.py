"""Signature version 4: signatures of botocore are accepted, and no others."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import pytest
from msgspec.structs import replace
from multidict import CIMultiDict, CIMultiDictProxy
from sockpq_sqs.auth import Account, Head, Verifier
from sockpq_sqs.auth.canonical import canonical_path, canonical_query, canonical_request, string_to_sign
from sockpq_sqs.auth.verifier import KEYS_MAX, signing_key
from sockpq_sqs.model.errors import SqsError

SECRET = "a-secret-of-the-shop-0123456789"
USERS = {"shop": Account(SECRET), "other": Account("another-secret-0123456789")}


def signed(
    url: str = "http://127.0.0.1:9324/", method: str = "POST", body: bytes = b"{}", *, key: str = "shop",
    secret: str = SECRET, presigned: bool = False, service: str = "sqs", headers: dict[str, str] | None = None,
    token: str | None = None,
) -> Head:
    """Return the head of a request that botocore has signed."""
    request = botocore.awsrequest.AWSRequest(method, url, data=body, headers=headers or {"X-Amz-Target": "AmazonSQS.X"})
    kind = botocore.auth.SigV4QueryAuth if presigned else botocore.auth.SigV4Auth
    kind(botocore.credentials.Credentials(key, secret, token), service, "eu-west-1").add_auth(request)
    parts = urlsplit(request.url)
    sent = CIMultiDict(request.headers.items())
    sent["Host"] = parts.netloc
    return Head(method, parts.path, parts.query, CIMultiDictProxy(sent), secure=False)


def with_header(head: Head, name: str, value: str | None) -> Head:
    headers = CIMultiDict(head.headers)
    headers.pop(name, None)
    if value is not None:
        headers[name] = value
    return replace(head, headers=CIMultiDictProxy(headers))


def verify(head: Head, body: bytes = b"{}", *, later: timedelta = timedelta()) -> str:
    """Verify a request as if it came later; return the user's name."""
    verifier = Verifier(USERS, lambda: datetime.now(UTC) + later)
    claim = verifier.claim(head)
    verifier.verify(claim, body)
    return claim.signature.access_key


def refusal(head: Head, body: bytes = b"{}", *, later: timedelta = timedelta()) -> str:
    with pytest.raises(SqsError) as caught:
        verify(head, body, later=later)
    return caught.value.query_code


@pytest.mark.parametrize("path", ["/", "/111122223333/orders", "/a%20b/c//d/./e/../f/", "/%E2%82%AC/x~y-z_1.2"])
@pytest.mark.parametrize("query", ["", "?b=2&a=1", "?a=%20x%2By&a=&c", "?x=a%26b&X=1"])
def test_what_botocore_signs_is_verified(path: str, query: str) -> None:
    assert verify(signed(f"http://queues.example.com:9324{path}{query}")) == "shop"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_presigned_url_is_verified(method: str) -> None:
    head = signed("http://127.0.0.1:9324/0/q?Action=SendMessage&MessageBody=a+b%2Bc", method, b"", presigned=True)
    assert verify(head, b"") == "shop"


def test_spaces_in_headers_do_not_matter_and_values_are_joined() -> None:
    head = signed(headers={"X-Amz-Target": "  AmazonSQS.X   y ", "X-Other": "1"})
    assert verify(head) == "shop"
    assert verify(with_header(head, "X-Amz-Target", "AmazonSQS.X y")) == "shop"


def test_the_example_of_amazons_documents() -> None:
    head = Head(
        "GET", "/", "Action=ListUsers&Version=2010-05-08",
        CIMultiDictProxy(CIMultiDict({
            "Content-Type": "application/x-www-form-urlencoded; charset=utf-8", "Host": "iam.amazonaws.com",
            "X-Amz-Date": "20150830T123600Z"})), secure=False)
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    canonical = canonical_request(head, ("content-type", "host", "x-amz-date"), empty)
    text = string_to_sign("20150830T123600Z", "20150830/us-east-1/iam/aws4_request", canonical)
    assert text.decode().splitlines()[-1] == "f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59"


@pytest.mark.parametrize(
    "change",
    [
        lambda head: replace(head, method="PUT"),
        lambda head: replace(head, path="/111122223333/others"),
        lambda head: replace(head, query="Action=DeleteQueue"),
        lambda head: with_header(head, "Host", "elsewhere.example.com"),
        lambda head: with_header(head, "X-Amz-Target", "AmazonSQS.DeleteQueue"),
        lambda head: with_header(head, "X-Amz-Date", f"{datetime.now(UTC) + timedelta(seconds=77):%Y%m%dT%H%M%SZ}"),
        lambda head: with_header(head, "Authorization", head.header("Authorization").replace("=shop/", "=other/")),
        lambda head: with_header(head, "Authorization", head.header("Authorization").replace("eu-west-1", "eu-west-2")),
        lambda head: with_header(head, "X-Amz-Content-Sha256", None),
        lambda head: with_header(head, "X-Amz-Content-Sha256", "0" * 64),
    ],
)
def test_a_request_that_was_changed_on_its_way_is_refused(change: Callable[[Head], Head]) -> None:
    digest = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"          # of {}
    head = signed(
        "http://127.0.0.1:9324/111122223333/orders?Action=ListQueues",
        headers={"X-Amz-Target": "AmazonSQS.X", "X-Amz-Content-Sha256": digest})
    assert verify(head) == "shop"
    assert refusal(change(head)) == "SignatureDoesNotMatch"


def test_another_body_is_refused() -> None:
    assert refusal(signed(body=b"signed"), b"FORGED") == "SignatureDoesNotMatch"
    presigned = signed("http://127.0.0.1:9324/?Action=X", body=b"", presigned=True)
    assert refusal(presigned, b"FORGED") == "SignatureDoesNotMatch"


def test_a_changed_parameter_of_a_presigned_url_is_refused() -> None:
    head = signed("http://127.0.0.1:9324/0/q?Action=SendMessage", "GET", b"", presigned=True)
    for query in (head.query.replace("SendMessage", "DeleteQueue"), head.query.replace("Expires=3600", "Expires=86400"),
                  f"{head.query}&More=1"):
        assert refusal(replace(head, query=query), b"") == "SignatureDoesNotMatch"


def test_wrong_secrets_and_unknown_keys_are_refused() -> None:
    assert refusal(signed(secret="not-the-secret-0123456789")) == "SignatureDoesNotMatch"
    assert refusal(signed(key="nobody")) == "InvalidClientTokenId"
    assert refusal(signed(token="of-a-session")) == "InvalidClientTokenId"
    assert refusal(signed(presigned=True, token="of-a-session")) == "InvalidClientTokenId"


def test_a_signature_is_good_for_a_quarter_of_an_hour() -> None:
    head = signed()
    assert verify(head, later=timedelta(minutes=14)) == "shop"
    assert verify(head, later=-timedelta(minutes=14)) == "shop"
    assert refusal(head, later=timedelta(minutes=16)) == "RequestExpired"
    assert refusal(head, later=-timedelta(minutes=16)) == "RequestExpired"


def test_a_presigned_url_is_good_as_long_as_it_says() -> None:
    head = signed("http://127.0.0.1:9324/?Action=X", "GET", b"", presigned=True)          # for an hour
    assert verify(head, b"", later=timedelta(minutes=59)) == "shop"
    assert refusal(head, b"", later=timedelta(minutes=61)) == "RequestExpired"
    assert refusal(head, b"", later=-timedelta(minutes=16)) == "RequestExpired"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda text: "", "MissingAuthenticationToken"),
        (lambda text: "AWS shop:signature", "IncompleteSignature"),
        (lambda text: "Basic c2hvcDpzZWNyZXQ=", "IncompleteSignature"),
        (lambda text: text.replace("Credential=", "Credentials="), "IncompleteSignature"),
        (lambda text: text.replace("SignedHeaders=", "Headers="), "IncompleteSignature"),
        (lambda text: text.replace("Signature=", "Sig="), "IncompleteSignature"),
        (lambda text: text.replace("Signature=", "Signature=ff"), "IncompleteSignature"),
        (lambda text: text.replace("/sqs/", "/sns/"), "IncompleteSignature"),
        (lambda text: text.replace("aws4_request", "aws5_request"), "IncompleteSignature"),
        (lambda text: text.replace("eu-west-1", "EU WEST"), "IncompleteSignature"),
        (lambda text: text.replace("=shop/2", "=shop/1"), "IncompleteSignature"),
        (lambda text: text.replace("host;", ""), "IncompleteSignature"),
        (lambda text: text.replace("x-amz-date;", ""), "IncompleteSignature"),
        (lambda text: text.replace(";x-amz-target", ""), "IncompleteSignature"),
    ],
)
def test_a_signature_that_is_none_is_refused(change: Callable[[str], str], code: str) -> None:
    head = signed()
    assert refusal(with_header(head, "Authorization", change(head.header("Authorization")))) == code


@pytest.mark.parametrize("stamp", [None, "", "yesterday", "2026-11-30T05:25:00Z", "20261330T052500Z"])
def test_a_signature_without_a_time_is_refused(stamp: str | None) -> None:
    assert refusal(with_header(signed(), "X-Amz-Date", stamp)) == "IncompleteSignature"


@pytest.mark.parametrize(
    "name", ["X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders"])
def test_a_presigned_url_needs_all_of_its_parameters(name: str) -> None:
    head = signed("http://127.0.0.1:9324/?Action=X", "GET", b"", presigned=True)
    assert refusal(replace(head, query=head.query.replace(name, "Y")), b"") == "IncompleteSignature"


@pytest.mark.parametrize("seconds", ["604801", "-1", "x", "1" * 7, ""])
def test_a_presigned_url_is_good_for_a_week_at_most(seconds: str) -> None:
    head = signed("http://127.0.0.1:9324/?Action=X", "GET", b"", presigned=True)
    query = head.query.replace("X-Amz-Expires=3600", f"X-Amz-Expires={seconds}")
    assert refusal(replace(head, query=query), b"") == "IncompleteSignature"


def test_a_body_need_not_be_signed_over_tls() -> None:
    head = signed(headers={"X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD"})
    assert refusal(head) == "IncompleteSignature"
    assert verify(replace(head, secure=True), b"any other body") == "shop"
    streamed = with_header(head, "X-Amz-Content-SHA256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD")
    assert refusal(replace(streamed, secure=True)) == "IncompleteSignature"


def test_keys_are_remembered_of_verified_requests_only() -> None:
    verifier = Verifier(USERS)
    with pytest.raises(SqsError):
        verifier.verify(verifier.claim(signed(secret="not-the-secret-0123456789")), b"{}")
    assert not verifier._keys
    verifier.verify(verifier.claim(signed()), b"{}")
    assert list(verifier._keys) == [(SECRET, f"{datetime.now(UTC):%Y%m%d}", "eu-west-1")]
    verifier._keys.update({(str(number), "", ""): b"" for number in range(KEYS_MAX)})
    verifier._keys.pop((SECRET, f"{datetime.now(UTC):%Y%m%d}", "eu-west-1"))
    verifier.verify(verifier.claim(signed()), b"{}")
    assert len(verifier._keys) == 1


def test_the_key_depends_on_secret_day_and_region() -> None:
    keys = {signing_key(*scope) for scope in (("s", "1", "r"), ("t", "1", "r"), ("s", "2", "r"), ("s", "1", "q"))}
    assert len(keys) == 4


def test_canonical_paths_and_queries() -> None:
    assert canonical_path("") == canonical_path("//") == "/"
    assert canonical_path("/a/../../b/") == "/b/"
    assert canonical_path("/a%2Fb c") == "/a%252Fb%20c"
    assert canonical_query("b=1&a=2&a=1&&c") == "a=1&a=2&b=1&c="
    assert canonical_query("a=%7E%2a+x&X-Amz-Signature=1") == "a=~%2A%20x"
