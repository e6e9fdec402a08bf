"""The use of a session changes its deadline, also if it was used at the same time before."""

from __future__ import annotations

from sockpqd.core.sessions.table import Sessions

TTL_MS = 10_000


def test_a_use_at_the_time_of_the_last_one_changes_nothing() -> None:
    sessions = Sessions()
    session = sessions.open(1, TTL_MS, "", "", 1_000)
    assert sessions.use(session.number, 2_000) is session
    for _ in range(2):
        assert (session.used_ms, session.deadline_ms) == (2_000, 2_000 + TTL_MS)
        assert sessions.use(session.number, 2_000) is session


def test_a_grace_may_be_granted_again_after_a_use_at_the_time_of_the_last_one() -> None:
    sessions = Sessions()
    session = sessions.open(1, TTL_MS, "", "", 1_000)
    sessions.extend(20_000)
    assert session.graced
    assert sessions.use(session.number, 1_000) is session
    assert not session.graced
    sessions.extend(30_000)
    assert session.deadline_ms == 30_000


def test_a_session_that_ends_at_the_time_of_its_last_use_cannot_be_used() -> None:
    sessions = Sessions()
    session = sessions.open(1, TTL_MS, "", "", 1_000)
    sessions.end(session, 1_000, lapsed=False)
    assert sessions.use(session.number, 1_000) is None
