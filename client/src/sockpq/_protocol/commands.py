"""Every command of the protocol as a value: its bytes, how its answer is read, and what may be done when it is lost.

The functions check their arguments (TypeError, BadArguments, DataTooLarge) and do nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from functools import lru_cache, partial
from typing import Any, Generic, Literal, NamedTuple, TypeVar, Unpack

from sockpq._protocol import arguments, job_replies, replies
from sockpq._protocol.arguments import INT64_MAX, UINT64_MAX, Then
from sockpq._protocol.reader import Reader
from sockpq._protocol.session import NUMBER_BYTES_MAX
from sockpq.errors import BadArguments
from sockpq.model import (
    Finished,
    Handed,
    Leader,
    NodeStatus,
    QueueTotals,
    RunningJob,
    SessionInfo,
    StateHash,
    Totals,
    User,
    Waiting,
)
from sockpq.options import Data, PutOptions, get_options, put_options, within

T = TypeVar("T")
Block = bool | Literal["until_done"]

_GET_VERBS: dict[Block, str] = {False: "GET", True: "GETB", "until_done": "GETBE"}


class Repeat(Enum):
    """What may be done with a command that was sent and whose answer was lost (spec/client 2.2)."""

    FREELY = "it changes nothing"
    HARMLESS = "doing it twice does no harm: a lost job returns when its lease ends, an id is done only once"
    IF_ASKED = "doing it twice may be wrong: only when the caller said that at least once is good enough"


class Blocks(Enum):
    """When may the server delay the rest of the answer for as long as it likes?"""

    NEVER = "it answers at once"
    AT_ONCE = "GETB, GETBE: until a job comes"
    AFTER_206 = "PUT .. WAIT: the first line at once, the output when it comes"


class Hidden(bytes):
    """The line of a command that has a secret in it: nobody sees it by accident, as in a log or a debugger."""

    def __repr__(self) -> str:
        return "<hidden>"


class Command(NamedTuple, Generic[T]):
    """One command, ready to send."""

    line: bytes
    data: bytes
    read: Callable[[], Reader[T]]
    repeat: Repeat
    blocks: Blocks = Blocks.NEVER
    slow: bool = False      # it may take its time: a server that is silent meanwhile is no reason for concern
    logged: bool = False    # it may be a numbered request of a session
    needs: tuple[str, ...] = ()             # words of CAPS: it must not be sent to a server that does not say them
    older: Command[Any] | None = None       # to be sent to such a server (an original sockPQd has no CAPS) instead
    opening: Command[Any] | None = None     # sent before it on the same connection, and to be answered well
    prelude: bytes = b""                    # goes directly before its line


def put(
    queue: str, data: Data, priority: int = 0, item: str | None = None, new_item: bool = False,
    **options: Unpack[PutOptions],
) -> Command[str | None]:
    """PUT without WAIT."""
    start, end, read = _put_line(queue, priority, item, new_item, options)
    body = arguments.body(data)
    return Command(f"{start}{len(body)}{end}".encode(), body, read, Repeat.IF_ASKED, logged=True)


def puts(
    queue: str, datas: Iterable[Data], priority: int = 0, item: str | None = None, new_item: bool = False,
    **options: Unpack[PutOptions],
) -> list[Command[str | None]]:
    """One PUT for each body."""
    start, end, read = _put_line(queue, priority, item, new_item, options)
    bodies = map(arguments.body, datas)
    return [Command(f"{start}{len(body)}{end}".encode(), body, read, Repeat.IF_ASKED, logged=True) for body in bodies]


def _put_line(
    queue: str, priority: int, item: str | None, new_item: bool, options: PutOptions
) -> tuple[str, str, Callable[[], Reader[str | None]]]:
    """What stands before the length, what behind it, and how the answer is read."""
    if item is not None and new_item:
        raise BadArguments("item names the job's item, new_item asks the server for a name: not both")
    item = item if item is None else arguments.name(item, "item")
    priority = arguments.integer(priority, "priority", -INT64_MAX - 1, INT64_MAX)
    new_item = arguments.switch(new_item, "new_item")
    start = f"PUT {arguments.name(queue, 'queue')} {priority} "
    end = " NEW" if new_item else f" IS {item}" if item else ""
    if options:
        return start, f"{end}{put_options(**options)}\r\n", partial(job_replies.stored, item, new_item)
    return start, f"{end}\r\n", partial(replies.stored, item, new_item)


def call(
    queue: str,
    data: Data,
    output: str,
    priority: int = 0,
    item: str | None = None,
    expire: float | None = None,
    then: Then | None = None,
    wait: float | None = None,
) -> Command[Handed | Waiting]:
    """PUT .. WAIT: the job, and the wait for the job of the same item in queue `output`, `wait` seconds at most."""
    stored = put(queue, data, priority, item, new_item=item is None)
    line = stored.line.removesuffix(b"\r\n") + (
        f" WAIT {arguments.name(output, 'output')}{arguments.lease(expire, then)}".encode()
    )
    made: Command[Handed | Waiting] = Command(
        line + b"\r\n", stored.data, partial(replies.output, output, item), Repeat.IF_ASKED, Blocks.AFTER_206,
        logged=True,
    )
    if wait is None:
        return made
    return made._replace(line=line + f"{within(wait)}\r\n".encode(), needs=("within",), older=made)


def get(
    queues: str | Iterable[str] | None = None,
    block: Block = False,
    expire: float | None = None,
    then: Then | None = None,
    wait: float | None = None,
    *,
    item: str | None = None,
    meta: bool = False,
    policy: str | None = None,
) -> Command[Handed | None]:
    """GET, GETB (`block=True`) or GETBE (`block="until_done"`), the latter two for `wait` seconds at most."""
    names = queues if queues is None or isinstance(queues, str) else tuple(queues)
    return _get(names, block, expire, then, wait, item, meta, policy)


@lru_cache(maxsize=1024, typed=True)        # a worker says the same all the time
def _get(
    queues: str | tuple[str, ...] | None,
    block: Block,
    expire: float | None,
    then: Then | None,
    wait: float | None,
    item: str | None,
    meta: bool,
    policy: str | None,
) -> Command[Handed | None]:
    options = get_options(item, meta, policy)
    names, line = get_line(queues, block, expire, then, bool(options) or then == "dead")
    repeat = Repeat.HARMLESS if expire else Repeat.IF_ASKED     # without a lease a lost job would run for ever
    read: Callable[[], Reader[Handed | None]] = (
        partial(replies.job_with_meta, names) if meta else partial(replies.job, names, block is not True)
    )
    blocks = Blocks.AT_ONCE if block else Blocks.NEVER
    made = Command(_checked(line + options), b"", read, repeat, blocks, logged=True)
    if wait is None:
        return made
    if block is False:
        raise BadArguments("wait limits a blocking get: it needs block")
    _, line = get_line(queues, block, expire, then, True)
    read = read if meta else partial(replies.job, names)
    return made._replace(line=_checked(line + options + within(wait)), read=read, needs=("within",), older=made)


def get_line(
    queues: str | tuple[str, ...] | None, block: Block, expire: float | None, then: Then | None, new_words: bool
) -> tuple[tuple[str, ...] | None, str]:
    """The queues, and a GET as the original has it; `new_words` follow, which they may only behind an argument."""
    if not isinstance(block, bool) and block != "until_done":
        raise BadArguments(f"block is False, True or 'until_done', not {block!r}")
    names = arguments.queues(queues)
    chosen = f" {'|'.join(names)}" if names else " *" if new_words else ""
    return names, _GET_VERBS[block] + chosen + arguments.lease(expire, then)


def _checked(line: str) -> bytes:
    """A line with its end; raises BadArguments when it is too long."""
    if len(line) + 2 + NUMBER_BYTES_MAX > arguments.LINE_BYTES_MAX:
        raise BadArguments(f"too many queues: the command would have {len(line) + 2} bytes")
    return line.encode() + b"\r\n"


def done(job_id: int) -> Command[Finished]:
    """DONE."""
    return Command(b"DONE %d\r\n" % _job_id(job_id), b"", replies.finished, Repeat.HARMLESS, logged=True)


def later(job_id: int) -> Command[None]:
    """LATER."""
    return Command(b"LATER %d\r\n" % _job_id(job_id), b"", replies.done, Repeat.HARMLESS, logged=True)


def total(queue: str | None = None) -> Command[Totals]:
    """TOTAL."""
    line = "TOTAL\r\n" if queue is None else f"TOTAL {arguments.name(queue, 'queue')}\r\n"
    return Command(line.encode(), b"", replies.totals, Repeat.FREELY)


def queues(prefix: str = "") -> Command[list[QueueTotals]]:
    """QUEUE LIST."""
    line = f"QUEUE LIST {arguments.name(prefix, 'prefix')}*\r\n" if prefix != "" else "QUEUE LIST\r\n"
    return Command(line.encode(), b"", replies.queues, Repeat.FREELY)


def running(with_data: bool = False) -> Command[list[RunningJob]]:
    """RUNLIST."""
    line = b"RUNLIST DATA\r\n" if arguments.switch(with_data, "data") else b"RUNLIST\r\n"
    return Command(line, b"", partial(replies.running, with_data), Repeat.FREELY)


def clone(snapshot: Data) -> Command[None]:
    """CLONE."""
    data = arguments.body(snapshot, arguments.SNAPSHOT_BYTES_MAX)
    return Command(b"CLONE %d\r\n" % len(data), data, replies.done, Repeat.IF_ASKED, logged=True)


def cluster_add(name: str, peer: str, client: str) -> Command[int]:
    """CLUSTER ADD; both addresses "host:port"."""
    line = f"CLUSTER ADD {arguments.node(name)} {arguments.address(peer)} {arguments.address(client)}\r\n"
    return Command(line.encode(), b"", replies.number, Repeat.IF_ASKED, slow=True)


def cluster_remove(name: str) -> Command[None]:
    """CLUSTER REMOVE."""
    return Command(f"CLUSTER REMOVE {arguments.node(name)}\r\n".encode(), b"", replies.done, Repeat.IF_ASKED, slow=True)


def cluster_transfer(name: str | None = None) -> Command[Leader]:
    """CLUSTER TRANSFER."""
    line = "CLUSTER TRANSFER\r\n" if name is None else f"CLUSTER TRANSFER {arguments.node(name)}\r\n"
    return Command(line.encode(), b"", replies.new_leader, Repeat.IF_ASKED, slow=True)


def session_open(ttl: float) -> Command[str]:
    """SESSION TTL: a new session that ends `ttl` seconds after its last use."""
    line = f"SESSION TTL {arguments.session_ttl(ttl)}\r\n"
    return Command(line.encode(), b"", replies.session_opened, Repeat.FREELY)


def session_attach(sid: str) -> Command[None]:
    """SESSION <sid>: this connection speaks for that session from now on."""
    return Command(f"SESSION {sid}\r\n".encode(), b"", partial(replies.session_attached, sid), Repeat.FREELY)


def session_end(number: int) -> Command[bool]:
    """SESSION END."""
    line = f"SESSION END {arguments.integer(number, 'number', 1, UINT64_MAX)}\r\n"
    return Command(line.encode(), b"", replies.session_ended, Repeat.HARMLESS)


def auth(user: str, secret: bytes) -> Command[None]:
    """AUTH with the secret itself."""
    return Command(Hidden(b"AUTH %s %s\r\n" % (user.encode(), secret)), b"", replies.done, Repeat.FREELY)


def auth_challenge(user: str) -> Command[bytes]:
    """AUTH with the user alone: the server answers with a nonce."""
    return Command(f"AUTH {user}\r\n".encode(), b"", replies.nonce, Repeat.FREELY)


def auth_response(secret: bytes, nonce: bytes) -> Command[None]:
    """AUTH with the proof that one has the secret."""
    import hmac  # it brings OpenSSL along, and a client on the same machine or with TLS needs no proof

    proof = hmac.digest(secret, nonce, "sha256").hex()
    return Command(Hidden(f"AUTH {proof}\r\n".encode()), b"", replies.done, Repeat.FREELY)


def user_set(name: str, rights: str | Iterable[str], secret: str) -> Command[None]:
    """USER SET."""
    line = f"USER SET {arguments.user(name)} {arguments.rights(rights)} {arguments.key(secret)}\r\n"
    if len(line) > arguments.LINE_BYTES_MAX:
        raise BadArguments(f"too many rights: the command would have {len(line)} bytes")
    return Command(Hidden(line.encode()), b"", replies.done, Repeat.HARMLESS)


def user_delete(name: str) -> Command[None]:
    """USER DELETE."""
    return Command(f"USER DELETE {arguments.user(name)}\r\n".encode(), b"", replies.done, Repeat.IF_ASKED)


def _job_id(job_id: int) -> int:
    return arguments.integer(job_id, "job id", 0, UINT64_MAX)


SESSION_CLOSE = b"SESSION CLOSE RELEASE\r\n"
SESSION_LIST: Command[list[SessionInfo]] = Command(b"SESSION LIST\r\n", b"", replies.sessions, Repeat.FREELY)
USER_LIST: Command[list[User]] = Command(b"USER LIST\r\n", b"", replies.users, Repeat.FREELY)
SNAPSHOT: Command[bytes] = Command(b"SNAPSHOT\r\n", b"", replies.data, Repeat.FREELY)
INTERCONNECT: Command[int] = Command(b"INTERCONNECT\r\n", b"", replies.number, Repeat.FREELY)
PING: Command[None] = Command(b"PING\r\n", b"", replies.done, Repeat.FREELY)
CAPS: Command[tuple[str, ...]] = Command(b"CAPS\r\n", b"", replies.words, Repeat.FREELY)
CLUSTER_STATUS: Command[list[NodeStatus]] = Command(b"CLUSTER STATUS\r\n", b"", replies.statuses, Repeat.FREELY)
CLUSTER_LEADER: Command[Leader | None] = Command(b"CLUSTER LEADER\r\n", b"", replies.leader, Repeat.FREELY)
CLUSTER_HASH: Command[StateHash] = Command(b"CLUSTER HASH\r\n", b"", replies.state_hash, Repeat.FREELY)
_OFFLINE = partial(replies.done, "200 OK Switched to Offline Mode")
_ONLINE = partial(replies.done, "200 OK Switched to Online Mode")
CLUSTER_OFFLINE: Command[None] = Command(b"CLUSTER OFFLINE\r\n", b"", _OFFLINE, Repeat.HARMLESS, slow=True)
CLUSTER_ONLINE: Command[None] = Command(b"CLUSTER ONLINE\r\n", b"", _ONLINE, Repeat.HARMLESS, slow=True)
CLUSTER_SNAPSHOT: Command[int] = Command(b"CLUSTER SNAPSHOT\r\n", b"", replies.number, Repeat.HARMLESS, slow=True)
OFFLINE: Command[None] = Command(b"OFFLINE\r\n", b"", _OFFLINE, Repeat.HARMLESS, slow=True)
ONLINE: Command[None] = Command(b"ONLINE\r\n", b"", _ONLINE, Repeat.HARMLESS)
SHUTDOWN: Command[None] = Command(b"SHUTDOWN\r\n", b"", partial(replies.done, "221 Shutting Down"), Repeat.IF_ASKED)
