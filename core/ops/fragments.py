"""A large operation in fragments, each in an entry of its own, so that small operations do not wait behind megabytes.

One operation at a time: the leader logs the fragments in order, with other clients' operations between them, and the
last one executes the operation. `number` distinguishes it from earlier operations and `offset` gives the position of
the data in it, so a missing fragment is noticed. A new leader starts over.
"""

from __future__ import annotations

from sockpqd.core.ops.logged import Logged


class Fragment(Logged, tag=89, frozen=True):
    """Some bytes of an encoded operation; those at offset 0 discard earlier fragments.

    `last`: they are the last ones, and the operation is executed now. Replies: Accepted, FragmentsMissing; of the last
    one the operation's reply.
    """

    number: int         # chosen by the proposer, unlike the operation's before
    offset: int
    data: bytes
    last: bool = False
