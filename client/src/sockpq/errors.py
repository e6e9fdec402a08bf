"""Every error a caller can see, in one place.

    SockpqError
    ├── NotExecuted             the command changed nothing and never will: repeating it is safe
    │   ├── BadArguments        refused before sending, or `400` from the server (also a ValueError)
    │   ├── DataTooLarge        `413`: the body or result is longer than the queue or the server allows
    │   ├── NotSupported        `501`, or a server that is too old for it
    │   ├── InvalidSnapshot     CLONE: these bytes are not a snapshot that this server can read
    │   ├── JobNotFound         no running job has this id (done before, expired, never handed out), no job this key
    │   ├── Refused             another refusal with a status line of its own
    │   │   ├── JobExists       put(key=): an unfinished or recent job of the queue has this key
    │   │   ├── JobRunning      the job with this key is running: it belongs to its holder
    │   │   ├── QueueNotFound   there is no such queue
    │   │   ├── TopicNotFound   nothing is bound to this topic
    │   │   ├── BindingNotFound the queue is not bound to it in this way
    │   │   ├── TooManyBindings the topic has the maximum number
    │   │   ├── GroupNotFound   sched_group(), group_resume(), group_delete(): no such group, or it is not paused
    │   │   ├── ItemNotFound    item_stat(), item_retry(), item_cancel(): the item has no job
    │   │   ├── ItemNotHeld     item_release(): the item has no hold (any more)
    │   │   ├── ItemCancelled   put(), item_hold(), item_retry(): the item is cancelled and takes no jobs
    │   │   ├── WorkerNotFound  there is no such pool of workers
    │   │   ├── WorkerExists    worker_beat(): another session has a pool of this name
    │   │   ├── QueueExists     queue_create(): the queue exists
    │   │   ├── QueueNotEmpty   queue_delete(), queue_config(): the queue has (too many) jobs
    │   │   ├── QueueFull       the maximum number of jobs wait, or of DEDUP keys are remembered
    │   │   ├── QueuePaused     the queue takes no jobs until queue_resume()
    │   │   ├── PulseNotFound   there is no such pulse
    │   │   ├── PulseExists     pulse_create(): the pulse exists
    │   │   ├── PulseInUse      pulse_delete(): a queue uses it
    │   │   ├── TooManyPulses   the maximum number exists (`limits.pulses_max`)
    │   │   ├── TicketNotFound  the turn has its result already, or it is too late for one
    │   │   ├── WaitTimeout     turn(within=): no turn came in time
    │   │   ├── Denied          turn(): the pulse says not to act
    │   │   ├── Elsewhere       another cluster owns the name, or at present none does
    │   │   ├── MapChanged      set_cluster_map(): the cluster has this version of the map, or a greater one
    │   │   └── Aborted         transaction(): none of its commands was executed, because one would be refused
    │   ├── AuthError           user and secret are refused, or missing (`401`); retrying is pointless
    │   ├── ForbiddenError      `403`: the user has no right to do that
    │   ├── Busy                `503 Busy` until the deadline: the server is out of memory or its log is full
    │   ├── NotServing          `500`: this server does not serve; only for calls that name the server
    │   ├── Unavailable         no server could execute it before the deadline
    │   │   └── Untrusted       TLS: no server has a valid certificate; retrying is pointless
    │   ├── ForeignCluster      the servers belong to another cluster than the one that this client has used
    │   ├── CrossCluster        with several clusters: an atomic command has names of more than one
    │   ├── Inherited           a forked child has used a job, a loop or a session of its parent
    │   └── ClientClosed        close() was called
    ├── EventsLost              events(): some were missed and cannot be delivered any more; the loop may continue
    ├── OutcomeUnknown          no answer arrived: executed once, or not at all
    │   ├── NoOutput            call(): the job is queued, but its output did not arrive
    │   └── BatchFailed         put_many(): has the outcome of each job
    └── ProtocolError           the server violated the protocol; the cause of one of the others

A wrong type is a plain TypeError, as everywhere in Python, and nothing was sent.
"""

from __future__ import annotations


class SockpqError(Exception):
    """Base of all errors of this library."""


