"""The circuit breaker."""

from __future__ import annotations

from sockpq_http.push.circuit import Circuit


def circuit(failures: int = 3, rest_max_s: float = 60.0, share: float = 0.0) -> Circuit:
    return Circuit(failures, rest_max_s, lambda: share)


def test_failures_in_a_row_open_it() -> None:
    one = circuit()
    assert [one.failed(now, now) for now in (10.0, 11.0, 12.0)] == [None, None, 1.0]
    assert one.left_s(12.0) == 1.0
    assert one.left_s(13.5) == 0.0
    assert one.on_trial


def test_a_success_in_between_keeps_it_closed() -> None:
    one = circuit()
    for now in range(10):
        assert one.failed(now, now) is None
        assert not one.succeeded(now)
    assert not one.on_trial


def test_rests_grow_up_to_the_maximum() -> None:
    one, now = circuit(rest_max_s=10.0), 0.0
    for _ in range(2):
        one.failed(now, now)
    rests = []
    for _ in range(6):
        rest_s = one.failed(now, now)
        assert rest_s is not None
        rests.append(rest_s)
        now += rest_s
    assert rests == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_a_success_on_trial_closes_it_and_rests_begin_small_again() -> None:
    one = circuit(1)
    assert one.failed(0.0, 0.0) == 1.0
    assert one.failed(2.0, 2.0) == 2.0
    assert one.succeeded(5.0)
    assert not one.on_trial
    assert not one.succeeded(6.0)
    assert one.failed(7.0, 7.0) == 1.0


def test_requests_from_before_the_rest_show_nothing() -> None:
    one = circuit(1)
    one.failed(5.0, 4.0)
    assert one.failed(5.5, 4.5) is None
    assert not one.succeeded(4.9)
    assert one.left_s(5.5) == 0.5
    assert one.on_trial


def test_rests_are_spread_by_chance() -> None:
    assert circuit(1, share=1.0).failed(0.0, 0.0) == 0.5
    assert circuit(1, share=1.0).rest(0.0, 10.0) == 11.0


def test_a_rest_that_was_asked_for_does_not_shorten_another() -> None:
    one = circuit(1)
    one.rest(0.0, 100.0)
    one.rest(1.0, 5.0)
    assert one.left_s(1.0) == 99.0
    one.failed(2.0, 1.5)
    assert one.left_s(2.0) == 98.0
