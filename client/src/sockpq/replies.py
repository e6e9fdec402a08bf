"""How the answer to each command is read: small generators that ask for a line or for bytes, and return the value.

A reader yields LINE to get the next line (without its CRLF), a number n to get the next n bytes, or a Waiting to tell
that the first of two answers has come. It returns the value, or raises: a NotExecuted or OutcomeUnknown when that is
what the server answered (the connection is still in step), a ProtocolError when the connection cannot be trusted any
more. Nothing here knows where the bytes come from.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import TypeVar

from sockpq.addresses import Address
from sockpq.arguments import INT64_MAX, NAME, UINT64_MAX
from sockpq.errors import (
    AuthError,
    BadArguments,
    Busy,
    DataTooLarge,
    ForbiddenError,
    InvalidSnapshot,
    JobNotFound,
    NoOutput,
    NotServing,
    NotSupported,
    OutcomeUnknown,
    ProtocolError,
    Refused,
    SockpqError,
)
from sockpq.model import (
    Finished,
    Handed,
    Leader,
    NodeStatus,
    QueueTotals,
    RunningJob,
    StateHash,
    Totals,
    User,
    Waiting,
)
from sockpq.session import SessionLost

T = TypeVar("T")
Reader = Generator["int | Waiting", bytes, T]

LINE = -1
BODY_BYTES_MAX = 2**32              # a longer announcement is rubbish: the default limit of a snapshot is 4 GiB
LIST_LINES_MAX = 10_000_000

_REFUSALS: dict[str, type[SockpqError]] = {
    "400": BadArguments,
    "401": AuthError,
    "403": ForbiddenError,
    "404": Refused,
    "408": Refused,
    "409": Refused,
    "413": DataTooLarge,
    "429": Refused,
    "501": NotSupported,
    "503": Busy,
    "504": OutcomeUnknown,
}
_REFUSAL_LINES: dict[str, type[SockpqError]] = {
    "404 Queue Empty": ProtocolError,
    "404 Job Not Found": JobNotFound,
    "404 Session Not Found": SessionLost,
    "409 Request Mismatch": SessionLost,
    "409 Request Too Old": SessionLost,
    "500 Offline Mode": NotServing,
    "500 Invalid Snapshot": InvalidSnapshot,
}
_FINISHED = {
    "200 OK": Finished(False, False),
    "200 OK FINQ": Finished(True, False),
    "200 OK FINI": Finished(False, True),
    "200 OK FINQ FINI": Finished(True, True),
}
_SID = re.compile(r"[0-9]{1,20}_[0-9a-f]{1,64}")
_NONCE = re.compile(r"(?:[0-9a-fA-F]{2}){8,128}")
_HASH = re.compile(r"[0-9a-f]{1,128}")
_ROLES = ("LEADER", "FOLLOWER", "CANDIDATE", "LEARNER", "DOWN")


def stored(item: str | None, new_item: bool) -> Reader[str | None]:
    """PUT: the name of the job's item, None without one."""
    fields = _ok((yield LINE))
    if not new_item:
        _expect(not fields, "fields in the answer to a PUT without NEW")
        return item
    _expect(len(fields) == 2 and fields[0] == "IS", "no item name in the answer to PUT .. NEW")
    return _name(fields[1])


def job(queues: tuple[str, ...] | None, may_be_empty: bool = True) -> Reader[Handed | None]:
    """GET, GETB, GETBE: the job, None when the queues are empty; a GETB waits for one."""
    line = yield LINE
    if line == b"404 Queue Empty" and may_be_empty:
        return None
    return (yield from _handed(_ok(line), queues))


def output(queue: str, item: str | None) -> Reader[Handed]:
    """PUT .. WAIT: first the 206, then the output's job. `item` None: the server makes the name (NEW)."""
    fields = _text((yield LINE)).split(" ")
    if fields[:4] != ["206", "Wait", "for", "output"]:
        raise _failure(" ".join(fields))
    if item is None:
        _expect(len(fields) == 6 and fields[4] == "IS", "no item name in the answer to PUT .. NEW WAIT")
        item = _name(fields[5])
    else:
        _expect(len(fields) == 4, "fields in the answer to PUT .. IS .. WAIT")
    yield Waiting(item)
    line = yield LINE
    if line in (b"500 Offline Mode", b"404 Session Not Found"):     # of the wait: the PUT is executed (PROTOCOL.md A38)
        raise NoOutput(f"{line.decode()}, while this client waited for the output", item)
    handed = yield from _handed(_ok(line), (queue,))
    _expect(handed.item == item, f"the output belongs to item {handed.item!r}, not to {item!r}")
    return handed


