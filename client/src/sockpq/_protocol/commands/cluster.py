"""The servers, their users, the sessions of all clients, and pools of workers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

from sockpq._protocol import arguments
from sockpq._protocol.addresses import Address
from sockpq._protocol.arguments import UINT64_MAX, WORKER_SLOTS_MAX, WorkerState
from sockpq._protocol.command import Command, Hidden, Repeat, call, single
from sockpq._protocol.reader import (
    Reader,
    accepted,
    accepted_with,
    as_known,
    as_number,
    as_signed,
    as_text,
    data_block,
    expect,
    fields_of,
    lines_of_list,
    list_of,
    number_of,
)
from sockpq.errors import BadArguments
from sockpq.model import (
    ClusterId,
    Leader,
    NodeStatus,
    ReplicaStatus,
    SessionInfo,
    StateHash,
    User,
    WorkerBounds,
    WorkerInfo,
)

_HASH = re.compile(r"[0-9a-f]{1,128}")
_SECONDS = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?")
_VERB = re.compile(r"[A-Za-z]{1,32}(?: [A-Za-z]{1,32})?")
GRACE_S_MAX = 86_400.0          # of a promotion
REPLICA_PHASES = ("idle", "connecting", "snapshot", "following", "stopped")
_ROLES = ("LEADER", "FOLLOWER", "CANDIDATE", "LEARNER", "DOWN")


# commands that every server answers

@call("any")
def ping() -> Command[None]:
    """Check that this server (None: the serving leader) answers. Raises Unavailable when it does not."""
    return PING


@call("any")
def caps() -> Command[tuple[str, ...]]:
    """Return the protocol extensions that the server supports."""
    return CAPS


@call("any")
def help_lines(verb: str | None = None) -> Command[tuple[str, ...]]:
    """Return the forms of a command, one line each: of this verb, or of all."""
    if verb is None:
        return Command(b"HELP\r\n", b"", _help, Repeat.FREELY, needs=("help",))
    if not _VERB.fullmatch(verb):
        raise BadArguments(f"verb {verb!r}: it is one word or two, like PUT or QUEUE LIST")
    return Command(f"HELP {verb}\r\n".encode(), b"", _help, Repeat.FREELY, needs=("help",))


@call("any")
def cluster_id() -> Command[ClusterId]:
    """Return the cluster to which this server belongs."""
    return CLUSTER_ID


@call("any")
def interconnect() -> Command[int]:
    """Return the server's id; the serving leader has the smallest of all."""
    return INTERCONNECT


@call("any")
def cluster_leader() -> Command[Leader | None]:
    """Return the leader that this server (None: the serving leader) knows; None if it knows none."""
    return CLUSTER_LEADER


@call("one")
def cluster_hash() -> Command[StateHash]:
    """Return a hash of everything this server has executed; at the same position it is the same on all servers."""
    return single("CLUSTER HASH", _state_hash, Repeat.FREELY)


@call("one")
def cluster_replica() -> Command[ReplicaStatus | None]:
    """Return how this server of a copy in another region follows its origin; None if its cluster is not a copy.

    Raises Refused (`409 Fenced <id>`) when the cluster was switched off for good, as a copy has taken its place.
    """
    return single("CLUSTER REPLICA", _replica_or_none, Repeat.FREELY)


@call("one")
def feed_check() -> Command[None]:
    """Check that this server would feed a copy of its cluster in another region to this user.

    Raises ForbiddenError without the right admin, or over a connection that can be overheard; NotServing if the
    cluster is a copy itself; Busy if it feeds as many copies as it may.
    """
    return single(f"CLUSTER FEED {arguments.INT64_MAX}", _nothing_there, Repeat.FREELY)


# operators' commands for one server

@call("one")
def offline() -> Command[None]:
    """Switch one server off for clients; it hands leadership over and continues to replicate."""
    return single("OFFLINE", _switched_off, Repeat.HARMLESS, slow=True)


@call("one")
def online() -> Command[None]:
    """Put an offline server back in service."""
    return single("ONLINE", _switched_on, Repeat.HARMLESS)


@call("one")
def cluster_snapshot() -> Command[int]:
    """Make one server write a snapshot and shorten its log; returns the position in the log."""
    return single("CLUSTER SNAPSHOT", number_of, Repeat.HARMLESS, slow=True)


@call("one")
def shutdown() -> Command[None]:
    """Stop one server's process in an orderly way."""
    return single("SHUTDOWN", partial(accepted_with, "221 Shutting Down"), Repeat.IF_ASKED)


