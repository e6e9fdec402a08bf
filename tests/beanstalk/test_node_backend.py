"""A connection's backend at a node: its proposals, and the calls whose first attempt has an unknown outcome."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from sockpqd.beanstalk import BeanstalkdConversation, BeanstalkdServer, Call, CallFailure, Result, calls
from sockpqd.core import (
    FEATURE_LEVEL,
    Delete,
    Get,
    GetWith,
    Operation,
    Put,
    PutWith,
    Request,
    encode_operation,
)
from sockpqd.core.levels import FIELD_LEVELS
from sockpqd.core.ops import entry
from sockpqd.gateway.auth.users_file import Account
from sockpqd.gateway.beanstalkd import execute_call, listener
from sockpqd.gateway.beanstalkd.backend import NodeBackend
from sockpqd.gateway.beanstalkd.call_operations import CALL_OPERATIONS, MS
from sockpqd.gateway.beanstalkd.remote import RemoteRead, RemoteRequest, decode_outcome, decode_remote, encode
from sockpqd.gateway.beanstalkd.services import Principal
from sockpqd.gateway.beanstalkd.sessions import NodeSessions
from sockpqd.gateway.rights import of_words
from tests.gateway.helpers.memory import MemoryGateway, with_gateway

NOTHING = object()          # no result yet


class Clock:
    """The time of an event loop, which passes when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (self.now + seconds, next(self._numbers), do))

    def pass_time(self, seconds: float) -> None:
        until = self.now + seconds
        while self._timers and self._timers[0][0] <= until:
            self.now, _, do = heapq.heappop(self._timers)
            do()
        self.now = until


class Place:
    """A backend with its own time, and the result of its last call."""

    def __init__(self, gateway: MemoryGateway, sessions: NodeSessions | None = None, user: str | None = None) -> None:
        self.clock = Clock()
        self.sessions = sessions or NodeSessions()
        self.cluster = gateway.cluster
        self.backend = NodeBackend(gateway.hub, self.sessions, Principal(user, "10.0.0.9:1"))
        self.backend._loop = self.clock        # type: ignore[assignment]
        self.result: Result | CallFailure | object = NOTHING

    def call(self, call: Call) -> None:
        """Begin a call; `result` has its result once there is one."""
        self.result = NOTHING
        self.backend.execute(call, self._done)

    def do(self, call: Call) -> Any:
        """Execute a call; returns its result."""
        self.call(call)
        while self.result is NOTHING:
            assert self.cluster.in_flight
            self.cluster.commit()
        return self.result

    def begin_unseen(self, call: Call) -> None:
        """Let the first attempt of this call be executed without an answer."""
        self.call(call)
        self.cluster._apply(self.cluster.in_flight)
        self.cluster.lose()
        assert self.result is NOTHING

    def _done(self, result: Result | CallFailure) -> None:
        self.result = result


def put(tube: str = "q") -> calls.PutJob:
    return calls.PutJob(tube, 0, 0, 60, b"x")


def inner(operation: Operation) -> Operation:
    return operation.operation if isinstance(operation, Request) else operation


def kinds(gateway: MemoryGateway) -> list[type]:
    """Return the types of all operations that were committed, in order."""
    return [type(inner(operation)) for entry in gateway.cluster.log for operation in entry]


def running(gateway: MemoryGateway, queue: str = "q") -> int:
    counts = gateway.cluster.machine.counts(queue)
    return 0 if counts is None else counts.running


def forwarded(call: Call, session: int, number: int, *, first: bool = True) -> bytes:
    """Return what a follower sends to the leader for this call."""
    wait_s = call.wait_s if isinstance(call, calls.Reserve) else 0
    request = Request(session, number, b"", 0, wait_s != 0, CALL_OPERATIONS[type(call)](call, session))  # type: ignore[arg-type]
    return encode(RemoteRequest(request, None if wait_s is None else round(wait_s * MS), first))


def beside_a_job(gateway: MemoryGateway) -> Place:
    """Return a client with a session, when another one has put a job into "q"."""
    worker, producer = Place(gateway), Place(gateway)
    producer.do(put())
    worker.do(calls.Reserve(("other",), 0))
    return worker


