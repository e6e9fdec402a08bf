"""What a client asked for: the parser's output. PUT, GET, DONE and LATER are the queue machine's own operations."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from core import Done, Get, Later, Put


class BlockingGet(Struct, gc=False, frozen=True):
    """GETB; with `until_finished` GETBE, which ends when its queues have no unfinished job (A24)."""

    get: Get
    until_finished: bool


class PutWait(Struct, gc=False, frozen=True):
    """PUT .. WAIT: `put`, then `get` waits for a job of the same item."""

    put: Put
    get: Get


class Bound(Struct, gc=False, frozen=True):
    """GET, GETB or GETBE with BOUND: what is handed out is bound to the session of the connection."""

    command: Get | BlockingGet

    def to(self, session: int) -> Get | BlockingGet:
        """The command with the session in it, which the parser does not know."""
        command = self.command
        if isinstance(command, Get):
            return replace(command, session=session)
        return BlockingGet(replace(command.get, session=session), command.until_finished)


InLog = Put | Get | Done | Later | BlockingGet | PutWait | Bound


class Numbered(Struct, gc=False, frozen=True):
    """REQ (EXTENSIONS.md 11): `command` is request `number` of the connection's session; see numbering.py."""

    number: int
    digest: bytes
    command: InLog


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
    """QUEUE LIST (EXTENSIONS.md 9): the queues whose names begin with `prefix`, which may be empty."""

    prefix: str


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
    """CAPS (EXTENSIONS.md 0)."""


class Ping(Struct, gc=False, frozen=True):
    """PING (EXTENSIONS.md 0)."""


class SessionOpen(Struct, gc=False, frozen=True):
    """SESSION, with TTL or without (EXTENSIONS.md 11)."""

    ttl_ms: int


class SessionAttach(Struct, gc=False, frozen=True):
    """SESSION <sid>: the two parts of the sid."""

    number: int
    secret: int


class SessionClose(Struct, gc=False, frozen=True):
    """SESSION CLOSE, with RELEASE when bound jobs shall go LATER."""

    release: bool


class Taken(Struct, gc=False, frozen=True):
    """TAKEN."""


class Auth(Struct, gc=False, frozen=True):
    """AUTH <user> <secret> (EXTENSIONS.md 14)."""

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
    """CLUSTER STATUS (EXTENSIONS.md 15)."""


class ClusterLeader(Struct, gc=False, frozen=True):
    """CLUSTER LEADER (EXTENSIONS.md 15)."""


class ClusterHash(Struct, gc=False, frozen=True):
    """CLUSTER HASH (EXTENSIONS.md 15)."""


class ClusterAdd(Struct, gc=False, frozen=True):
    """CLUSTER ADD (EXTENSIONS.md 15); `peer` and `client` are "host:port"."""

    node: str
    peer: str
    client: str


class ClusterRemove(Struct, gc=False, frozen=True):
    """CLUSTER REMOVE (EXTENSIONS.md 15)."""

    node: str


class ClusterTransfer(Struct, gc=False, frozen=True):
    """CLUSTER TRANSFER (EXTENSIONS.md 15), to the node that is best prepared when none is named."""

    node: str | None


class ClusterSwitch(Struct, gc=False, frozen=True):
    """CLUSTER ONLINE or CLUSTER OFFLINE (EXTENSIONS.md 15)."""

    online: bool


class ClusterSnapshot(Struct, gc=False, frozen=True):
    """CLUSTER SNAPSHOT (EXTENSIONS.md 15)."""


class Refused(Struct, gc=False, frozen=True):
    """Not a command that can be executed: `answer` says why."""

    answer: bytes


class Broken(Struct, gc=False, frozen=True):
    """The stream cannot be followed any further: say `answer` and close."""

    answer: bytes


Command = (
    InLog | Numbered | CloneStart | CloneData | Total | QueueList | RunList | Snapshot | Interconnect | Offline | Online
    | Quit | Shutdown | Caps | Ping | SessionOpen | SessionAttach | SessionClose | Taken | ClusterStatus | ClusterLeader
    | ClusterHash | ClusterAdd | ClusterRemove | ClusterTransfer | ClusterSwitch | ClusterSnapshot | Auth | AuthWord
    | UserSet | UserDelete | UserList | Refused | Broken
)
