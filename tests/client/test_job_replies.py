"""The answers of the commands for time, keys, several jobs, queues; and the error each refusal is."""

from __future__ import annotations

from typing import Any

import pytest
import sockpq
from sockpq import (
    Aborted,
    Busy,
    Finished,
    JobExists,
    JobNotFound,
    Meta,
    NotServing,
    PeekedJob,
    Place,
    ProtocolError,
)
from sockpq._protocol.command import Command
from sockpq._protocol.commands import batches, jobs, queues
from sockpq._protocol.protocol import Protocol
from sockpq.model import Handed, Stored, Waiting

TWO_PUTS = batches.puts_batch(batches.puts("q", [b"", b""]), counted=True)[0].command
TWO_DONES = batches.ends("DONE", [1, 2])[0].command
ONE_DONE = batches.ends("DONE", [1])[0].command
PAIR = batches.transaction([jobs.done(1), jobs.put("q", b"")])
META = b"IS i KEY k GROUP g TRY 2 AT 5 EXPIRE 9"

CASES: list[tuple[Command[Any], bytes, Any]] = [
    (jobs.put("q", b"", item="i", key="k"), b"200 OK EXISTS\r\n", Stored("i", "k", "exists")),
    (jobs.put("q", b"", key="k"), b"200 OK REPLACED\r\n", Stored(None, "k", "replaced")),
    (jobs.put("q", b"", new_item=True, key="k"), b"200 OK IS i5\r\n", Stored("i5", "k")),
    (jobs.get("q", meta=True), b"200 OK q 1 0 2 " + META + b"\r\nhi",
     Handed(1, "q", 0, b"hi", "i", Meta("k", 2, 5, 9, group="g"))),
    (jobs.get("q", meta=True), b"200 OK q 1 0 0 TRY 1\r\n",
     Handed(1, "q", 0, b"", None, Meta(None, 1, None, None))),
    (jobs.get("q", meta=True), b"200 OK q 1 0 0 TRY 1 NOVELTY 5\r\n",     # of a newer server
     Handed(1, "q", 0, b"", None, Meta(None, 1, None, None))),
    (jobs.get("q", meta=True), b"404 Queue Empty\r\n", None),
    (jobs.get("q", True, wait=1), b"404 Queue Empty\r\n", None),
    (jobs.remote_call("q", b"", "o", wait=1), b"206 Wait for output IS i1\r\n408 Wait Timeout\r\n", Waiting("i1")),
    (batches.get_batch(3, "q"), b"404 Queue Empty\r\n", []),
    (batches.get_batch(3, "q"), b"200 OK 2\r\nq 1 5 3\r\nq 2 0 4 IS i\r\nabcdefg",
     [Handed(1, "q", 5, b"abc", None), Handed(2, "q", 0, b"defg", "i")]),
    (batches.get_batch(3, "q", meta=True), b"200 OK 1\r\nq 1 5 1 " + META + b"\r\na",
     [Handed(1, "q", 5, b"a", "i", Meta("k", 2, 5, 9, group="g"))]),
    (jobs.done(1), b"200 OK NEXT 1795130000\r\n", Finished(False, False, 1795130000)),
    (TWO_DONES, b"200 OK 2\r\n200 OK FINQ\r\n200 OK NEXT 7\r\n", [Finished(True, False), Finished(False, False, 7)]),
    (ONE_DONE, b"200 OK FINI\r\n", [Finished(False, True)]),
    (TWO_PUTS, b"200 OK 2\r\n200 OK\r\n200 OK EXISTS\r\n", [True, False]),
    (jobs.touch(1), b"200 OK EXPIRE 1795130000\r\n", 1795130000),
    (jobs.touch(1), b"200 OK\r\n", None),
    (jobs.peek(1), b"404 Job Not Found\r\n", None),
    (jobs.peek(1), b"200 OK q - 9 3 DELAYED KEY k TRY 0 AT 17\r\nabc",
     PeekedJob(None, "q", 9, b"abc", "delayed", None, "k", 0, 17, None)),
    (jobs.peek_queue("q", places=True), b"200 OK 1\r\nq - 0 1 READY KEY k TRY 0 SEQ 1740800000000001\r\na",
     [PeekedJob(None, "q", 0, b"a", "ready", None, "k", 0, None, None, place=Place("q", 1740800000000001))]),
    (jobs.peek_queue("q", "running", 2), b"200 OK 2\r\nq 1 0 1 RUNNING TRY 1 EXPIRE 9\r\nq 2 0 1 RUNNING\r\nab",
     [PeekedJob(1, "q", 0, b"a", "running", None, None, 1, None, 9),
      PeekedJob(2, "q", 0, b"b", "running", None, None, 0, None, None)]),
    (jobs.bury(1), b"200 OK FINQ\r\n", Finished(True, False)),
    (jobs.kick("q", 5), b"200 OK 3\r\n", 3),
    (queues.queue_config("q", {}).last, b"200 OK 3\r\nEXPIRE 300 THEN LATER\r\nITEMLIMIT 1\r\nMAXDATA 0\r\n",
     {"expire": "300 THEN LATER", "item_limit": "1", "data_bytes_max": "0"}),
    (queues.config({}).last, b"200 OK 1\r\nAUTOCREATE ON\r\n", {"autocreate": "ON"}),
    (queues.queue_stat("q"), b"200 OK 2\r\nREADY 5\r\nPAUSED_IN 0\r\n", {"ready": 5, "paused_in": 0}),
    (PAIR, b"202 Queued\r\n202 Queued\r\n200 OK 2\r\n200 OK FINI\r\n200 OK\r\n", [Finished(False, True), Stored()]),
]