# ---- what is read

def test_what_is_read_again_has_its_share_of_a_turn() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = Place(gateway)
        number = client.do(put()).number
        gateway.cluster.leased = False
        client.call(calls.Peek(number))
        gateway.cluster.leased = True
        gateway.hub.budget = 0
        client.clock.pass_time(1)
        assert client.result is NOTHING
        gateway.hub.turn_ended()
        assert client.result == calls.Found(number, b"x")

    with_gateway(test)


# ---- what is proposed

def test_a_reserve_that_finds_nothing_waits_without_an_entry() -> None:
    async def test(gateway: MemoryGateway) -> None:
        worker, producer = Place(gateway), Place(gateway)
        worker.do(calls.Reserve(("q",), 0))             # which opened the session
        producer.do(calls.Reserve(("other",), 0))
        before = len(gateway.cluster.log)
        worker.call(calls.Reserve(("q",), None))
        assert gateway.cluster.in_flight == []
        number = producer.do(put()).number
        gateway.cluster.commit()
        assert isinstance(worker.result, calls.Reserved)
        assert worker.result.number == number
        assert len(gateway.cluster.log) == before + 1, "the Get stands right behind the put"
    with_gateway(test, automatic=False)


def test_the_time_until_there_is_a_session_counts_as_waiting() -> None:
    async def test(gateway: MemoryGateway) -> None:
        place = Place(gateway)
        waits: list[int] = []
        gateway.hub.job_waiters.limit = lambda waiter, within_ms: waits.append(within_ms)     # type: ignore[method-assign]
        place.call(calls.Reserve(("q",), 10))
        place.clock.pass_time(7)
        gateway.cluster.commit()                        # which opens the session
        assert waits == [3000]
        assert place.result is NOTHING
    with_gateway(test, automatic=False)


def test_a_reserve_given_again_asks_the_log() -> None:
    async def test(gateway: MemoryGateway) -> None:
        worker = beside_a_job(gateway)
        worker.begin_unseen(calls.Reserve(("q",), None))
        worker.clock.pass_time(1)
        gateway.cluster.commit()
        assert isinstance(worker.result, calls.Reserved)
        assert running(gateway) == 1
    with_gateway(test, automatic=False)


def test_a_job_that_nobody_has_is_deleted_by_one_operation() -> None:
    async def test(gateway: MemoryGateway) -> None:
        place = Place(gateway)
        number = place.do(put()).number
        before = len(kinds(gateway))
        assert place.do(calls.DeleteJob(number)) == calls.Names(("q",))
        assert kinds(gateway)[before:] == [Delete]
        place.call(calls.DeleteJob(number))
        assert place.result is CallFailure.NOT_FOUND
        number = place.do(put()).number
        held = place.do(calls.Reserve(("q",), 0))
        assert held.number == number
        assert place.do(calls.DeleteJob(number)) is CallFailure.NOT_FOUND
        assert running(gateway) == 1
        assert GetWith not in kinds(gateway)
    with_gateway(test, automatic=False)


# ---- attempts of which nobody knows

def test_a_delete_that_was_executed_is_answered_so_when_it_is_given_again() -> None:
    async def test(gateway: MemoryGateway) -> None:
        place = Place(gateway)
        number = place.do(put()).number
        place.begin_unseen(calls.DeleteJob(number))
        place.clock.pass_time(1)
        gateway.cluster.commit()
        assert place.result is None
    with_gateway(test, automatic=False)


def test_a_put_that_was_executed_is_not_refused_when_it_is_given_again() -> None:
    async def test(gateway: MemoryGateway) -> None:
        place = Place(gateway)
        place.do(put())
        place.begin_unseen(put())
        gateway.cluster.full = True
        place.clock.pass_time(1)
        gateway.cluster.neglect()                       # it has no turn
        await asyncio.sleep(0.2)
        gateway.cluster.commit()
        assert isinstance(place.result, calls.NumberResult)
        assert gateway.cluster.machine.ready("q") == 2
        place.call(put())
        assert place.result is CallFailure.OUT_OF_MEMORY
    with_gateway(test, automatic=False)


