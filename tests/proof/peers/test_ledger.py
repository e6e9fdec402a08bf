"""Tests for ledger.py: lost, invented and doubled jobs are found, and others are not accused."""

from __future__ import annotations

from tests.proof.peers.ledger import CONFIRMED, REFUSED, UNKNOWN, Delivery, Findings, Ledger, Put, longest_gap_ns


def found(puts: list[tuple[str, str]], deliveries: list[Delivery]) -> Findings:
    """Return the findings about these puts (job and outcome) and deliveries."""
    ledger = Ledger()
    for job, outcome in puts:
        ledger.note_put(Put(job, 2, outcome))
    for delivery in deliveries:
        ledger.note_delivery(delivery)
    return ledger.findings()


def test_only_confirmed_jobs_can_be_lost() -> None:
    puts = [("a", CONFIRMED), ("b", CONFIRMED), ("c", UNKNOWN), ("d", REFUSED)]
    assert found(puts, [Delivery("a", 5)]) == Findings(["b"], [], [])


def test_a_job_that_nobody_put_is_invented() -> None:
    assert found([("a", CONFIRMED)], [Delivery("a", 5), Delivery("x", 5)]) == Findings(
        [], ["x"], [])


def test_a_job_that_comes_again_after_its_end_was_confirmed_is_doubled() -> None:
    once, again = Delivery("a", 5, ended_ns=8), Delivery("a", 9)
    assert found([("a", CONFIRMED)], [once, again]).doubled == ["a"]


def test_a_job_may_come_again_while_nobody_knows_that_it_has_ended() -> None:
    puts = [("a", CONFIRMED), ("b", CONFIRMED)]
    deliveries = [
        Delivery("a", 5), Delivery("a", 9, ended_ns=10),
        Delivery("b", 5, ended_ns=12), Delivery("b", 9),     # its lease ended meanwhile
    ]
    assert found(puts, deliveries).doubled == []


def test_the_longest_gap_counts_from_and_to_the_ends() -> None:
    assert longest_gap_ns([4, 6], 0, 7) == 4
    assert longest_gap_ns([], 0, 7) == 7
    ledger = Ledger()
    ledger.note_put(Put("a", 2_000_000_000, CONFIRMED))
    ledger.note_put(Put("b", 3_000_000_000, UNKNOWN))
    ledger.note_delivery(Delivery("a", 2_500_000_000))
    assert ledger.longest_gap_s(1_000_000_000, 5_000_000_000) == 2.5