def finished() -> Reader[Finished]:
    """DONE."""
    text = _text((yield LINE))
    if text not in _FINISHED:
        raise _failure(text)
    return _FINISHED[text]


def done(expected: str = "200 OK") -> Reader[None]:
    """A command whose only good answer is this line."""
    text = _text((yield LINE))
    if text != expected:
        raise _failure(text)


def totals() -> Reader[Totals]:
    """TOTAL."""
    fields = _ok((yield LINE))
    _expect(len(fields) == 4, "TOTAL needs four numbers")
    return Totals(*(_number(field) for field in fields))


def number() -> Reader[int]:
    """INTERCONNECT, CLUSTER ADD, CLUSTER SNAPSHOT."""
    fields = _ok((yield LINE))
    _expect(len(fields) == 1, "one number expected")
    return _number(fields[0])


def session_opened() -> Reader[str]:
    """SESSION: the name of the new session."""
    fields = _ok((yield LINE))
    _expect(len(fields) == 4 and fields[0] == "SESSION" and fields[2] == "TTL", "the answer to SESSION")
    _expect(_SID.fullmatch(fields[1]) is not None, f"not a session: {fields[1][:100]!r}")
    return fields[1]


def session_attached(sid: str) -> Reader[None]:
    """SESSION <sid>."""
    fields = _ok((yield LINE))
    _expect(len(fields) == 6 and fields[1] == sid and fields[4] == "LAST", f"the answer to SESSION {sid}")


def state_hash() -> Reader[StateHash]:
    """CLUSTER HASH."""
    fields = _ok((yield LINE))
    _expect(len(fields) == 2 and _HASH.fullmatch(fields[1]) is not None, "a position and a hash expected")
    return StateHash(_number(fields[0]), fields[1])


def data() -> Reader[bytes]:
    """SNAPSHOT: a length, then that many bytes."""
    fields = _ok((yield LINE))
    _expect(len(fields) == 1, "one length expected")
    return (yield _number(fields[0], BODY_BYTES_MAX))


def words() -> Reader[tuple[str, ...]]:
    """CAPS: the features, one per line of the body."""
    return tuple(_text((yield from data())).split())


def nonce() -> Reader[bytes]:
    """AUTH with a user alone: what his secret is to be mixed with."""
    text = _text((yield LINE))
    if not text.startswith("334 "):
        raise _failure(text)
    _expect(_NONCE.fullmatch(text, 4) is not None, "the answer to AUTH")
    return bytes.fromhex(text[4:])


def users() -> Reader[list[User]]:
    """USER LIST."""
    return [_user_line(line) for line in (yield from _lines())]


def queues() -> Reader[list[QueueTotals]]:
    """QUEUE LIST."""
    return [_queue_line(line) for line in (yield from _lines())]


def running(with_data: bool) -> Reader[list[RunningJob]]:
    """RUNLIST: a count, the lines, then with DATA all bodies in a row."""
    lines = yield from _lines()
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
    return [_status_line(line) for line in (yield from _lines())]


def leader() -> Reader[Leader | None]:
    """CLUSTER LEADER: None when the node knows none."""
    line = yield LINE
    return None if line == b"404 No Leader" else _leader(line)


def new_leader() -> Reader[Leader]:
    """CLUSTER TRANSFER."""
    return _leader((yield LINE))


def _leader(line: bytes) -> Leader:
    fields = _ok(line)
    _expect(len(fields) == 3, "a leader has id, ip and port")
    return Leader(_number(fields[0]), _client(fields[1], fields[2]))


def _handed(fields: list[str], queues: tuple[str, ...] | None) -> Reader[Handed]:
    _expect(len(fields) == 4 or (len(fields) == 6 and fields[4] == "IS"), "not the line of a job")
    queue = _name(fields[0])
    _expect(queues is None or queue in queues, f"a job of queue {queue!r}, which was not asked for")
    job_id, priority = _number(fields[1]), _signed(fields[2])
    item = _name(fields[5]) if len(fields) == 6 else None
    body = yield _number(fields[3], BODY_BYTES_MAX)
    return Handed(job_id, queue, priority, body, item)