# operators' commands for the leader

@call("elected")
def cluster_add(name: str, peer: str, client: str) -> Command[int]:
    """Add a running server: `peer` is its address for the other servers, `client` for clients, "host:port" both.

    Returns its server id. It counts as soon as it has caught up; until then cluster_status() shows a LEARNER. This
    and the following calls are for the leader, which is searched for among the client's servers. Raises Refused.
    """
    line = f"CLUSTER ADD {arguments.node(name)} {arguments.address(peer)} {arguments.address(client)}"
    return single(line, number_of, Repeat.IF_ASKED, slow=True)


@call("elected")
def cluster_remove(name: str) -> Command[None]:
    """Remove a server from the cluster; when this returns, it may be stopped."""
    return single(f"CLUSTER REMOVE {arguments.node(name)}", accepted, Repeat.IF_ASKED, slow=True)


@call("elected")
def cluster_transfer(name: str | None = None) -> Command[Leader]:
    """Transfer leadership to this server, or to the most up-to-date one; returns the new leader."""
    line = "CLUSTER TRANSFER" if name is None else f"CLUSTER TRANSFER {arguments.node(name)}"
    return single(line, _leader, Repeat.IF_ASKED, slow=True)


@call("elected")
def cluster_offline() -> Command[None]:
    """Switch the whole service off for clients, whichever server leads, until cluster_online()."""
    return single("CLUSTER OFFLINE", _switched_off, Repeat.HARMLESS, slow=True)


@call("elected")
def cluster_online() -> Command[None]:
    """Put the whole service back in operation after cluster_offline()."""
    return single("CLUSTER ONLINE", _switched_on, Repeat.HARMLESS, slow=True)


@call("elected")
def cluster_promote(grace: float | None = None) -> Command[int]:
    """Make this replica of another cluster a cluster of its own, with the state that it has (docs/REGIONS.md).

    Returns how many entries of the origin's log are in it. What still runs has `grace` seconds more, 60 by default.
    Raises Refused if this cluster is not a replica.
    """
    words = "" if grace is None else f" GRACE {arguments.seconds(grace, 'grace', 0, GRACE_S_MAX)}"
    return single(f"CLUSTER PROMOTE{words}", number_of, Repeat.IF_ASKED, slow=True)


@call("elected")
def cluster_fence(replica: str) -> Command[None]:
    """Switch the service of this cluster off for good, because the replica with this id takes its place.

    The configuration of the servers must name the replica (`feed.replica`), otherwise Refused is raised.
    """
    return single(f"CLUSTER FENCED {arguments.cluster_of(replica)}", accepted, Repeat.HARMLESS, slow=True)


# the sessions of all clients

@call("any")
def sessions() -> Command[list[SessionInfo]]:
    """List the sessions of all clients; a `server` that is named may lag."""
    return Command(b"SESSION LIST\r\n", b"", _sessions, Repeat.FREELY)


@call()
def end_session(number: int) -> Command[bool]:
    """End the session of this number; returns whether it existed. Its bound jobs go back to their queues.

    Its client notices that at its next use.
    """
    return single(f"SESSION END {arguments.integer(number, 'number', 1, UINT64_MAX)}", _was_there, Repeat.HARMLESS)


# pools of workers

@call()
def worker_beat(name: str, slots: int, busy: int) -> Command[WorkerBounds]:
    """Announce the pool of workers `name`, with `slots` places for jobs, of which `busy` are in use.

    Returns the operator's settings (worker_set()). The pool keeps the name until this client's session ends or is
    not used for 30 s. Raises WorkerExists when another pool has the name, SessionLost without sessions.
    """
    slots = arguments.integer(slots, "slots", 0, WORKER_SLOTS_MAX)
    busy = arguments.integer(busy, "busy", 0, WORKER_SLOTS_MAX)
    line = f"WORKER {arguments.worker(name)} {slots} {busy}"
    return single(line, _bounds, Repeat.HARMLESS, logged=True, needs=("workers",))


@call("any")
def workers() -> Command[list[WorkerInfo]]:
    """List the pools of workers by name; a `server` that is named may lag."""
    return Command(b"WORKER LIST\r\n", b"", _workers, Repeat.FREELY, needs=("workers",))


