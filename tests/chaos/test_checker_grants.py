"""The checker's rules about the turns of a pulse, on histories written by hand."""

from __future__ import annotations

from msgspec import structs

from tests.chaos.checker.grants import given_twice, too_many, written
from tests.chaos.workload.history import Cut
from tests.chaos.workload.pulse import PER_S, RATE, Turns
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


def test_a_request_that_comes_late_may_have_another_ticket_when_the_first_turn_is_over() -> None:
    over = structs.replace(grant(3, 0, 1, "s", 1), told=True)
    assert given_twice([over, grant(4, 2, 3, "s", 1)]) == []
    assert len(given_twice([over, grant(4, 0, 0.5, "s", 1)])) == 1              # before the first was heard of
    assert len(given_twice([over, grant(3, 2, 3, "t", 1)])) == 1
    assert len(given_twice([over, grant(4, 2, 3, "s", 1), grant(4, 4, 5)])) == 1


def test_what_a_session_is_told_again_counts_once_from_its_last_answer_on() -> None:
    again = [grant(1, 0.0, 0.1, "s", 1), grant(2, 0.2, 0.3), grant(1, 0.4, 0.5, "s", 1)]
    assert given_twice(again) == []
    assert too_many(again, 2, 1.0) == []
    assert too_many([*again, grant(3, 1.2, 1.3)], 1, 1.0) != []                         # 1 and 3
    assert too_many([*again, grant(3, 1.42, 1.5)], 1, 1.0) == [again[1:]]               # 2 and 1: not 1 and 3
    assert len(given_twice([*again, grant(1, 0.6, 0.7, "s", 2)])) == 1
    assert len(given_twice([*again, grant(1, 0.6, 0.7, "t", 1)])) == 1


def test_what_was_sent_again_may_have_been_written_since_packets_were_lost() -> None:
    read_at_once = [structs.replace(grant(ticket, 10.0, 10.1), server="a:1") for ticket in range(3)]
    late, names = [Cut("n1", 5_000_000_000, 12_000_000_000)], {"a:1": "n1"}
    assert too_many(written(read_at_once, [], names), 2, 1.0) != []
    assert too_many(written(read_at_once, late, names), 2, 1.0) == []
    assert [one.after for one in written(read_at_once, late, names)] == [5.0] * 3
    assert written(read_at_once, late, {"a:1": "n2"}) == read_at_once
    assert written([grant(1, 13.0, 13.1)], late, {"": "n1"})[0].after == 13.0


def judged(*grants: Grant, healed_s: float = 0.0) -> list[str]:
    turns = Turns(["127.0.0.1:1"], 2, seed=0)
    turns.grants.extend(grants)
    return [sentence.partition(" ")[2] for sentence in turns.judge(healed_s)]


def test_what_is_wrong_with_the_turns_beside_a_load_is_told() -> None:
    many = [grant(ticket, ticket / 100, PER_S - 0.1) for ticket in range(RATE + 1)]
    assert judged(*many) == [f"{RATE + 1} turns within 2 s from ticket 0 on, RATE is {RATE}"]
    assert judged(*many[:-1]) == []
    assert [sentence[-17:] for sentence in judged(many[0], grant(0, 1.0, 1.1))] == ["are the same turn"]
    assert judged(many[0], healed_s=PER_S) == ["nobody had a turn within 30 s after all was healed"]
    assert list(Turns(["127.0.0.1:1"], 0, seed=0).judge(0.0)) == []