def test_a_job_handed_out_by_an_earlier_attempt_is_told_when_the_client_has_gone() -> None:
    async def test(gateway: MemoryGateway) -> None:
        worker = beside_a_job(gateway)
        worker.begin_unseen(calls.Reserve(("q",), None))
        worker.clock.pass_time(1)
        worker.backend.cancel()
        gateway.cluster.neglect()
        for _ in range(20):
            worker.clock.pass_time(1)
            await asyncio.sleep(0.02)
            gateway.cluster.commit()
        assert isinstance(worker.result, calls.Reserved)
    with_gateway(test, automatic=False)


def test_a_reserve_without_a_turn_waits_on() -> None:
    async def test(gateway: MemoryGateway) -> None:
        worker = beside_a_job(gateway)
        worker.call(calls.Reserve(("q",), 0.05))
        await asyncio.sleep(0.1)                        # its time is up while it has no turn
        gateway.cluster.neglect()
        assert worker.result is NOTHING
        worker.clock.pass_time(1)
        gateway.cluster.commit()
        assert isinstance(worker.result, calls.Reserved)
    with_gateway(test, automatic=False)


# ---- sessions

def test_a_session_to_which_a_job_may_be_bound_is_not_used_again() -> None:
    async def test(gateway: MemoryGateway) -> None:
        worker = beside_a_job(gateway)
        assert worker.sessions.portions() != []
        worker.begin_unseen(calls.Reserve(("q",), None))
        gateway.cluster.follow(None)
        worker.clock.pass_time(40)
        assert worker.result is CallFailure.GONE
        worker.backend.leave()
        assert worker.sessions.portions() == []
        assert worker.sessions.take() is None
        gateway.cluster.lead()
        assert running(gateway) == 1
        gateway.cluster.pass_time(30)                   # of silence, and the grace of the new leader
        assert (running(gateway), gateway.cluster.machine.ready("q")) == (0, 1)
    with_gateway(test, automatic=False)


def test_a_session_is_used_again_when_all_is_known() -> None:
    async def test(gateway: MemoryGateway) -> None:
        sessions = NodeSessions()
        for _ in range(3):
            place = Place(gateway, sessions)
            place.do(put())
            place.backend.leave()
        (numbers,) = sessions.portions()
        assert len(numbers) == 1
    with_gateway(test, automatic=False)


def test_jobs_of_a_client_whose_user_is_no_more_go_back() -> None:
    async def test(gateway: MemoryGateway) -> None:
        worker = Place(gateway, user="ann")
        worker.do(put())
        held = worker.do(calls.Reserve(("q",), 0))
        gateway.hub.access.file_users = {}
        assert worker.do(calls.GiveBack((), (held.handle,))) is None
        assert (running(gateway), gateway.cluster.machine.ready("q")) == (0, 1)
    with_gateway(test, automatic=False, users={"ann": Account(of_words(["put", "get"]), None)})


def test_when_one_session_has_ended_the_free_ones_are_not_tried() -> None:
    sessions = NodeSessions()
    first, second, third = (sessions.opened(number) for number in (1, 2, 3))
    sessions.give_back(first)
    sessions.give_back(second)
    sessions.lost(third)
    assert sessions.take() is None
    assert sessions.portions() == []


# ---- without a leader

class Link:
    """A client's connection: `got` is what it received."""

    def __init__(self) -> None:
        self.got = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        self.got += data

    def close(self) -> None:
        self.closed = True

    def weigh(self) -> None:
        pass

    def read_on(self) -> None:
        pass