@call()
def worker_set(
    name: str, *, most: int | None = None, least: int | None = None, state: WorkerState | None = None
) -> Command[None]:
    """Limit a pool to `most` jobs at a time and to `least` at least, or let it "run", "pause" or "stop".

    The pool receives that with its next heartbeat, and at once if it listens to events, as pqworker does. Needs the
    right admin. Raises WorkerNotFound.
    """
    words = "" if most is None else f" MAX {arguments.integer(most, 'most', 0, WORKER_SLOTS_MAX)}"
    words += "" if least is None else f" MIN {arguments.integer(least, 'least', 0, WORKER_SLOTS_MAX)}"
    if most is not None and least is not None and least > most:
        raise BadArguments(f"least is {least}, and most only {most}")
    if state is not None:
        if state not in ("run", "pause", "stop"):
            raise BadArguments(f"state is 'run', 'pause' or 'stop', not {state!r}")
        words += f" STATE {state.upper()}"
    if not words:
        raise BadArguments("worker_set() without anything to set")
    line = f"WORKER SET {arguments.worker(name)}{words}"
    return single(line, accepted, Repeat.HARMLESS, logged=True, needs=("workers",))


# the users

@call()
def users() -> Command[list[User]]:
    """List the users that the servers know, with their rights. This and the next two calls need the right admin."""
    return Command(b"USER LIST\r\n", b"", _users, Repeat.FREELY)


@call()
def set_user(name: str, rights: str | Iterable[str], secret: str | bytes) -> Command[None]:
    """Create a user, or give them other rights and another secret, on all servers.

    `rights`: put, get, queue, item, admin, each for all or with a prefix: "put:mail*,get". `secret`: 16 to 64
    visible characters, or as many bytes of a key. Raises Refused when the user is in the servers' files.
    """
    line = f"USER SET {arguments.user(name)} {arguments.rights(rights)} {arguments.key(secret)}\r\n"
    if len(line) > arguments.LINE_BYTES_MAX:
        raise BadArguments(f"too many rights: the command would have {len(line)} bytes")
    made = single("", accepted, Repeat.HARMLESS)
    return made._replace(line=Hidden(line.encode()))


@call()
def delete_user(name: str) -> Command[None]:
    """Delete a user; their open connections get AuthError. Raises Refused for an unknown user or one in a file."""
    return single(f"USER DELETE {arguments.user(name)}", accepted, Repeat.IF_ASKED)


# readers of answers

_switched_off = partial(accepted_with, "200 OK Switched to Offline Mode")
_switched_on = partial(accepted_with, "200 OK Switched to Online Mode")


def _words() -> Reader[tuple[str, ...]]:
    """Read the features, one per line of the body."""
    return tuple(as_text((yield from data_block())).split())


def _help() -> Reader[tuple[str, ...]]:
    return tuple((yield from lines_of_list()))


def _state_hash(text: str) -> StateHash:
    fields = fields_of(text)
    expect(len(fields) == 2 and _HASH.fullmatch(fields[1]) is not None, "a position and a hash expected")
    return StateHash(as_number(fields[0]), fields[1])


def _nothing_there(text: str) -> None:
    """Accept the refusal of a position that no copy can have reached: it shows that the server would feed a copy."""
    if text != "409 Too New":
        fields_of(text)
        expect(False, "a feed from an entry that there is not")


def _replica(text: str) -> ReplicaStatus:
    fields = fields_of(text)
    expect(len(fields) >= 7, "a replica has six fields, and its problem")
    phase, index, origin, executed, lag_ms, server = fields[:6]
    problem = " ".join(fields[6:])
    expect(phase in REPLICA_PHASES, f"phase {phase!r}")
    expect(origin == "-" or arguments.CLUSTER.fullmatch(origin) is not None, "the id of an origin")
    lag = as_known(lag_ms)
    return ReplicaStatus(
        phase, as_number(index), None if origin == "-" else origin, as_known(executed),
        None if lag is None else lag / 1000, None if server == "-" else server, "" if problem == "-" else problem)


def _replica_or_none(text: str) -> ReplicaStatus | None:
    return None if text == "409 No Replica" else _replica(text)


def _leader(text: str) -> Leader:
    fields = fields_of(text)
    expect(len(fields) == 3, "a leader has id, ip and port")
    return Leader(as_number(fields[0]), _client(fields[1], fields[2]))


def _leader_or_none(text: str) -> Leader | None:
    return None if text == "404 No Leader" else _leader(text)


def _was_there(text: str) -> bool:
    if text == "404 Session Not Found":         # not this client's own
        return False
    expect(not fields_of(text), "fields in the answer to SESSION END")
    return True


def _sessions() -> Reader[list[SessionInfo]]:
    return (yield from list_of(_session_line))


