"""Encodes replies as answer lines (docs/PROTOCOL.md). Longer answers are formatted in listings.py."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import UNSET, Struct

from sockpqd.cluster.api import Checkpoint, Frame, NodeStatus, NotPossible
from sockpqd.core import (
    Aborted,
    Accepted,
    BadSetting,
    BindingNotFound,
    ChangeInProgress,
    ClusterMap,
    DataDropped,
    DataTooLarge,
    Elsewhere,
    Empty,
    EndState,
    FairGroup,
    Finished,
    GroupDecided,
    GroupNotFound,
    Handed,
    HandedMany,
    IgnoredNumber,
    InvalidSnapshot,
    ItemCancelled,
    ItemNotFound,
    ItemNotHeld,
    JobDropped,
    JobEnded,
    JobExists,
    JobIgnored,
    JobReplaced,
    JobRunning,
    JobState,
    JobTotals,
    Joined,
    LastNode,
    Leased,
    Life,
    Machine,
    MapChanged,
    Meta,
    Mirrored,
    Moved,
    NodeExists,
    NotFound,
    NotYet,
    Pulse,
    PulseExists,
    PulseInUse,
    PulseNotFound,
    QueueExists,
    QueueFull,
    QueueNotEmpty,
    QueueNotFound,
    QueuePaused,
    Rearmed,
    Removed,
    ReplicaRefused,
    Reply,
    RequestMismatch,
    RequestTooOld,
    Results,
    ServiceFenced,
    SessionAttached,
    SessionNotFound,
    SessionOpened,
    Spread,
    Stored,
    StoredNumber,
    TicketNotFound,
    TooManyBindings,
    TooManyGroups,
    TooManyHolds,
    TooManyPulses,
    TooManyQueues,
    TooManySessions,
    TooManyUsers,
    TooManyWorkers,
    TopicNotFound,
    UnknownNode,
    UserNotFound,
    WorkerBounds,
    WorkerExists,
    WorkerNotFound,
    WorkerState,
)
from sockpqd.gateway.limits import LARGE_BODY_BYTES
from sockpqd.gateway.protocol.tokens import meta, of_life, seconds, unix

UNKNOWN = "-"                   # a value that this node does not know
FEED_AGE_S_MAX = 1e9            # stands for any longer time, and for one that is not known
PROBLEM_CHARS_MAX = 500         # of the reason why a copy does not follow its origin
CLUSTER_ID_BYTES = 8            # of the 16 random ones: no two clusters that anybody mixes up share them

REFUSAL = b"4"                  # sorts above every successful answer (2xx, 334) and below every error

OK = b"200 OK\r\n"
# The words of PROTOCOL "PING, CAPS, HELP" by the feature level that they need (core/levels.py); a cluster has those of
# its level and of all lower ones.
FEATURES: dict[int, tuple[bytes, ...]] = {1: (
    b"batch", b"within", b"meta", b"itemfilter", b"delay", b"ttl", b"every", b"after", b"touch", b"keys", b"change",
    b"move", b"seq", b"transaction", b"queues", b"policy", b"fair", b"idle", b"deadletter", b"session", b"bound",
    b"fanout",
    b"workers", b"pulse", b"events", b"notify", b"number", b"cluster", b"auth", b"help",
    b"head", b"dedup", b"backoff",
    b"retain", b"await", b"find", b"progress", b"items", b"movequeue", b"life", b"map", b"groups",
), 2: (b"feed",)}
EXISTS = b"200 OK EXISTS\r\n"
DROPPED = b"200 OK DROPPED\r\n"
REPLACED = b"200 OK REPLACED\r\n"
QUEUED = b"202 Queued\r\n"
SWITCHED_OFFLINE = b"200 OK Switched to Offline Mode\r\n"
SWITCHED_ONLINE = b"200 OK Switched to Online Mode\r\n"
GOODBYE = b"221 Goodbye\r\n"
SHUTTING_DOWN = b"221 Shutting Down\r\n"
BAD_COMMAND = b"400 Bad Command\r\n"
AUTH_REQUIRED = b"401 Auth Required\r\n"
FORBIDDEN = b"403 Forbidden\r\n"
QUEUE_EMPTY = b"404 Queue Empty\r\n"
QUEUE_NOT_FOUND = b"404 Queue Not Found\r\n"
PULSE_NOT_FOUND = b"404 Pulse Not Found\r\n"
TICKET_NOT_FOUND = b"404 Ticket Not Found\r\n"
ITEM_NOT_FOUND = b"404 Item Not Found\r\n"
ITEM_CANCELLED = b"409 Item Cancelled\r\n"
ITEM_NOT_HELD = b"404 Item Not Held\r\n"
GROUP_NOT_FOUND = b"404 Group Not Found\r\n"
JOB_NOT_FOUND = b"404 Job Not Found\r\n"
NO_LEADER = b"404 No Leader\r\n"
NODE_NOT_FOUND = b"404 Node Not Found\r\n"
SESSION_NOT_FOUND = b"404 Session Not Found\r\n"
USER_NOT_FOUND = b"404 User Not Found\r\n"
TOPIC_NOT_FOUND = b"404 Topic Not Found\r\n"
BINDING_NOT_FOUND = b"404 Binding Not Found\r\n"
WORKER_NOT_FOUND = b"404 Worker Not Found\r\n"
WAIT_TIMEOUT = b"408 Wait Timeout\r\n"
CHANGE_IN_PROGRESS = b"409 Change In Progress\r\n"
JOB_EXISTS = b"409 Job Exists\r\n"
JOB_RUNNING = b"409 Job Running\r\n"
PULSE_EXISTS = b"409 Pulse Exists\r\n"
PULSE_IN_USE = b"409 Pulse In Use\r\n"
LAST_NODE = b"409 Last Node\r\n"
NODE_EXISTS = b"409 Node Exists\r\n"
QUEUE_EXISTS = b"409 Queue Exists\r\n"
QUEUE_NOT_EMPTY = b"409 Queue Not Empty\r\n"
NO_REPLICA = b"409 No Replica\r\n"
UNKNOWN_REPLICA = b"409 Unknown Replica\r\n"
DIFFERENT = b"409 Different\r\n"
TOO_NEW = b"409 Too New\r\n"
TOO_OLD = b"409 Too Old\r\n"
WORKER_EXISTS = b"409 Worker Exists\r\n"
USER_IN_FILE = b"409 User In File\r\n"
REQUEST_MISMATCH = b"409 Request Mismatch\r\n"
REQUEST_TOO_OLD = b"409 Request Too Old\r\n"
TOO_LARGE = b"413 Data Too Large\r\n"
OFFLINE_MODE = b"500 Offline Mode\r\n"
INVALID_SNAPSHOT = b"500 Invalid Snapshot\r\n"
NOT_SUPPORTED = b"501 Not Supported\r\n"
NOT_YET = b"501 Not Yet\r\n"
BUSY = b"503 Busy\r\n"
TOO_MANY_BINDINGS = b"503 Too Many Bindings\r\n"
QUEUE_FULL = b"503 Queue Full\r\n"
QUEUE_PAUSED = b"503 Queue Paused\r\n"
TOO_MANY_PULSES = b"503 Too Many Pulses\r\n"
OUTCOME_UNKNOWN = b"504 Outcome Unknown\r\n"


def bad_arguments(reason: str) -> bytes:
    """Encode `400 Bad Arguments` with a reason, of printable ASCII."""
    return f"400 Bad Arguments: {reason}\r\n".encode("ascii")


class AtWriting(Struct, gc=False, frozen=True):
    """An answer that is formatted only when it is written, because its content depends on that moment.

    `drop` is called instead when the client is gone. `jobs`: the jobs it hands out.
    """

    form: Callable[[], bytes]
    drop: Callable[[], None]
    jobs: Handed | HandedMany | None = None


def _stored_number(reply: StoredNumber) -> bytes:
    return f"200 OK NUMBER {reply.number}\r\n".encode() if reply.item is None else (
        f"200 OK IS {reply.item} NUMBER {reply.number}\r\n".encode()
    )


def _ignored_number(reply: IgnoredNumber) -> bytes:
    return f"200 OK EXISTS NUMBER {reply.number}\r\n".encode()


def _stored(reply: Stored) -> bytes:
    return OK if reply.item is None else f"200 OK IS {reply.item}\r\n".encode()


_END_NAMES: dict[int, str] = {state.value: state.name for state in (*JobState, *EndState)}


class LineOfLarge(bytes):
    """The line of an answer whose body is too large to be copied."""

    body: bytes


def _handed(reply: Handed) -> bytes:
    data = reply.data
    item = "" if reply.item is None else f" IS {reply.item}"
    if reply.meta is not UNSET or reply.head is not UNSET:
        item = _meta_of(reply)
    line = f"200 OK {reply.queue} {reply.id} {reply.priority} {len(data)}{item}\r\n".encode()
    if len(data) <= LARGE_BODY_BYTES:
        return line + data
    large = LineOfLarge(line)
    large.body = data
    return large


def _job_ended(reply: JobEnded) -> bytes:
    line = f"200 OK {_END_NAMES[reply.state]} {len(reply.data)}\r\n".encode()
    if len(reply.data) <= LARGE_BODY_BYTES:
        return line + reply.data
    large = LineOfLarge(line)
    large.body = reply.data
    return large


def _meta_of(reply: Handed) -> str:
    """Return the tokens after the length of a job handed out: its item, or all of them if META was requested, its
    history with LIFE, and the length of its headers if they were.
    """
    given = reply.meta
    last = "" if reply.head is UNSET else f" HEAD {reply.head}"
    if not isinstance(given, Meta):
        return last if reply.item is None else f" IS {reply.item}{last}"
    if isinstance(reply.life, Life):
        last = of_life(reply.life) + last
    return meta(
        reply.item, given.key, given.attempt, given.reason, given.at_ms, given.deadline_ms, given.group, given.number,
    ) + last


def _handed_many(reply: HandedMany) -> bytes:
    """Encode a list even for a single job, so that a client that uses COUNT need not handle two forms."""
    jobs = reply.jobs
    lines = [f"{job.queue} {job.id} {job.priority} {len(job.data)}{_meta_of(job)}\r\n" for job in jobs]
    return b"".join((number(len(jobs)), "".join(lines).encode(), *(job.data for job in jobs)))


_FINISHED = {
    (False, False): OK,
    (True, False): b"200 OK FINQ\r\n",
    (False, True): b"200 OK FINI\r\n",
    (True, True): b"200 OK FINQ FINI\r\n",
}


def _finished(reply: Finished) -> bytes:
    return _FINISHED[reply.queue_done, reply.item_done]


def _rearmed(reply: Rearmed) -> bytes:
    return f"200 OK NEXT {unix(reply.next_ms)}\r\n".encode()


def _leased(reply: Leased) -> bytes:
    return OK if reply.deadline_ms is None else f"200 OK EXPIRE {unix(reply.deadline_ms)}\r\n".encode()


def _removed(reply: Removed) -> bytes:
    return number(reply.count)


def _moved(reply: Moved) -> bytes:
    return number(reply.count) if reply.refusal is None else b"200 OK %d " % reply.count + answer(reply.refusal)


def _results(reply: Results) -> bytes:
    return lines_of([answer(one) for one in reply.replies])


def _aborted(reply: Aborted) -> bytes:
    return aborted(reply.position, answer(reply.reply))


def _joined(reply: Joined) -> bytes:
    return number(reply.id)


def _session_opened(reply: SessionOpened) -> bytes:
    return f"200 OK SESSION {reply.sid} TTL {seconds(reply.ttl_ms)}\r\n".encode()


def _spread(reply: Spread) -> bytes:
    return number(reply.queues)


def _bounds(reply: WorkerBounds) -> bytes:
    words = "" if reply.most is None else f" MAX {reply.most}"
    words += "" if reply.least is None else f" MIN {reply.least}"
    words += "" if reply.state is WorkerState.RUN else f" STATE {reply.state.name}"
    return f"200 OK{words}\r\n".encode()


def _always(line: bytes) -> Callable[[Reply], bytes]:
    return lambda reply: line


# By the type of a command's outcome; bytes are an answer already.
ENCODERS: dict[type, Callable[[Any], bytes]] = {
    bytes: lambda line: line,
    Stored: _stored,
    StoredNumber: _stored_number,
    Handed: _handed,
    Empty: _always(QUEUE_EMPTY),
    Finished: _finished,
    Accepted: _always(OK),
    NotFound: _always(JOB_NOT_FOUND),
    JobEnded: _job_ended,
    InvalidSnapshot: _always(INVALID_SNAPSHOT),
    NotYet: _always(NOT_YET),
    Joined: _joined,
    NodeExists: _always(NODE_EXISTS),
    UnknownNode: _always(NODE_NOT_FOUND),
    LastNode: _always(LAST_NODE),
    ChangeInProgress: _always(CHANGE_IN_PROGRESS),
    SessionOpened: _session_opened,
    TooManySessions: _always(BUSY),
    SessionNotFound: _always(SESSION_NOT_FOUND),
    RequestMismatch: _always(REQUEST_MISMATCH),
    RequestTooOld: _always(REQUEST_TOO_OLD),
    HandedMany: _handed_many,
    Rearmed: _rearmed,
    Leased: _leased,
    DataDropped: lambda reply: answer(reply.reply)[:-2] + b" DROPPED\r\n",
    ItemCancelled: _always(ITEM_CANCELLED),
    ItemNotFound: _always(ITEM_NOT_FOUND),
    ItemNotHeld: _always(ITEM_NOT_HELD),
    JobDropped: _always(DROPPED),
    JobExists: _always(JOB_EXISTS),
    JobIgnored: _always(EXISTS),
    IgnoredNumber: _ignored_number,
    JobReplaced: _always(REPLACED),
    JobRunning: _always(JOB_RUNNING),
    QueueNotFound: _always(QUEUE_NOT_FOUND),
    QueueExists: _always(QUEUE_EXISTS),
    QueueNotEmpty: _always(QUEUE_NOT_EMPTY),
    QueueFull: _always(QUEUE_FULL),
    QueuePaused: _always(QUEUE_PAUSED),
    DataTooLarge: _always(TOO_LARGE),
    TooManyQueues: _always(BUSY),
    Removed: _removed,
    Moved: _moved,
    Results: _results,
    Aborted: _aborted,
    UserNotFound: _always(USER_NOT_FOUND),
    Spread: _spread,
    TopicNotFound: _always(TOPIC_NOT_FOUND),
    BindingNotFound: _always(BINDING_NOT_FOUND),
    TooManyBindings: _always(TOO_MANY_BINDINGS),
    WorkerBounds: _bounds,
    WorkerExists: _always(WORKER_EXISTS),
    WorkerNotFound: _always(WORKER_NOT_FOUND),
    TooManyWorkers: _always(BUSY),
    PulseExists: _always(PULSE_EXISTS),
    PulseNotFound: _always(PULSE_NOT_FOUND),
    PulseInUse: _always(PULSE_IN_USE),
    TooManyPulses: _always(TOO_MANY_PULSES),
    GroupNotFound: _always(GROUP_NOT_FOUND),
    TooManyGroups: _always(BUSY),
    TooManyHolds: _always(BUSY),
    BadSetting: _always(bad_arguments("it contradicts the current settings")),
    GroupDecided: _always(bad_arguments(
        "the queue decides the groups of its jobs (GROUPBY): leave out GROUP, or set GROUPBY OFF first",
    )),
    TicketNotFound: _always(TICKET_NOT_FOUND),
    Elsewhere: lambda reply: f"409 Elsewhere {reply.cluster or UNKNOWN}\r\n".encode(),
    Mirrored: lambda reply: number(reply.index),
    ReplicaRefused: _always(NO_REPLICA),
    ServiceFenced: lambda reply: fenced(reply.replica),
    MapChanged: lambda reply: f"409 Map Changed {reply.version}\r\n".encode(),
    AtWriting: lambda answer: answer.form(),
    TooManyUsers: _always(BUSY),
}


def answer(reply: Reply | AtWriting) -> bytes:
    """Encode the reply to an operation as the answer to its command."""
    line = ENCODERS[type(reply)](reply)
    return line + line.body if type(line) is LineOfLarge else line


def lines_of(answers: Sequence[bytes]) -> bytes:
    """Encode the answer to a command on several jobs: the count, then each answer."""
    return number(len(answers)) + b"".join(answers)


def aborted(position: int, line: bytes) -> bytes:
    """Encode the answer to a COMMIT that was not executed because command `position` failed with `line`."""
    return b"409 Aborted %d " % position + line


def session_attached(number: int, secret: int, reply: SessionAttached) -> bytes:
    """The answer to SESSION <sid>."""
    return f"200 OK SESSION {number}_{secret:016x} TTL {seconds(reply.ttl_ms)} LAST {reply.last}\r\n".encode()


def fair_group(group: FairGroup) -> bytes:
    """The answer to SCHED GROUP."""
    return (
        f"200 OK LEVEL {group.level} USED {group.used_us} PRIORITY {group.priority_us} WAITING {group.waiting} "
        f"RUNNING {group.running}\r\n"
    ).encode()


def wait_for_output(reply: Stored) -> bytes:
    """The first answer to PUT .. WAIT; it names the item only if the machine generated it."""
    return b"206 Wait for output\r\n" if reply.item is None else f"206 Wait for output IS {reply.item}\r\n".encode()


def turn(ticket: int, pulse: Pulse) -> bytes:
    """The answer to PULSE WAIT: allow or deny, with the data set for the pulse."""
    word = "NOGO" if pulse.deny else "GO"
    return f"200 OK {word} {ticket} {len(pulse.payload)}\r\n".encode() + pulse.payload


@functools.cache
def caps(level: int) -> bytes:
    """The answer to CAPS in a cluster of this feature level."""
    words = [word for needed, words in FEATURES.items() if needed <= level for word in words]
    return number(sum(len(word) + 1 for word in words)) + b"".join(word + b"\n" for word in words)


@functools.lru_cache(maxsize=256)
def help_lines(lines: tuple[str, ...]) -> bytes:
    """Return the answer to HELP: the number of lines, and the lines."""
    return number(len(lines)) + "".join([f"{line}\r\n" for line in lines]).encode()


def total(totals: JobTotals) -> bytes:
    """Return the answer to TOTAL: the sums, in a fixed order."""
    return f"200 OK {totals.queues} {totals.priorities} {totals.jobs} {totals.running}\r\n".encode()


def number(value: int) -> bytes:
    """Encode `200 OK <n>`: a length, a count or a server id."""
    return b"200 OK %d\r\n" % value


def found(count: int, cursor: str | None) -> bytes:
    """Format the first line of the answer to FIND. `cursor`: the place where to continue."""
    return f"200 OK {count}{'' if cursor is None else f' NEXT {cursor}'}\r\n".encode()


def challenge(nonce: bytes) -> bytes:
    """The answer to AUTH <user>."""
    return f"334 {nonce.hex()}\r\n".encode()


def cluster_status(nodes: Sequence[NodeStatus], machine: Machine) -> bytes:
    """The answer to CLUSTER STATUS; `-` stands for values this node does not know.

    While the service as a whole is switched offline, every node is shown as offline.
    """
    lines = [f"200 OK {len(nodes)}\r\n"]
    for node in nodes:
        host, port = _address(node)
        online = "-" if node.online is None else "ONLINE" if node.online and machine.online else "OFFLINE"
        figures = (
            node.term, node.applied, node.lag, node.version, node.ahead_ms, node.level, node.cluster_level,
        )
        known = " ".join("-" if value is None else str(value) for value in figures)
        lines.append(f"{_known(node.server_id)} {node.name} {host} {port} {node.role} {online} {known}\r\n")
    return "".join(lines).encode()


def cluster_leader(leader: NodeStatus | None) -> bytes:
    """The answer to CLUSTER LEADER, and to a CLUSTER TRANSFER that made this node the leader."""
    if leader is None:
        return NO_LEADER
    host, port = _address(leader)
    return f"200 OK {_known(leader.server_id)} {host} {port}\r\n".encode()


def cluster_hash(index: int, value: bytes) -> bytes:
    """The answer to CLUSTER HASH."""
    return f"200 OK {index} {value.hex()}\r\n".encode()


def fenced(replica: str) -> bytes:
    """The answer of a cluster whose service was switched off for good in favour of this replica."""
    return f"409 Fenced {replica}\r\n".encode()


def cluster_replica(
    phase: str, index: int, origin: bytes | None, executed: int | None, lag_ms: int | None, server: str, problem: str,
) -> bytes:
    """The answer to CLUSTER REPLICA; what is not known, or empty, is `-`. The problem is the rest of the line."""
    cluster = UNKNOWN if origin is None else origin[:CLUSTER_ID_BYTES].hex()
    text = " ".join(problem.encode("ascii", "backslashreplace").decode().split())[:PROBLEM_CHARS_MAX]
    return (f"200 OK {phase} {index} {cluster} {_known(executed)} {_known(lag_ms)} {server or UNKNOWN} "
            f"{text or UNKNOWN}\r\n").encode()


def feed_frame(frame: Frame) -> bytes:
    """The line before an entry of CLUSTER FEED."""
    return b"%d %d %d %d\r\n" % (frame.index, frame.now_ms, frame.seed, len(frame.data))


def feed_checkpoint(checkpoint: Checkpoint) -> bytes:
    """The line of CLUSTER FEED by which a copy compares itself with its origin."""
    return f"HASH {checkpoint.index} {checkpoint.hash.hex()}\r\n".encode()


def feed_mark(index: int, executed: int, age_s: float) -> bytes:
    """The line of CLUSTER FEED that says how far it is: all entries up to `index`, of `executed`, were sent.

    `age_s`: of the state of this node; infinite if it has heard of no leader.
    """
    return b"NOW %d %d %d\r\n" % (index, executed, min(age_s, FEED_AGE_S_MAX) * 1000)


def feed_snapshot(index: int, value: bytes, length: int) -> bytes:
    """The first line of the answer to CLUSTER FEED SNAPSHOT; `length` bytes follow."""
    return f"200 OK {index} {value.hex()} {length}\r\n".encode()


def cluster_id(id_: bytes | None, known: ClusterMap | None) -> bytes:
    """The answer to CLUSTER ID: the beginning of the id, and the name in the map; `-` for what is unknown."""
    name = None if known is None else known.own
    return f"200 OK {UNKNOWN if id_ is None else id_[:CLUSTER_ID_BYTES].hex()} {name or UNKNOWN}\r\n".encode()


def cluster_map(known: ClusterMap | None) -> bytes:
    """The answer to MAP: version 0 without a map."""
    version, text = (0, b"") if known is None else (known.version, known.text)
    return f"200 OK {version} {len(text)}\r\n".encode() + text


def not_possible(refusal: NotPossible) -> bytes:
    """The answer to a CLUSTER REMOVE or CLUSTER TRANSFER that would do harm or cannot succeed now."""
    return f"409 Not Possible {refusal.word}\r\n".encode()


def _address(node: NodeStatus) -> tuple[str, str]:
    host, _, port = node.client.rpartition(":")
    return (host.strip("[]"), port) if host else ("-", "-")


def _known(value: int | None) -> str:
    return "-" if value is None else str(value)
