"""The grammar as a table: each verb has one small function from the words of its line to a request.

Keywords share positions with names (a queue may be called EXPIRE), so every word is judged by its position with one
word of look-ahead; the grammar then has no ambiguity (A13). Verbs are read in any case, keywords only in upper case.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from msgspec import Struct

from core import Done, Get, Later, Put, Then
from gateway import requests
from gateway.answers import NOT_SUPPORTED
from gateway.limits import SESSION_TTL_MS_DEFAULT, SESSION_TTL_MS_MAX, SESSION_TTL_MS_MIN
from gateway.numbering import digest_of
from gateway.values import ArgumentError, address, milliseconds, name, node, prefix, queues, session, signed, unsigned

Words = list[bytes]


class PutHead(Struct, gc=False, frozen=True):
    """The line of a PUT, whose data follow."""

    length: int
    queue: str
    priority: int
    item: str | None
    new_item: bool
    wait: Get | None

    def with_data(self, data: bytes) -> Put | requests.PutWait:
        """The request, now that its data are here."""
        put = Put(self.queue, self.priority, data, self.item, self.new_item)
        return put if self.wait is None else requests.PutWait(put, self.wait)


class NumberedPutHead(Struct, gc=False, frozen=True):
    """The line of a PUT with REQ before it. `digest` has the words in it, and gets the data."""

    length: int
    number: int
    digest: blake2b
    put: PutHead

    def with_data(self, data: bytes) -> requests.Numbered:
        """The request, now that its data are here."""
        self.digest.update(data)
        return requests.Numbered(self.number, self.digest.digest(), self.put.with_data(data))


class CloneHead(Struct, gc=False, frozen=True):
    """The line of a CLONE, whose data follow `start`."""

    start: requests.CloneStart


class SkipHead(Struct, gc=False, frozen=True):
    """A line whose data are read and dropped before `answer` is given."""

    length: int
    answer: bytes


Head = PutHead | NumberedPutHead | CloneHead | SkipHead


def _put(words: Words) -> PutHead:
    count = len(words)
    if count < 4:
        raise ArgumentError
    queue, priority, length = name(words[1]), signed(words[2]), unsigned(words[3])
    if count == 4:
        return PutHead(length, queue, priority, None, False, None)
    if words[4] == b"NEW":
        item, tail = None, 5
    elif words[4] == b"IS" and count > 5:
        item, tail = name(words[5]), 6
    else:
        raise ArgumentError
    return PutHead(length, queue, priority, item, item is None, _wait(words, tail, item))


def _wait(words: Words, at: int, item: str | None) -> Get | None:
    """[WAIT <oq> [lease]] from position `at` to the end of the line."""
    if at == len(words):
        return None
    if words[at] != b"WAIT" or at + 1 == len(words):
        raise ArgumentError
    expire_ms, then, end = _lease(words, at + 2)
    if end != len(words):
        raise ArgumentError
    return Get((name(words[at + 1]),), expire_ms, then, item, item is None)


def _hand_out(words: Words) -> tuple[Get, bool]:
    """What a GET asks for, and whether it is bound.

    Words that the original does not know are read behind explicit queues only, of which `*` means any (EXTENSIONS.md
    0.2): so no line of the original changes its meaning.
    """
    if len(words) == 1:
        return Get(None), False
    first = words[1]
    if _is_limit(first) and not (first == b"EXPIRE" and (len(words) == 2 or _is_option(words[2]))):
        expire_ms, then, end = _lease(words, 1)
        if end != len(words):
            raise ArgumentError
        return Get(None, expire_ms, then), False
    return _options(words, None if first == b"*" else queues(first))


def _options(words: Words, names: tuple[str, ...] | None) -> tuple[Get, bool]:
    """[lease] [BOUND] behind the queues, in any order, each at most once."""
    if len(words) == 2:
        return Get(names), False
    lease: tuple[int | None, Then] | None = None
    bound, at = False, 2
    while at < len(words):
        if words[at] == b"BOUND" and not bound:
            bound, at = True, at + 1
        elif lease is None:
            expire_ms, then, at = _lease(words, at)
            lease = expire_ms, then
        else:
            raise ArgumentError
    return Get(names) if lease is None else Get(names, *lease), bound


def _is_option(word: bytes) -> bool:
    return _is_limit(word) or word == b"BOUND"


def _is_limit(word: bytes) -> bool:
    return word == b"EXPIRE" or word.startswith(b"EXPIRE=")


_THEN = {b"DONE": Then.DONE, b"LATER": Then.LATER}


def _lease(words: Words, at: int) -> tuple[int | None, Then, int]:
    """[EXPIRE <sec> [THEN (DONE|LATER)]] from position `at`, and where it ends; EXPIRE=<sec> is read as well (A16)."""
    count = len(words)
    if at == count:
        return None, Then.DEFAULT, at
    if words[at] == b"EXPIRE" and at + 1 < count:
        expire_ms, at = milliseconds(words[at + 1]), at + 2
    elif words[at].startswith(b"EXPIRE="):
        expire_ms, at = milliseconds(words[at][7:]), at + 1
    else:
        raise ArgumentError
    if at == count or words[at] != b"THEN":
        return expire_ms, Then.DEFAULT, at
    if at + 1 == count or words[at + 1] not in _THEN:
        raise ArgumentError
    return expire_ms, _THEN[words[at + 1]], at + 2


def _get(words: Words) -> Get | requests.Bound:
    get, bound = _hand_out(words)
    return requests.Bound(get) if bound else get


def _blocking(words: Words, until_finished: bool) -> requests.BlockingGet | requests.Bound:
    get, bound = _hand_out(words)
    blocking = requests.BlockingGet(get, until_finished)
    return requests.Bound(blocking) if bound else blocking


def _getb(words: Words) -> requests.BlockingGet | requests.Bound:
    return _blocking(words, until_finished=False)


def _getbe(words: Words) -> requests.BlockingGet | requests.Bound:
    return _blocking(words, until_finished=True)


def _done(words: Words) -> Done:
    if len(words) != 2:
        raise ArgumentError
    return Done(unsigned(words[1]))


def _later(words: Words) -> Later:
    if len(words) != 2:
        raise ArgumentError
    return Later(unsigned(words[1]))


def _total(words: Words) -> requests.Total:
    if len(words) > 2:
        raise ArgumentError
    return requests.Total(name(words[1]) if len(words) == 2 else None)


def _runlist(words: Words) -> requests.RunList:
    if len(words) > 2 or (len(words) == 2 and words[1] != b"DATA"):
        raise ArgumentError
    return requests.RunList(len(words) == 2)


def _queue(words: Words) -> requests.Command:
    match words[1:]:
        case [b"LIST"]:
            return requests.QueueList("")
        case [b"LIST", word]:
            return requests.QueueList(prefix(word))
    raise ArgumentError


def _clone(words: Words) -> CloneHead:
    if len(words) != 2:
        raise ArgumentError
    return CloneHead(requests.CloneStart(unsigned(words[1])))


def _alone(request: requests.Command) -> Parse:
    """A verb that stands alone."""
    def parse(words: Words) -> requests.Command:
        if len(words) != 1:
            raise ArgumentError
        return request
    return parse


def _between_servers(request: requests.Command) -> Parse:
    """A verb that stands alone or with `<n> <IP> <port>`, which only servers of the original cluster send (A54)."""
    def parse(words: Words) -> requests.Command:
        if len(words) == 1:
            return request
        if len(words) != 4 or unsigned(words[1]) == 0 or not 0 < unsigned(words[3]) < 65536:
            raise ArgumentError
        return requests.Refused(NOT_SUPPORTED)
    return parse


def _sync(words: Words) -> requests.Command | Head:
    """Replication in the original's way: read to its end and refused (A56)."""
    form = words[1].upper() if len(words) > 1 else b""
    if form == b"PUT":
        head = _put(words[1:])
        return SkipHead(head.length, NOT_SUPPORTED)
    if form == b"GET":
        at = 3 if len(words) == 6 and words[2] == b"LAST" else 2
        if len(words) != at + 3:
            raise ArgumentError
        name(words[at])
        unsigned(words[at + 1])
        signed(words[at + 2])
    elif form in (b"DONE", b"LATER"):
        _done(words[1:])
    else:
        raise ArgumentError
    return requests.Refused(NOT_SUPPORTED)


