"""The meaning of answers."""

from __future__ import annotations

import pytest
from sockpq_http.push.answers import Answer, Failure, Policy, Verdict, judge, retry_after_s

PLAIN = Policy(result=False, bury=(), retry_after_max_s=3600)
NOW = 1_700_000_000.0


def verdict(
    status: int, retry_after: str | None = None, body: bytes = b"", policy: Policy = PLAIN, whole: bool = True
) -> Verdict:
    return judge(Answer(status, retry_after, body, whole), policy, lambda: NOW)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_2xx_is_done(status: int) -> None:
    assert verdict(status) == Verdict("done", f"http_{status}")


def test_the_body_of_2xx_is_the_result_if_that_is_wanted() -> None:
    wanted = PLAIN._replace(result=True)
    assert verdict(200, body=b"x", policy=wanted).result == b"x"
    assert verdict(200, body=b"", policy=wanted).result == b""
    assert verdict(200, body=b"x").result is None


def test_a_result_that_is_too_long_is_none_and_the_job_is_done() -> None:
    found = verdict(200, body=b"x", whole=False, policy=PLAIN._replace(result=True))
    assert found == Verdict("done", "result_too_long")


@pytest.mark.parametrize(("status", "retry_after", "rest_s"), [
    (429, "7", 7.0), (503, "120", 120.0), (429, "0", 1.0), (429, "999999999999999999999", 3600.0),
    (429, "Tue, 14 Nov 2023 22:14:20 GMT", 60.0), (503, "Tue, 14 Nov 2023 22:00:00 GMT", 1.0),
    (429, "Fri, 31 Dec 9999 23:59:59 GMT", 3600.0),
])
def test_retry_after_is_a_rest(status: int, retry_after: str, rest_s: float) -> None:
    found = verdict(status, retry_after)
    assert (found.kind, found.rest_s, found.failed) == ("later", rest_s, False)


@pytest.mark.parametrize("text", [None, "", "soon", "-1", "1.5", "\u0663", "Tue, 99 Nov 2023", "x" * 100_000])
def test_what_is_no_retry_after_is_none(text: str | None) -> None:
    assert retry_after_s(text, lambda: NOW) is None


def test_429_without_retry_after_slows_down() -> None:
    found = verdict(429)
    assert (found.kind, found.slow, found.failed, found.rest_s) == ("later", True, True, 0.0)


def test_503_without_retry_after_is_a_failure() -> None:
    found = verdict(503)
    assert (found.kind, found.slow, found.failed) == ("later", False, True)


@pytest.mark.parametrize(("status", "failed"), [
    (301, True), (307, True), (400, False), (404, False), (410, False), (408, True), (425, True), (500, True),
    (502, True), (504, True), (101, True), (600, True),
])
def test_any_other_answer_puts_the_job_back(status: int, failed: bool) -> None:
    found = verdict(status)
    assert (found.kind, found.reason, found.failed) == ("later", f"http_{status}", failed)


def test_statuses_of_the_configuration_give_the_job_up() -> None:
    policy = PLAIN._replace(bury=(404, "4xx"))
    assert verdict(404, policy=policy).kind == "bury"
    assert verdict(422, policy=policy).kind == "bury"
    for transient in (408, 425, 429):
        assert verdict(transient, policy=policy).kind == "later"
    assert verdict(500, policy=policy).kind == "later"
    assert verdict(408, policy=PLAIN._replace(bury=(408,))).kind == "bury"
    assert verdict(422, policy=PLAIN._replace(bury=(404,))).kind == "later"


def test_the_error_has_the_status_and_the_beginning_of_the_answer() -> None:
    found = verdict(500, body=b"no \xff disk\0" + b"x" * 10_000)
    unknown = "\N{REPLACEMENT CHARACTER}"
    assert found.error.startswith(f"the receiver answered 500\n\nno {unknown} disk{unknown}xx")
    assert len(found.error) < 5000


def test_a_failure_puts_the_job_back() -> None:
    assert judge(Failure("timeout", "30 s"), PLAIN, lambda: NOW) == Verdict("later", "timeout", "30 s", failed=True)
