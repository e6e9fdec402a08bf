"""How the answer to each command is read: small generators that ask for a line or for bytes (reader.py)."""

from __future__ import annotations

import re

from sockpq._protocol.addresses import Address
from sockpq._protocol.reader import (
    BODY_BYTES_MAX,
    LINE,
    Reader,
    as_known,
    as_name,
    as_number,
    as_signed,
    as_text,
    expect,
    failure,
    lines_of_list,
    ok,
)
from sockpq.errors import NoOutput
from sockpq.model import (
    Finished,
    Handed,
    Leader,
    Meta,
    NodeStatus,
    QueueTotals,
    RunningJob,
    SessionInfo,
    StateHash,
    Totals,
    User,
    Waiting,
)

_FINISHED = {
    "200 OK": Finished(False, False),
    "200 OK FINQ": Finished(True, False),
    "200 OK FINI": Finished(False, True),
    "200 OK FINQ FINI": Finished(True, True),
}
_SID = re.compile(r"[0-9]{1,20}_[0-9a-f]{1,64}")
_NONCE = re.compile(r"(?:[0-9a-fA-F]{2}){8,128}")
_HASH = re.compile(r"[0-9a-f]{1,128}")
_SECONDS = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?")
_ROLES = ("LEADER", "FOLLOWER", "CANDIDATE", "LEARNER", "DOWN")


def stored(item: str | None, new_item: bool) -> Reader[str | None]:
    """PUT: the name of the job's item, None without one."""
    fields = ok((yield LINE))
    if not new_item:
        expect(not fields, "fields in the answer to a PUT without NEW")
        return item
    expect(len(fields) == 2 and fields[0] == "IS", "no item name in the answer to PUT .. NEW")
    return as_name(fields[1])


def job(queues: tuple[str, ...] | None, may_be_empty: bool = True) -> Reader[Handed | None]:
    """GET, GETB, GETBE: the job, None when the queues are empty; a GETB waits for one."""
    line = yield LINE
    if line == b"404 Queue Empty" and may_be_empty:
        return None
    return (yield from _handed(ok(line), queues))


def job_with_meta(queues: tuple[str, ...] | None) -> Reader[Handed | None]:
    """GET .. META."""
    line = yield LINE
    if line == b"404 Queue Empty":
        return None
    handed, length = handed_line(ok(line), queues, with_meta=True)
    return handed._replace(data=(yield length))


def jobs(queues: tuple[str, ...] | None, count: int, with_meta: bool) -> Reader[list[Handed]]:
    """GET .. COUNT: a count, the lines, then all bodies in a row."""
    line = yield LINE
    if line == b"404 Queue Empty":
        return []
    fields = ok(line)
    expect(len(fields) == 1, "one count expected")
    heads = []
    for _ in range(as_number(fields[0], count)):
        heads.append(handed_line(as_text((yield LINE)).split(" "), queues, with_meta))
    result = []
    for handed, length in heads:
        result.append(handed._replace(data=(yield length)))
    return result


def output(queue: str, item: str | None) -> Reader[Handed | Waiting]:
    """PUT .. WAIT: first the 206, then the output's job, or when it did not come in time (WITHIN) what was said first.

    `item` None: the server makes the name (NEW).
    """
    fields = as_text((yield LINE)).split(" ")
    if fields[:4] != ["206", "Wait", "for", "output"]:
        raise failure(" ".join(fields))
    if item is None:
        expect(len(fields) == 6 and fields[4] == "IS", "no item name in the answer to PUT .. NEW WAIT")
        item = as_name(fields[5])
    else:
        expect(len(fields) == 4, "fields in the answer to PUT .. IS .. WAIT")
    waiting = Waiting(item)
    yield waiting
    line = yield LINE
    if line == b"408 Wait Timeout":
        return waiting
    if line in (b"500 Offline Mode", b"404 Session Not Found"):     # of the wait: the PUT is executed (spec/client 3.3)
        raise NoOutput(f"{line.decode()}, while this client waited for the output", item)
    handed = yield from _handed(ok(line), (queue,))
    expect(handed.item == item, f"the output belongs to item {handed.item!r}, not to {item!r}")
    return handed


def finished() -> Reader[Finished]:
    """DONE, and what else removes a job."""
    return as_finished(as_text((yield LINE)))


