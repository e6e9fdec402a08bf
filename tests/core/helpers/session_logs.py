"""Logs with sessions: strategies for Hypothesis, and long random ones from a seed."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from sockpqd.core import (
    AttachSession,
    CloneChunk,
    CloseSession,
    Done,
    Get,
    Handed,
    Later,
    Machine,
    OpenSession,
    Operation,
    Put,
    Request,
    Requested,
    Resume,
    SwitchService,
    Then,
    TouchSession,
)
from tests.core.helpers.logs import ITEMS, QUEUES, USERS, LogEntry, lead, operations, random_operation

SECRET = 0x9F3C5A7E11D0C2B4
KINDS = ((0, False, False), (0, True, False), (0, True, True), (1, True, False))     # GET, GETB, GETBE, WAIT
ADDRESSES = ("10.0.0.1", "2001:db8::/64")
DIGESTS = (b"digest of one...", b"digest of other.")

# --- for Hypothesis: few sessions and numbers, so that much is repeated

_session = st.sampled_from([1, 1, 1, 2, 2, 3, 0, -1, 2**64])
_secret = st.sampled_from([SECRET, SECRET, SECRET, 0, 2**64 - 1, SECRET + 2**64, -1])
_number = st.integers(1, 6) | st.integers(60, 70) | st.sampled_from([0, -1, 130, 2**64 - 1])
_queues = st.none() | st.lists(st.sampled_from(QUEUES), max_size=2).map(tuple)
_id = st.integers(1, 8)
_get = st.builds(
    Get,
    _queues,
    st.sampled_from([None, None, 16, 100, 1500]),
    st.sampled_from(Then),
    st.none() | st.sampled_from(ITEMS),
    st.booleans(),
    st.none() | _session,
)
_requested = (
    st.builds(Put, st.sampled_from(QUEUES), st.integers(-1, 1), st.binary(max_size=2), st.none(), st.booleans())
    | _get
    | _get
    | st.builds(Done, _id)
    | st.builds(Later, _id)
    | st.builds(CloneChunk, st.integers(1, 2), last=st.just(True))
)
_request = st.builds(
    Request,
    _session,
    _number,
    st.sampled_from([DIGESTS[0], DIGESTS[0], DIGESTS[0], DIGESTS[1]]),
    st.sampled_from([0, 0, 0, 1, 7, -1]),
    st.booleans(),
    _requested,
    st.booleans(),
)
_user = st.sampled_from(["", "", *USERS[:2]])
_open = st.builds(
    OpenSession, _secret, st.sampled_from([1000, 1000, 1010, 2000, 0, -1, 10**30]), _user,
    st.sampled_from(["", "", *ADDRESSES]), st.sampled_from([None, None, 0, 1, 2, 3]),
)
_about_session = (
    _open
    | st.builds(AttachSession, _session, _secret, _user)
    | st.builds(CloseSession, _session, st.booleans())
    | st.builds(TouchSession, _session)
)
session_operations = st.one_of(_request, _request, _request, _get, _about_session, operations)
_now_ms = st.integers(0, 300) | st.integers(900, 2200) | st.integers(2200, 6000)
session_entries = st.builds(
    LogEntry, _now_ms, st.integers(0, 2**64 - 1), st.lists(session_operations, max_size=6)
)
_opening = st.builds(lambda operation: LogEntry(0, 0, [operation] * 3), _open)


@st.composite
def session_logs(draw: st.DrawFn) -> list[LogEntry]:
    """Generate logs in which sessions exist from the start."""
    return [draw(_opening), *draw(st.lists(session_entries, max_size=20))]


# --- long ones

def random_session_log(seed: int, length: int) -> list[LogEntry]:
    """Return a log of `length` entries with requests that are repeated, bound jobs, and sessions that end."""
    random = Random(seed)
    machine = Machine()
    now_ms = 1_700_000_000_000
    log = [LogEntry(now_ms, 0, [lead(), *[OpenSession(random.getrandbits(64), 1500)] * 3])]
    machine.apply(1, *log[0])
    ids: list[int] = []
    sessions = 3
    asked: list[Request] = []
    while len(log) < length:
        now_ms += random.choice([-20, 0, 1, 5, 30, 200])
        found = [random_operation(random, ids) for _ in range(random.randrange(3))]
        for _ in range(random.randrange(6)):
            operation = _random_session_operation(random, sessions, asked, ids)
            sessions += isinstance(operation, OpenSession)
            found.append(operation)
        if random.random() < 0.02:
            found.insert(0, lead("n2", machine.term + 1, random.choice([0, 500])))
        if random.random() < 0.02:
            now_ms += random.choice([0, 2000])
            found.insert(0, Resume(random.choice([0, 500])))
        if random.random() < 0.02:
            found.append(SwitchService(not machine.online, 300))
        log.append(LogEntry(now_ms, random.getrandbits(64), found))
        applied = machine.apply(len(log), *log[-1])
        ids = [*ids, *(reply.id for reply in applied.replies if isinstance(reply, Handed))][-30:]
        asked = asked[-80:]
    return log


def _random_session_operation(random: Random, sessions: int, asked: list[Request], ids: list[int]) -> Operation:
    session = random.randrange(max(1, sessions - 5), sessions + 1)
    kind = random.random()
    if kind < 0.06:
        owner_max = random.choice([None, 2, 3])
        return OpenSession(random.getrandbits(64), random.choice([1000, 1000, 3000]), "", random.choice(ADDRESSES),
                           owner_max)
    if kind < 0.1:
        return TouchSession(session) if random.random() < 0.5 else CloseSession(session, random.random() < 0.7)
    if kind < 0.2:
        return Get(None, random.choice([None, 100, 2000]), session=session)
    if kind < 0.5 and asked:
        return random.choice(asked)
    requested = _random_requested(random, session, ids)
    number = random.choice([len(asked) + 1, random.randrange(1, 200)])
    part, keep_waiting, until_finished = random.choice(KINDS)
    asked.append(Request(session, number, DIGESTS[0], part, keep_waiting, requested, until_finished))
    return asked[-1]


def _random_requested(random: Random, session: int, ids: list[int]) -> Requested:
    while True:
        operation = random_operation(random, ids)
        if isinstance(operation, Put | Done | Later):
            return operation
        if isinstance(operation, Get):
            bound = session if random.random() < 0.5 else None
            return Get(operation.queues, operation.expire_ms, operation.then, operation.item, False, bound)
