"""Every kind of message between nodes is bounded before it is sent: the largest of each is one that a peer accepts.

The reason for its bound is listed with its kind. That the bounds hold is tested where they are: the test is named.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest

from sockpqd.beanstalk import U32_MAX, calls
from sockpqd.beanstalk.limits import WATCHED_MAX
from sockpqd.cluster import limits
from sockpqd.cluster.api import HostFigures
from sockpqd.cluster.wire.messages import (
    WIRE_FORMAT,
    Ack,
    Admit,
    Append,
    CallOutcome,
    CancelCall,
    CommandAnswer,
    ForwardedCall,
    ForwardedCommand,
    Heard,
    Heartbeat,
    Hello,
    Info,
    Listening,
    Message,
    Notice,
    PreVote,
    PreVoteAnswer,
    RequestVote,
    SnapshotChunk,
    StaleTerm,
    TimeoutNow,
    Vote,
    encode,
)
from sockpqd.core import EVENT_TYPES, OPERATION_BYTES_MAX, Operation, Request, TouchSession
from sockpqd.core.limits import NAME_CHARS_MAX
from sockpqd.gateway.beanstalkd.call_operations import CALL_OPERATIONS
from sockpqd.gateway.beanstalkd.remote import RemoteRequest
from sockpqd.gateway.beanstalkd.remote import encode as encode_remote
from sockpqd.gateway.beanstalkd.sessions import KEPT_MAX
from sockpqd.gateway.dashboard.forms import FORM_BYTES_MAX
from sockpqd.gateway.limits import CHANNELS_TOLD_MAX, DATA_BYTES_CEILING, NOTIFY_BYTES_MAX

MOST = (1 << 64) - 1
SECONDS = 1.7e308
NAME = "\U0001f600" * NAME_CHARS_MAX            # the longest in UTF-8, if any characters were allowed
ADDRESS = "x" * 300

# Kind -> the largest message of it. A kind without an entry fails the test: say what bounds it.
LARGEST: dict[type, Callable[[], Message]] = {
    # Numbers, words of the program, and names and addresses of the configuration.
    Info: lambda: Info(
        "CANDIDATE", MOST, MOST, MOST, True, True, False, False, MOST, "x" * 100, MOST, bytes(32), MOST, True,
        tuple(EVENT_TYPES), MOST, MOST, MOST, HostFigures(MOST, MOST, MOST, MOST, MOST)),
    Heartbeat: lambda: Heartbeat(MOST, MOST, SECONDS, MOST, MOST),
    Ack: lambda: Ack(MOST, MOST, SECONDS, MOST, True, True, MOST, MOST),
    PreVote: lambda: PreVote(MOST, MOST, MOST, MOST),
    PreVoteAnswer: lambda: PreVoteAnswer(MOST, MOST, True),
    RequestVote: lambda: RequestVote(MOST, MOST, MOST, True),
    Vote: lambda: Vote(MOST),
    StaleTerm: lambda: StaleTerm(MOST),
    TimeoutNow: lambda: TimeoutNow(MOST),
    Admit: lambda: Admit(MOST),
    Heard: lambda: Heard(MOST),
    CancelCall: lambda: CancelCall(MOST),
    # A batch of pysyncobj's, which one more of the largest entries may close (cluster/raft/append_entries.py).
    Append: lambda: Append(MOST, MOST, SECONDS, MOST, MOST, MOST, [
        (bytes(limits.BATCH_BYTES_MAX), MOST, MOST), (bytes(OPERATION_BYTES_MAX + limits.ENTRY_BYTES_MAX), MOST, MOST)],
        MOST),
    SnapshotChunk: lambda: SnapshotChunk(
        MOST, MOST, SECONDS, MOST, MOST, MOST, bytes(limits.SNAPSHOT_CHUNK_BYTES), True, MOST, MOST, True),
    # So many names and prefixes, or one empty prefix instead (gateway/events/subscriptions.py).
    Listening: lambda: Listening(MOST, [([NAME], [], MOST)] * CHANNELS_TOLD_MAX),
    # The grammar refuses more data.
    Notice: lambda: Notice(NAME, bytes(NOTIFY_BYTES_MAX), lost=True),
    # A command that the dashboard makes of a form; its page shows one line of the answer (test_questions.py).
    ForwardedCommand: lambda: ForwardedCommand(MOST, NAME, ADDRESS, bytes(2 * FORM_BYTES_MAX)),
    CommandAnswer: lambda: CommandAnswer(MOST, bytes(limits.ANSWER_BYTES_MAX), executed=True),
    # test_forwarded_calls.py, and tests/beanstalk/test_node_backend.py for how larger ones are handled.
    ForwardedCall: lambda: ForwardedCall(MOST, NAME, ADDRESS, bytes(limits.CALL_BYTES_MAX)),
    CallOutcome: lambda: CallOutcome(MOST, bytes(limits.CALL_BYTES_MAX)),
}


def test_every_kind_of_message_is_listed() -> None:
    assert set(LARGEST) == set(get_args(Message))


@pytest.mark.parametrize("kind", LARGEST, ids=lambda kind: kind.__name__)
def test_the_largest_message_of_each_kind_is_accepted(kind: type) -> None:
    message = LARGEST[kind]()
    assert type(message) is kind
    assert len(encode(message)) <= limits.MESSAGE_BYTES_MAX


def test_the_largest_greeting_is_accepted() -> None:
    hello = Hello(
        WIRE_FORMAT, "n" * 254, "n" * 254, bytes(16), "x" * 100, True, True, "", MOST, ADDRESS, MOST, MOST, MOST, MOST,
        MOST, MOST, bytes(16), bytes(16), MOST, MOST, MOST)
    assert len(encode(hello)) <= limits.HELLO_BYTES_MAX


@pytest.mark.parametrize("operation", [
    *(Request(MOST, MOST, b"", 0, True, operation) for operation in (
        CALL_OPERATIONS[calls.PutJob](calls.PutJob(NAME, U32_MAX, U32_MAX, U32_MAX, bytes(DATA_BYTES_CEILING)), MOST),
        CALL_OPERATIONS[calls.Reserve](calls.Reserve((NAME,) * WATCHED_MAX, SECONDS), MOST),
    )),
    TouchSession((MOST,) * KEPT_MAX),
], ids=["put", "reserve", "keep"])
def test_the_requests_of_clients_are_small_enough_to_forward(operation: Operation) -> None:
    assert len(encode_remote(RemoteRequest(operation, MOST, True))) <= limits.CALL_BYTES_MAX


def test_the_largest_job_is_small_enough_for_an_outcome() -> None:
    job = calls.Reserved(MOST, MOST, NAME, SECONDS, bytes(DATA_BYTES_CEILING))
    assert len(encode_remote(job)) <= limits.CALL_BYTES_MAX