def as_finished(text: str) -> Finished:
    """What the line of a DONE tells; raises what it means when it is none."""
    found = _FINISHED.get(text)
    if found is not None:
        return found
    if text.startswith("200 OK NEXT "):
        return Finished(False, False, as_number(text[12:]))
    raise failure(text)


def done(expected: str = "200 OK") -> Reader[None]:
    """A command whose only good answer is this line."""
    text = as_text((yield LINE))
    if text != expected:
        raise failure(text)


def totals() -> Reader[Totals]:
    """TOTAL."""
    fields = ok((yield LINE))
    expect(len(fields) == 4, "TOTAL needs four numbers")
    return Totals(*(as_number(field) for field in fields))


def number() -> Reader[int]:
    """INTERCONNECT, CLUSTER ADD, CLUSTER SNAPSHOT."""
    fields = ok((yield LINE))
    expect(len(fields) == 1, "one number expected")
    return as_number(fields[0])


def session_opened() -> Reader[str]:
    """SESSION: the name of the new session."""
    fields = ok((yield LINE))
    expect(len(fields) == 4 and fields[0] == "SESSION" and fields[2] == "TTL", "the answer to SESSION")
    expect(_SID.fullmatch(fields[1]) is not None, f"not a session: {fields[1][:100]!r}")
    return fields[1]


def session_attached(sid: str) -> Reader[None]:
    """SESSION <sid>."""
    fields = ok((yield LINE))
    expect(len(fields) == 6 and fields[1] == sid and fields[4] == "LAST", f"the answer to SESSION {sid}")


def state_hash() -> Reader[StateHash]:
    """CLUSTER HASH."""
    fields = ok((yield LINE))
    expect(len(fields) == 2 and _HASH.fullmatch(fields[1]) is not None, "a position and a hash expected")
    return StateHash(as_number(fields[0]), fields[1])


def data() -> Reader[bytes]:
    """SNAPSHOT: a length, then that many bytes."""
    fields = ok((yield LINE))
    expect(len(fields) == 1, "one length expected")
    return (yield as_number(fields[0], BODY_BYTES_MAX))


def words() -> Reader[tuple[str, ...]]:
    """CAPS: the features, one per line of the body."""
    return tuple(as_text((yield from data())).split())


def nonce() -> Reader[bytes]:
    """AUTH with a user alone: what his secret is to be mixed with."""
    text = as_text((yield LINE))
    if not text.startswith("334 "):
        raise failure(text)
    expect(_NONCE.fullmatch(text, 4) is not None, "the answer to AUTH")
    return bytes.fromhex(text[4:])


def users() -> Reader[list[User]]:
    """USER LIST."""
    return [_user_line(line) for line in (yield from lines_of_list())]


def session_ended() -> Reader[bool]:
    """SESSION END: was there such a session?"""
    line = yield LINE
    if line == b"404 Session Not Found":        # not ours
        return False
    expect(not ok(line), "fields in the answer to SESSION END")
    return True


def sessions() -> Reader[list[SessionInfo]]:
    """SESSION LIST."""
    return [_session_line(line) for line in (yield from lines_of_list())]


def queues() -> Reader[list[QueueTotals]]:
    """QUEUE LIST."""
    return [_queue_line(line) for line in (yield from lines_of_list())]


def running(with_data: bool) -> Reader[list[RunningJob]]:
    """RUNLIST: a count, the lines, then with DATA all bodies in a row."""
    lines = yield from lines_of_list()
    jobs = [_running_line(line, with_data) for line in lines]
    if not with_data:
        return [entry for entry, _ in jobs]
    result = []
    for entry, length in jobs:
        body = yield length
        result.append(entry._replace(data=body))
    return result


def statuses() -> Reader[list[NodeStatus]]:
    """CLUSTER STATUS."""
    return [_status_line(line) for line in (yield from lines_of_list())]


def leader() -> Reader[Leader | None]:
    """CLUSTER LEADER: None when the node knows none."""
    line = yield LINE
    return None if line == b"404 No Leader" else _leader(line)


def new_leader() -> Reader[Leader]:
    """CLUSTER TRANSFER."""
    return _leader((yield LINE))


def _leader(line: bytes) -> Leader:
    fields = ok(line)
    expect(len(fields) == 3, "a leader has id, ip and port")
    return Leader(as_number(fields[0]), _client(fields[1], fields[2]))