def _session(words: Words) -> requests.Command:
    match words[1:]:
        case []:
            return requests.SessionOpen(SESSION_TTL_MS_DEFAULT)
        case [b"TTL", seconds]:
            ttl_ms = milliseconds(seconds)
            if not SESSION_TTL_MS_MIN <= ttl_ms <= SESSION_TTL_MS_MAX:
                raise ArgumentError
            return requests.SessionOpen(ttl_ms)
        case [b"CLOSE"]:
            return requests.SessionClose(release=False)
        case [b"CLOSE", b"RELEASE"]:
            return requests.SessionClose(release=True)
        case [sid]:
            return requests.SessionAttach(*session(sid))
    raise ArgumentError


def _req(words: Words) -> requests.Command | Head:
    """REQ <r> <command>, of those commands that go through the log."""
    if len(words) < 3:
        raise ArgumentError
    number, words = unsigned(words[1]), words[2:]
    words[0] = words[0].upper()
    parse = NUMBERED.get(words[0])
    if number == 0 or parse is None:
        raise ArgumentError
    command = parse(words)
    digest = digest_of(words)
    if isinstance(command, PutHead):
        return NumberedPutHead(command.length, number, digest, command)
    if isinstance(command, CloneHead):
        return CloneHead(requests.CloneStart(command.start.total_bytes, number, digest.digest()))
    return requests.Numbered(number, digest.digest(), command)