def _session_line(line: str) -> SessionInfo:
    """Parse `<number> <user|-> <address|-> <ttl> <idle> <bound>`."""
    fields = line.split(" ")
    expect(len(fields) >= 6, "a line of SESSION LIST has six fields at least")
    number, user, address, ttl, idle, bound = fields[:6]
    expect(_SECONDS.fullmatch(ttl) is not None, f"not a number of seconds: {ttl[:100]!r}")
    return SessionInfo(
        as_number(number), None if user == "-" else user, None if address == "-" else address, float(ttl),
        as_number(idle), as_number(bound),
    )


def _bounds(text: str) -> WorkerBounds:
    """Parse `[MAX <n>] [MIN <n>] [STATE <s>]`."""
    fields = fields_of(text)
    expect(len(fields) % 2 == 0, "the answer to WORKER")
    words = dict(zip(fields[::2], fields[1::2], strict=True))
    most, least = (as_number(words[word]) if word in words else None for word in ("MAX", "MIN"))
    return WorkerBounds(most, least, words.get("STATE", "RUN").lower())


def _workers() -> Reader[list[WorkerInfo]]:
    return (yield from list_of(_worker_line))


def _worker_line(line: str) -> WorkerInfo:
    """Parse `<name> <addr> <slots> <busy> <age> [<state>]`; older servers do not report the state."""
    fields = line.split(" ")
    expect(len(fields) >= 5, "a line of WORKER LIST has five fields at least")
    name, address, slots, busy, age = fields[:5]
    state = fields[5].lower() if len(fields) > 5 else "run"
    where = None if address == "-" else address
    return WorkerInfo(name, where, as_number(slots), as_number(busy), as_number(age), state)


def _users() -> Reader[list[User]]:
    return (yield from list_of(_user_line))


def _user_line(line: str) -> User:
    """Parse `<user> <rights> <FILE|LOG>`."""
    fields = line.split(" ")
    expect(len(fields) == 3 and fields[2] in ("FILE", "LOG"), "not a line of USER LIST")
    name, rights, source = fields
    return User(name, () if rights == "-" else tuple(rights.split(",")), source == "FILE")


def _cluster_id(text: str) -> ClusterId:
    fields = fields_of(text)
    known = len(fields) >= 2 and (fields[0] == "-" or arguments.CLUSTER.fullmatch(fields[0]) is not None)
    expect(known, "the answer to CLUSTER ID")
    cluster, name = (None if field == "-" else field for field in fields[:2])
    return ClusterId(cluster, name)


def _statuses() -> Reader[list[NodeStatus]]:
    return (yield from list_of(_status_line))


def _status_line(line: str) -> NodeStatus:
    """Parse a line of CLUSTER STATUS, `-` where unknown; older servers have fewer fields."""
    fields = line.split(" ")
    expect(len(fields) >= 9, "a line of CLUSTER STATUS has nine fields at least")
    server_id, name, host, port, role, online, term, applied, lag = fields[:9]
    expect(role in _ROLES, f"role {role!r}")
    expect(online in ("ONLINE", "OFFLINE", "-"), f"switch {online!r}")
    return NodeStatus(
        id=as_known(server_id),
        name=name,
        client=_client(host, port),
        role=role,
        online=None if online == "-" else online == "ONLINE",
        term=as_known(term),
        applied=as_known(applied),
        lag=as_known(lag),
        version=fields[9] if len(fields) > 9 and fields[9] != "-" else None,
        ahead_ms=as_signed(fields[10]) if len(fields) > 10 and fields[10] != "-" else None,
        level=as_known(fields[11]) if len(fields) > 11 else None,
        cluster_level=as_known(fields[12]) if len(fields) > 12 else None,
    )


def _client(host: str, port: str) -> str | None:
    return None if host == port == "-" else str(Address(host, as_number(port, 65535)))


# commands of the engine

PING: Command[None] = single("PING", accepted, Repeat.FREELY)
CAPS: Command[tuple[str, ...]] = Command(b"CAPS\r\n", b"", _words, Repeat.FREELY)
INTERCONNECT: Command[int] = single("INTERCONNECT", number_of, Repeat.FREELY)
CLUSTER_STATUS: Command[list[NodeStatus]] = Command(b"CLUSTER STATUS\r\n", b"", _statuses, Repeat.FREELY)
CLUSTER_LEADER: Command[Leader | None] = single("CLUSTER LEADER", _leader_or_none, Repeat.FREELY)
CLUSTER_ID: Command[ClusterId] = single("CLUSTER ID", _cluster_id, Repeat.FREELY)