def test_who_waits_is_closed_after_thirty_seconds_without_a_leader() -> None:
    async def test(gateway: MemoryGateway) -> None:
        place, link = Place(gateway), Link()
        server = BeanstalkdServer("i", now=place.clock.time)
        conversation = BeanstalkdConversation(server, place.backend, link)
        conversation.receive(b"reserve\r\n")
        gateway.cluster.commit()                        # the session is opened
        place.clock.pass_time(100)
        assert not link.closed
        gateway.cluster.follow(None)
        place.clock.pass_time(29)
        assert not link.closed
        gateway.cluster.lead()                          # in time: it waits on
        place.clock.pass_time(1)
        gateway.cluster.commit()
        place.clock.pass_time(100)
        gateway.cluster.follow(None)
        place.clock.pass_time(29)
        assert not link.closed
        place.clock.pass_time(2)
        assert link.closed
        assert link.got == b""
        assert not server.connections
    with_gateway(test, automatic=False)


# ---- calls forwarded by other nodes

def test_a_forwarded_call_that_is_not_understood_ends_the_connection_and_nothing_else() -> None:
    async def test(gateway: MemoryGateway) -> None:
        told: list[bytes | None] = []
        execute_call(gateway.hub, None, "n2", b"\xc1", told.append).cancel()
        assert told == [encode(CallFailure.GONE)]
        assert gateway.cluster.in_flight == []
    with_gateway(test, automatic=False)


def test_a_reserve_that_was_given_up_takes_no_job_when_the_one_in_its_place_has_ended() -> None:
    async def test(gateway: MemoryGateway) -> None:
        producer = Place(gateway)
        for wait_s in (5, None):
            worker = Place(gateway)
            worker.do(calls.Reserve(("other",), 0))                 # which opened the session
            session = worker.backend._session
            assert session is not None
            number = session.next_number()
            told: list[bytes | None] = []
            given_up = execute_call(
                gateway.hub, None, "n2", forwarded(calls.Reserve(("q",), wait_s), session.number, number), told.append)
            assert len(gateway.hub.job_waiters) == 1
            given_up.cancel()
            told.clear()
            again = forwarded(calls.Reserve(("q",), 0), session.number, number, first=False)
            execute_call(gateway.hub, None, "n2", again, told.append)
            gateway.cluster.commit()
            assert told == [encode(None)]
            number = producer.do(put()).number
            assert gateway.cluster.in_flight == []
            assert (running(gateway), gateway.cluster.machine.ready("q")) == (0, 1)
            assert producer.do(calls.DeleteJob(number)) == calls.Names(("q",))
    with_gateway(test, automatic=False)


def test_what_a_forwarded_call_holds_is_in_the_account_until_it_has_its_outcome() -> None:
    async def test(gateway: MemoryGateway) -> None:
        account = gateway.hub.account
        place = Place(gateway)
        place.do(calls.Reserve(("other",), 0))
        session = place.backend._session
        assert session is not None
        told: list[bytes | None] = []

        def execute(call: Call) -> None:
            data = forwarded(call, session.number, session.next_number())
            execute_call(gateway.hub, None, "n2", data, told.append)

        execute(calls.PutJob("q", 0, 0, 60, bytes(50_000)))
        assert account.held_bytes >= 50_000
        gateway.cluster.commit()
        assert account.held_bytes == 0
        execute(calls.PutJob("q", 0, 0, 60, b"small"))
        assert account.held_bytes == 0, "which costs no more than a native command"
        gateway.cluster.commit()
        told.clear()
        execute(calls.Reserve(tuple(f"{number:0100}" for number in range(500)), None))
        gateway.cluster.commit()
        assert account.held_bytes >= 500 * 200
        assert told == []
        (holder,) = account._holders
        holder.evict()
        assert told == [encode(CallFailure.GONE)], "which ends the connection at the other node"
        assert account.held_bytes == 0
        assert len(gateway.hub.job_waiters) == 0
    with_gateway(test, automatic=False)


