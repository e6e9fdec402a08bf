"""The operations on jobs; cluster.py says what an operation is.

Those of the original protocol, and beside them others for what was added to it. What a plain PUT or GET needs stays as
small as it was, and a node of an older version, which does not know what is new, refuses the whole entry: had an
old operation got new fields, it would execute the entry without them.
"""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct


class Then(IntEnum):
    """What happens to a running job when its lease ends (GET .. EXPIRE .. THEN)."""

    DEFAULT = 0     # as the cluster's expire_default says at hand-out
    LATER = 1       # back to the end of its queue
    DONE = 2        # removed
    DEAD = 3        # to the dead queue (spec/state-machine 8.2)


class Put(Struct, array_like=True, tag=1, gc=False, frozen=True):
    """Add a job. `new_item` asks for an item name made by the machine (PUT .. NEW); `item` is then None."""

    queue: str
    priority: int
    data: bytes
    item: str | None = None
    new_item: bool = False


class Get(Struct, array_like=True, tag=2, gc=False, frozen=True):
    """Hand out one job of the named queues, or of any queue when `queues` is None.

    `expire_ms` None means no EXPIRE was given (a queue's default may apply), 0 means no limit. With `item` only jobs of
    that item count; `item_of_put` means "the item of the Put that stands before this operation in the same entry": the
    hand-out of a PUT .. WAIT, which finds nothing when that Put was refused, and whose item may have no name yet when
    the entry is made (NEW). `session`: the hand-out is bound to this session, so that the job goes LATER when the
    session ends (GET .. BOUND).
    """

    queues: tuple[str, ...] | None
    expire_ms: int | None = None
    then: Then = Then.DEFAULT
    item: str | None = None
    item_of_put: bool = False
    session: int | None = None


class Done(Struct, array_like=True, tag=3, gc=False, frozen=True):
    """The running job `id` is finished: remove it."""

    id: int


class Later(Struct, array_like=True, tag=4, gc=False, frozen=True):
    """The running job `id` goes back to the end of its queue."""

    id: int


class Return(Struct, array_like=True, tag=5, gc=False, frozen=True):
    """Undo a hand-out that could not be delivered: the job goes back to its old place (spec/state-machine 2.4)."""

    id: int


class OnDup(IntEnum):
    """What a Put does when an unfinished job of its queue has its key (PUT .. KEY .. ONDUP)."""

    FAIL = 0        # nothing: the reply is JobExists
    IGNORE = 1      # nothing: the reply is JobIgnored
    REPLACE = 2     # it replaces the data, priority and time of a job that does not run


class Policy(IntEnum):
    """How one of several queues is chosen (GET .. BY, spec/state-machine 4.1)."""

    RANDOM = 0      # each that has a job to give is equally likely
    PRIORITY = 1    # the one that holds the job of the highest priority; of equal ones the first in the Get's order


class When(Struct, array_like=True, gc=False, frozen=True):
    """When a job becomes active: `delay_ms` from now, or at `at_ms` Unix time when that is given (also in the past)."""

    delay_ms: int = 0
    at_ms: int | None = None


class PutWith(Struct, array_like=True, tag=22, gc=False, frozen=True):
    """A Put with options; what is None is not wished for.

    `ttl_ms`: the job is removed when it was not handed out that long after it became active. `every_ms`: a Done makes
    it active again at the next multiple. `after`: it is deferred until each of these items has had no unfinished job
    once. `tries`: after so many attempts it is dead, whatever its queue says.
    """

    put: Put
    when: When | None = None
    ttl_ms: int | None = None
    every_ms: int | None = None
    after: tuple[str, ...] = ()
    key: str | None = None
    on_dup: OnDup = OnDup.FAIL
    tries: int | None = None


class Pick(Struct, array_like=True, tag=23, gc=False, frozen=True):
    """A Get with options: several jobs (at most `count`; None: one, in the form of a Get), `policy`, attempt data.

    Replies: Handed or Empty without `count`, HandedMany or Empty with it. With PRIORITY and queues named the order of
    `get.queues` decides among equals.
    """

    get: Get
    count: int | None = None
    policy: Policy | None = None        # None: as the cluster's setting says
    meta: bool = False                  # Handed.meta is filled in


class DoneAll(Struct, array_like=True, tag=24, gc=False, frozen=True):
    """DONE of several jobs; a reply for each, in Results."""

    ids: tuple[int, ...]


class LaterAll(Struct, array_like=True, tag=25, gc=False, frozen=True):
    """LATER of several jobs; a reply for each, in Results."""

    ids: tuple[int, ...]


class DoneLast(Struct, array_like=True, tag=26, gc=False, frozen=True):
    """DONE .. LAST: also a periodic job ends."""

    id: int


class LaterWith(Struct, array_like=True, tag=27, gc=False, frozen=True):
    """A Later with options: active at `when`, with another `priority`.

    `first`: to its old place. `yielded`: the hand-out was no attempt.
    """

    id: int
    when: When | None = None
    priority: int | None = None
    first: bool = False
    yielded: bool = False


class Touch(Struct, array_like=True, tag=28, gc=False, frozen=True):
    """TOUCH (spec/state-machine 3.2): the lease counts from now, for `expire_ms`.

    0: no limit; None: as long as at hand-out. Without `expire_ms` there is no `then` either. Replies: Leased, NotFound.
    """

    id: int
    expire_ms: int | None = None
    then: Then = Then.DEFAULT


class Selector(Struct, array_like=True, gc=False, frozen=True):
    """One job: the running one of this `id` when it is not 0, otherwise the one of `queue` that has `key`."""

    id: int = 0
    queue: str = ""
    key: str = ""


class Change(Struct, array_like=True, tag=29, gc=False, frozen=True):
    """CHANGE (spec/state-machine 7.3); what is None stays. `no_item`: it has no item any more.

    A job named by key that runs belongs to its holder: JobRunning. A running job takes `when` when it waits again.
    """

    selector: Selector
    priority: int | None = None
    when: When | None = None
    item: str | None = None
    no_item: bool = False
    data: bytes | None = None


class Delete(Struct, array_like=True, tag=30, gc=False, frozen=True):
    """DELETE (spec/state-machine 7.3). Replies: Finished, NotFound, JobRunning."""

    selector: Selector


class Move(Struct, array_like=True, tag=31, gc=False, frozen=True):
    """MOVE (spec/state-machine 9.1): the running job is done here and put into `queue`, with its item, key and tries.

    Replies: Finished (of the old queue; never of the item), NotFound, and those by which a Put is refused.
    """

    id: int
    queue: str
    priority: int | None = None
    when: When | None = None
    data: bytes | None = None


class Bury(Struct, array_like=True, tag=32, gc=False, frozen=True):
    """BURY (spec/state-machine 8.2): the running job is dead. Replies: Finished (of the queue), NotFound."""

    id: int


class Kick(Struct, array_like=True, tag=33, gc=False, frozen=True):
    """KICK (spec/state-machine 8.3): at most `count` dead jobs that come from `queue` wait there again.

    Reply: Removed. One operation moves PORTION_MAX at most.
    """

    queue: str
    count: int


Atomic = Put | PutWith | Done | DoneLast | Later | LaterWith | Move | Change | Delete | Touch | Bury


class Batch(Struct, array_like=True, tag=34, gc=False, frozen=True):
    """Several operations in a row (PUTS; BEGIN .. COMMIT). Replies: Results, Aborted.

    `atomic`: when one of them is refused, none is executed.
    """

    operations: tuple[Atomic, ...]
    atomic: bool
