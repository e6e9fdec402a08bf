"""What the checker says about the turns of a pulse, on histories written by hand."""

from __future__ import annotations

from tests.chaos.checker.grants import given_twice, too_many
from tests.chaos.workload.turns import Grant


def grant(ticket: int, after: float, before: float, session: str | None = None, request: int | None = None) -> Grant:
    return Grant(ticket, 1, session, request, after, before)


def test_what_may_have_been_outside_the_window_is_not_accused() -> None:
    surely = [grant(1, 0.0, 0.1), grant(2, 0.5, 0.6), grant(3, 0.9, 0.99)]
    perhaps = [grant(1, 0.0, 0.1), grant(2, 0.5, 0.6), grant(3, 0.9, 1.01)]
    assert [[one.ticket for one in group] for group in too_many(surely, 2, 1.0)] == [[1, 2, 3]]
    assert too_many(perhaps, 2, 1.0) == []
    assert too_many(surely, 3, 1.0) == []


def test_a_ticket_and_a_request_are_answered_once() -> None:
    assert given_twice([grant(1, 0, 1), grant(2, 0, 1), grant(3, 0, 1, "s", 1), grant(4, 0, 1, "s", 2)]) == []
    assert len(given_twice([grant(1, 0, 1), grant(1, 2, 3)])) == 1
    assert len(given_twice([grant(3, 0, 1, "s", 1), grant(4, 2, 3, "s", 1)])) == 1
