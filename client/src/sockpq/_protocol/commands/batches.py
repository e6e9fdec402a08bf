"""Many jobs by one command, and transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from functools import partial
from itertools import groupby
from operator import attrgetter, is_
from typing import Any, Literal, NamedTuple, TypeVar

from sockpq._protocol import arguments
from sockpq._protocol.arguments import (
    ABSENT,
    PLAIN,
    AfterWhen,
    Block,
    Bodies,
    Data,
    HeadersWanted,
    HeldJob,
    MetaWanted,
    OnDuplicate,
    Policy,
    Then,
    within,
)
from sockpq._protocol.command import Blocks, Command, Repeat, single
from sockpq._protocol.commands.jobs import (
    PutFrame,
    Shown,
    finished,
    get,
    get_line,
    get_options,
    handed_line,
    put_frame,
    put_of,
    shown_by,
    touch_many,
)
from sockpq._protocol.job_ids import tag_of
from sockpq._protocol.reader import (
    LINE,
    Reader,
    accepted,
    as_number,
    as_text,
    expect,
    failure,
    fields_of,
    lines_of_list,
    ok,
)
from sockpq._protocol.session import NUMBER_BYTES_MAX
from sockpq.errors import Aborted, BadArguments, DataTooLarge, JobNotFound, ProtocolError, SockpqError
from sockpq.model import Handed, Stored

T = TypeVar("T")

BATCH_JOBS_MAX = 4096                   # of a command whose answer a session is to remember
BATCH_BYTES_MAX = 16 * 1024 * 1024      # of all jobs put by one command, with their lines
TRANSACTION_COMMANDS_MAX = 1000


class Part(NamedTuple):
    """A piece of a batch: its command, and the number of members of the batch in it."""

    command: Command[Any]
    members: int


@dataclass(frozen=True, slots=True)
class Put:
    """One of the jobs of put_many(jobs=): its body, and options of its own. See put()."""

    data: Data | None = None
    priority: int = 0
    item: str | None = None
    _: KW_ONLY
    new_item: bool = False
    json: Any = ABSENT
    value: Any = ABSENT
    delay: float | None = None
    at: float | None = None
    ttl: float | None = None
    every: float | None = None
    after: str | Iterable[str] | None = None
    when: AfterWhen | None = None
    key: str | None = None
    on_duplicate: OnDuplicate | None = None
    tries: int | None = None
    group: str | None = None
    number: bool = False
    lease: float | None = None
    headers: Mapping[str, str] | None = None
    dedup: tuple[str, float] | None = None


PUT_OPTIONS = tuple(field.name for field in fields(Put))
_OF_LINE = tuple(name for name in PUT_OPTIONS if name not in ("data", "json", "value", "headers"))
_options_of = attrgetter(*_OF_LINE)


def puts_of(queue: str, jobs: Iterable[Put], bodies: Bodies) -> list[Command[Stored]]:
    """Return a PUT for each of these jobs.

    The line is made once for jobs one after the other with the very same options: most of a batch.
    """
    commands: list[Command[Stored]] = []
    known: tuple[Any, ...] = ()
    for job in jobs:
        options = _options_of(job)
        if not known or not all(map(is_, options, known)):
            start, end, of_line, needs = put_frame(queue, **dict(zip(_OF_LINE, options, strict=True)))
            known = options
        content = arguments.content_of(arguments.body_of(job.data, job.json, job.value, bodies), job.headers, bodies)
        commands.append(put_of(start, end, content, of_line, needs))
    return commands


def puts(
    queue: str,
    bodies: Iterable[bytes],
    priority: int = 0,
    item: str | None = None,
    *,
    keys: Iterable[str] | None = None,
    delay: float | None = None,
    at: float | None = None,
    ttl: float | None = None,
    every: float | None = None,
    after: str | Iterable[str] | None = None,
    when: AfterWhen | None = None,
    key: str | None = None,
    on_duplicate: OnDuplicate | None = None,
    tries: int | None = None,
    group: str | None = None,
    number: bool = False,
    lease: float | None = None,
    headers: Mapping[str, str] | None = None,
    of_client: Bodies = PLAIN,
) -> list[Command[Stored]]:
    """Return one PUT for each body, each with its key if there are `keys`."""
    def frame(one: str | None) -> PutFrame:
        return put_frame(
            queue, priority, item, False, delay=delay, at=at, ttl=ttl, every=every, after=after, when=when, key=one,
            on_duplicate=on_duplicate, tries=tries, group=group, number=number, lease=lease, dedup=None,
        )

    contents = (arguments.content_of(body, headers, of_client) for body in bodies)
    if keys is None:
        same = frame(key)
        pairs = ((same, content) for content in contents)
    else:
        pairs = ((frame(one), content) for content, one in zip(contents, keys, strict=True))
    return [put_of(its.start, its.end, content, its.of_line, its.needs) for its, content in pairs]


def bodies_of(
    datas: Iterable[Data] | None, json: Iterable[Any] | None, values: Iterable[Any] | None, bodies: Bodies
) -> Iterator[bytes]:
    """Return the bodies of many jobs, from whichever of the three is given."""
    if sum(one is not None for one in (datas, json, values)) != 1:
        raise BadArguments("give one of datas, json and values")
    if datas is not None:
        return map(arguments.body, datas)
    if json is not None:
        return (arguments.must_have(arguments.body_of(None, one, ABSENT, bodies)) for one in json)
    return (arguments.must_have(arguments.body_of(None, ABSENT, one, bodies)) for one in values or ())


def puts_batch(puts: Sequence[Command[Stored]], *, counted: bool) -> list[Part]:
    """Combine PUTs into as many PUTS as needed. A job too large for any is sent alone.

    `counted`: read of each answer only whether the job is new, which is cheaper than a Stored.
    """
    parts = []
    for piece in _pieces(puts, lambda put: len(put.line) - 4 + len(put.data), BATCH_BYTES_MAX):
        head = f"PUTS {len(piece)}\r\n".encode()
        body = b"".join(part for put in piece for part in (put.line[4:], put.data))     # without "PUT "
        if len(body) > BATCH_BYTES_MAX:
            parts.append(Part(piece[0], 1))
            continue
        read = partial(_each, _is_new, len(piece)) if counted else partial(_stored, piece)
        needs = tuple({"batch": None} | dict.fromkeys(word for put in piece for word in put.needs))
        parts.append(Part(Command(head, body, read, Repeat.IF_ASKED, logged=True, needs=needs,
                                  members=tuple(piece)), len(piece)))
    return parts


def _stored(puts: Sequence[Command[Stored]]) -> Reader[list[Stored | SockpqError]]:
    """Read for each PUT its Stored or its error."""
    lines = yield from lines_of_list()
    expect(len(lines) == len(puts), f"{len(lines)} lines in the answer to {len(puts)} jobs")
    stored = []
    for line, one in zip(lines, puts, strict=True):
        assert one.of_line is not None      # a PUT has an answer of one line
        stored.append(_value_or_error(line, one.of_line))
    return stored


def _is_new(text: str) -> bool:
    """Return whether this PUT created the job. Raises the error of a refusal."""
    return fields_of(text)[:1] != ["EXISTS"]


def get_batch(
    count: int,
    queues: str | Iterable[str] | None = None,
    block: Block = False,
    expire: float | None = None,
    then: Then | None = None,
    wait: float | None = None,
    *,
    item: str | None = None,
    meta: MetaWanted = False,
    headers: HeadersWanted = False,
    policy: Policy | None = None,
    bound: bool = False,
) -> Command[list[Handed]]:
    """GET .. COUNT. Jobs that are `bound` to the session need no lease."""
    block = block or wait is not None
    queues = as_queues(queues)
    names, line = get_line(queues, block, expire, then, True)
    options = get_options(item, meta, policy, bound, headers)
    line += f"{options} COUNT {count}{'' if wait is None else within(wait)}\r\n"
    if len(line) + NUMBER_BYTES_MAX > arguments.LINE_BYTES_MAX:
        raise BadArguments(f"too many queues: the command would have {len(line)} bytes")
    shown = shown_by(meta, headers)
    of_queues = partial(get_batch, count, queues, item=item, meta=meta, policy=policy, bound=bound)
    return Command(
        line.encode(), b"", partial(_jobs, names, count, shown),
        Repeat.HARMLESS if expire or bound else Repeat.IF_ASKED, Blocks.AT_ONCE if block else Blocks.NEVER, logged=True,
        needs=("batch", *(() if wait is None else ("within",)), *shown.needs),
        older=of_queues(block, expire, then, wait) if headers == "if_known" else None,
        unblocked=of_queues(False, expire, then, headers=headers) if block else None,
    )


class TakeSource(NamedTuple):
    """The repeated request of a consumer: the queues, and the options."""

    queues: str | tuple[str, ...] | None
    block: Block
    expire: float
    then: Then | None
    wait: float | None
    item: str | None
    meta: MetaWanted
    headers: HeadersWanted
    policy: Policy | None

    def one(self) -> Command[Handed | None]:
        """GET of one job; raises BadArguments unless there is a lease, which makes a lost hand-out harmless."""
        if not self.expire:
            raise BadArguments("it needs a lease: expire must be positive")
        return get(
            self.queues, self.block, self.expire, self.then, self.wait, item=self.item, meta=self.meta,
            headers=self.headers, policy=self.policy,
        )

    def many(self, count: int, blocks: bool) -> Command[list[Handed]]:
        """GET of up to `count` jobs; unless `blocks`, it takes only available jobs."""
        return get_batch(
            count, self.queues, self.block if blocks else False, self.expire, self.then, self.wait if blocks else None,
            item=self.item, meta=self.meta, headers=self.headers, policy=self.policy,
        )


def as_queues(queues: str | Iterable[str] | None) -> str | tuple[str, ...] | None:
    """Return the queues in a form that can be iterated repeatedly."""
    return queues if queues is None or isinstance(queues, str) else tuple(queues)


def _jobs(queues: tuple[str, ...] | None, count: int, shown: Shown) -> Reader[list[Handed]]:
    """Read a count, the lines, then all bodies in a row."""
    line = yield LINE
    if line == b"404 Queue Empty":
        return []
    fields = ok(line)
    expect(len(fields) == 1, "one count expected")
    lines = []
    for _ in range(as_number(fields[0], count)):
        lines.append(handed_line(as_text((yield LINE)).split(" "), queues, shown))
    result = []
    for one in lines:
        result.append(one.job((yield one.length)))
    return result


def ends(verb: Literal["DONE", "LATER"], jobs: Iterable[HeldJob | int], option: str = "") -> list[Part]:
    """DONE or LATER of several jobs, in as many commands as needed; `option`: for all, with a leading blank."""
    of_line: Callable[[str], object] = finished if verb == "DONE" else _put_back
    ids = [arguments.job_id(job) for job in jobs]
    room = arguments.LINE_BYTES_MAX - NUMBER_BYTES_MAX - len(verb) - len(option) - 2
    parts = []
    in_clusters = ([b" %d" % job for job in of_one] for _, of_one in groupby(ids, key=tag_of))
    for piece in (piece for words in in_clusters for piece in _pieces(words, len, room)):
        line = verb.encode() + b"".join(piece) + option.encode() + b"\r\n"
        several = len(piece) > 1        # one has an answer of another form
        reader = partial(_each, of_line, len(piece)) if several else partial(_alone, of_line)
        needs = (("batch", "fanout") if option else ("batch",)) if several else ()
        parts.append(Part(Command(line, b"", reader, Repeat.HARMLESS, logged=True, needs=needs), len(piece)))
    return parts


class Touches(NamedTuple):
    """A TOUCH of those jobs in a batch that get the same lease, and their positions in it."""

    command: Command[list[bool]]
    positions: list[int]


def touches(jobs: Iterable[HeldJob | int], expire: Iterable[float], then: Then | None) -> list[Touches]:
    """TOUCH of several jobs, each with a lease of its own: a command for each length, and each cluster."""
    held, spans = list(jobs), list(expire)
    if len(held) != len(spans):
        raise BadArguments(f"touch_many() has {len(held)} jobs, and {len(spans)} times for them")
    groups: dict[tuple[int, float], list[int]] = {}
    for position, (job, span) in enumerate(zip(held, spans, strict=True)):
        groups.setdefault((tag_of(arguments.job_id(job)), span), []).append(position)
    return [
        Touches(touch_many([held[position] for position in positions], span, then), positions)
        for (_, span), positions in groups.items()
    ]


def done_all(jobs: Sequence[HeldJob | int]) -> Command[object]:
    """DONE of several jobs in one command, at most BATCH_JOBS_MAX; raises JobNotFound when one is not running."""
    (part,) = ends("DONE", jobs)
    read = part.command.read
    return part.command._replace(read=lambda: _all_good(read()))


def _all_good(reader: Reader[list[object]]) -> Reader[list[object]]:
    results = yield from reader
    lost = [one for one in results if isinstance(one, SockpqError)]
    for error in lost:
        raise type(error)(f"{len(lost)} of {len(results)}: {error}")
    return results


def _put_back(text: str) -> bool:
    """Accept the answer of a LATER of several jobs, followed by any words."""
    fields_of(text)
    return True


def _each(of_line: Callable[[str], T], count: int) -> Reader[list[T | SockpqError]]:
    """Read for each command its error, or its value, which `of_line` parses from its line."""
    lines = yield from lines_of_list()
    expect(len(lines) == count, f"{len(lines)} lines in the answer to {count} commands")
    return [_value_or_error(line, of_line) for line in lines]


def _alone(of_line: Callable[[str], T]) -> Reader[list[T | SockpqError]]:
    """Read the answer to DONE or LATER of one job in the form for several."""
    text = as_text((yield LINE))
    return [JobNotFound(text) if text == "404 Job Not Found" else of_line(text)]


def _value_or_error(line: str, of_line: Callable[[str], T]) -> T | SockpqError:
    try:
        return of_line(line)
    except ProtocolError:
        raise
    except SockpqError as error:
        return error


def _pieces(things: Sequence[T], size: Callable[[T], int], size_max: int) -> Iterator[list[T]]:
    """Split into pieces of at most BATCH_JOBS_MAX things and `size_max` together; at least one thing each."""
    piece: list[T] = []
    room = size_max
    for thing in things:
        if piece and (len(piece) == BATCH_JOBS_MAX or size(thing) > room):
            yield piece
            piece, room = [], size_max
        piece.append(thing)
        room -= size(thing)
    if piece:
        yield piece


def transaction(commands: Sequence[Command[Any]]) -> Command[list[object]]:
    """BEGIN, these commands, COMMIT.

    Nothing is sent before BEGIN is answered: a server that refuses it would execute the commands one by one. The
    COMMIT has the number of the request.
    """
    if len(commands) > TRANSACTION_COMMANDS_MAX:
        raise BadArguments(f"a transaction has {TRANSACTION_COMMANDS_MAX} commands at most, not {len(commands)}")
    prelude = b"".join(part for command in commands for part in (command.line, command.data))
    if len(prelude) > BATCH_BYTES_MAX:
        raise DataTooLarge(f"a transaction has {BATCH_BYTES_MAX} bytes at most, not {len(prelude)}")
    read = partial(_committed, tuple(command.of_line or fields_of for command in commands))
    return Command(
        b"COMMIT\r\n", b"", read, Repeat.IF_ASKED, logged=True, opening=_BEGIN, prelude=prelude,
        members=tuple(commands),
    )


def _committed(readers: tuple[Callable[[str], object], ...]) -> Reader[list[object]]:
    """Read the answers to the commands of a transaction, then to COMMIT: returns the values of the commands.

    Raises Aborted. A command that the server does not queue makes it abort; a server that stops serving does, too.
    """
    refused = None
    for position in range(1, len(readers) + 1):
        text = as_text((yield LINE))
        if text != "202 Queued" and refused is None:
            refused = position, failure(text)
    line = as_text((yield LINE))
    if line.startswith("409 Aborted "):
        place, _, reason = line[12:].partition(" ")
        raise Aborted(line, as_number(place), failure(reason))
    fields = fields_of(line)
    if refused:
        raise ProtocolError(f"a transaction was executed without its command {refused[0]}: {refused[1]}")
    expect(fields == [str(len(readers))], "the answer to COMMIT")
    values = []
    for reader in readers:
        values.append(reader(as_text((yield LINE))))
    return values


_BEGIN: Command[None] = single("BEGIN", accepted, Repeat.FREELY)
