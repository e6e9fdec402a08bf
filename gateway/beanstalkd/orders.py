"""Orders: calls on their way to the leader, and the outcomes on their way back."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from sockpqd.beanstalk import Failure, calls


class Open(Struct, array_like=True, tag=50, frozen=True, gc=False):
    """Open a session, which belongs to the node `node`. Result: Number, of the session."""

    node: str
    secret: int


class Keep(Struct, array_like=True, tag=51, frozen=True, gc=False):
    """Use these sessions, so that they do not end. Result: None."""

    sessions: tuple[int, ...]


class Newest(Struct, array_like=True, tag=52, frozen=True, gc=False):
    """Which state is the newest one? Result: Number, the index of the last entry that the leader has applied."""


class Order(Struct, array_like=True, frozen=True, gc=False):
    """A call of a connection, as the parts of request `number` of its `session`.

    A repeated order has the same number. `session` 0: not in a session, for what can be repeated anyway. `first`: it
    was not given before, so nothing of it can have been executed, or be on its way to that.
    """

    call: calls.Travelling | Open | Keep | Newest
    session: int = 0
    number: int = 0
    first: bool = False


class Again(Struct, array_like=True, tag=150, frozen=True, gc=False):
    """The order was not executed, or nobody knows: it is to be given again, to the leader there is then."""


AGAIN = Again()


class SessionLost(Struct, array_like=True, tag=151, frozen=True, gc=False):
    """The session of the order has ended."""


Outcome = calls.Result | Failure | Again | SessionLost

NO_DIGEST = b""                 # of requests: a node never uses a number for another command

_orders = msgspec.msgpack.Decoder(Order)
_outcomes = msgspec.msgpack.Decoder(Outcome)
_encoder = msgspec.msgpack.Encoder()


def encode(value: Order | Outcome) -> bytes:
    """An order or an outcome as bytes."""
    return _encoder.encode(value)


def decode_order(data: bytes) -> Order:
    """Raises msgspec.MsgspecError for bytes of a version that this one does not understand."""
    return _orders.decode(data)


def decode_outcome(data: bytes) -> Outcome:
    """Raises msgspec.MsgspecError for bytes of a version that this one does not understand."""
    outcome: Outcome = _outcomes.decode(data)
    return outcome