class NotExecuted(SockpqError):
    """The command changed nothing and never will."""


class BadArguments(NotExecuted, ValueError):
    """A value the protocol does not allow; found before sending, or answered `400`."""


class DataTooLarge(NotExecuted):
    """The body or result is longer than the queue, the server or (256 MiB) the protocol allows."""


class NotSupported(NotExecuted):
    """The server knows the command and does not offer it (`501`), or is of a version that does not know it."""


class InvalidSnapshot(NotExecuted):
    """CLONE was given bytes that are not a snapshot; the state is unchanged."""


class JobNotFound(NotExecuted):
    """No running job has this id: it was done, its lease ended, or it was never handed out. Or no job has this key."""


class Refused(NotExecuted):
    """The server refused with a status line that has no error class here; `args[0]` is the line."""


class JobExists(Refused):
    """An unfinished job of the queue has this key; or one had it, and the queue keeps the keys of finished jobs."""


class JobRunning(Refused):
    """The job with this key is running: only its holder may change it, by its id."""


class GroupNotFound(Refused):
    """No group of jobs has, or still has, this name, or it is not paused: 404 Group Not Found."""


class ItemNotFound(Refused):
    """The item has no job (yet, or no longer): 404 Item Not Found."""


class ItemNotHeld(Refused):
    """The item has no hold, perhaps because it expired before it was released: 404 Item Not Held."""


class ItemCancelled(Refused):
    """The item is cancelled: it takes no jobs, and none of its jobs is handed out or put back: 409 Item Cancelled."""


class QueueNotFound(Refused):
    """There is no such queue; for put() if put() does not create queues (config AUTOCREATE OFF)."""


class TopicNotFound(Refused):
    """Nothing is bound to this topic."""


class BindingNotFound(Refused):
    """The queue is not bound to this topic in this way."""


class TooManyBindings(Refused):
    """The topic has as many bindings as it may have."""


class WorkerNotFound(Refused):
    """There is no pool of workers of this name."""


class WorkerExists(Refused):
    """Another session has a live pool of workers of this name."""


class QueueExists(Refused):
    """The queue exists already: it has settings or an unfinished job."""


class QueueNotEmpty(Refused):
    """The queue has jobs, or too many for this change."""


class QueueFull(Refused):
    """As many jobs wait in the queue as its `capacity` allows, or it remembers as many DEDUP keys as it may."""


class QueuePaused(Refused):
    """The queue takes no jobs until queue_resume()."""


class PulseNotFound(Refused):
    """There is no such pulse."""


class PulseExists(Refused):
    """There is a pulse of this name."""


class PulseInUse(Refused):
    """A queue uses this pulse."""


class TooManyPulses(Refused):
    """The cluster has as many pulses as it may."""


class TicketNotFound(Refused):
    """The turn already has its result, or was given up because there was no result in time."""


class WaitTimeout(Refused):
    """No turn came in time."""


class Denied(Refused):
    """The pulse says not to act (PULSE SET .. DENY); `payload` is the data set with it."""

    def __init__(self, message: str, payload: bytes = b"") -> None:
        super().__init__(message)
        self.payload = payload

    def __reduce__(self) -> tuple[type[Denied], tuple[str, bytes]]:
        return type(self), (self.args[0], self.payload)


class Elsewhere(Refused):
    """The name is owned by another cluster of the map, `cluster`, or at present by none (None): 409 Elsewhere."""

    def __init__(self, message: str, cluster: str | None) -> None:
        super().__init__(message)
        self.cluster = cluster

    def __reduce__(self) -> tuple[type[Elsewhere], tuple[str, str | None]]:
        return type(self), (self.args[0], self.cluster)


class MapUnread(Elsewhere):
    """The cluster has a map of clusters, which decides where the command goes and was not read yet. Internal."""


class MapChanged(Refused):
    """The new map's version is not greater than the cluster's, `version`: 409 Map Changed."""

    def __init__(self, message: str, version: int) -> None:
        super().__init__(message)
        self.version = version

    def __reduce__(self) -> tuple[type[MapChanged], tuple[str, int]]:
        return type(self), (self.args[0], self.version)


