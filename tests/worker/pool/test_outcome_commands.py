"""The commands that end jobs, and those that ask for jobs."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from sockpq import DataTooLarge
from sockpq._protocol.command import Command
from sockpq._routing.router import Router
from sockpq.model import Handed
from sockpq.worker.outcome import Failure, Outcome
from sockpq.worker.pool.fetch import request
from sockpq.worker.pool.outcome_commands import _end, _plain, done, end_job, give_back

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


def test_results_and_errors_go_with_the_end_to_servers_that_keep_them() -> None:
    kept = _end(JOB, Outcome("done", returned=b"5"))
    assert (kept.line + kept.data, kept.needs) == (b"DONE 7 RESULT 1\r\n5", ("retain",))
    assert _plain(kept).line == b"DONE 7\r\n"
    failure = Failure("OSError", "no", "Traceback")
    dead = _end(JOB, Outcome("dead", reason="OSError", failure=failure))
    assert (dead.line + dead.data, dead.needs) == (b"BURY 7 REASON OSError ERROR 9\r\nTraceback", ("backoff",))
    later = _end(JOB, Outcome("later", 2, "OSError", failure=failure._replace(trace="")))
    assert later.line + later.data == b"LATER 7 DELAY 2 REASON OSError ERROR 11\r\nOSError: no"
    assert (later.needs, later.older and later.older.needs) == (("pulse", "backoff"), ("pulse",))
    assert _plain(later).line == b"LATER 7 DELAY 2\r\n"
    told = _end(JOB, Outcome("later", 1, "SlowDown", slow=True, failure=failure))
    assert told.line == b"LATER 7 DELAY 1 YIELD SLOW REASON SlowDown\r\n"      # that was no failure


def test_a_result_that_is_too_long_is_a_failure() -> None:
    sent: list[bytes] = []

    class Refusing:
        async def run(self, command: Command[Any], *, timeout: float) -> None:
            sent.append(command.line + command.data)
            if b"RESULT" in command.line:
                raise DataTooLarge("413 Data Too Large")

    assert asyncio.run(end_job(cast(Router, Refusing()), JOB, Outcome("done", returned=b"xyz"), 1))
    text = b"BadResult: what the task returned has 3 bytes: 413 Data Too Large"
    assert sent == [b"DONE 7 RESULT 3\r\nxyz", b"BURY 7 REASON BadResult ERROR %d\r\n%s" % (len(text), text)]
