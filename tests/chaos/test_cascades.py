"""Records of the chaos tests' clients for a transaction that was aborted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from sockpq import Aborted, Busy, JobNotFound, SockpqError

from tests.chaos.workload.history import Cascade, History, Outcome, PutWith, Record
from tests.chaos.workload.plain import Unexpected
from tests.chaos.workload.plain_extended import PlainExtendedClient
from tests.chaos.workload.session_extended import SessionExtendedClient

CASCADE = Cascade(7, (PutWith("b", "mail", 0, 0),))


class Answering(PlainExtendedClient):
    """A client that gets this answer to COMMIT, whatever the server of other clients does."""

    def __init__(self, committed: str) -> None:
        super().__init__("plain", {}, History())
        self._committed = committed

    def _connected(self) -> bool:
        return True

    def _say(self, line: str, data: bytes = b"") -> str:
        return {"BEGIN": "200 OK", "COMMIT": self._committed}.get(line, "202 Queued")


def _plain(answer: str) -> Record:
    record = Answering(f"409 Aborted 2 {answer}").cascade(CASCADE)
    assert record is not None
    return record


def _in_session(reason: SockpqError) -> Record:
    @contextmanager
    def transaction() -> Iterator[Any]:
        yield SimpleNamespace(done=lambda _: None, put=lambda *_: None)
        raise Aborted("409 Aborted", 2, reason)
    client: Any = SimpleNamespace(transaction=transaction)
    record = SessionExtendedClient("session", client, History()).cascade(CASCADE)
    assert record is not None
    return record


def test_one_whose_job_does_not_run_found_none() -> None:
    for record in (_plain("404 Job Not Found"), _in_session(JobNotFound("404"))):
        assert (record.outcome, record.good) == (Outcome.OK, (False,))


def test_one_that_was_refused_for_lack_of_room_says_nothing_of_its_job() -> None:
    for record in (_plain("503 Busy"), _in_session(Busy("503"))):
        assert (record.outcome, record.good) == (Outcome.NOT_EXECUTED, ())


def test_any_other_reason_is_a_defect() -> None:
    with pytest.raises(Unexpected, match="403"):
        _plain("403 Forbidden")
