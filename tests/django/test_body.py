"""The bodies of tasks' jobs, and their ids."""

from __future__ import annotations

import pytest
from sockpq_django.tasks.body import (
    ATTEMPTS_MAX,
    TRACEBACK_MAX,
    BadBody,
    FailedAttempt,
    TaskBody,
    in_json,
    parsed_body,
    shortened,
)
from sockpq_django.tasks.names import ID_MAX, QUEUE_MAX, TaskId, new_id, parsed_id, queue_of, results_queue

CALL = TaskBody("shop.tasks.add", [1, "ä", None], {"b": [2.5, {"c": True}]}, "2026-11-30T05:00:00.123+00:00")


def failure(number: int, traceback: str = "trace") -> FailedAttempt:
    return FailedAttempt(number, "w1", 17.5, "builtins.ValueError", traceback)


def test_a_body_comes_back_as_it_was() -> None:
    assert parsed_body(CALL.encoded()) == CALL
    later = CALL._replace(run_after="2027-01-01T00:00:00+01:00").with_failure(failure(1)).with_failure(failure(2))
    assert parsed_body(later.encoded()) == later


def test_text_of_any_kind_comes_back() -> None:
    text = "half a pair \ud800, nul \0, 日本"
    assert parsed_body(CALL._replace(args=[text]).encoded()).args == [text]


@pytest.mark.parametrize("data", [
    b"", b"\xff", b"[]", b"null", b'"x"', b"{}", b'{"task": 1, "args": [], "kwargs": {}, "enqueued_at": "x"}',
    b'{"task": "a", "args": {}, "kwargs": {}, "enqueued_at": "x"}',
    b'{"task": "a", "args": [], "kwargs": [], "enqueued_at": "x"}',
    b'{"task": "a", "args": [], "kwargs": {}, "enqueued_at": 5}',
    b'{"task": "a", "args": [], "kwargs": {}, "enqueued_at": "x", "run_after": 5}',
    b'{"task": "a", "args": [], "kwargs": {}, "enqueued_at": "x", "failed": [{"number": 1}]}',
    b'{"task": "a", "args": [], "kwargs": {}, "enqueued_at": "x", "failed": 3}',
    b"[" * 100_000,
])
def test_what_is_no_call_is_refused(data: bytes) -> None:
    with pytest.raises(BadBody):
        parsed_body(data)


def test_failures_are_counted_since_the_task_was_put_or_retried() -> None:
    body = CALL
    for number in (1, 2, 3, 1, 3):      # dead after three, retried by an operator, and one attempt lost its worker
        body = body.with_failure(failure(number))
    assert [one.number for one in body.failures_before(4)] == [1, 3]
    assert [one.number for one in body.failures_before(3)] == []      # of a later life: nothing is before its third
    assert body.failures_before(1) == []
    assert [one.number for one in CALL.with_failure(failure(1)).failures_before(2)] == [1]


def test_only_so_many_errors_and_so_much_of_each_are_kept() -> None:
    body = CALL
    for number in range(1, ATTEMPTS_MAX + 3):
        body = body.with_failure(failure(number))
    assert [one.number for one in body.failed] == list(range(3, ATTEMPTS_MAX + 3))
    long = shortened("a" * TRACEBACK_MAX + "b" * TRACEBACK_MAX)
    assert len(long) <= TRACEBACK_MAX
    assert long.startswith("aa")
    assert long.endswith("bb")
    assert CALL.with_failure(failure(1, "x" * 100_000)).failed[0].traceback == shortened("x" * 100_000)
    assert shortened("short") == "short"


def test_json_is_written_as_short_as_it_can_be() -> None:
    assert in_json({"a": [1, "ü"]}) == '{"a":[1,"ü"]}'.encode()


def test_an_id_has_the_queue_and_a_key_that_nobody_guesses() -> None:
    first, second = new_id("mail"), new_id("mail")
    assert first.key != second.key
    assert parsed_id(str(first)) == first
    assert len(str(new_id("q" * QUEUE_MAX))) == ID_MAX
    assert parsed_id(f"a/b/{'0' * 32}") == TaskId("a/b", "0" * 32)


@pytest.mark.parametrize("text", ["", "123", "0" * 32, f"/{'0' * 32}", f"mail/{'0' * 31}", f"mail/{'g' * 32}",
                                  f"mail/{'0' * 32}\n", f"{'q' * 40}/{'0' * 32}", "a b", "x" * 500])
def test_other_ids_are_none_of_ours(text: str) -> None:
    assert parsed_id(text) is None


def test_no_queue_of_a_project_is_the_queue_of_results() -> None:
    assert queue_of("mail", "shop.") == "shop.mail"
    assert queue_of("queue-1", "") != queue_of("queue_1", "")
    for prefix in ("", "shop."):
        for name in ("results", "+results", "", ":2Bresults"):
            assert queue_of(name, prefix) != results_queue(prefix)
