"""The messages that a follower sends to the leader for its beanstalkd clients: session requests, and reads."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from sockpqd.beanstalk import CallFailure, calls
from sockpqd.core import FEATURE_LEVEL, Operation, as_of


class RemoteRequest(Struct, array_like=True, tag=1, frozen=True, gc=False):
    """An operation to execute, normally a Request of a session of the sending node.

    `wait_ms`: how long a Get may wait for a job; None: without limit. `first`: it was not sent before, so no part of it
    can have been executed or be in flight.
    """

    operation: Operation
    wait_ms: int | None = 0
    first: bool = False


class RemoteRead(Struct, array_like=True, tag=2, frozen=True, gc=False):
    """A call that changes nothing. None asks for the index of the last applied entry; the outcome is a Number."""

    call: calls.Lookup | None


class Retry(Struct, array_like=True, tag=150, frozen=True, gc=False):
    """Not executed, or outcome unknown: retry with the current leader."""


RETRY = Retry()


class SessionLost(Struct, array_like=True, tag=151, frozen=True, gc=False):
    """The session of the request has ended."""


Remote = RemoteRequest | RemoteRead
Outcome = calls.Result | CallFailure | Retry | SessionLost

_remotes: msgspec.msgpack.Decoder[Remote] = msgspec.msgpack.Decoder(Remote)
_outcomes: msgspec.msgpack.Decoder[Outcome] = msgspec.msgpack.Decoder(Outcome)
_encoder = msgspec.msgpack.Encoder()


def encode(value: Remote | Outcome, level: int = FEATURE_LEVEL) -> bytes:
    """Encode a message to the leader, or an outcome, for nodes of this feature level."""
    return _encoder.encode(as_of(level, value))


def decode_remote(data: bytes) -> Remote:
    """Decode what another node has sent. Raises msgspec.MsgspecError for bytes of a version not understood here."""
    return _remotes.decode(data)


def decode_outcome(data: bytes) -> Outcome:
    """Decode an outcome. Raises msgspec.MsgspecError for bytes of a version not understood here."""
    return _outcomes.decode(data)
