"""A large operation in fragments, each in an entry of its own, so that small operations do not wait behind megabytes.

One operation at a time: the leader logs the fragments in order, with other clients' operations between them, and the
last one executes what they are when put together. `number` tells it from those of earlier operations and `offset` says
where in it the data belong, so whatever is missing is noticed. A new leader begins anew.
"""

from __future__ import annotations

from sockpqd.core.ops.logged import Logged


class Fragment(Logged, tag=89, frozen=True):
    """Some bytes of an encoded operation; those at offset 0 discard what was collected before."""

    number: int         # chosen by the proposer, unlike that of the operation before
    offset: int
    data: bytes


class LastFragment(Logged, tag=90, frozen=True):
    """The last bytes of an encoded operation, which is executed now; the reply is that to the operation."""

    number: int
    offset: int
    data: bytes