def receive(command: Command[Any], answer: bytes) -> Any:
    protocol = Protocol()
    protocol.send(command)
    (found,) = protocol.receive(answer)
    assert protocol.at_rest
    if found.error:
        raise found.error
    return found.value


@pytest.mark.parametrize(("command", "answer", "value"), CASES)
def test_an_answer_is_understood(command: Command[Any], answer: bytes, value: Any) -> None:
    assert receive(command, answer) == value
    protocol = Protocol()
    protocol.send(command)
    pieces = [found for byte in answer for found in protocol.receive(bytes([byte]))]
    assert [found.value for found in pieces] == [value]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("404 Job Not Found", JobNotFound), ("404 Queue Not Found", sockpq.QueueNotFound),
        ("409 Job Exists", JobExists), ("409 Job Running", sockpq.JobRunning),
        ("409 Queue Exists", sockpq.QueueExists), ("409 Queue Not Empty", sockpq.QueueNotEmpty),
        ("503 Queue Full", sockpq.QueueFull), ("503 Queue Paused", sockpq.QueuePaused), ("503 Busy", Busy),
        ("413 Data Too Large", sockpq.DataTooLarge), ("400 Bad Arguments", sockpq.BadArguments),
        ("409 Pulse Exists", sockpq.PulseExists), ("500 Offline Mode", NotServing),
        ("403 Forbidden", sockpq.ForbiddenError), ("409 Novelty", sockpq.Refused),       # of a newer server
    ],
)
def test_each_refusal_is_an_error_of_its_own(line: str, error: type[Exception]) -> None:
    for command in (jobs.put("q", b"", key="k"), jobs.touch(1), TWO_PUTS, jobs.kick("q", 1),
                    queues.queue_create("q", {}), jobs.done(1), jobs.get("q", meta=True)):
        with pytest.raises(error) as refused:
            receive(command, f"{line}\r\n".encode())
        assert type(refused.value) is error
        assert refused.value.args[0] == line


def test_each_job_of_a_batch_has_its_own_error() -> None:
    good, bad = receive(TWO_PUTS, b"200 OK 2\r\n200 OK\r\n409 Job Exists\r\n")
    assert (good, type(bad)) == (True, JobExists)
    (gone,) = receive(ONE_DONE, b"404 Job Not Found\r\n")
    assert type(gone) is JobNotFound


def test_an_aborted_transaction_says_where_and_why() -> None:
    with pytest.raises(Aborted) as aborted:
        receive(PAIR, b"202 Queued\r\n202 Queued\r\n409 Aborted 2 409 Job Exists\r\n")
    assert (aborted.value.position, type(aborted.value.reason)) == (2, JobExists)
    with pytest.raises(Aborted) as aborted:
        receive(PAIR, b"202 Queued\r\n400 Bad Arguments\r\n409 Aborted 2 400 Bad Arguments\r\n")
    assert isinstance(aborted.value.reason, sockpq.BadArguments)
    with pytest.raises(Aborted) as aborted:
        receive(PAIR, b"202 Queued\r\n202 Queued\r\n409 Aborted 2 403 Forbidden\r\n")
    assert str(aborted.value.reason) == "403 Forbidden: it needs the right put for queue q"
    with pytest.raises(NotServing):
        receive(PAIR, b"202 Queued\r\n202 Queued\r\n500 Offline Mode\r\n")


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        (jobs.get("q"), b"200 OK q 1 0 0 TRY 1\r\n"),
        (jobs.get("q", meta=True), b"200 OK q 1 0 0 TRY\r\n"),
        (jobs.get("q", meta=True), b"200 OK q 1 0 0 TRY 1 TRY 2\r\n"),
        (jobs.get("q", meta=True), b"200 OK other 1 0 0\r\n"),
        (batches.get_batch(1, "q"), b"200 OK 2\r\nq 1 0 0\r\nq 2 0 0\r\n"),
        (batches.get_batch(1, "q"), b"200 OK 1\r\nq 1 0 0 TRY 1\r\n"),
        (TWO_PUTS, b"200 OK 1\r\n200 OK\r\n"),
        (TWO_DONES, b"200 OK 2\r\nrubbish\r\n200 OK\r\n"),
        (jobs.touch(1), b"200 OK 5\r\n"),
        (jobs.peek(1), b"200 OK q - 0 0 ASLEEP\r\n"),
        (PAIR, b"202 Queued\r\n202 Queued\r\n200 OK 1\r\n200 OK\r\n"),
        (PAIR, b"202 Queued\r\n400 Bad Arguments\r\n200 OK 1\r\n200 OK\r\n"),
        (PAIR, b"202 Queued\r\n202 Queued\r\n409 Aborted x\r\n"),
    ],
)
def test_what_is_not_the_protocol_is_said_so(command: Command[Any], answer: bytes) -> None:
    with pytest.raises((ProtocolError, sockpq.Refused)) as wrong:
        receive(command, answer)
    assert isinstance(wrong.value, ProtocolError) or b"409 Aborted x" in answer