def _cluster_add(words: Words) -> requests.Command:
    if len(words) != 6:
        raise ArgumentError
    return requests.ClusterAdd(node(words[1]), address(words[2], words[3]), address(words[4], words[5]))


def _cluster_remove(words: Words) -> requests.Command:
    if len(words) != 2:
        raise ArgumentError
    return requests.ClusterRemove(node(words[1]))


def _cluster_transfer(words: Words) -> requests.Command:
    if len(words) > 2:
        raise ArgumentError
    return requests.ClusterTransfer(node(words[1]) if len(words) == 2 else None)


def _cluster(words: Words) -> requests.Command | Head:
    parse = CLUSTER.get(words[1]) if len(words) > 1 else None
    if parse is None:
        raise ArgumentError
    return parse(words[1:])


Parse = Callable[[Words], requests.Command | Head]

NUMBERED: dict[bytes, Callable[[Words], requests.InLog | PutHead | CloneHead]] = {
    b"PUT": _put,
    b"GET": _get,
    b"DONE": _done,
    b"LATER": _later,
    b"GETB": _getb,
    b"GETBE": _getbe,
    b"CLONE": _clone,
}

CLUSTER: dict[bytes, Parse] = {
    b"STATUS": _alone(requests.ClusterStatus()),
    b"LEADER": _alone(requests.ClusterLeader()),
    b"HASH": _alone(requests.ClusterHash()),
    b"ADD": _cluster_add,
    b"REMOVE": _cluster_remove,
    b"TRANSFER": _cluster_transfer,
    b"OFFLINE": _alone(requests.ClusterSwitch(False)),
    b"ONLINE": _alone(requests.ClusterSwitch(True)),
    b"SNAPSHOT": _alone(requests.ClusterSnapshot()),
}

VERBS: dict[bytes, Parse] = {
    **NUMBERED,
    b"REQ": _req,
    b"SESSION": _session,
    b"TAKEN": _alone(requests.Taken()),
    b"TOTAL": _total,
    b"QUEUE": _queue,
    b"RUNLIST": _runlist,
    b"SNAPSHOT": _between_servers(requests.Snapshot()),
    b"INTERCONNECT": _between_servers(requests.Interconnect()),
    b"OFFLINE": _alone(requests.Offline()),
    b"ONLINE": _alone(requests.Online()),
    b"QUIT": _alone(requests.Quit()),
    b"SHUTDOWN": _alone(requests.Shutdown()),
    b"SYNC": _sync,
    b"CAPS": _alone(requests.Caps()),
    b"PING": _alone(requests.Ping()),
    b"CLUSTER": _cluster,
}


_BEFORE_DATA = (b"PUT", b"CLONE", b"SYNC", b"REQ")


def block_length(words: Words) -> int | None:
    """The length of the data block behind a malformed line (A7): 0 when its verb takes none, None when unreadable."""
    first = 0
    while first + 2 < len(words) and words[first].upper() == b"REQ":
        first += 1 if words[first + 1].upper() in _BEFORE_DATA else 2       # the number may have been forgotten
    words = words[first:] if first else words
    verb = words[0].upper()
    if verb == b"SYNC" and len(words) > 1 and words[1].upper() == b"PUT":
        at = 4
    else:
        at = {b"PUT": 3, b"CLONE": 1}.get(verb, 0)
    if at == 0:
        return 0
    try:
        return unsigned(words[at]) if at < len(words) else None
    except ArgumentError:
        return None
