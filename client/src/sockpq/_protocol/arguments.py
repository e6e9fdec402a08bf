"""Checks of the caller's arguments before anything is sent: TypeError for types, BadArguments for values."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from json import dumps
from typing import Any, Literal, NamedTuple, Protocol, cast

from sockpq._process import check_own
from sockpq._protocol.addresses import parse_server
from sockpq._protocol.headers import header_block
from sockpq.errors import BadArguments, DataTooLarge
from sockpq.model import Key, Number, Place

Data = bytes | bytearray | memoryview | str
Then = Literal["later", "done", "dead"]
Block = bool | Literal["until_done"]
OnDuplicate = Literal["fail", "ignore", "replace"]
AfterWhen = Literal["done", "end", "failed"]      # for what of an item a job waits
GroupBy = Literal["user", "item", "off"] | tuple[Literal["head"], str]
HoldThen = Literal["cancel", "release"]           # at the end of a hold
Policy = Literal["random", "weight", "rr", "order", "sorted", "priority", "oldest", "fair", "place"]
POLICIES = ("random", "weight", "rr", "order", "sorted", "priority", "oldest", "fair", "place")
State = Literal["ready", "delayed", "running", "dead", "buried"]
STATES = ("ready", "delayed", "running", "dead", "buried")
EndedState = Literal["done", "cancelled", "expired"]
ENDED_STATES = ("done", "cancelled", "expired")
WorkerState = Literal["run", "pause", "stop"]
Direction = Literal["in", "out", "all"]
HeadersWanted = bool | Literal["if_known"]      # "if_known": where the server has them
MetaWanted = bool | Literal["life"]             # "life": with the times of the job's life


class HeldJob(Protocol):
    """A job that a caller has taken."""

    @property
    def id(self) -> int:
        """The number of this hand-out."""
        ...


NAME = re.compile(r"[A-Za-z0-9_.+/;$()][A-Za-z0-9_.+/;$():@-]{0,254}")   # PROTOCOL "Lines, data, values"
NODE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
ROUTE = re.compile(r"[A-Za-z0-9_.:@-]{0,255}")
PATTERN = re.compile(r"[A-Za-z0-9_.:@#*-]{1,255}")
WORKER = re.compile(r"[A-Za-z0-9_.:@-]{1,64}")
WORKER_SLOTS_MAX = 2**31
CLUSTER = re.compile("[0-9a-f]{16}")
CLUSTER_NAME = re.compile(r"[a-z0-9_-]{1,32}")
USER = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
RIGHT = re.compile(r"(?:put|get|queue|item|group|admin)(?::[A-Za-z0-9_.+/;$():@-]{1,255}\*)?")
HOST = re.compile(r"[A-Za-z0-9_.:-]{1,253}")
INT64_MAX = 2**63 - 1
UINT64_MAX = 2**64 - 1
DATA_BYTES_MAX = 256 * 1024 * 1024      # above it the server closes the connection instead of answering
SNAPSHOT_BYTES_MAX = 2**63 - 1          # the server's own limit is configurable
LINE_BYTES_MAX = 65_536                 # a command line with its line end
EXPIRE_S_MAX = 4_294_967_295            # 136 years
SECRET_CHARACTERS_MAX = 1024
KEY_BYTES_MIN, KEY_BYTES_MAX = 16, 64       # of a secret that the servers keep
SESSION_S_MIN, SESSION_S_MAX = 1, 86_400
UNIX_S_MAX = 253_402_300_799        # the end of the year 9999
TRIES_MAX = 1_000_000
DEDUP_S_MIN, DEDUP_S_MAX = 1, 86_400
ERROR_BYTES_MAX = 16_384
CUT = b"\n[..]\n"
JOB_KEY = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
WORD = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


def name(value: str, what: str) -> str:
    """Check the name of a queue or an item and return it; an enumeration's member stands for its value."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a string, not {type(value).__name__}")
    match = NAME.fullmatch(value)
    if not match:
        raise BadArguments(
            f"{what} {value!r}: a name is 1 to 255 of A-Z a-z 0-9 _ . + / ; $ ( ) : @ -, not beginning with : @ -")
    return match[0]


