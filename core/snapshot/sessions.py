"""Writes sessions to a snapshot as frames, and restores them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sockpqd.core import limits
from sockpqd.core.sessions.session import AnsweredRequest, Session
from sockpqd.core.sessions.table import Sessions
from sockpqd.core.snapshot.answers import answer_of, answer_row, ids_of
from sockpqd.core.snapshot.frames import RequestRow, SessionRow, SessionRows, SessionTable, check
from sockpqd.core.store.job import RunningJob


def session_frames(sessions: Sessions) -> Iterator[SessionTable | SessionRows]:
    """Yield the frames of all sessions, none if there has never been one."""
    if sessions.next_session == 1:
        return
    yield SessionTable(sessions.next_session, len(sessions.by_number))
    rows: list[SessionRow] = []
    size = 0
    for session in sessions.by_number.values():
        rows.append(_session_row(session))
        size += 1 + len(session.requests) + len(session.taken)
        if size >= limits.FRAME_SESSION_PARTS_MAX:
            yield SessionRows(rows)
            rows = []
            size = 0
    if rows:
        yield SessionRows(rows)


def _session_row(session: Session) -> SessionRow:
    return SessionRow(
        session.number,
        session.secret,
        session.ttl_ms,
        session.deadline_ms,
        session.graced,
        session.ending,
        [_request_row(number, session.requests[number]) for number in sorted(session.requests)],
        sorted(session.taken),
        session.user,
        session.address,
        session.used_ms,
        session.lapsed,
    )


def _request_row(number: int, answered: AnsweredRequest) -> RequestRow:
    answers = answered.answers()
    return RequestRow(number, answered.digest, [(part, answer_row(answers[part])) for part in sorted(answers)])


def restored_session(row: SessionRow, running: Mapping[int, RunningJob], next_id: int) -> Session:
    """Return the session in this row with its bound jobs, all of which must be in `running`. Raises SnapshotError."""
    session = Session(
        row.number, row.secret, row.ttl_ms, row.deadline_ms, row.deadline_ms, row.user, row.address, row.used_ms,
        row.graced, row.ending, row.lapsed,
    )
    numbers = [request.number for request in row.requests]
    check(_rise(numbers), "requests are not in order")
    if numbers:
        session.newest = numbers[-1]
        check(numbers[0] > max(0, session.newest - limits.REQUEST_WINDOW), "request below the window")
    for request in row.requests:
        session.requests[request.number] = AnsweredRequest(request.digest)
        check(_rise([part for part, _ in request.answers]), "answers are not in order")
        for part, answer in request.answers:
            check(max(ids_of(answer), default=0) < next_id, "answer with a job id not given yet")
            session.keep(request.number, request.digest, part, answer_of(answer))
    check(_rise(row.taken), "bound jobs are not in order")
    for number in row.taken:
        job = running.get(number)
        check(job is not None and job.session is None, "bound job does not run, or is bound twice")
        assert job is not None
        session.bind(job)
    return session


def _rise(numbers: list[int]) -> bool:
    return numbers == sorted(set(numbers))
