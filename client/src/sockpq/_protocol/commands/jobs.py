"""Single jobs: put, take, finish, change and look at them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Generic, NamedTuple, TypeVar

from sockpq._protocol import arguments
from sockpq._protocol.arguments import (
    ABSENT,
    ENDED_STATES,
    EXPIRE_S_MAX,
    INT64_MAX,
    PLAIN,
    POLICIES,
    STATES,
    AfterWhen,
    Block,
    Bodies,
    Content,
    Data,
    HeadersWanted,
    HeldJob,
    MetaWanted,
    OnDuplicate,
    Policy,
    State,
    Then,
    ranked,
    when,
    within,
)
from sockpq._protocol.command import Blocks, Command, MissingJob, Repeat, call, single
from sockpq._protocol.headers import header_block, headers_of
from sockpq._protocol.reader import (
    BODY_BYTES_MAX,
    LINE,
    Reader,
    accepted,
    as_name,
    as_number,
    as_signed,
    as_text,
    expect,
    failure,
    fields_of,
    lines_of_list,
    number_of,
    ok,
)
from sockpq._protocol.session import NUMBER_BYTES_MAX
from sockpq.errors import BadArguments, NoOutput, ProtocolError
from sockpq.model import Finished, FoundJob, Handed, JobStat, Key, Life, Meta, Number, PeekedJob, Place, Stored, Waiting

T = TypeVar("T")

PEEK_JOBS_MAX = 10_000
KICK_JOBS_MAX = 2**31 - 1
TOUCHED_JOBS_MAX = 2_000
SPREAD_QUEUES_MAX = 1_000

_GET_VERBS: dict[Block, str] = {False: "GET", True: "GETB", "until_done": "GETBE"}
_FINISHED = {
    "200 OK": Finished(False, False),
    "200 OK FINQ": Finished(True, False),
    "200 OK FINI": Finished(False, True),
    "200 OK FINQ FINI": Finished(True, True),
}
_STATES = {state.upper() for state in (*STATES, *ENDED_STATES)}


# put

@call(retry=True, transaction=True)
def put(
    queue: str,
    data: Data | None = None,
    priority: int = 0,
    item: str | None = None,
    new_item: bool = False,
    *,
    json: Any = ABSENT,
    value: Any = ABSENT,
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
    dedup: tuple[str, float] | None = None,
    bodies: Bodies = PLAIN,
) -> Command[Stored]:
    """Queue a job; on return it is on the disks of a majority. Greater `priority` first.

    Its body is `data`, bytes or a string (UTF-8); or `json`, any JSON value; or `value`, which the
    client's `codec` encodes. `item` puts it into a group, `new_item` into a new group named by the server. The
    result has the `item` and the `key`.

    Times in seconds. `delay`: it becomes active that much later; or `at`: at this Unix time. `ttl`: it is removed
    unless it is taken within that time (0: never, whatever the queue's TTL). `every`: DONE makes it active again
    after this period, until it is deleted. `after`: an item, or several: it waits until each of these has had no
    unfinished job, or with `when="end"` none but dead and buried ones; with `when="failed"` until one of them has
    such a job, and is removed when all have ended without any, or not queued when they had ended before (`outcome`
    "dropped"). `key`: its name in its queue; if an unfinished job has that name, `on_duplicate` decides: "fail"
    (JobExists), "ignore", or "replace". `tries`: it is given up after that many hand-outs without done(). `group`:
    its owner, for queues that choose by groups and for get(policy="fair"); by default the queue's name. `number`:
    it gets a number, the `number` of the result, by which `Number` finds it in any state and queue, and it always
    returns to its old place. `lease`: the lease for clients that take it without `expire` (0: none), instead of its
    queue's. `headers`: names and values in addition to its body, which a consumer reads as `job.headers` and find()
    looks for. `dedup`: a key and seconds: while the queue remembers an accepted put() with this key, another one
    queues nothing and returns `outcome` "exists", even if the job has ended.

    Raises JobExists, QueueFull, QueuePaused, QueueNotFound according to these options and the queue's settings.
    """
    frame = put_frame(
        queue, priority, item, new_item, delay=delay, at=at, ttl=ttl, every=every, after=after, when=when, key=key,
        on_duplicate=on_duplicate, tries=tries, group=group, number=number, lease=lease, dedup=dedup,
    )
    content = arguments.content_of(arguments.body_of(data, json, value, bodies), headers, bodies)
    return put_of(frame.start, frame.end, content, frame.of_line, frame.needs)


class PutFrame(NamedTuple):
    """A PUT without its data: the parts of its line, the reader of its answer, and what the server must know."""

    start: str
    end: str
    of_line: Callable[[str], Stored]
    needs: tuple[str, ...]


def put_frame(
    queue: str,
    priority: int,
    item: str | None,
    new_item: bool,
    *,
    delay: float | None,
    at: float | None,
    ttl: float | None,
    every: float | None,
    after: str | Iterable[str] | None,
    when: AfterWhen | None,
    key: str | None,
    on_duplicate: OnDuplicate | None,
    tries: int | None,
    group: str | None,
    number: bool,
    lease: float | None,
    dedup: tuple[str, float] | None,
) -> PutFrame:
    """Return the parts of a PUT with these options other than its data; see put()."""
    start, end, of_line = put_line(
        queue, priority, item, new_item,
        put_options(delay, at, ttl, every, after, key, on_duplicate, tries, group, when)
        + put_marks(number, every, lease, dedup),
        key, number=number, dedup=dedup is not None,
    )
    needs = (("number",) if number or lease is not None else ()) + (("dedup",) if dedup else ()) + of_when(when)
    return PutFrame(start, end, of_line, needs)


def put_of(
    start: str, end: str, content: Content, of_line: Callable[[str], T], needs: tuple[str, ...] = (),
) -> Command[T]:
    """Return a PUT of this content: `start` and `end` are the parts of the line before and after the length.

    A server without headers gets the job without the trace.
    """
    made = single(
        f"{start}{len(content.data)}{end}{content.option}", of_line, Repeat.IF_ASKED, data=content.data, logged=True,
        needs=needs + content.needs,
    )
    if not content.traced:
        return made
    return made._replace(older=put_of(start, end, Content(content.body), of_line, needs))


@call(retry=True, transaction=True)
def put_to(
    queues: Iterable[str],
    data: Data | None = None,
    priority: int = 0,
    item: str | None = None,
    *,
    json: Any = ABSENT,
    value: Any = ABSENT,
    delay: float | None = None,
    at: float | None = None,
    ttl: float | None = None,
    every: float | None = None,
    after: str | Iterable[str] | None = None,
    when: AfterWhen | None = None,
    key: str | None = None,
    tries: int | None = None,
    group: str | None = None,
    headers: Mapping[str, str] | None = None,
    dedup: tuple[str, float] | None = None,
    bodies: Bodies = PLAIN,
) -> Command[int]:
    """Queue the same job in several queues (at most 1,000), in all of them or in none; returns in how many.

    The options are those of put() with the same names. There is no `number`: in a queue with the setting NUMBERED
    each job has one, and a transaction may put() into each queue with `number`. Raises the errors of put(), for the
    first queue that refuses.
    """
    names = dict.fromkeys(arguments.name(queue, "queue") for queue in arguments.several(queues, "queues"))
    if not 0 < len(names) <= SPREAD_QUEUES_MAX:
        raise BadArguments(f"put_to() takes 1 to {SPREAD_QUEUES_MAX} queues, not {len(names)}")
    first = "|".join(names) if len(names) > 1 else f"{next(iter(names))}|{next(iter(names))}"
    options = put_options(delay, at, ttl, every, after, key, None, tries, group, when)
    content = arguments.content_of(arguments.body_of(data, json, value, bodies), headers, bodies)
    return _fan_out(first, priority, item, options, dedup, content, of_when(when))


@call(retry=True, transaction=True)
def publish(
    topic: str,
    data: Data | None = None,
    priority: int = 0,
    item: str | None = None,
    *,
    route: str | None = None,
    json: Any = ABSENT,
    value: Any = ABSENT,
    delay: float | None = None,
    at: float | None = None,
    ttl: float | None = None,
    every: float | None = None,
    after: str | Iterable[str] | None = None,
    when: AfterWhen | None = None,
    key: str | None = None,
    tries: int | None = None,
    group: str | None = None,
    headers: Mapping[str, str] | None = None,
    dedup: tuple[str, float] | None = None,
    bodies: Bodies = PLAIN,
) -> Command[int]:
    """Queue a job in all queues that are bound to `topic` (topic_bind()), or in none; returns in how many.

    `route`: its routing key, words with dots between them; queues bound with a pattern get it only if that matches.
    The other options are those of put() with the same names. There is no `number`: in a queue with the setting
    NUMBERED each job has one. Raises the errors of put(), for the first queue that refuses.
    """
    route = "" if route is None else arguments.route(route)
    options = f" ROUTE {route}" if route else ""        # the empty key has no word that could be written
    options += put_options(delay, at, ttl, every, after, key, None, tries, group, when)
    content = arguments.content_of(arguments.body_of(data, json, value, bodies), headers, bodies)
    return _fan_out(f"@{arguments.name(topic, 'topic')}", priority, item, options, dedup, content, of_when(when))


def _fan_out(
    target: str, priority: int, item: str | None, options: str, dedup: tuple[str, float] | None, content: Content,
    needs: tuple[str, ...],
) -> Command[int]:
    priority = arguments.integer(priority, "priority", -INT64_MAX - 1, INT64_MAX)
    item = "" if item is None else f" IS {arguments.name(item, 'item')}"
    needs += ("fanout",)
    if dedup:
        options += arguments.dedup(dedup)
        needs += ("dedup",)
    return put_of(f"PUT {target} {priority} ", item + options, content, number_of, needs)


def put_line(
    queue: str, priority: int, item: str | None, new_item: bool, options: str, key: str | None, *, number: bool = False,
    dedup: bool = False,
) -> tuple[str, str, Callable[[str], Stored]]:
    """Return the parts of the line before and after the length, and the reader of the answer."""
    if item is not None and new_item:
        raise BadArguments("item names the job's item, new_item asks the server for a name: not both")
    item = item if item is None else arguments.name(item, "item")
    priority = arguments.integer(priority, "priority", -INT64_MAX - 1, INT64_MAX)
    new_item = arguments.switch(new_item, "new_item")
    start = f"PUT {arguments.name(queue, 'queue')} {priority} "
    end = " NEW" if new_item else f" IS {item}" if item else ""
    return start, end + options, partial(_stored, item, new_item, key, number, dedup)


def put_options(
    delay: float | None,
    at: float | None,
    ttl: float | None,
    every: float | None,
    after: str | Iterable[str] | None,
    key: str | None,
    on_duplicate: OnDuplicate | None,
    tries: int | None,
    group: str | None = None,
    when: AfterWhen | None = None,
) -> str:
    """Return the end of a PUT line: " DELAY 5 KEY a1"; see put()."""
    text = arguments.when(delay, at)
    if ttl is not None:
        text += f" TTL {arguments.seconds(ttl, 'ttl', 0, EXPIRE_S_MAX)}"
    if every is not None:
        text += f" EVERY {arguments.period(every, 'every')}"
    if after is not None:
        text += f" AFTER {arguments.items(after)}{arguments.after_when(when)}"
    elif when is not None:
        raise BadArguments("when needs after: it says for what of these items the job waits")
    if key is not None:
        text += f" KEY {arguments.job_key(key)}"
    if on_duplicate is not None:
        if key is None:
            raise BadArguments("on_duplicate needs key: it says what happens when a job has that")
        if on_duplicate not in ("fail", "ignore", "replace"):
            raise BadArguments(f"on_duplicate is 'fail', 'ignore' or 'replace', not {on_duplicate!r}")
        text += f" ONDUP {on_duplicate.upper()}"
    if tries is not None:
        text += f" TRIES {arguments.integer(tries, 'tries', 1, arguments.TRIES_MAX)}"
    if group is not None:
        text += f" GROUP {arguments.group(group)}"
    return text


def of_when(when: AfterWhen | None) -> tuple[str, ...]:
    """Return the words of CAPS that this option of a PUT needs."""
    return ("items",) if when else ()


def put_marks(number: bool, every: float | None, lease: float | None, dedup: tuple[str, float] | None) -> str:
    """Return the rare options at the end of a PUT line: " NUMBER LEASE 60"; see put()."""
    text = arguments.dedup(dedup) if dedup else ""
    if arguments.switch(number, "number"):
        if every is not None:
            raise BadArguments("number is for jobs that are done once, every for those that come again: not both")
        text += " NUMBER"
    return text if lease is None else f"{text} LEASE {arguments.seconds(lease, 'lease', 0, EXPIRE_S_MAX)}"


def _stored(item: str | None, new_item: bool, key: str | None, number: bool, dedup: bool, text: str) -> Stored:
    fields = fields_of(text)
    if number and fields[-2:-1] == ["NUMBER"]:
        if len(fields) == 2 and not new_item:           # what most are, at a third of the cost
            return Stored(item, key, number=as_number(fields[1]))
        return _stored(item, new_item, key, False, dedup, " ".join(["200 OK", *fields[:-2]]))._replace(
            number=as_number(fields[-1]))
    if dedup and fields == ["EXISTS"]:
        return Stored(item, key, "exists")
    if new_item and fields[:1] == ["IS"]:
        expect(len(fields) == 2, "the answer to PUT .. NEW")
        return Stored(as_name(fields[1]), key)
    if fields == ["DROPPED"] or (key is not None and fields in (["EXISTS"], ["REPLACED"])):
        return Stored(item, key, fields[0].lower())
    expect(not fields and not new_item, "the answer to PUT")
    return Stored(item, key)


def remote_call(
    queue: str,
    data: Data | None,
    output: str,
    priority: int = 0,
    item: str | None = None,
    expire: float | None = None,
    then: Then | None = None,
    wait: float | None = None,
    *,
    json: Any = ABSENT,
    value: Any = ABSENT,
    headers: Mapping[str, str] | None = None,
    bodies: Bodies = PLAIN,
) -> Command[Handed | Waiting]:
    """PUT .. WAIT: put the job, and wait for the job of the same item in `output`, `wait` seconds at most."""
    if not output:
        raise BadArguments("call() needs output: the queue that the answer will come from")
    start, end, _ = put_line(queue, priority, item, item is None, "", None)
    content = arguments.content_of(arguments.body_of(data, json, value, bodies), headers, bodies)
    waits = f" WAIT {arguments.name(output, 'output')}{arguments.lease(expire, then)}{content.option}"
    made: Command[Handed | Waiting] = Command(
        f"{start}{len(content.data)}{end}{waits}\r\n".encode(), content.data, partial(_output, output, item),
        Repeat.IF_ASKED, Blocks.AFTER_206, logged=True, needs=content.needs,
    )
    if content.traced:
        untraced = bodies._replace(trace=None)
        made = made._replace(older=remote_call(
            queue, data, output, priority, item, expire, then, json=json, value=value, headers=headers, bodies=untraced,
        ))
    if wait is None:
        return made
    line = made.line.removesuffix(b"\r\n") + f"{within(wait)}\r\n".encode()
    return made._replace(line=line, needs=("within", *made.needs), older=made)


def _output(queue: str, item: str | None) -> Reader[Handed | Waiting]:
    """Read the 206, then the output's job; if that does not arrive in time (WITHIN), the 206 is the value.

    `item`: None: the server generates the name (NEW).
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
    if line in (b"500 Offline Mode", b"404 Session Not Found"):     # of the wait: the PUT was executed
        raise NoOutput(f"{line.decode()}, while this client waited for the output", item)
    handed = yield from _handed(ok(line), (queue,))
    expect(handed.item == item, f"the output belongs to item {handed.item!r}, not to {item!r}")
    return handed


# get

def get(
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
) -> Command[Handed | None]:
    """GET, or GETB and GETBE, which wait up to `wait` seconds."""
    names = queues if queues is None or isinstance(queues, str) else tuple(queues)
    return _get(names, block, expire, then, wait, item, meta, headers, policy)


@lru_cache(maxsize=1024, typed=True)        # a worker says the same all the time
def _get(
    queues: str | tuple[str, ...] | None,
    block: Block,
    expire: float | None,
    then: Then | None,
    wait: float | None,
    item: str | None,
    meta: MetaWanted,
    headers: HeadersWanted,
    policy: Policy | None,
) -> Command[Handed | None]:
    block = block or wait is not None
    options = get_options(item, meta, policy, headers=headers)
    names, line = get_line(queues, block, expire, then, bool(options) or then == "dead")
    repeat = Repeat.HARMLESS if expire else Repeat.IF_ASKED     # without a lease a lost job would run for ever
    shown = shown_by(meta, headers)
    read = partial(_job, names, block is not True or shown.meta or shown.headers, shown)
    blocks = Blocks.AT_ONCE if block else Blocks.NEVER
    unblocked = _get(queues, False, expire, then, None, item, meta, headers, policy) if block else None
    made = Command(
        _checked(line + options), b"", read, repeat, blocks, logged=True, needs=shown.needs, unblocked=unblocked,
    )
    if wait is not None:
        _, line = get_line(queues, block, expire, then, True)
        made = made._replace(
            line=_checked(line + options + within(wait)), read=partial(_job, names, True, shown),
            needs=("within", *shown.needs), older=made,
        )
    if headers == "if_known":
        made = made._replace(older=_get(queues, block, expire, then, wait, item, meta, False, policy))
    return made


def get_number(
    number: Number | int, expire: float | None = None, then: Then | None = None, *, meta: MetaWanted = False,
    headers: HeadersWanted = False,
) -> Command[Handed]:
    """GET NUMBER: take one job, regardless of pauses and limits."""
    shown = shown_by(meta, headers)
    line = f"GET NUMBER {arguments.number(number)}{arguments.lease(expire, then)}{shown.words}\r\n"
    repeat = Repeat.HARMLESS if expire else Repeat.IF_ASKED
    made = Command(
        line.encode(), b"", partial(_job_of_number, shown), repeat, logged=True, needs=("number", *shown.needs),
    )
    return made._replace(older=get_number(number, expire, then, meta=meta)) if headers == "if_known" else made


def _job_of_number(shown: Shown) -> Reader[Handed]:
    fields = fields_of(as_text((yield LINE)))
    return (yield from _handed(fields, None, shown))


class Shown(NamedTuple):
    """The parts of a job that its line shows in addition to its body."""

    meta: bool = False
    headers: bool = False
    life: bool = False

    @property
    def words(self) -> str:
        """The options of GET and PEEK."""
        return (" META" if self.meta else "") + (" LIFE" if self.life else "") + (" HEAD" if self.headers else "")

    @property
    def needs(self) -> tuple[str, ...]:
        """The words of CAPS that a server needs."""
        return (("head",) if self.headers else ()) + (("life",) if self.life else ())


NOTHING_SHOWN = Shown()


def shown_by(meta: MetaWanted, headers: HeadersWanted) -> Shown:
    """Return the parts of a job that these options of get() ask for."""
    life = meta == "life"
    return Shown(life or arguments.switch(meta, "meta"), bool(headers), life)


def get_line(
    queues: str | tuple[str, ...] | None, block: Block, expire: float | None, then: Then | None, new_words: bool
) -> tuple[tuple[str, ...] | None, str]:
    """Return the queues, and the line of a GET in the form of an original sockPQd.

    `new_words` will follow; they must not come directly after the verb.
    """
    if not isinstance(block, bool) and block != "until_done":
        raise BadArguments(f"block is False, True or 'until_done', not {block!r}")
    names = arguments.queues(queues)
    chosen = f" {'|'.join(names)}" if names else " *" if new_words else ""
    return names, _GET_VERBS[block] + chosen + arguments.lease(expire, then)


def get_options(
    item: str | None, meta: MetaWanted, policy: Policy | None, bound: bool = False, headers: HeadersWanted = False,
) -> str:
    """Return the end of a GET line, except COUNT and WITHIN. `bound`: the jobs are bound to the session."""
    text = "" if item is None else f" IS {arguments.name(item, 'item')}"
    if policy is not None:
        if policy not in POLICIES:
            raise BadArguments(f"policy is one of {', '.join(POLICIES)}, not {policy!r}")
        text += f" BY {policy.upper()}"
    if bound:
        text += " BOUND"
    if headers != "if_known":
        arguments.switch(headers, "headers")
    return text + shown_by(meta, headers).words


def _checked(line: str) -> bytes:
    """Terminate a line; raises BadArguments when it is too long."""
    if len(line) + 2 + NUMBER_BYTES_MAX > arguments.LINE_BYTES_MAX:
        raise BadArguments(f"too many queues: the command would have {len(line) + 2} bytes")
    return line.encode() + b"\r\n"


def _job(queues: tuple[str, ...] | None, may_be_empty: bool, shown: Shown) -> Reader[Handed | None]:
    """Read the job, None when the queues are empty; a GETB waits for one."""
    line = yield LINE
    if line == b"404 Queue Empty" and may_be_empty:
        return None
    return (yield from _handed(ok(line), queues, shown))


def _handed(fields: list[str], queues: tuple[str, ...] | None, shown: Shown = NOTHING_SHOWN) -> Reader[Handed]:
    line = handed_line(fields, queues, shown)
    return line.job((yield line.length))


J = TypeVar("J", Handed, PeekedJob)


@dataclass(frozen=True, slots=True)
class JobLine(Generic[J]):
    """The line of a job: the job without its data, their length, and the length of the headers if it is shown."""

    described: J
    length: int
    head: int | None

    def job(self, data: bytes) -> J:
        """Return the job with these data."""
        if self.head is None:
            return self.described._replace(data=data)
        return self.described._replace(data=data[self.head :], headers=headers_of(data[: self.head]))


def handed_line(fields: list[str], queues: tuple[str, ...] | None, shown: Shown) -> JobLine[Handed]:
    """Parse `<q> <id> <p> <len> [IS <item>] [HEAD <h>]`, or with all meta tokens."""
    expect(len(fields) == 4 or len(fields) >= 6, "not the line of a job")
    queue = as_name(fields[0])
    if queues is not None and queue not in queues:
        raise ProtocolError(f"a job of queue {queue!r}, which was not asked for")
    job_id, priority, length = as_number(fields[1]), as_signed(fields[2]), as_number(fields[3], BODY_BYTES_MAX)
    head, tokens = _head_of(fields[4:], length) if shown.headers else (None, fields[4:])
    item, meta = _meta_tokens(tokens) if shown.meta or tokens else (None, None)
    expect(shown.meta or tokens in ([], ["IS", item]), "meta tokens nobody asked for")
    if shown.life and meta:
        meta = meta._replace(life=_life(dict(zip(tokens[::2], tokens[1::2], strict=True))))
    return JobLine(Handed(job_id, queue, priority, b"", item, meta if shown.meta else None), length, head)


def _head_of(tokens: list[str], length: int) -> tuple[int, list[str]]:
    """Return the length of the header block, which is the last pair of a line, and the pairs before."""
    expect(tokens[-2:-1] == ["HEAD"], "no HEAD at the end of the line of a job")
    return as_number(tokens[-1], length), tokens[:-2]


def _meta_tokens(fields: list[str]) -> tuple[str | None, Meta]:
    """Parse `[IS <item>] [NUMBER <n>] [KEY <key>] [GROUP <g>] [TRY <n>] [REASON <word>] [AT <unix>] [EXPIRE <unix>]`.

    Returns the item and the rest.

    A newer server may send more: unknown pairs are skipped (PROTOCOL "Versions and compatibility").
    """
    expect(len(fields) % 2 == 0, "a meta token without a value")
    tokens = dict(zip(fields[::2], fields[1::2], strict=True))
    expect(2 * len(tokens) == len(fields), f"meta tokens {' '.join(fields)[:200]!r}")
    at, expires_at, number, progress, ended = (
        as_number(tokens[word]) if word in tokens else None for word in _NUMBERS
    )
    return (
        as_name(tokens["IS"]) if "IS" in tokens else None,
        Meta(
            tokens.get("KEY"), as_number(tokens.get("TRY", "0")), at, expires_at, tokens.get("REASON"),
            tokens.get("GROUP"), number, progress, ended,
        ),
    )


_NUMBERS = ("AT", "EXPIRE", "NUMBER", "PROGRESS", "ENDED")


# a worker's commands about its job

@call(retry=True, job=True, transaction=True)
def done(
    job: HeldJob | int,
    *,
    last: bool = False,
    slow: bool = False,
    sleep: float | None = None,
    reason: str | None = None,
    ran: float | None = None,
    result: Data | None = None,
) -> Command[Finished]:
    """Remove a running job; returns whether it was the last unfinished one of its queue or its item.

    A periodic job (`put(every=)`) is not removed unless this was the `last` time; `next_at` of the result is when
    it is active again.

    For a queue with a rate: `slow`, this was too fast; `sleep`, no hand-outs for this long, in seconds. `reason`:
    why, for the server's log. `ran`: how many seconds the work took, for get(policy="fair"), instead of the time
    since the hand-out. `result`: for await_job(), and for job_result() where its queue keeps jobs that have ended.

    Raises JobNotFound when it is not running (any more). When an answer was lost and the repetition finds no such
    job, it is unknown whether the first attempt removed it or its lease had ended: OutcomeUnknown, or with
    `retry_unknown` a plain return.
    """
    ran = _measured(job, ran)
    line = b"DONE %d LAST" if arguments.switch(last, "last") else b"DONE %d"
    if slow or sleep is not None or reason is not None or ran is not None or result is not None:
        paced = feedback(slow, sleep) + ("" if reason is None else f" REASON {arguments.reason(reason)}")
        words = (arguments.ran(ran) + paced).encode()
        needs = (("pulse",) if paced else ()) + (("fair",) if ran is not None else ())
        made = single(
            line % arguments.job_id(job) + words, finished, Repeat.HARMLESS, logged=True, needs=needs,
            gone=_DONE_BEFORE,
        )
        return made if result is None else ending_with(made, "RESULT", arguments.body(result), "retain")
    return single(line % arguments.job_id(job), finished, Repeat.HARMLESS, logged=True, gone=_DONE_BEFORE)


def _measured(job: HeldJob | int, ran: float | None) -> float | None:
    """Return the running time to report with the end of a job: the given one, or as measured by its loop."""
    watch = getattr(job, "_stopwatch", None)
    measured: float | None = watch() if watch and ran is None else ran
    return measured


def ending_with(command: Command[T], option: str, data: bytes, word: str) -> Command[T]:
    """Add an option with data, `ERROR <len>` or `RESULT <len>`, to the end of a command.

    The data must not reach a server that would read them as commands: `word`: the word of CAPS of servers that support
    it.
    """
    line = b"%s %s %d\r\n" % (command.line.removesuffix(b"\r\n"), option.encode(), len(data))
    return command._replace(line=line, data=data, needs=(*command.needs, word))


def finished(text: str) -> Finished:
    """Return the content of the answer to DONE, or raise the error that it reports."""
    found = _FINISHED.get(text)
    if found is not None:
        return found
    if text.endswith(" DROPPED"):
        return finished(text.removesuffix(" DROPPED"))._replace(dropped=True)
    if text.startswith("200 OK NEXT "):
        return Finished(False, False, as_number(text[12:]))
    raise failure(text)


_DONE_BEFORE = MissingJob(Finished(False, False), always=False)


@call(job=True, transaction=True)
def later(
    job: HeldJob | int,
    *,
    delay: float | None = None,
    at: float | None = None,
    priority: int | None = None,
    first: bool = False,
    yielded: bool = False,
    reason: str | None = None,
    error: str | None = None,
    slow: bool = False,
    sleep: float | None = None,
    ran: float | None = None,
) -> Command[None]:
    """Put a running job back at the end of its queue. Raises JobNotFound when it is not running (any more).

    `delay` (seconds) or `at` (Unix time): when it is active again; `priority`: its new one; `first`: put it back to
    its old place instead; `yielded`: a slice of the work is finished: the attempt is not counted. `reason`: why, in
    a word of 1 to 64 letters, digits and _ . : -, kept with the job until kick(). `error`: the text of the error,
    for example a traceback, for job_error(); beyond 16,384 bytes its middle is left out. `slow`, `sleep` and `ran`:
    see done().
    """
    if arguments.switch(first, "first") and (delay is not None or at is not None):
        raise BadArguments("first is the job's old place, delay and at another one: not both")
    ran = _measured(job, ran)
    words = when(delay, at) + ranked(priority)
    words += (" FIRST" if first else "") + (" YIELD" if arguments.switch(yielded, "yielded") else "")
    words += "" if reason is None else f" REASON {arguments.reason(reason)}"
    paced = feedback(slow, sleep)
    return _with_error(single(
        f"LATER {arguments.job_id(job)}{words}{arguments.ran(ran)}{paced}", _put_back, Repeat.HARMLESS, logged=True,
        needs=(("pulse",) if paced else ()) + (("fair",) if ran is not None else ()),
        gone=MissingJob(None, always=True),
    ), error)


def _put_back(text: str) -> None:
    """Accept the answer to LATER; it is a success even if the error text was dropped."""
    accepted(text.removesuffix(" DROPPED"))


def _with_error(command: Command[T], error: str | None) -> Command[T]:
    """Add the text of an error to a command that may end with `ERROR <len>`."""
    if error is None:
        return command
    return ending_with(command, "ERROR", arguments.error_text(error), "backoff")


def untaken(handed: Handed | list[Handed] | None) -> list[Command[None]]:
    """Return the commands that give back unreported jobs: to their places, as if they had not been taken."""
    taken = handed if isinstance(handed, list) else [handed] if handed else []
    return [later(job, first=True, yielded=True) for job in taken]


def feedback(slow: bool, sleep: float | None) -> str:
    """Return the feedback on the rate of its queue at the end of a job: " SLOW", " SLEEP 60" or nothing."""
    if arguments.switch(slow, "slow"):
        if sleep is not None:
            raise BadArguments("slow and sleep are two results of one job: not both")
        return " SLOW"
    return "" if sleep is None else f" SLEEP {arguments.seconds(sleep, 'sleep', 0, EXPIRE_S_MAX)}"


@call(transaction=True)
def touch(
    job: HeldJob | int, expire: float | None = None, then: Then | None = None, *, ran: float | None = None,
    progress: int | None = None,
) -> Command[int | None]:
    """Renew the lease of a running job, with the same length or `expire` seconds (0: without limit).

    `progress`: the percentage of the work that is done, 0 to 100, shown with the job.
    `ran`: how many seconds the work has taken since the hand-out or the last touch(), for get(policy="fair").

    Returns the end of the lease in Unix time, None for never. Raises JobNotFound if the job is no longer running.
    """
    if ran is None and getattr(job, "_stopwatch", None):
        ran = 0.0               # the end of the job tells all of it
    line = f"TOUCH {arguments.job_id(job)}{arguments.lease(expire, then)}{arguments.ran(ran)}"
    if progress is None:
        return single(line, _leased, Repeat.HARMLESS, logged=True)
    line += f" PROGRESS {arguments.integer(progress, 'progress', 0, 100)}"
    return single(line, _leased, Repeat.HARMLESS, logged=True, needs=("progress",))


@call()
def progress(job: HeldJob | int, percent: int) -> Command[int | None]:
    """Report how much of the work on a running job is done, 0 to 100; renews its lease too. See touch()."""
    return touch(job, progress=percent)


def touch_many(
    running: Iterable[HeldJob | int], expire: float | None = None, then: Then | None = None
) -> Command[list[bool]]:
    """TOUCH of several jobs, with the same lease."""
    numbers = [arguments.job_id(job) for job in running]
    if not 0 < len(numbers) <= TOUCHED_JOBS_MAX:
        raise BadArguments(f"touch_many() takes 1 to {TOUCHED_JOBS_MAX} jobs, not {len(numbers)}")
    line = f"TOUCH {' '.join(map(str, numbers))}{arguments.lease(expire, then)}\r\n"
    return Command(
        line.encode(), b"", partial(_touched, len(numbers)), Repeat.HARMLESS,
        needs=("idle",) if len(numbers) > 1 else (),
    )


def _touched(count: int) -> Reader[list[bool]]:
    if count == 1:
        lines = [as_text((yield LINE))]
    else:
        lines = yield from lines_of_list()
    expect(len(lines) == count, f"{len(lines)} lines in the answer to TOUCH of {count}")
    return [_still_runs(line) for line in lines]


def _still_runs(line: str) -> bool:
    if line == "404 Job Not Found":
        return False
    _leased(line)
    return True


def _leased(text: str) -> int | None:
    fields = fields_of(text)
    if not fields:
        return None
    expect(len(fields) == 2 and fields[0] == "EXPIRE", "the answer to TOUCH")
    return as_number(fields[1])


@call(transaction=True)
def change(
    job: HeldJob | int | Key | Place | Number,
    *,
    data: Data | None = None,
    json: Any = ABSENT,
    value: Any = ABSENT,
    priority: int | None = None,
    delay: float | None = None,
    at: float | None = None,
    item: str | None = None,
    no_item: bool = False,
    headers: Mapping[str, str] | None = None,
    bodies: Bodies = PLAIN,
) -> Command[None]:
    """Change a running job by its id, or another one by its `Key`, `Place` or `Number`; other properties stay.

    `data`, `json` or `value` is its new body, as for put(). `headers` replaces all its headers; {} removes them.
    `no_item` removes it from its item. Raises JobNotFound, and JobRunning when the job with this key is running.
    """
    if arguments.switch(no_item, "no_item") and item is not None:
        raise BadArguments("item names another item, no_item takes it away: not both")
    words = ranked(priority) + when(delay, at) + (" NOITEM" if no_item else "")
    words += "" if item is None else f" IS {arguments.name(item, 'item')}"
    body = arguments.body_of(data, json, value, bodies)
    if not words and body is None and headers is None:
        raise BadArguments("change() without anything to change")
    command = _with_data(f"CHANGE {arguments.selector(job)}{words}", body, headers, accepted, "change")
    return command._replace(needs=command.needs + arguments.selected_by(job))


@call(retry=True, transaction=True)
def delete(job: HeldJob | int | Key | Place | Number, *, untaken: bool = False) -> Command[Finished]:
    """Remove a running job by its id, or another one by its `Key`, `Place` or `Number`.

    Raises JobNotFound, and JobRunning when the job with this key is running. `untaken`, with a `Number`: raises
    JobRunning even when that job is running; without it a running job is removed.
    """
    if untaken and not isinstance(job, Number):
        raise BadArguments("untaken goes with a Number: an id belongs to a running job, a key never finds one")
    repeat = Repeat.IF_ASKED if isinstance(job, Key) else Repeat.HARMLESS   # another job may have got the key meanwhile
    line = f"DELETE {arguments.selector(job)}{' UNTAKEN' if untaken else ''}"
    return single(line, finished, repeat, logged=True, needs=arguments.selected_by(job))


@call(job=True, transaction=True)
def move(
    job: HeldJob | int,
    queue: str,
    *,
    data: Data | None = None,
    json: Any = ABSENT,
    value: Any = ABSENT,
    priority: int | None = None,
    delay: float | None = None,
    at: float | None = None,
    headers: Mapping[str, str] | None = None,
    bodies: Bodies = PLAIN,
) -> Command[Finished]:
    """Finish a running job here and put it into `queue`, atomically: a step of a cascade.

    Its item, key and headers go with it; a new body (`data`, `json` or `value`), `headers`, `priority`, `delay` or
    `at` change it. Raises JobNotFound, and the errors of put().
    """
    line = f"MOVE {arguments.job_id(job)} {arguments.name(queue, 'queue')}{ranked(priority)}{when(delay, at)}"
    return _with_data(line, arguments.body_of(data, json, value, bodies), headers, finished, "move")


@call(job=True, transaction=True)
def bury(
    job: HeldJob | int, reason: str | None = None, *, here: bool = False, priority: int | None = None,
    error: str | None = None,
) -> Command[Finished]:
    """Give up a running job: it goes to its queue's dead-letter queue; kick() brings it back.

    `reason`: why, in a word of 1 to 64 letters, digits and _ . : -, kept with the job until kick(), and logged.
    `error`: the text of what went wrong, as for later().
    `here`: it stays in its own queue, buried, until kick(here=True), with another `priority` if one is given.
    """
    if priority is not None and not here:
        raise BadArguments("priority is for a job that is buried here; another one keeps its own")
    words = (" HERE" if arguments.switch(here, "here") else "") + ranked(priority)
    line = f"BURY {arguments.job_id(job)}{words}" + ("" if reason is None else f" REASON {arguments.reason(reason)}")
    return _with_error(
        single(line, finished, Repeat.HARMLESS, logged=True, needs=("number",) if here else ()), error
    )


def _with_data(
    line: str, body: bytes | None, headers: Mapping[str, str] | None, of_line: Callable[[str], Any], word: str
) -> Command[Any]:
    """Return a command that may end with `HEAD <h>`, `DATA <len>` or both.

    The data must not reach a server that would read them as commands.
    """
    block = header_block(headers)
    needs = ((word,) if body is not None else ()) + (("head",) if headers is not None else ())
    line += ("" if headers is None else f" HEAD {len(block)}")
    line += ("" if body is None else f" DATA {len(block) + len(body)}")
    return single(line, of_line, Repeat.HARMLESS, data=block + (body or b""), logged=True, needs=needs)


# jobs in any state

@call("any")
def peek(job: HeldJob | int | Key | Place | Number, *, headers: bool = False) -> Command[PeekedJob | None]:
    """Look at a running job, or one with this `Key`, `Place` or `Number`, without taking it; None if there is none.

    `headers`: fill its `headers`.
    """
    shown = Shown(headers=arguments.switch(headers, "headers"))
    line = f"PEEK {arguments.selector(job)}{shown.words}\r\n"
    needs = arguments.selected_by(job) + shown.needs
    return Command(line.encode(), b"", partial(peeked, shown), Repeat.FREELY, needs=needs)


@call("any")
def job_error(job: HeldJob | int | Key | Place | Number) -> Command[str | None]:
    """Return the text of the last error of a job: of its last later() or bury() with `error`; None without one.

    Raises JobNotFound.
    """
    line = f"PEEK {arguments.selector(job)} ERROR\r\n"
    return Command(line.encode(), b"", _error, Repeat.FREELY, needs=(*arguments.selected_by(job), "backoff"))


def _error() -> Reader[str | None]:
    length = number_of(as_text((yield LINE)))
    return (yield length).decode(errors="replace") if length else None


@call("any")
def peek_queue(
    queue: str, state: State = "ready", count: int = 1, *, places: bool = False, headers: bool = False
) -> Command[list[PeekedJob]]:
    """Look at the first `count` jobs of a queue that are "ready", "delayed", "running", "dead" or "buried".

    Dead ones are jobs that were given up in this queue. With `places` each job has its `place`, by which
    peek(), change() and delete() find it; a server that is too old sends none. `headers`: fill their `headers`.
    """
    count = arguments.integer(count, "count", 1, PEEK_JOBS_MAX)
    line = f"PEEK {arguments.name(queue, 'queue')} {arguments.state(state)} COUNT {count}"
    shown = Shown(headers=arguments.switch(headers, "headers"))
    read = partial(peeked_many, count, shown)
    command: Command[list[PeekedJob]] = Command(
        f"{line}{shown.words}\r\n".encode(), b"", read, Repeat.FREELY, needs=shown.needs,
    )
    if arguments.switch(places, "places"):
        line = f"{line} SEQ{shown.words}\r\n"
        return command._replace(line=line.encode(), needs=("seq", *shown.needs), older=command)
    return command


@call(retry=True)
def kick(queue: str, count: int, *, here: bool = False) -> Command[int]:
    """Put up to `count` jobs that were given up in this queue back into it, as if new; returns how many.

    `here`: make the queue's own buried jobs ready (bury(here=True)), or if there are none its delayed ones.
    """
    count = arguments.integer(count, "count", 1, KICK_JOBS_MAX)
    line = f"KICK {arguments.name(queue, 'queue')} {count}" + (" HERE" if arguments.switch(here, "here") else "")
    return single(line, number_of, Repeat.IF_ASKED, slow=True, logged=True, needs=("number",) if here else ())


@call(transaction=True)
def kick_job(job: Number | Place | int) -> Command[int]:
    """Make a buried or delayed job ready, by its number, or a dead or delayed one by its place; returns 1.

    A dead job goes back to the queue in which it died. Raises JobNotFound when the job is in none of these states.
    """
    named: Number | Place = job if isinstance(job, Place) else Number(arguments.number(job))
    return single(
        f"KICK JOB {arguments.selector(named)}", number_of, Repeat.HARMLESS, logged=True,
        needs=arguments.selected_by(named), gone=MissingJob(1, always=False),
    )


@call("any")
def job_stat(number: Number | int) -> Command[JobStat]:
    """Return the state and the history of a job, by its number. Raises JobNotFound."""
    line = f"JOB STAT NUMBER {arguments.number(number)}\r\n"
    return Command(line.encode(), b"", _job_stat, Repeat.FREELY, needs=("number",))


def _job_stat() -> Reader[JobStat]:
    pairs: list[Any] = [line.split(" ") for line in (yield from lines_of_list())]
    expect(all(len(pair) == 2 for pair in pairs), "not a line of JOB STAT")
    found = dict(pairs)
    expect(all(name in found for name in _JOB_LINES), "lines of JOB STAT are missing")
    lease = found["LEASE"]
    return JobStat(
        as_name(found["QUEUE"]), found["STATE"].lower(), as_signed(found["PRI"]), as_number(found["LENGTH"]),
        as_number(found["CREATED"]), as_number(found["AGE_S"]), None if lease == "-" else float(lease),
        float(found["DELAY"]), as_number(found["LEFT_S"]), *(as_number(found[name]) for name in _JOB_LINES[9:]),
    )._replace(died=None if found.get("DIED", "-") == "-" else as_number(found["DIED"]))


_JOB_LINES = (
    "QUEUE", "STATE", "PRI", "LENGTH", "CREATED", "AGE_S", "LEASE", "DELAY", "LEFT_S", "ATTEMPTS", "RESERVES",
    "TIMEOUTS", "RELEASES", "BURIES", "KICKS",
)


def peeked(shown: Shown) -> Reader[PeekedJob | None]:
    """Read one job with its data, None when there is none."""
    line = yield LINE
    if line == b"404 Job Not Found":
        return None
    one = _peek_line(ok(line), shown)
    return one.job((yield one.length))


def peeked_many(count: int, shown: Shown) -> Reader[list[PeekedJob]]:
    """Read a count, the lines, then all bodies in a row."""
    lines = [_peek_line(line.split(" "), shown) for line in (yield from lines_of_list())]
    expect(len(lines) <= count, "more jobs than were asked for")
    result = []
    for one in lines:
        result.append(one.job((yield one.length)))
    return result


def _place(queue: str, tokens: list[str]) -> Place | None:
    """Return the number of `SEQ <n>` at the end of the pairs of a line."""
    return Place(queue, as_number(tokens[-1])) if tokens[-2:-1] == ["SEQ"] else None


def described(fields: list[str]) -> FoundJob:
    """Parse `<q> <id|-> <p> <len> <state> [meta]`."""
    expect(len(fields) >= 5 and fields[4] in _STATES, "not the line of a job")
    item, meta = _meta_tokens(fields[5:])
    queue = as_name(fields[0])
    return FoundJob(
        None if fields[1] == "-" else as_number(fields[1]), queue, as_signed(fields[2]),
        as_number(fields[3], BODY_BYTES_MAX), fields[4].lower(), item, meta, _place(queue, fields[5:]),
    )


def _peek_line(fields: list[str], shown: Shown) -> JobLine[PeekedJob]:
    """Parse the line of a job, which ends in `HEAD <h>` if headers are shown."""
    head = None
    if shown.headers:
        expect(len(fields) >= 7, "not the line of a job with headers")
        head, fields = _head_of(fields, as_number(fields[3], BODY_BYTES_MAX))
    found = described(fields)
    life = _life(dict(zip(fields[5::2], fields[6::2], strict=True))) if shown.life else None
    meta = found.meta
    return JobLine(PeekedJob(
        id=found.id,
        queue=found.queue,
        priority=found.priority,
        data=b"",
        state=found.state,
        item=found.item,
        key=meta.key,
        reason=meta.reason,
        attempt=meta.attempt,
        at=meta.at,
        expires_at=meta.expires_at,
        place=found.place,
        number=meta.number,
        group=meta.group,
        progress=meta.progress,
        ended=meta.ended,
        life=life,
    ), found.length, head)


def _life(tokens: Mapping[str, str]) -> Life | None:
    """Parse `CREATED <ms> FIRST <ms>|- STARTED <ms>|- TAKEN <n> [FROM <queue>]`, which only numbered jobs have."""
    if "CREATED" not in tokens:
        return None
    expect(all(word in tokens for word in ("FIRST", "STARTED", "TAKEN")), "not the life of a job")
    first, started = (None if tokens[word] == "-" else _ms(tokens[word]) for word in ("FIRST", "STARTED"))
    died_in = as_name(tokens["FROM"]) if "FROM" in tokens else None
    return Life(_ms(tokens["CREATED"]), first, started, as_number(tokens["TAKEN"]), died_in)


def _ms(token: str) -> float:
    return as_number(token) / 1000