def node(value: str) -> str:
    """Check the name of a node and return it."""
    if not isinstance(value, str):
        raise TypeError(f"the name of a node must be a string, not {type(value).__name__}")
    match = NODE_NAME.fullmatch(value)
    if not match:
        raise BadArguments(f"node {value!r}: a name is 1 to 64 of A-Z a-z 0-9 _ . -")
    return match[0]


def several(value: Iterable[str], what: str) -> list[str]:
    """Check an iterable of strings, which is not a string itself, and return them."""
    if isinstance(value, str):
        raise TypeError(f"{what} must be several strings, not one")
    return list(value)


def route(value: str) -> str:
    """Check a routing key and return it."""
    return _routing(value, ROUTE, "route", "at most 255 of A-Z a-z 0-9 _ . : @ -")


def pattern(value: str) -> str:
    """Check a pattern of routing keys and return it."""
    return _routing(value, PATTERN, "pattern", "1 to 255 of A-Z a-z 0-9 _ . : @ - * #")


def _routing(value: str, form: re.Pattern[str], what: str, rule: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a string, not {type(value).__name__}")
    match = form.fullmatch(value)
    if not match:
        raise BadArguments(f"{what} {value!r}: it is {rule}")
    return match[0]


def worker(value: str) -> str:
    """Check the name of a pool of workers and return it."""
    if not isinstance(value, str):
        raise TypeError(f"the name of a worker must be a string, not {type(value).__name__}")
    match = WORKER.fullmatch(value)
    if not match or value in ("LIST", "SET"):
        raise BadArguments(f"worker {value!r}: a name is 1 to 64 of A-Z a-z 0-9 _ . : @ -, not LIST or SET")
    return match[0]


def user(value: str) -> str:
    """Check the name of a user and return it."""
    if not isinstance(value, str):
        raise TypeError(f"the name of a user must be a string, not {type(value).__name__}")
    match = USER.fullmatch(value)
    if not match:
        raise BadArguments(f"user {value!r}: a name is 1 to 64 of A-Z a-z 0-9 _ . : -")
    return match[0]


def cluster_of(value: str | None) -> str | None:
    """Check the id of a cluster and return it."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"the id of a cluster must be a string, not {type(value).__name__}")
    if not CLUSTER.fullmatch(value):
        raise BadArguments(f"cluster {value!r}: an id is 16 of 0-9 a-f, as `pqctl cluster status` shows it")
    return value


def secret(value: str) -> bytes:
    """Check a secret and return its bytes. No error message contains any of it."""
    if not isinstance(value, str):
        raise TypeError(f"a secret must be a string, not {type(value).__name__}")
    if not 0 < len(value) <= SECRET_CHARACTERS_MAX or not value.isprintable() or " " in value:
        raise BadArguments(f"a secret is 1 to {SECRET_CHARACTERS_MAX} visible characters, without spaces")
    return value.encode()


def key(value: str | bytes) -> str:
    """Check a secret or key for the servers to keep; returns it in hexadecimal."""
    data = value if isinstance(value, bytes) else secret(value)
    if not KEY_BYTES_MIN <= len(data) <= KEY_BYTES_MAX:
        raise BadArguments(f"the secret of a user has {KEY_BYTES_MIN} to {KEY_BYTES_MAX} bytes, not {len(data)}")
    return data.hex()


def rights(value: str | Iterable[str]) -> str:
    """Check the rights of a user; returns them as the protocol writes them: "put:mail*,get", or "-" for none."""
    given = value.split(",") if isinstance(value, str) and value != "-" else [] if value == "-" else list(value)
    for right in given:
        if not isinstance(right, str):
            raise TypeError(f"a right must be a string, not {type(right).__name__}")
        if not RIGHT.fullmatch(right):
            raise BadArguments(
                f"right {right!r}: put, get, queue, item, group or admin, perhaps with a prefix: put:mail*")
    return ",".join(dict.fromkeys(given)) or "-"


def address(value: str) -> str:
    """Check an address "host:port"; returns it as the protocol writes it: `<ip> <port>`, without brackets."""
    host, port = parse_server(value, default_port=None)
    if not HOST.fullmatch(host):
        raise BadArguments(f"not an address or the name of a host: {host!r}")
    return f"{host} {port}"


def queues(value: str | Iterable[str] | None) -> tuple[str, ...] | None:
    """Check the queues of a GET: one, several, or None for any."""
    if value is None:
        return None
    if isinstance(value, str):
        return (name(value, "queue"),)
    names = tuple(dict.fromkeys(name(queue, "queue") for queue in value))
    if not names:
        raise BadArguments("an empty list of queues (None means any queue)")
    return names


def integer(value: object, what: str, low: int, high: int) -> int:
    """Check an integer from `low` to `high` and return it."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{what} must be an int, not {type(value).__name__}")
    if not low <= value <= high:
        raise BadArguments(f"{what} {value} is not between {low} and {high}")
    return int(value)