def _lines() -> Reader[list[str]]:
    fields = _ok((yield LINE))
    _expect(len(fields) == 1, "one count expected")
    result = []
    for _ in range(_number(fields[0], LIST_LINES_MAX)):
        result.append(_text((yield LINE)))
    return result


def _queue_line(line: str) -> QueueTotals:
    """`<q> <ready> <delayed> <running> <dead>`."""
    fields = line.split(" ")
    _expect(len(fields) == 5, "not a line of QUEUE LIST")
    return QueueTotals(_name(fields[0]), *(_number(field) for field in fields[1:]))


def _user_line(line: str) -> User:
    """`<user> <rights> <FILE|LOG>`."""
    fields = line.split(" ")
    _expect(len(fields) == 3 and fields[2] in ("FILE", "LOG"), "not a line of USER LIST")
    name, rights, source = fields
    return User(name, () if rights == "-" else tuple(rights.split(",")), source == "FILE")


def _running_line(line: str, with_data: bool) -> tuple[RunningJob, int]:
    """`<id> <q> <p> [<len>] [EXPIRE <time>]` as the job and the length of its data."""
    fields = line.split(" ")
    expires_at = None
    if len(fields) >= 5 and fields[-2] == "EXPIRE":
        expires_at = _number(fields[-1])
        del fields[-2:]
    _expect(len(fields) == (4 if with_data else 3), "not a line of RUNLIST")
    length = _number(fields[3], BODY_BYTES_MAX) if with_data else 0
    return RunningJob(_number(fields[0]), _name(fields[1]), _signed(fields[2]), expires_at, None), length


def _status_line(line: str) -> NodeStatus:
    """A line of CLUSTER STATUS (docs/PROTOCOL.md), `-` where unknown; the first servers told less than all."""
    fields = line.split(" ")
    _expect(len(fields) >= 9, "a line of CLUSTER STATUS has nine fields at least")
    server_id, name, host, port, role, online, term, applied, lag = fields[:9]
    _expect(role in _ROLES, f"role {role!r}")
    _expect(online in ("ONLINE", "OFFLINE", "-"), f"switch {online!r}")
    return NodeStatus(
        id=_known(server_id),
        name=name,
        client=_client(host, port),
        role=role,
        online=None if online == "-" else online == "ONLINE",
        term=_known(term),
        applied=_known(applied),
        lag=_known(lag),
        version=fields[9] if len(fields) > 9 and fields[9] != "-" else None,
        ahead_ms=_signed(fields[10]) if len(fields) > 10 and fields[10] != "-" else None,
    )


def _client(host: str, port: str) -> str | None:
    return None if host == port == "-" else str(Address(host, _number(port, 65535)))


def _ok(line: bytes) -> list[str]:
    """The fields after `200 OK`; raises what another status line means."""
    text = _text(line)
    if text == "200 OK":
        return []
    if text.startswith("200 OK "):
        return text[7:].split(" ")
    raise _failure(text)


def _failure(text: str) -> SockpqError:
    """The error a status line stands for."""
    error = _REFUSAL_LINES.get(text) or _REFUSALS.get(text[:3] if text[3:4] == " " else text)
    return error(text) if error else ProtocolError(f"unexpected answer {text[:200]!r}")


def _expect(condition: bool, why: str) -> None:
    if not condition:
        raise ProtocolError(why)


def _text(line: bytes) -> str:
    try:
        return line.decode("ascii")
    except UnicodeDecodeError:
        raise ProtocolError(f"not a status line: {line[:200]!r}") from None


def _name(field: str) -> str:
    _expect(NAME.fullmatch(field) is not None, f"not a name: {field[:300]!r}")
    return field


def _number(field: str, high: int = UINT64_MAX) -> int:
    _expect(field.isdigit() and len(field) <= 20, f"not a number: {field[:100]!r}")
    value = int(field)
    _expect(value <= high, f"number too large: {value}")
    return value


def _signed(field: str) -> int:
    return -_number(field[1:], INT64_MAX + 1) if field.startswith("-") else _number(field, INT64_MAX)


def _known(field: str) -> int | None:
    return None if field == "-" else _number(field)
