"""The renewal of leases."""

from __future__ import annotations

from sockpq.worker.pool.leases import Leases


def test_a_lease_is_renewed_every_third_of_it() -> None:
    leases = Leases()
    leases.begin(1, 60, 60, now=0)
    leases.begin(2, 6, 6, now=0)
    assert leases.next_due() == 2
    assert leases.take_due(1.9) == []
    assert leases.take_due(2) == [(2, None, None)]
    assert leases.take_due(2) == []
    assert leases.take_due(20) == [(1, None, None), (2, None, None)]
    leases.end(2)
    leases.end(2)
    assert len(leases) == 1
    assert leases.take_due(30) == []


def test_renewals_of_a_job_whose_time_is_told_at_its_end_charge_nothing() -> None:
    leases = Leases()
    leases.begin(1, 6, 6, now=0, uncharged=True)
    assert leases.take_due(2) == [(1, None, 0.0)]


def test_another_length_is_asked_for_at_once_and_until_it_is_given() -> None:
    leases = Leases()
    leases.begin(1, 6, 60, now=0)
    assert leases.take_due(0) == [(1, 60, None)]
    assert leases.take_due(2) == [(1, 60, None)]
    leases.renewed(1, 2)
    assert leases.take_due(4) == [(1, None, None)]
    assert leases.take_due(5) == []


def test_a_lease_that_could_not_be_renewed_is_doubtful() -> None:
    leases = Leases()
    leases.begin(1, 6, 6, now=0)
    assert not leases.is_doubtful(1, 5.9)
    leases.renewed(1, 5)
    assert not leases.is_doubtful(1, 10.9)
    assert leases.is_doubtful(1, 11)
    assert not leases.is_doubtful(7, 11)