class Absent(Enum):
    """Marks an option that is not given, where None is a value."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent.ABSENT


class Codec(Protocol):
    """Turns values into the bytes of a job and back; given to a client as `codec`."""

    def encode(self, value: Any, /) -> bytes:
        """Encode a value into the bytes to put."""
        ...

    def decode(self, data: bytes, /) -> Any:
        """Decode bytes into the value from which they were made."""
        ...


class Bodies(NamedTuple):
    """The way in which one client converts the bodies of all its jobs."""

    codec: Codec | None = None
    trace: Callable[[], dict[str, str]] | None = None       # the headers of the current trace, of a client that traces


PLAIN = Bodies()


class Content(NamedTuple):
    """The data of a job that is put: `data` begin with a block of headers of `head` bytes."""

    data: bytes
    head: int = 0
    traced: bool = False        # it has no other headers than the trace: it can be put without them

    @property
    def option(self) -> str:
        """The option of a PUT line: " HEAD 20", or nothing."""
        return f" HEAD {self.head}" if self.head else ""

    @property
    def needs(self) -> tuple[str, ...]:
        """The words of CAPS that a server needs."""
        return ("head",) if self.head else ()

    @property
    def body(self) -> bytes:
        """The data without the headers."""
        return self.data[self.head :] if self.head else self.data


def content_of(body: bytes | None, headers: Mapping[str, str] | None, bodies: Bodies) -> Content:
    """Return the data of a job that is put, with its headers and the trace. Raises TypeError without a body."""
    data = must_have(body)
    trace = bodies.trace() if bodies.trace else None
    if not headers and not trace:
        return Content(data)
    block = header_block({**trace, **(headers or {})} if trace else headers)
    if len(block) + len(data) > DATA_BYTES_MAX:
        raise DataTooLarge(f"{len(block) + len(data)} bytes of headers and data; the limit is {DATA_BYTES_MAX}")
    return Content(block + data, len(block), not headers)


def body_of(data: Data | None, json: Any, value: Any, bodies: Bodies = PLAIN) -> bytes | None:
    """Return the body of a job from whichever of `data`, `json` and `value` is given; None if none is."""
    given = (data is not None) + (json is not ABSENT) + (value is not ABSENT)
    if given > 1:
        raise BadArguments("data, json and value are three ways to say the same: give one of them")
    if json is not ABSENT:
        return body(dumps(json, ensure_ascii=False, separators=(",", ":")))
    if value is not ABSENT:
        if bodies.codec is None:
            raise BadArguments("value needs a client with a codec: Client(.., codec=..)")
        return body(bodies.codec.encode(value))
    return None if data is None else body(data)


def must_have(data: bytes | None) -> bytes:
    """Return `data`; raises TypeError when no body was given."""
    if data is None:
        raise TypeError("a job needs data, json or value")
    return data


def body(value: Data, bytes_max: int = DATA_BYTES_MAX) -> bytes:
    """Return the bytes of a body, UTF-8 of a string; a copy if the caller could change them later."""
    if isinstance(value, str):
        data = value.encode()
    elif isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
    else:
        raise TypeError(f"data must be bytes or str, not {type(value).__name__}")
    if len(data) > bytes_max:
        raise DataTooLarge(f"{len(data)} bytes of data; the protocol's limit is {bytes_max}")
    return data


def large(value: Data, bytes_max: int) -> bytes:
    """Return the bytes as `body` does, but keep a read-only memoryview, which is sent without a copy."""
    if isinstance(value, memoryview) and value.readonly and value.c_contiguous:
        return cast(bytes, value.cast("B"))
    return body(value, bytes_max)


def job_id(job: HeldJob | int) -> int:
    """Return the id of a job, or the id itself; raises Inherited when the job belongs to a parent of this process."""
    holder: int | None = getattr(job, "_process", None)
    if holder is not None:
        check_own(holder, f"job {getattr(job, 'id', '')}")
    return integer(getattr(job, "id", job), "job id", 0, UINT64_MAX)


def selector(job: HeldJob | int | Key | Place | Number) -> str:
    """Return a job selected by id, key, place or number, in the form of the protocol."""
    if isinstance(job, Number):
        return f"NUMBER {number(job)}"
    if isinstance(job, Key):
        return f"KEY {name(job.queue, 'queue')} {job_key(job.key)}"
    if isinstance(job, Place):
        return f"SEQ {name(job.queue, 'queue')} {integer(job.seq, 'seq', 0, UINT64_MAX)}"
    return str(job_id(job))


def number(job: Number | int) -> int:
    """Return the number of a job, as it is or as `Number`."""
    return integer(job.number if isinstance(job, Number) else job, "number", 0, UINT64_MAX)


def selected_by(job: HeldJob | int | Key | Place | Number) -> tuple[str, ...]:
    """Return the words of CAPS that a server needs to support this selector."""
    return ("seq",) if isinstance(job, Place) else ("number",) if isinstance(job, Number) else ()


def job_key(value: str) -> str:
    """Check a job's key and return it."""
    return _matching(JOB_KEY, value, "a key is 1 to 128 of A-Z a-z 0-9 _ . : -")


