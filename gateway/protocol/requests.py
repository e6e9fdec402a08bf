"""What a client asked for: the parser's output. PUT, GET, DONE and LATER are the queue machine's own operations."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from core import (
    Batch,
    Bury,
    Change,
    Configure,
    ConfigureQueue,
    CreateQueue,
    Delete,
    Done,
    DoneAll,
    DoneLast,
    Get,
    JobState,
    Kick,
    Later,
    LaterAll,
    LaterWith,
    Move,
    PauseQueue,
    Pick,
    Policy,
    Put,
    PutWith,
    ResumeQueue,
    Selector,
    Touch,
)


class BlockingGet(Struct, gc=False, frozen=True):
    """GETB; with `until_finished` GETBE, which ends when its queues have no unfinished job.

    `within_ms`: after that time the answer is that there is nothing.
    """

    get: Get | Pick
    until_finished: bool
    within_ms: int | None = None


class PutWait(Struct, gc=False, frozen=True):
    """PUT .. WAIT: `put`, then `get` waits for a job of the same item."""

    put: Put | PutWith
    get: Get
    within_ms: int | None = None


class Puts(Struct, gc=False, frozen=True):
    """PUTS: jobs, or in the place of one why it is none; a line of answer for each.

    There is at least one job or refusal, and all data together are no more than BATCH_BYTES_MAX.
    """

    puts: tuple[Put | PutWith | Refused, ...]


class BuryRequest(Struct, gc=False, frozen=True):
    """BURY with a REASON: a word for the log of the server, no more."""

    bury: Bury
    reason: str


class PurgeRequest(Struct, gc=False, frozen=True):
    """QUEUE PURGE; `state` None: all but the running ones. Executed as several PurgeQueue."""

    queue: str
    state: JobState | None


class DropQueue(Struct, gc=False, frozen=True):
    """QUEUE DELETE. With `force` executed as several PurgeQueue and a DeleteQueue."""

    queue: str
    force: bool


class Bound(Struct, gc=False, frozen=True):
    """GET, GETB or GETBE with BOUND: what is handed out is bound to the session of the connection."""

    command: Get | Pick | BlockingGet

    def to(self, session: int) -> Get | Pick | BlockingGet:
        """The command with the session in it, which the parser does not know."""
        command = self.command
        if isinstance(command, BlockingGet):
            return replace(command, get=_bound(command.get, session))
        return _bound(command, session)


def _bound(get: Get | Pick, session: int) -> Get | Pick:
    if isinstance(get, Pick):
        return replace(get, get=replace(get.get, session=session))
    return replace(get, session=session)


InLog = (
    Put | PutWith | Get | Pick | Done | DoneAll | DoneLast | Later | LaterAll | LaterWith | Touch | Change | Delete
    | Move | Bury | Kick | Batch | CreateQueue | ConfigureQueue | PauseQueue | ResumeQueue | Configure
    | BlockingGet | PutWait | Bound | Puts | BuryRequest | PurgeRequest | DropQueue
)


class Numbered(Struct, gc=False, frozen=True):
    """REQ (spec/sessions 3): `command` is request `number` of the connection's session; see request_id.py."""

    number: int
    digest: bytes
    command: InLog | Commit


class CloneStart(Struct, gc=False, frozen=True):
    """CLONE: a snapshot of `total_bytes` follows in `CloneData` requests.

    With REQ it has a `number`, and the `digest` of its line, to which that of the snapshot comes.
    """

    total_bytes: int
    number: int = 0
    digest: bytes = b""


class CloneData(Struct, gc=False, frozen=True):
    """The next bytes of the snapshot; `last` with the final ones (which may be none)."""

    data: bytes
    last: bool


class Total(Struct, gc=False, frozen=True):
    """TOTAL, of one queue or of all."""

    queue: str | None


class QueueList(Struct, gc=False, frozen=True):
    """QUEUE LIST: the queues whose names begin with `prefix`, which may be empty."""

    prefix: str


class QueueStat(Struct, gc=False, frozen=True):
    """QUEUE STAT."""

    queue: str


class QueueConfig(Struct, gc=False, frozen=True):
    """QUEUE CONFIG without settings: show them."""

    queue: str


class Config(Struct, gc=False, frozen=True):
    """CONFIG without a setting: show them all."""


class Peek(Struct, gc=False, frozen=True):
    """PEEK of one job."""

    selector: Selector


class PeekQueue(Struct, gc=False, frozen=True):
    """PEEK of the first `count` jobs of a queue in this state."""

    queue: str
    state: JobState
    count: int


