"""Removes from the product each part that sessions need to keep their promises."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from sockpqd.core import Reply, Request
from sockpqd.core.handlers import requests, sessions
from sockpqd.core.handlers.dispatch import EXECUTE
from sockpqd.core.rules import expire
from sockpqd.core.sessions.session import AnsweredRequest, Session
from sockpqd.core.sessions.table import Sessions
from sockpqd.core.snapshot import sessions as session_frames
from sockpqd.core.snapshot.frames import RequestRow
from sockpqd.core.state import State
from tests.sim.cures.cure import TABLE, Cure, scripted
from tests.sim.scenarios import sessions as session_scenarios
from tests.sim.scenarios.sessions import SCRIPTED


def forget_answers(patch: pytest.MonkeyPatch) -> None:
    """Execute a repeated request again."""
    patch.setattr(requests, "_again", lambda state, operation, answered: None)


def forget_answers_in_snapshots(patch: pytest.MonkeyPatch) -> None:
    """Keep in a snapshot which numbers were used, but not their answers."""
    def row(number: int, answered: AnsweredRequest) -> RequestRow:
        return RequestRow(number, answered.digest, [])
    patch.setattr(session_frames, "_request_row", row)


def compare_no_digests(patch: pytest.MonkeyPatch) -> None:
    """Answer a command with the answer to another one of the same number."""
    real = EXECUTE[Request]

    def request(state: State, operation: Request, seed: int) -> Reply:
        session = state.sessions.get(operation.session)
        answered = None if session is None else session.requests.get(operation.number)
        if answered is not None:
            operation = replace(operation, digest=answered.digest)
        return real(state, operation, seed)
    patch.setitem(TABLE, Request, request)


def execute_for_sessions_that_ended(patch: pytest.MonkeyPatch) -> None:
    """Execute what is answered 404 Session Not Found."""
    real = EXECUTE[Request]

    def request(state: State, operation: Request, seed: int) -> Reply:
        if state.sessions.get(operation.session) is None:
            EXECUTE[type(operation.operation)](state, operation.operation, seed)
        return real(state, operation, seed)
    patch.setitem(TABLE, Request, request)


def count_from_the_beginning(patch: pytest.MonkeyPatch) -> None:
    """Let a session end however often it is used."""
    patch.setattr(Sessions, "use", lambda self, number, clock_ms: self.get(number))


def leave_bound_jobs(patch: pytest.MonkeyPatch) -> None:
    """Let jobs run on when their session ends."""
    real = expire.end_session

    def end(state: State, session: Session, ends_max: int) -> int:
        for number in list(session.taken):
            state.sessions.unbind(state.running[number])
        return real(state, session, ends_max)
    patch.setattr(expire, "end_session", end)
    patch.setattr(sessions, "end_session", end)


def give_sessions_no_grace(patch: pytest.MonkeyPatch) -> None:
    """End a session while no node serves."""
    patch.setattr(Sessions, "extend", lambda self, until_ms, *, once=True: None)


def give_grace_again_and_again(patch: pytest.MonkeyPatch) -> None:
    """Let each new leader prolong an unused session."""
    real = Sessions.extend

    def extend(self: Sessions, until_ms: int, *, once: bool = True) -> None:
        for session in self.by_number.values():
            session.graced = False
        real(self, until_ms, once=once)
    patch.setattr(Sessions, "extend", extend)


SESSIONS: dict[str, Any] = {"nodes": 3, "sessions": 1.0, "clones": 0.0}


CURES = (
    Cure(forget_answers, SESSIONS, red=0),
    Cure(forget_answers_in_snapshots, scripted(SCRIPTED, session_scenarios.a_new_node_leads), red=0),
    Cure(compare_no_digests, SESSIONS, red=0),
    Cure(execute_for_sessions_that_ended, SESSIONS, red=0),
    Cure(count_from_the_beginning, SESSIONS, red=3),
    Cure(leave_bound_jobs, SESSIONS, red=3),
    Cure(give_sessions_no_grace,
         scripted(SCRIPTED, session_scenarios.a_failover_takes_longer_than_a_session_lives), red=0),
    Cure(give_grace_again_and_again,
         scripted(SCRIPTED, session_scenarios.leaders_change_while_nobody_uses_a_session), red=0),
)