def dedup(value: tuple[str, float]) -> str:
    """Check a key that is remembered and for how long; returns the end of a PUT line: " DEDUP mail-17 3600"."""
    if isinstance(value, str) or len(value) != 2:
        raise BadArguments(f"dedup is a key and a number of seconds, ('mail-17', 3600), not {value!r}")
    key, span_s = value
    return f" DEDUP {job_key(key)} {seconds(span_s, 'dedup', DEDUP_S_MIN, DEDUP_S_MAX)}"


def error_text(value: str) -> bytes:
    """Return the text of an error; one above the limit is cut in the middle, where a traceback matters least."""
    if not isinstance(value, str):
        raise TypeError(f"error must be a string, not {type(value).__name__}")
    text = value.encode(errors="backslashreplace")
    if len(text) <= ERROR_BYTES_MAX:
        return text
    half = (ERROR_BYTES_MAX - len(CUT)) // 2
    begin, end = (part.decode(errors="ignore").encode() for part in (text[:half], text[-half:]))
    return begin + CUT + end


def key_prefix(value: str) -> str:
    """Check a prefix of keys and return it as the protocol writes it: "mail-*"."""
    prefix = value.removesuffix("*") if isinstance(value, str) else value
    return f"{job_key(prefix)}*" if prefix else "*"


def reason(value: str) -> str:
    """Check the reason for an end of a hand-out and return it."""
    return _matching(WORD, value, "a reason is 1 to 64 of A-Z a-z 0-9 _ . : -")


def group(value: str) -> str:
    """Check a group of fair shares and return it."""
    return _matching(WORD, value, "a group is 1 to 64 of A-Z a-z 0-9 _ . : -")


def any_group(value: str) -> str:
    """Check the name of a group: a word, or the name of a queue."""
    return value if isinstance(value, str) and WORD.fullmatch(value) else name(value, "group")


def ran(value: float | None) -> str:
    """Return the running time of a job as the end of a line: " RAN 2.5" or nothing."""
    return "" if value is None else f" RAN {seconds(value, 'ran', 0, EXPIRE_S_MAX)}"


def ran_clock(value: str) -> str:
    """Check the clock by which work is measured: "wall" or "cpu"."""
    if value not in ("wall", "cpu"):
        raise BadArguments(f"ran is 'wall' or 'cpu', not {value!r}")
    return value


def state(value: str) -> str:
    """Check the state of a job; returns it as the protocol writes it."""
    if value not in STATES:
        raise BadArguments(f"a state is 'ready', 'delayed', 'running', 'dead' or 'buried', not {value!r}")
    return value.upper()