class Begin(Struct, gc=False, frozen=True):
    """BEGIN: the commands behind it are queued until COMMIT."""


class Commit(Struct, gc=False, frozen=True):
    """COMMIT; with REQ before it it is numbered as any other command, and its digest covers the queued commands."""


class Rollback(Struct, gc=False, frozen=True):
    """ROLLBACK: forget them."""


class PolicyDefault(Struct, gc=False, frozen=True):
    """POLICY: how the GETs of this connection choose a queue that do not say it themselves."""

    policy: Policy


class RunList(Struct, gc=False, frozen=True):
    """RUNLIST, with DATA when asked."""

    with_data: bool


class Snapshot(Struct, gc=False, frozen=True):
    """SNAPSHOT."""


class Interconnect(Struct, gc=False, frozen=True):
    """INTERCONNECT."""


class Offline(Struct, gc=False, frozen=True):
    """OFFLINE."""


class Online(Struct, gc=False, frozen=True):
    """ONLINE."""


class Quit(Struct, gc=False, frozen=True):
    """QUIT."""


class Shutdown(Struct, gc=False, frozen=True):
    """SHUTDOWN."""


class Caps(Struct, gc=False, frozen=True):
    """CAPS."""


class Ping(Struct, gc=False, frozen=True):
    """PING."""


class SessionOpen(Struct, gc=False, frozen=True):
    """SESSION. `default`: the client named no TTL, so that a setting of the cluster goes before."""

    ttl_ms: int
    default: bool = False


class SessionAttach(Struct, gc=False, frozen=True):
    """SESSION <sid>: the two parts of the sid."""

    number: int
    secret: int


class SessionClose(Struct, gc=False, frozen=True):
    """SESSION CLOSE, with RELEASE when bound jobs shall go LATER."""

    release: bool


class SessionList(Struct, gc=False, frozen=True):
    """SESSION LIST."""


class SessionEnd(Struct, gc=False, frozen=True):
    """SESSION END: an operator ends the session of this number."""

    number: int


class Taken(Struct, gc=False, frozen=True):
    """TAKEN."""


class Auth(Struct, gc=False, frozen=True):
    """AUTH <user> <secret>."""

    user: str
    secret: str


class AuthWord(Struct, gc=False, frozen=True):
    """AUTH <user> or AUTH <answer>: which of them depends on whether there is a challenge."""

    word: str


class UserSet(Struct, gc=False, frozen=True):
    """USER SET, the rights in their usual form."""

    name: str
    rights: str
    key: bytes


class UserDelete(Struct, gc=False, frozen=True):
    """USER DELETE."""

    name: str


class UserList(Struct, gc=False, frozen=True):
    """USER LIST."""


class ClusterStatus(Struct, gc=False, frozen=True):
    """CLUSTER STATUS."""


class ClusterLeader(Struct, gc=False, frozen=True):
    """CLUSTER LEADER."""


class ClusterHash(Struct, gc=False, frozen=True):
    """CLUSTER HASH."""


class ClusterAdd(Struct, gc=False, frozen=True):
    """CLUSTER ADD; `peer` and `client` are "host:port"."""

    node: str
    peer: str
    client: str


class ClusterRemove(Struct, gc=False, frozen=True):
    """CLUSTER REMOVE."""

    node: str


class ClusterTransfer(Struct, gc=False, frozen=True):
    """CLUSTER TRANSFER, to the node that is best prepared when none is named."""

    node: str | None


class ClusterSwitch(Struct, gc=False, frozen=True):
    """CLUSTER ONLINE or CLUSTER OFFLINE."""

    online: bool


class ClusterSnapshot(Struct, gc=False, frozen=True):
    """CLUSTER SNAPSHOT."""


class Refused(Struct, gc=False, frozen=True):
    """Not a command that can be executed: `answer` says why."""

    answer: bytes


class Broken(Struct, gc=False, frozen=True):
    """The stream cannot be followed any further: say `answer` and close."""

    answer: bytes


Command = (
    InLog | Numbered | Begin | Commit | Rollback | PolicyDefault | CloneStart | CloneData | Total | QueueList
    | QueueStat | QueueConfig | Config | Peek | PeekQueue | RunList | Snapshot | Interconnect | Offline | Online | Quit
    | Shutdown | Caps | Ping | SessionOpen | SessionAttach | SessionClose | SessionList | SessionEnd | Taken
    | ClusterStatus | ClusterLeader | ClusterHash | ClusterAdd | ClusterRemove | ClusterTransfer | ClusterSwitch
    | ClusterSnapshot | Auth | AuthWord | UserSet | UserDelete | UserList | Refused | Broken
)
