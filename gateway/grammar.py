"""The grammar as a table: each verb has one small function from the words of its line to a request.

Keywords share positions with names (a queue may be called EXPIRE), so every word is judged by its position with one
word of look-ahead; the grammar then has no ambiguity (A13). Verbs are read in any case, keywords only in upper case.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from core import Done, Get, Later, Put, Then
from gateway import requests
from gateway.answers import NOT_SUPPORTED
from gateway.values import ArgumentError, address, milliseconds, name, node, queues, signed, unsigned

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


class CloneHead(Struct, gc=False, frozen=True):
    """The line of a CLONE, whose data follow."""

    length: int


class SkipHead(Struct, gc=False, frozen=True):
    """A line whose data are read and dropped before `answer` is given."""

    length: int
    answer: bytes


Head = PutHead | CloneHead | SkipHead


def _put(words: Words) -> Head:
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
    expire_ms, then = _lease(words, at + 2)
    return Get((name(words[at + 1]),), expire_ms, then, item, item is None)


def _get(words: Words) -> Get:
    if len(words) == 1:
        return Get(None)
    first = words[1]
    if _is_limit(first) and not (first == b"EXPIRE" and (len(words) == 2 or _is_limit(words[2]))):
        expire_ms, then = _lease(words, 1)
        return Get(None, expire_ms, then)
    expire_ms, then = _lease(words, 2)
    return Get(queues(first), expire_ms, then)


def _is_limit(word: bytes) -> bool:
    return word == b"EXPIRE" or word.startswith(b"EXPIRE=")


_THEN = {b"DONE": Then.DONE, b"LATER": Then.LATER}


def _lease(words: Words, at: int) -> tuple[int | None, Then]:
    """[EXPIRE <sec> [THEN (DONE|LATER)]] from position `at` to the end; EXPIRE=<sec> is read as well (A16)."""
    count = len(words)
    if at == count:
        return None, Then.DEFAULT
    if words[at] == b"EXPIRE" and at + 1 < count:
        expire_ms, at = milliseconds(words[at + 1]), at + 2
    elif words[at].startswith(b"EXPIRE="):
        expire_ms, at = milliseconds(words[at][7:]), at + 1
    else:
        raise ArgumentError
    if at == count:
        return expire_ms, Then.DEFAULT
    if at + 2 != count or words[at] != b"THEN" or words[at + 1] not in _THEN:
        raise ArgumentError
    return expire_ms, _THEN[words[at + 1]]


def _getb(words: Words) -> requests.BlockingGet:
    return requests.BlockingGet(_get(words), False)


def _getbe(words: Words) -> requests.BlockingGet:
    return requests.BlockingGet(_get(words), True)


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


def _clone(words: Words) -> CloneHead:
    if len(words) != 2:
        raise ArgumentError
    return CloneHead(unsigned(words[1]))


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
    b"PUT": _put,
    b"GET": _get,
    b"DONE": _done,
    b"LATER": _later,
    b"GETB": _getb,
    b"GETBE": _getbe,
    b"TOTAL": _total,
    b"RUNLIST": _runlist,
    b"SNAPSHOT": _between_servers(requests.Snapshot()),
    b"CLONE": _clone,
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


def block_length(words: Words) -> int | None:
    """The length of the data block behind a malformed line (A7): 0 when its verb takes none, None when unreadable."""
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