class Aborted(Refused):
    """None of the commands of a transaction was executed.

    `position`: the place of the command that would have been refused, counting from 1; `reason`: the error it would
    have got.
    """

    def __init__(self, message: str, position: int, reason: SockpqError) -> None:
        super().__init__(message)
        self.position = position
        self.reason = reason

    def __reduce__(self) -> tuple[type[Aborted], tuple[str, int, SockpqError]]:
        return type(self), (self.args[0], self.position, self.reason)


class AuthError(NotExecuted):
    """The servers do not accept this user with this secret, or require AUTH (`401 Auth Required`)."""


class ForbiddenError(NotExecuted):
    """The user has no right to do that (`403 Forbidden`).

    `needs`: the rights that the command takes, as "put for queue mail"; "" if that is not known. The server does not
    say which of several are missing.
    """

    def __init__(self, message: str, needs: str = "") -> None:
        super().__init__(message)
        self.needs = needs

    def __str__(self) -> str:
        return f"{self.args[0]}: it needs the right {self.needs}" if self.needs else str(self.args[0])

    def __reduce__(self) -> tuple[type[ForbiddenError], tuple[str, str]]:
        return type(self), (self.args[0], self.needs)


class Busy(NotExecuted):
    """The server is overloaded (`503`) and stayed so until the deadline."""


class NotServing(NotExecuted):
    """This server is not the serving leader (`500 Offline Mode`)."""


class Unavailable(NotExecuted):
    """No server executed the command before the deadline; the message has the last reason."""


class Untrusted(Unavailable):
    """The server cannot prove its identity: its certificate is not valid here, or it does not speak TLS."""


class ForeignCluster(NotExecuted):
    """The servers do not belong to the cluster that this client has used; the message names both clusters.

    The client stays with the first cluster, as ids of jobs and sessions have other meanings in another one. It
    continues when servers of the first one are back; to use the other one create a new Client.
    """


class CrossCluster(NotExecuted):
    """A command or transaction that must be atomic has names or jobs of several clusters of the map.

    Nothing was sent. Names that belong together need a common prefix in the map: then one cluster owns all of them.
    """


class Inherited(NotExecuted):
    """A job, loop, consumer or asyncio client was used in a forked child: it belongs to the process that made it.

    A child never ends a job or session of its parent. It may use an inherited blocking client for its own jobs.
    """


class ClientClosed(NotExecuted):
    """The client was closed by close()."""


class EventsLost(SockpqError):
    """events(): the events numbered `first` to `last` may have been missed: read the state again.

    The servers no longer have them, or missed them, too. The loop may be started again.
    """

    def __init__(self, first: int, last: int) -> None:
        super().__init__(f"events {first} to {last} may be lost")
        self.first = first
        self.last = last

    def __reduce__(self) -> tuple[type[EventsLost], tuple[int, int]]:
        return type(self), (self.first, self.last)


class OutcomeUnknown(SockpqError):
    """The command was sent and no answer arrived: it may have been executed, or may still be."""


class NoOutput(OutcomeUnknown):
    """call(): the job is queued, but the wait for its output ended without one.

    `item` is the name that groups the job and its output: the output, when it is there, waits in the output queue under
    this name.
    """

    def __init__(self, message: str, item: str) -> None:
        super().__init__(message)
        self.item = item

    def __reduce__(self) -> tuple[type[NoOutput], tuple[str, str]]:
        return type(self), (self.args[0], self.item)


class BatchFailed(OutcomeUnknown):
    """put_many() did not get everything acknowledged before it had to give up.

    `unknown` and `not_executed` hold positions in the batch; every other job of the batch is acknowledged.
    """

    def __init__(self, message: str, unknown: tuple[int, ...], not_executed: tuple[int, ...]) -> None:
        super().__init__(message)
        self.unknown = unknown
        self.not_executed = not_executed

    def __reduce__(self) -> tuple[type[BatchFailed], tuple[str, tuple[int, ...], tuple[int, ...]]]:
        return type(self), (self.args[0], self.unknown, self.not_executed)


class ProtocolError(SockpqError):
    """The server sent bytes that are not the protocol. The connection is closed: its state is unknown."""