def test_the_leader_looks_up_the_rights_of_the_user() -> None:
    async def test(gateway: MemoryGateway) -> None:
        allowed = Place(gateway, user="ann")
        assert isinstance(allowed.do(put("a1")), calls.NumberResult)
        for place, call in (
            (allowed, put("b")), (allowed, calls.Reserve(("a", "b"), None)), (Place(gateway, user="bob"), put("a1")),
            (Place(gateway), put("a1")),
        ):
            before = kinds(gateway)
            assert place.do(call) is CallFailure.FORBIDDEN
            assert not {Get, GetWith, Put, PutWith} & set(kinds(gateway)[len(before):])
    with_gateway(test, automatic=False, users={"ann": Account(of_words(["put:a*", "get:a*"]), None)})


def test_what_was_only_read_is_told_by_none_but_the_one_that_leads_for_sure() -> None:
    async def test(gateway: MemoryGateway) -> None:
        place = Place(gateway)
        number = place.do(put()).number
        gateway.cluster.leased = False
        for call, expected in ((calls.Peek(number), calls.Found), (calls.Peek(number + 1), CallFailure)):
            place.call(call)
            assert place.result is NOTHING
            gateway.cluster.leased = True
            place.clock.pass_time(1)
            assert isinstance(place.result, expected)
            gateway.cluster.leased = False
        assert place.do(put()).number > number, "the log tells as well who leads"
    with_gateway(test, automatic=False)


# ---- between nodes

def test_an_outcome_too_large_for_the_link_is_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(gateway: MemoryGateway) -> None:
        number = Place(gateway).do(calls.PutJob("q", 0, 0, 60, b"x" * 1000)).number
        answers: list[bytes | None] = []
        peek = encode(RemoteRead(calls.Peek(number)))
        execute_call(gateway.hub, None, "10.0.0.9:1", peek, answers.append)
        monkeypatch.setattr(listener, "CALL_BYTES_MAX", len(answers[0] or b"") - 1)
        execute_call(gateway.hub, None, "10.0.0.9:1", peek, answers.append)
        full, refused = (decode_outcome(answer or b"") for answer in answers)
        assert full == calls.Found(number, b"x" * 1000)
        assert refused is CallFailure.OUT_OF_MEMORY
    with_gateway(test, automatic=False)


