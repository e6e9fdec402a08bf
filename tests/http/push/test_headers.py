"""The headers of a request."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from sockpq import Meta
from sockpq_http.push.headers import message_id, request_headers


def job(headers: dict[str, str] | None = None, meta: Meta | None = None, item: str | None = None) -> Any:
    return SimpleNamespace(id=7, queue="hooks", item=item, headers=headers or {}, meta=meta)


def test_headers_that_http_cannot_carry_are_left_out() -> None:
    found = request_headers(
        job({"x-good": " a ", "x-umlaut": "grün", "two words": "a", "": "a", "x-line": "a\r\nb: c", "x-nul": "\0",
             "x:colon": "a", "x-tab": "a\tb"}), {}, "text/plain")
    assert {name: value for name, value in found.items() if name.startswith("x")} == {
        "x-good": "a", "x-umlaut": "grün", "x-tab": "a\tb"}


def test_a_job_sets_no_header_of_the_connection_or_of_this_program() -> None:
    names = (
        "Host", "content-length", "Transfer-Encoding", "connection", "Expect", "proxy-authorization", "webhook-id",
        "Webhook-Signature", "sockpq-id", "Sockpq-Anything", "accept-encoding", "User-Agent", "TE", "upgrade",
    )
    forged = dict.fromkeys(names, "forged")
    assert "forged" not in request_headers(job(forged), {}, "text/plain").values()


def test_the_target_replaces_what_the_job_says_in_whatever_case() -> None:
    found = request_headers(job({"Authorization": "job", "Content-Type": "a/b"}), {"AUTHORIZATION": "target"}, "c/d")
    assert (found["authorization"], found["content-type"]) == ("target", "a/b")
    assert request_headers(job(), {}, "c/d")["content-type"] == "c/d"


def test_only_what_a_job_has_is_said() -> None:
    plain = request_headers(job(meta=Meta(None, 3, None, None)), {}, "a/b")
    assert {name: value for name, value in plain.items() if name.startswith("sockpq-")} == {
        "sockpq-id": "7", "sockpq-queue": "hooks", "sockpq-try": "3"}


def test_the_id_of_a_message_is_the_number_of_its_job() -> None:
    assert message_id(job(meta=Meta(None, 1, None, None, number=17))) == "job_17"
    assert message_id(job(meta=Meta(None, 1, None, None))) == "try_7"
