"""How the ends of jobs are said, and how jobs are asked for."""

from __future__ import annotations

from sockpq.model import Handed
from sockpq.worker.outcome import Outcome
from sockpq.worker.pool.fetch import request
from sockpq.worker.pool.outcome_commands import _end, _plain, done, give_back

JOB = Handed(7, "q", 0, b"", None)


def test_the_lines_of_outcomes() -> None:
    for outcome, line in (
        (Outcome("done"), b"DONE 7\r\n"),
        (Outcome("dead", reason="ValueError"), b"BURY 7 REASON ValueError\r\n"),
        (Outcome("later", 2.5, "OSError"), b"LATER 7 DELAY 2.500 REASON OSError\r\n"),
        (Outcome("later", 0.0, "ChildDied"), b"LATER 7 REASON ChildDied\r\n"),
        (Outcome("later", 1, "SlowDown", slow=True), b"LATER 7 DELAY 1 YIELD SLOW REASON SlowDown\r\n"),
        (Outcome("later", 60, "Sleep", sleep=60), b"LATER 7 DELAY 60 YIELD SLEEP 60.000 REASON Sleep\r\n"),
    ):
        assert _end(JOB, outcome).line == line


def test_older_servers_get_what_they_know() -> None:
    command = _end(JOB, Outcome("later", 2.5, "OSError"))
    assert command.needs == ("pulse",)
    assert _plain(command).line == b"LATER 7 DELAY 2.500\r\n"
    assert _plain(_end(JOB, Outcome("done"))).line == b"DONE 7\r\n"


def test_what_was_not_begun_goes_back_as_if_it_had_not_been_taken() -> None:
    assert give_back(JOB).line == b"LATER 7 FIRST YIELD\r\n"
    assert give_back(JOB, counts=True).line == b"LATER 7 FIRST\r\n"
    assert done([1, 2], lambda answers: None).line == b"DONE 1 2\r\n"


def test_the_request() -> None:
    assert request(("a", "b"), 8, 60, None).line == b"GETB a|b EXPIRE 60 META HEAD COUNT 8 WITHIN 60\r\n"
    assert request(("a",), 8, 60, "fair").line == b"GETB a EXPIRE 60 BY FAIR META HEAD COUNT 8 WITHIN 60\r\n"
    older = request(("a",), 8, 60, None).older
    assert older is not None
    assert older.line == b"GETB a EXPIRE 60 META COUNT 8 WITHIN 60\r\n"
