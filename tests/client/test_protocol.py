"""Answers are read from bytes, in any pieces."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from sockpq import (
    AuthError,
    BadArguments,
    Busy,
    DataTooLarge,
    Finished,
    ForbiddenError,
    InvalidSnapshot,
    JobNotFound,
    Leader,
    NodeStatus,
    NoOutput,
    NotServing,
    NotSupported,
    OutcomeUnknown,
    ProtocolError,
    QueueTotals,
    Refused,
    RunningJob,
    StateHash,
    Totals,
)
from sockpq._protocol.command import Command
from sockpq._protocol.commands import cluster, jobs, queues
from sockpq._protocol.protocol import Answer, Protocol
from sockpq._protocol.reader import failure
from sockpq.model import Handed, JobStat, Meta, PeekedJob, ReplicaStatus, Stored

CASES: list[tuple[Command[Any], bytes, Any]] = [
    (jobs.put("q", b""), b"200 OK\r\n", Stored()),
    (jobs.put("q", b"", item="a"), b"200 OK\r\n", Stored("a")),
    (jobs.put("q", b"", new_item=True), b"200 OK IS i7\r\n", Stored("i7")),
    (jobs.get("q"), b"404 Queue Empty\r\n", None),
    (jobs.get("q"), b"200 OK q 12 -3 4\r\n\r\n\0x", Handed(12, "q", -3, b"\r\n\0x", None)),
    (jobs.get(), b"200 OK IS 1 0 0 IS IS\r\n", Handed(1, "IS", 0, b"", "IS")),
    (jobs.remote_call("q", b"", "out", item="a"),
     b"206 Wait for output\r\n200 OK out 5 0 2 IS a\r\nhi", Handed(5, "out", 0, b"hi", "a")),
    (jobs.remote_call("q", b"", "out"),
     b"206 Wait for output IS i1\r\n200 OK out 5 0 2 IS i1\r\nhi", Handed(5, "out", 0, b"hi", "i1")),
    (jobs.done(1), b"200 OK\r\n", Finished(False, False)),
    (jobs.done(1), b"200 OK FINQ FINI\r\n", Finished(True, True)),
    (jobs.done(1), b"200 OK FINI\r\n", Finished(False, True)),
    (jobs.later(1), b"200 OK\r\n", None),
    (queues.total(), b"200 OK 1 2 3 4\r\n", Totals(1, 2, 3, 4)),
    (queues.running(), b"200 OK 0\r\n", []),
    (queues.running(), b"200 OK 2\r\n1 q 0\r\n2 EXPIRE -1 EXPIRE 1700000000\r\n",
     [RunningJob(1, "q", 0, None, None), RunningJob(2, "EXPIRE", -1, 1700000000, None)]),
    (queues.running(True), b"200 OK 2\r\n1 q 0 2\r\n2 r -1 0 EXPIRE 17\r\nhi",
     [RunningJob(1, "q", 0, None, b"hi"), RunningJob(2, "r", -1, 17, b"")]),
    (queues.queues(), b"200 OK 0\r\n", []),
    (queues.queues("a"), b"200 OK 2\r\na 1 2 3 4 5\r\na.EXPIRE 0 0 1 0 0\r\n",
     [QueueTotals("a", 1, 2, 3, 4, 5), QueueTotals("a.EXPIRE", 0, 0, 1, 0, 0)]),
    (jobs.put("q", b"", number=True), b"200 OK NUMBER 1740\r\n", Stored(number=1740)),
    (jobs.put("q", b"", number=True, new_item=True), b"200 OK IS i1 NUMBER 7\r\n", Stored("i1", number=7)),
    (jobs.put("q", b"", number=True, key="k", on_duplicate="ignore"), b"200 OK EXISTS\r\n",
     Stored(None, "k", "exists")),
    (jobs.get_number(7), b"200 OK q 12 -3 2\r\nhi", Handed(12, "q", -3, b"hi", None)),
    (jobs.get_number(7, meta=True), b"200 OK q 12 0 0 NUMBER 7 TRY 2\r\n",
     Handed(12, "q", 0, b"", None, Meta(None, 2, None, None, number=7))),
    (jobs.kick_job(7), b"200 OK 1\r\n", 1),
    (jobs.peek_queue("q", "buried"), b"200 OK 1\r\nq - 7 2 BURIED NUMBER 9 TRY 1 REASON x\r\nhi",
     [PeekedJob(None, "q", 7, b"hi", "buried", None, None, 1, None, None, "x", None, 9)]),
    (jobs.job_stat(7), b"200 OK 16\r\nQUEUE q\r\nSTATE BURIED\r\nPRI -5\r\nLENGTH 2\r\nCREATED 17\r\nAGE_S 3\r\n"
     b"LEASE -\r\nDELAY 2.5\r\nLEFT_S 0\r\nATTEMPTS 1\r\nRESERVES 2\r\nTIMEOUTS 3\r\nRELEASES 4\r\nBURIES 5\r\n"
     b"KICKS 6\r\nMORE x\r\n", JobStat("q", "buried", -5, 2, 17, 3, None, 2.5, 0, 1, 2, 3, 4, 5, 6)),
    (queues.snapshot(), b"200 OK 3\r\nabc", b"abc"),
    (queues.clone(b""), b"200 OK\r\n", None),
    (cluster.INTERCONNECT, b"200 OK 2147483647\r\n", 2147483647),
    (cluster.CAPS, b"200 OK 0\r\n", ()),
    (cluster.CAPS, b"200 OK 12\r\nbatch\ndelay\n", ("batch", "delay")),
    (cluster.help_lines("queue list"), b"200 OK 1\r\nQUEUE LIST [<prefix>*]\r\n", ("QUEUE LIST [<prefix>*]",)),
    (cluster.CLUSTER_LEADER, b"404 No Leader\r\n", None),
    (cluster.CLUSTER_LEADER, b"200 OK 3 10.0.0.3 11361\r\n", Leader(3, "10.0.0.3:11361")),
    (cluster.CLUSTER_LEADER, b"200 OK 3 - -\r\n", Leader(3, None)),
    (cluster.cluster_add("n4", "a:1", "a:2"), b"200 OK 4\r\n", 4),
    (cluster.cluster_remove("n4"), b"200 OK\r\n", None),
    (cluster.cluster_transfer(), b"200 OK 3 ::1 11361\r\n", Leader(3, "[::1]:11361")),
    (cluster.cluster_snapshot(), b"200 OK 815\r\n", 815),
    (cluster.cluster_hash(), b"200 OK 12 9f3c\r\n", StateHash(12, "9f3c")),
    (cluster.cluster_replica(), b"409 No Replica\r\n", None),
    (cluster.cluster_replica(), b"200 OK idle 7 - - - - -\r\n", ReplicaStatus("idle", 7, None, None, None, None, "")),
    (cluster.cluster_replica(), b"200 OK connecting 7 0011223344556677 9 1500 h:1 no way: in\r\n",
     ReplicaStatus("connecting", 7, "0011223344556677", 9, 1.5, "h:1", "no way: in")),
    (cluster.feed_check(), b"409 Too New\r\n", None),
    (cluster.cluster_offline(), b"200 OK Switched to Offline Mode\r\n", None),
    (cluster.cluster_online(), b"200 OK Switched to Online Mode\r\n", None),
    (cluster.cluster_promote(), b"200 OK 17\r\n", 17),
    (cluster.cluster_promote(2.5), b"200 OK 17\r\n", 17),
    (cluster.cluster_fence("0123456789abcdef"), b"200 OK\r\n", None),
    (cluster.CLUSTER_STATUS, b"200 OK 2\r\n4 d - - LEARNER ONLINE 7 3 9 0.1.0\r\n5 e ::1 1 LEARNER - - - - -\r\n",
     [NodeStatus(4, "d", None, "LEARNER", True, 7, 3, 9, "0.1.0"),
      NodeStatus(5, "e", "[::1]:1", "LEARNER", None, None, None, None, None)]),
    (cluster.CLUSTER_STATUS,
     b"200 OK 2\r\n3 c ::1 11361 LEADER ONLINE 7 15233 0 0.1.0 -12\r\n- a a.example 1 DOWN - - - - - -\r\n",
     [NodeStatus(3, "c", "[::1]:11361", "LEADER", True, 7, 15233, 0, "0.1.0", -12),
      NodeStatus(None, "a", "a.example:1", "DOWN", None, None, None, None, None)]),
    (cluster.CLUSTER_STATUS, b"200 OK 1\r\n3 c 10.0.0.3 11361 FOLLOWER OFFLINE 7 15233 0\r\n",
     [NodeStatus(3, "c", "10.0.0.3:11361", "FOLLOWER", False, 7, 15233, 0, None)]),
    (cluster.online(), b"200 OK Switched to Online Mode\r\n", None),
]


@pytest.mark.parametrize(("command", "answer", "value"), CASES)
def test_an_answer_is_read_whole_and_byte_by_byte(command: Command[Any], answer: bytes, value: Any) -> None:
    whole = Protocol()
    whole.send(command)
    assert whole.receive(answer) == [Answer(value)]
    pieces = Protocol()
    pieces.send(command)
    got = [one for byte in range(len(answer)) for one in pieces.receive(answer[byte : byte + 1])]
    assert got == [Answer(value)]
    assert len(pieces) == 0


def test_pipelined_answers_belong_to_their_commands_in_order() -> None:
    protocol = Protocol()
    for command, _, _ in CASES:
        protocol.send(command)
    stream = b"".join(answer for _, answer, _ in CASES)
    middle = len(stream) // 2
    values = [one.value for one in protocol.receive(stream[:middle]) + protocol.receive(stream[middle:])]
    assert values == [value for _, _, value in CASES]


@pytest.mark.parametrize(
    ("command", "line", "error"),
    [
        (jobs.put("q", b""), b"500 Offline Mode", NotServing),
        (jobs.put("q", b""), b"400 Bad Arguments", BadArguments),
        (jobs.put("q", b""), b"413 Data Too Large", DataTooLarge),
        (jobs.put("q", b""), b"503 Busy", Busy),
        (jobs.put("q", b""), b"504 Outcome Unknown", OutcomeUnknown),
        (jobs.put("q", b""), b"401 Auth Required", AuthError),
        (jobs.put("q", b""), b"403 Forbidden", ForbiddenError),
        (jobs.put("q", b""), b"429 Slow Down", Refused),
        (queues.snapshot(), b"501 Not Supported", NotSupported),
        (jobs.done(1), b"404 Job Not Found", JobNotFound),
        (queues.clone(b""), b"500 Invalid Snapshot", InvalidSnapshot),
        (jobs.remote_call("q", b"", "out"), b"500 Offline Mode", NotServing),
    ],
)
def test_a_refusal_is_an_answer_and_the_connection_stays_in_step(
    command: Command[Any], line: bytes, error: type[Exception]
) -> None:
    protocol = Protocol()
    protocol.send(command)
    protocol.send(cluster.PING)
    refusal, ping = protocol.receive(line + b"\r\n200 OK\r\n")
    assert type(refusal.error) is error
    assert ping == Answer(None)


@pytest.mark.parametrize("line", [b"500 Offline Mode\r\n", b"404 Session Not Found\r\n"])
def test_after_206_a_refusal_speaks_of_the_wait_only(line: bytes) -> None:
    protocol = Protocol()
    protocol.send(jobs.remote_call("q", b"", "out"))
    assert protocol.receive(b"206 Wait for output IS i5\r\n") == []
    assert protocol.waiting is not None
    (answer,) = protocol.receive(line)
    assert isinstance(answer.error, NoOutput)
    assert answer.error.item == "i5"
    assert protocol.waiting is None


@pytest.mark.parametrize(
    ("command", "rubbish"),
    [
        (jobs.put("q", b""), b"HTTP/1.1 400 Bad Request\r\n"),
        (jobs.put("q", b""), b"200 OK\n"),
        (jobs.put("q", b""), b"\r\n"),
        (jobs.put("q", b""), b"200 OK \r\n"),
        (jobs.put("q", b""), b"200 OK q 1 0 0\r\n"),
        (jobs.put("q", b""), b"200 OK\r\n200 OK\r\n\xff"),
        (jobs.put("q", b""), b"\xff\xfe\r\n"),
        (jobs.put("q", b""), b"500 Something Else\r\n"),
        (jobs.put("q", b""), b"4000 x\r\n"),
        (jobs.put("q", b"", new_item=True), b"200 OK IS \r\n"),
        (jobs.put("q", b"", new_item=True), b"200 OK\r\n"),
        (jobs.get("q"), b"200 OK other 1 0 0\r\n"),
        (jobs.get("q"), b"200 OK q 1 0\r\n"),
        (jobs.get("q"), b"200 OK q 1 0 -1\r\n"),
        (jobs.get("q"), b"200 OK q 1 0 1_0\r\n"),
        (jobs.get("q"), b"200 OK q 1 0 99999999999999\r\n"),
        (jobs.get("q"), b"200 OK q 1 0 " + b"9" * 5000 + b"\r\n"),
        (jobs.get("q"), b"200 OK q x 0 1\r\n"),
        (jobs.get("q"), b"200 OK q 1 0 1 ITEM a\r\n"),
        (jobs.remote_call("q", b"", "out", item="a"), b"206 Wait for output\r\n200 OK out 5 0 2 IS b\r\nhi"),
        (jobs.remote_call("q", b"", "out", item="a"), b"206 Wait for output\r\n200 OK q 5 0 2 IS a\r\nhi"),
        (jobs.remote_call("q", b"", "out"), b"206 Wait for output\r\n"),
        (jobs.remote_call("q", b"", "out"), b"200 OK\r\n"),
        (jobs.done(1), b"200 OK FINI FINQ\r\n"),
        (queues.total(), b"200 OK 1 2 3\r\n"),
        (queues.running(), b"200 OK 99999999999\r\n"),
        (queues.running(), b"200 OK 1\r\n1 q\r\n"),
        (cluster.CLUSTER_STATUS, b"200 OK 1\r\n3 c 10.0.0.3 11361 KING ONLINE 7 15233 0\r\n"),
        (cluster.CLUSTER_STATUS, b"200 OK 1\r\n3 c 10.0.0.3 - LEADER ONLINE 7 15233 0\r\n"),
        (cluster.CLUSTER_STATUS, b"200 OK 1\r\n3 c 10.0.0.3 1 LEADER ONLINE 7 15233 0 0.1.0 1.5\r\n"),
        (queues.queues(), b"200 OK 1\r\na 1 2 3\r\n"),
        (queues.queues(), b"200 OK 1\r\n*a 1 2 3 4\r\n"),
        (cluster.cluster_transfer(), b"200 OK 3\r\n"),
        (cluster.cluster_hash(), b"200 OK 3 x\r\n"),
        (cluster.cluster_replica(), b"200 OK idle 7 - - - -\r\n"),
        (cluster.cluster_replica(), b"200 OK asleep 7 - - - - -\r\n"),
        (cluster.cluster_replica(), b"200 OK idle 7 x - - - -\r\n"),
        (cluster.feed_check(), b"200 OK 1\r\n"),
        (cluster.CLUSTER_STATUS, b"200 OK 1\r\n3 c 10.0.0.3 99999 LEADER ONLINE 7 15233 0\r\n"),
        (cluster.PING, b"2" * 70_000),
    ],
)
def test_what_is_not_the_protocol_is_an_error(command: Command[Any], rubbish: bytes) -> None:
    protocol = Protocol()
    protocol.send(command)
    def receive_twice() -> None:    # good answers before the rubbish are given out first
        protocol.receive(rubbish)
        protocol.receive(b"")

    with pytest.raises(ProtocolError):
        receive_twice()


def test_answers_before_rubbish_still_count() -> None:
    protocol = Protocol()
    for _ in range(3):
        protocol.send(jobs.put("q", b""))
    assert protocol.receive(b"200 OK\r\n200 OK\r\nrubbish\r\n") == [Answer(Stored()), Answer(Stored())]
    with pytest.raises(ProtocolError):
        protocol.receive(b"200 OK\r\n")


def test_after_rubbish_behind_an_answer_the_connection_is_not_at_rest() -> None:
    protocol = Protocol()
    protocol.send(jobs.put("q", b""))
    assert protocol.receive(b"200 OK\r\n200 OK\r\n") == [Answer(Stored())]
    assert len(protocol) == 0
    assert not protocol.at_rest


def test_after_an_interruption_the_connection_is_not_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal may raise KeyboardInterrupt anywhere: what it leaves must not be read as the next answer."""
    class Interrupted(deque[Any]):
        def popleft(self) -> Any:
            super().popleft()
            raise KeyboardInterrupt

    protocol = Protocol()
    assert protocol.at_rest
    monkeypatch.setattr(protocol, "_unanswered", Interrupted())
    protocol.send(jobs.put("q", b""))
    with pytest.raises(KeyboardInterrupt):
        protocol.receive(b"200 OK\r\n")
    assert len(protocol) == 0
    assert not protocol.at_rest


def test_bytes_nobody_asked_for_are_an_error() -> None:
    protocol = Protocol()
    with pytest.raises(ProtocolError):
        protocol.receive(b"200 OK\r\n")


def test_a_large_body_in_small_pieces_takes_linear_time() -> None:
    body = bytes(range(256)) * 80_000     # 20 MB in 5000 pieces
    protocol = Protocol()
    protocol.send(jobs.get("q"))
    stream = b"200 OK q 1 0 %d\r\n" % len(body) + body
    answers = [one for at in range(0, len(stream), 4096) for one in protocol.receive(stream[at : at + 4096])]
    assert answers == [Answer(Handed(1, "q", 0, body, None))]


def test_the_port_for_http_is_recognized() -> None:
    error = failure("HTTP/1.0 400 Bad Request")
    assert isinstance(error, ProtocolError)
    assert "give the one for clients" in str(error)