def items(value: str | Iterable[str]) -> str:
    """Check one item or several; returns them as the protocol writes them."""
    names = (value,) if isinstance(value, str) else tuple(dict.fromkeys(value))
    if not names:
        raise BadArguments("after names at least one item")
    return "|".join(name(item, "item") for item in names)


def after_when(value: AfterWhen | None) -> str:
    """Return which event of its items a job waits for: " WHEN END", or nothing."""
    if value not in (None, "done", "end", "failed"):
        raise BadArguments(f"when is 'done', 'end' or 'failed', not {value!r}")
    return f" WHEN {value.upper()}" if value else ""


def when(delay: float | None, at: float | None) -> str:
    """Return the time of a job: " DELAY 5", " AT 1795130000", or nothing."""
    if delay is None and at is None:
        return ""
    if delay is not None and at is not None:
        raise BadArguments("delay counts from now, at is a time: not both")
    if delay is not None:
        return f" DELAY {seconds(delay, 'delay', 0, EXPIRE_S_MAX)}"
    assert at is not None
    return f" AT {seconds(at, 'at', 0, UNIX_S_MAX)}"


def within(wait: float) -> str:
    """Return the limit of a wait: " WITHIN 5"; at least a millisecond, at most the protocol's longest time."""
    return f" WITHIN {seconds(min(span(wait, 'wait'), EXPIRE_S_MAX), 'wait', 0, EXPIRE_S_MAX)}"


def ranked(priority: int | None) -> str:
    """Return the priority of a job: " PRI 5", or nothing."""
    if priority is None:
        return ""
    return f" PRI {integer(priority, 'priority', -INT64_MAX - 1, INT64_MAX)}"


def period(value: float, what: str) -> str:
    """Check a positive number of seconds; returns it as the protocol writes it."""
    return seconds(span(value, what), what, 0, EXPIRE_S_MAX)


def _matching(pattern: re.Pattern[str], value: str, rule: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{rule.partition(' is ')[0]} must be a string, not {type(value).__name__}")
    match = pattern.fullmatch(value)
    if not match:
        raise BadArguments(f"{value!r}: {rule}")
    return match[0]


def lease(expire: float | None, then: Then | None) -> str:
    """Return the end of a GET or WAIT line: " EXPIRE <sec> THEN <what>". `expire` in seconds, 0 for no limit."""
    if then is not None and then not in ("later", "done", "dead"):
        raise BadArguments(f"then is 'later', 'done' or 'dead', not {then!r}")
    if expire is None:
        if then is not None:
            raise BadArguments("then needs expire: it says what happens when the lease ends")
        return ""
    return f" EXPIRE {seconds(expire, 'expire', 0, EXPIRE_S_MAX)}" + (f" THEN {then.upper()}" if then else "")


def session_ttl(value: object) -> str:
    """Return the TTL of a session in seconds, as the protocol writes it."""
    return seconds(value, "session_ttl", SESSION_S_MIN, SESSION_S_MAX)


def seconds(value: object, what: str, low: float, high: float) -> str:
    """Format seconds as the protocol writes them: with up to three decimals, rounded up, since 0 means no limit."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{what} must be a number of seconds, not {type(value).__name__}")
    if not low <= value <= high:            # also false for NaN
        raise BadArguments(f"{what} {value} is not between {low} and {high} seconds")
    milliseconds = math.ceil(round(value * 1000, 3)) or (1 if value > 0 else 0)
    whole, rest = divmod(milliseconds, 1000)
    return f"{whole}.{rest:03d}" if rest else str(whole)


def switch(value: object, what: str) -> bool:
    """Check a bool and return it."""
    if not isinstance(value, bool):
        raise TypeError(f"{what} must be True or False, not {type(value).__name__}")
    return value


def span(value: float, what: str) -> float:
    """Check a positive, finite number of seconds and return it."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{what} must be a number of seconds, not {type(value).__name__}")
    if not 0 < value <= sys.float_info.max:
        raise BadArguments(f"{what} must be a positive number of seconds, not {value}")
    return float(value)


def given(**options: object) -> Any:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}