def _handed(fields: list[str], queues: tuple[str, ...] | None) -> Reader[Handed]:
    expect(len(fields) == 4 or (len(fields) == 6 and fields[4] == "IS"), "not the line of a job")
    queue = as_name(fields[0])
    expect(queues is None or queue in queues, f"a job of queue {queue!r}, which was not asked for")
    job_id, priority = as_number(fields[1]), as_signed(fields[2])
    item = as_name(fields[5]) if len(fields) == 6 else None
    body = yield as_number(fields[3], BODY_BYTES_MAX)
    return Handed(job_id, queue, priority, body, item)


def handed_line(fields: list[str], queues: tuple[str, ...] | None, with_meta: bool) -> tuple[Handed, int]:
    """`<q> <id> <p> <len> [IS <item>]`, or with all meta tokens, as a job without its data, and their length."""
    expect(len(fields) == 4 or len(fields) >= 6, "not the line of a job")
    queue = as_name(fields[0])
    expect(queues is None or queue in queues, f"a job of queue {queue!r}, which was not asked for")
    item, meta = meta_tokens(fields[4:])
    expect(with_meta or fields[4:] in ([], ["IS", item]), "meta tokens nobody asked for")
    job_id, priority, length = as_number(fields[1]), as_signed(fields[2]), as_number(fields[3], BODY_BYTES_MAX)
    return Handed(job_id, queue, priority, b"", item, meta if with_meta else None), length


def meta_tokens(fields: list[str]) -> tuple[str | None, Meta]:
    """`[IS <item>] [KEY <key>] [GROUP <g>] [TRY <n>] [AT <unix>] [EXPIRE <unix>]` as the item and the rest.

    A server that is newer may say more: pairs that are not known are skipped (PROTOCOL "Versions and compatibility").
    """
    expect(len(fields) % 2 == 0, "a meta token without a value")
    tokens = dict(zip(fields[::2], fields[1::2], strict=True))
    expect(2 * len(tokens) == len(fields), f"meta tokens {' '.join(fields)[:200]!r}")
    times = [as_number(tokens[word]) if word in tokens else None for word in ("AT", "EXPIRE")]
    return (
        as_name(tokens["IS"]) if "IS" in tokens else None,
        Meta(tokens.get("KEY"), as_number(tokens.get("TRY", "0")), *times),
    )


def _queue_line(line: str) -> QueueTotals:
    """`<q> <ready> <delayed> <running> <dead>`."""
    fields = line.split(" ")
    expect(len(fields) == 5, "not a line of QUEUE LIST")
    return QueueTotals(as_name(fields[0]), *(as_number(field) for field in fields[1:]))


def _session_line(line: str) -> SessionInfo:
    """`<number> <user|-> <address|-> <ttl> <idle> <bound>`."""
    fields = line.split(" ")
    expect(len(fields) >= 6, "a line of SESSION LIST has six fields at least")
    number, user, address, ttl, idle, bound = fields[:6]
    expect(_SECONDS.fullmatch(ttl) is not None, f"not a number of seconds: {ttl[:100]!r}")
    return SessionInfo(
        as_number(number), None if user == "-" else user, None if address == "-" else address, float(ttl),
        as_number(idle), as_number(bound),
    )


def _user_line(line: str) -> User:
    """`<user> <rights> <FILE|LOG>`."""
    fields = line.split(" ")
    expect(len(fields) == 3 and fields[2] in ("FILE", "LOG"), "not a line of USER LIST")
    name, rights, source = fields
    return User(name, () if rights == "-" else tuple(rights.split(",")), source == "FILE")


def _running_line(line: str, with_data: bool) -> tuple[RunningJob, int]:
    """`<id> <q> <p> [<len>] [EXPIRE <time>]` as the job and the length of its data."""
    fields = line.split(" ")
    expires_at = None
    if len(fields) >= 5 and fields[-2] == "EXPIRE":
        expires_at = as_number(fields[-1])
        del fields[-2:]
    expect(len(fields) == (4 if with_data else 3), "not a line of RUNLIST")
    length = as_number(fields[3], BODY_BYTES_MAX) if with_data else 0
    return RunningJob(as_number(fields[0]), as_name(fields[1]), as_signed(fields[2]), expires_at, None), length


def _status_line(line: str) -> NodeStatus:
    """A line of CLUSTER STATUS, `-` where unknown; the first servers told less than all."""
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
    )


def _client(host: str, port: str) -> str | None:
    return None if host == port == "-" else str(Address(host, as_number(port, 65535)))