def test_what_is_forwarded_is_of_the_level_of_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the log: an option of a later level is left out, and a request that has it is refused without being sent.

    An older leader would not read it, and close the connection of the client.
    """
    async def test(gateway: MemoryGateway) -> None:
        plain, cut, refused = (Place(gateway) for _ in range(3))
        for place in (plain, cut, refused):
            place.do(put())
        gateway.cluster.serving = False
        sent: list[bytes] = []
        gateway.cluster.forward_call = lambda user, address, data, told: sent.append(data)
        plain.call(put())
        monkeypatch.setattr(entry, "FEATURE_LEVEL", FEATURE_LEVEL + 1)
        monkeypatch.setitem(FIELD_LEVELS, ("PutWith", PutWith.__struct_fields__[-1]), FEATURE_LEVEL + 1)
        gateway.cluster.machine.known_level = FEATURE_LEVEL + 1
        cut.call(put())
        whole, shorter = (msgspec.msgpack.decode(data)[1][-2] for data in sent)
        assert shorter == whole[:-1]
        monkeypatch.setitem(FIELD_LEVELS, ("PutWith", "lease_ms"), FEATURE_LEVEL + 1)
        refused.call(put())
        assert refused.result is CallFailure.OUT_OF_MEMORY, "the answer for 501 Not Yet"
        assert len(sent) == 2
    with_gateway(test, automatic=False)


def test_giving_back_any_number_of_jobs_is_small_to_forward() -> None:
    async def test(gateway: MemoryGateway) -> None:
        place = Place(gateway)
        place.do(put())
        gateway.cluster.serving = False
        sent: list[bytes] = []
        gateway.cluster.forward_call = lambda user, address, data, told: sent.append(data)
        place.call(calls.GiveBack(tuple(range(10_000))))
        assert [len(data) < 100 for data in sent] == [True]
    with_gateway(test, automatic=False)


def test_a_request_is_not_sent_without_end_to_a_leader_that_never_tells_its_outcome() -> None:
    async def test(gateway: MemoryGateway) -> None:
        gateway.cluster.serving = False
        for call in (calls.ListTubes(), calls.Peek(1), put()):
            place = Place(gateway)
            times: list[float] = []

            def lose(
                user: str | None, address: str, data: bytes, told: Callable[[bytes | None], None],
                place: Place = place, times: list[float] = times,
            ) -> int:
                times.append(place.clock.time())
                place.clock.call_later(1.5, lambda: told(None))         # as a link that ends does
                return 1

            gateway.cluster.forward_call = lose
            place.call(call)
            place.clock.pass_time(60)
            assert place.result is CallFailure.GONE
            assert len(times) <= 20
    with_gateway(test, automatic=False)


def test_what_travels_is_an_operation_of_core_in_a_request_of_the_session() -> None:
    async def test(gateway: MemoryGateway) -> None:
        place = Place(gateway)
        place.do(put())
        session = place.backend._session
        assert session is not None
        gateway.cluster.serving = False
        sent: list[bytes] = []
        gateway.cluster.forward_call = lambda user, address, data, told: sent.append(data)
        for call in (put(), calls.Reserve(("q",), 2), calls.Release(7, 3, 0)):
            place.call(call)
            remote = decode_remote(sent[-1])
            assert isinstance(remote, RemoteRequest)
            assert encode_operation(remote.operation) in sent[-1]
            assert isinstance(remote.operation, Request)
            assert remote.operation.session == session.number
            assert remote.operation.operation == CALL_OPERATIONS[type(call)](call, session.number)
            assert remote.first
            assert remote.wait_ms == (2000 if isinstance(call, calls.Reserve) else 0)
    with_gateway(test, automatic=False)


def test_an_operation_that_no_call_needs_is_not_executed_for_another_node() -> None:
    async def test(gateway: MemoryGateway) -> None:
        told: list[bytes | None] = []
        for operation in (Get(("q",)), Put("q", 0, b"x")):
            execute_call(gateway.hub, None, "n2", encode(RemoteRequest(operation, None, first=True)), told.append)
        assert told == [encode(CallFailure.GONE)] * 2
        assert gateway.cluster.in_flight == []
    with_gateway(test, automatic=False)


def test_a_connection_has_one_guard_for_all_its_waits() -> None:
    async def test(gateway: MemoryGateway) -> None:
        worker, producer = Place(gateway, user="ann"), Place(gateway, user="ann")
        guards = []
        for _ in range(3):
            worker.call(calls.Reserve(("q",), None))
            gateway.cluster.commit()
            guards.append(worker.backend._execution.guard)
            producer.do(put())
            gateway.cluster.commit()
            assert isinstance(worker.result, calls.Reserved)
        assert guards[0] is guards[1] is guards[2] is worker.backend._execution.guard
    with_gateway(test, automatic=False, users={"ann": Account(of_words(["put", "get"]), None)})


def test_forwarded_calls_take_their_share_of_the_turn_and_wait_for_another_one() -> None:
    async def test(gateway: MemoryGateway) -> None:
        place, hub = Place(gateway), gateway.hub
        place.do(put())
        session = place.backend._session
        assert session is not None
        told: list[bytes | None] = []

        def execute(call: Call) -> Any:
            return execute_call(
                hub, None, "n2", forwarded(call, session.number, session.next_number()), told.append)

        hub.budget = 200
        for expected in (137, 74, 11, -52):
            execute(calls.Reserve(tuple(f"{number:0100}" for number in range(999)), None))
            assert hub.budget == expected, "so many names cost as much as 63 commands"
        waiting = len(hub.job_waiters)
        assert waiting == 4
        given_up = execute(calls.Reserve(("r",), None))
        execute(put("p"))
        given_up.cancel()
        assert (len(hub.job_waiters), gateway.cluster.in_flight, told) == (4, [], []), "the turn is used up"
        hub.turn_ended()
        gateway.cluster.commit()
        assert told[0] == encode(None), "it was cancelled before it began"
        assert isinstance(decode_outcome(told[1] or b""), calls.NumberResult)
        assert len(hub.job_waiters) == 4
    with_gateway(test, automatic=False)
