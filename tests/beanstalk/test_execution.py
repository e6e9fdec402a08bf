"""The usual calls take a short path; what is unusual about them still works."""

from __future__ import annotations

from typing import Any, get_args

from sockpqd.beanstalk import CallFailure, calls
from sockpqd.core import Delete, End, Get, JobState, PutWith
from sockpqd.gateway.auth.users_file import Account
from sockpqd.gateway.beanstalkd import execute_call
from sockpqd.gateway.beanstalkd.remote import decode_outcome
from sockpqd.gateway.limits import PORTION_MAX
from sockpqd.gateway.rights import of_words
from tests.beanstalk.test_node_backend import NOTHING, Place, forwarded, inner, kinds, put, running
from tests.gateway.helpers.memory import MemoryGateway, with_gateway


def reserved(place: Place, queue: str = "q") -> calls.Reserved:
    """Reserve a job that is there, at once."""
    result = place.do(calls.Reserve((queue,), None))
    assert isinstance(result, calls.Reserved)
    return result


def test_each_usual_call_is_one_operation_and_one_number() -> None:
    async def test(gateway: MemoryGateway) -> None:
        place = Place(gateway)
        place.do(put("other"))
        before = len(gateway.cluster.log)
        number = place.do(put()).number
        job = reserved(place)
        assert (job.number, job.tube, job.ttr_s, job.body) == (number, "q", 60.0, b"x")
        assert place.do(calls.DeleteJob(job.number, job.handle)) is None
        entries = gateway.cluster.log[before:]
        assert [len(entry) for entry in entries] == [1, 1, 1]
        requests: list[Any] = [entry[0] for entry in entries]
        first = requests[0].number
        assert [request.number for request in requests] == [first, first + 1, first + 2]
        assert [request.part for request in requests] == [0, 0, 0]
    with_gateway(test, automatic=False)


def test_a_reserve_whose_job_another_takes_waits_for_the_next_one() -> None:
    async def test(gateway: MemoryGateway) -> None:
        one, other = Place(gateway), Place(gateway)
        one.do(put())
        other.do(put("elsewhere"))
        for wait_s in (None, 0):
            one.call(calls.Reserve(("q",), wait_s))
            gateway.cluster.in_flight.clear()
            gateway.cluster._in_flight.insert(0, (Get(("q",)), Ignored()))     # somebody else's, before it in the entry
            for _ in range(3):
                gateway.cluster.commit()
            if wait_s is None:
                assert one.result is NOTHING
                number = other.do(put()).number
                gateway.cluster.commit()
                assert isinstance(one.result, calls.Reserved)
                assert one.result.number == number
                other.do(put())
            else:
                assert one.result is None
    with_gateway(test, automatic=False)


class Ignored:
    """The outcome of an operation that nobody asks for."""

    def applied(self, reply: object) -> None:
        pass


def test_no_two_reserves_are_sent_for_one_job_and_one_that_got_another_lets_somebody_else_have_it() -> None:
    async def test(gateway: MemoryGateway) -> None:
        one, other, third = Place(gateway), Place(gateway), Place(gateway)
        for place in (one, other, third):
            place.do(calls.Reserve(("none",), 0))
        one.do(calls.PutJob("q", 10, 0, 60, b"x"))
        one.call(calls.Reserve(("q", "p"), None))
        other.call(calls.Reserve(("q",), None))
        assert len(gateway.cluster.in_flight) == 1, "the other one waits, without an entry"
        third.call(calls.PutJob("p", 0, 0, 60, b"first"))          # committed before, and more urgent there
        operations = gateway.cluster._in_flight
        operations.insert(0, operations.pop())
        gateway.cluster.commit()
        gateway.cluster.commit()
        assert isinstance(one.result, calls.Reserved)
        assert one.result.tube == "p"
        assert isinstance(other.result, calls.Reserved), "the job of q was claimed and not taken"
        assert (running(gateway), running(gateway, "p")) == (1, 1)
    with_gateway(test, automatic=False)


def test_a_job_whose_time_has_ended_is_deleted_if_nobody_has_it() -> None:
    async def test(gateway: MemoryGateway) -> None:
        place, other = Place(gateway), Place(gateway)
        place.do(calls.PutJob("q", 0, 0, 1, b"x"))
        other.do(calls.Reserve(("none",), 0))
        job = reserved(place)
        gateway.cluster.pass_time(2)
        assert reserved(other).number == job.number
        assert place.do(calls.DeleteJob(job.number, job.handle)) is CallFailure.NOT_FOUND
        gateway.cluster.pass_time(2)
        before = len(gateway.cluster.log)
        assert place.do(calls.DeleteJob(job.number, job.handle)) == calls.Names(("q",))
        requests: list[Any] = [operation for entry in gateway.cluster.log[before:] for operation in entry]
        assert [type(inner(request)) for request in requests] == [End, Delete]
        assert len({request.number for request in requests}) == 1
        assert [request.part for request in requests] == [0, 1]
        assert gateway.cluster.machine.counts("q") is None
    with_gateway(test, automatic=False)


def test_what_had_no_turn_is_done_later_but_a_put_is_refused() -> None:
    async def test(gateway: MemoryGateway) -> None:
        place = Place(gateway)
        place.do(put())
        place.call(put())
        gateway.cluster.neglect()
        assert place.result is CallFailure.OUT_OF_MEMORY
        place.call(calls.Reserve(("q",), None))
        gateway.cluster.neglect()
        assert place.result is NOTHING
        place.clock.pass_time(1)
        gateway.cluster.commit()
        assert isinstance(place.result, calls.Reserved)
        job = place.result
        place.call(calls.DeleteJob(job.number, job.handle))
        gateway.cluster.neglect()
        place.clock.pass_time(1)
        gateway.cluster.commit()
        assert place.result is None
        assert gateway.cluster.machine.counts("q") is None
    with_gateway(test, automatic=False)


def test_each_usual_call_that_was_executed_unseen_is_executed_once() -> None:
    async def test(gateway: MemoryGateway) -> None:
        place = Place(gateway)
        place.do(put("other"))
        place.begin_unseen(put())
        place.clock.pass_time(1)
        gateway.cluster.commit()
        number = place.result.number                    # type: ignore[union-attr]
        counts = gateway.cluster.machine.counts("q")
        assert counts is not None
        assert counts.ready == 1
        place.begin_unseen(calls.Reserve(("q",), None))
        place.clock.pass_time(1)
        gateway.cluster.commit()
        assert isinstance(place.result, calls.Reserved)
        job = place.result
        assert job.number == number
        place.begin_unseen(calls.DeleteJob(job.number, job.handle))
        place.clock.pass_time(1)
        gateway.cluster.commit()
        assert place.result is None
    with_gateway(test, automatic=False)


def test_a_claim_ends_however_its_reserve_ends() -> None:
    async def test(gateway: MemoryGateway) -> None:
        place, other = Place(gateway), Place(gateway)
        other.do(calls.Reserve(("none",), 0))
        place.do(put())
        for end in (gateway.cluster.neglect, gateway.cluster.lose):
            place.call(calls.Reserve(("q",), 0))
            assert gateway.hub.job_waiters._claims.of("q") == 1
            end()
            assert gateway.hub.job_waiters._claims.of("q") == 0
            place.clock.pass_time(1)
            gateway.cluster.commit()
            assert isinstance(place.result, calls.Reserved)
            place.do(calls.Release(place.result.handle, 0, 0))
        assert len(gateway.hub.job_waiters._claims) == 0
    with_gateway(test, automatic=False)


def test_a_client_that_has_gone_gets_nothing_but_what_was_on_its_way() -> None:
    async def test(gateway: MemoryGateway) -> None:
        place = Place(gateway)
        place.do(put())
        place.call(calls.Reserve(("q",), None))
        place.backend.cancel()
        gateway.cluster.commit()
        assert isinstance(place.result, calls.Reserved)
        place.do(put())
        place.call(calls.Reserve(("q",), None))
        place.backend.cancel()
        gateway.cluster._in_flight.insert(0, (Get(("q",)), Ignored()))
        gateway.cluster.commit()
        assert place.result is None
    with_gateway(test, automatic=False)


def test_users_go_this_way_as_far_as_their_rights_do() -> None:
    async def test(gateway: MemoryGateway) -> None:
        ann = Place(gateway, user="ann")
        ann.do(put("a"))
        before = len(kinds(gateway))
        assert isinstance(ann.do(put("a")), calls.NumberResult)
        job = reserved(ann, "a")
        assert ann.do(calls.DeleteJob(job.number, job.handle)) is None
        assert len(kinds(gateway)) == before + 3
        for call in (put("b"), calls.Reserve(("a", "b"), None)):
            assert ann.do(call) is CallFailure.FORBIDDEN
        other = Place(gateway, user="bob")
        other.do(put("b"))
        theirs = reserved(other, "b")
        assert ann.do(calls.DeleteJob(theirs.number, theirs.handle)) is CallFailure.FORBIDDEN
        assert running(gateway, "b") == 1
    with_gateway(test, automatic=False, users={
        "ann": Account(of_words(["put:a*", "get:a*"]), None), "bob": Account(of_words(["put:b*", "get:b*"]), None)})


def test_a_queue_may_group_its_jobs_by_who_puts_them() -> None:
    async def test(gateway: MemoryGateway) -> None:
        ann, boss = Place(gateway, user="ann"), gateway.connect("boss", "boss")
        ann.do(put())
        boss.send(b"QUEUE CONFIG q SCHED GROUPS GROUPBY USER\r\n")
        await gateway.settle()
        gateway.cluster.commit()
        ann.do(put())
        jobs = gateway.cluster.machine.peek_queue("q", JobState.READY, 9)
        assert [job.group for job in jobs] == [None, "ann"]
    with_gateway(test, automatic=False, users={
        "ann": Account(of_words(["put"]), None), "boss": Account(of_words(["admin"]), None)})


def test_nothing_is_kept_of_an_order_that_has_ended() -> None:
    async def test(gateway: MemoryGateway) -> None:
        place = Place(gateway)
        place.do(put())
        for end in (gateway.cluster.commit, gateway.cluster.neglect, gateway.cluster.lose):
            place.call(put())
            end()
            assert place.backend._execution._operation is place.backend._execution._proposed is None
            place.clock.pass_time(1)
            gateway.cluster.commit()
        gateway.cluster.full = True
        place.do(put())
        assert place.backend._execution._operation is place.backend._execution._proposed is None
    with_gateway(test, automatic=False)


def test_forwarded_calls_go_this_way() -> None:
    async def test(gateway: MemoryGateway) -> None:
        place = Place(gateway)
        place.do(put("other"))
        told: list[bytes | None] = []
        session = gateway.cluster.machine.sessions()[0].number
        for number, call in ((100, put()), (101, put()), (102, calls.Reserve(("q",), None))):
            execute_call(gateway.hub, None, "n2", forwarded(call, session, number), told.append)
            gateway.cluster.commit()
        execute_call(gateway.hub, None, "n2", forwarded(put(), session, 101, first=False), told.append)  # again
        gateway.cluster.commit()
        outcomes = [decode_outcome(data) for data in told if data is not None]
        assert [type(outcome) for outcome in outcomes] == [
            calls.NumberResult, calls.NumberResult, calls.Reserved, calls.NumberResult]
        assert outcomes[3] == outcomes[1]
        assert len(gateway.cluster.operations(PutWith)) == 0, "all of them are requests"
        counts = gateway.cluster.machine.counts("q")
        assert counts is not None
        assert (counts.ready, counts.running) == (1, 1)
    with_gateway(test, automatic=False)


def test_a_job_of_others_is_answered_like_one_that_is_gone() -> None:
    async def test(gateway: MemoryGateway) -> None:
        ann, bob = Place(gateway, user="ann"), Place(gateway, user="bob")
        ann.do(put("a"))
        theirs, gone = bob.do(put("b")).number, bob.do(put("b")).number
        bob.do(calls.DeleteJob(gone, None))
        for call in (calls.DeleteJob, calls.KickJob, calls.ReserveJob, calls.Peek, calls.JobStats):
            arguments = (None,) if call is calls.DeleteJob else ()
            assert ann.do(call(theirs, *arguments)) is ann.do(call(gone, *arguments)) is CallFailure.NOT_FOUND
        assert gateway.cluster.machine.ready("b") == 1
    with_gateway(test, automatic=False, users={
        "ann": Account(of_words(["put:a*", "get:a*", "queue:a*"]), None),
        "bob": Account(of_words(["put:b*", "get:b*", "queue:b*"]), None)})


def test_a_kick_ends_with_the_right_for_it() -> None:
    async def test(gateway: MemoryGateway) -> None:
        ann = Place(gateway, user="ann")
        for _ in range(PORTION_MAX + 5):
            ann.call(calls.PutJob("a", 0, 100, 60, b"x"))
            gateway.cluster.commit()
        ann.call(calls.KickTube("a", PORTION_MAX + 5))
        gateway.hub.access.file_users = {"ann": Account(of_words(["put:a*"]), None)}
        gateway.cluster.commit()
        assert ann.result == calls.NumberResult(PORTION_MAX)
        assert not gateway.cluster.in_flight
        assert gateway.cluster.machine.ready("a") == PORTION_MAX
    with_gateway(test, automatic=False, users={"ann": Account(of_words(["put:a*", "queue:a*"]), None)})


def test_whatever_clients_call_asks_for_a_right() -> None:
    async def test(gateway: MemoryGateway) -> None:
        boss, bare = Place(gateway, user="boss"), Place(gateway, user="bare")
        number = boss.do(put("b")).number
        boss.do(put("b"))
        theirs = reserved(boss, "b")
        before = gateway.cluster.machine.counts("b")
        refused = (CallFailure.FORBIDDEN, CallFailure.NOT_FOUND)
        answers: dict[type, tuple[calls.Call, tuple[object, ...]]] = {
            type(call): (call, allowed) for call, allowed in (
                (put("b"), refused), (calls.Reserve(("b",), 0), refused), (calls.ReserveJob(number), refused),
                (calls.DeleteJob(number), refused), (calls.Release(theirs.handle, 0, 0), refused),
                (calls.Bury(theirs.handle, 0), refused), (calls.TouchJob(theirs.handle), refused),
                (calls.KickTube("b", 9), refused), (calls.KickJob(number), refused), (calls.Pause("b", 9), refused),
                (calls.Peek(number), refused), (calls.PeekFirst("b", "ready"), refused),
                (calls.JobStats(number), refused), (calls.TubeStats("b"), refused),
                (calls.ListTubes(), (calls.Names(()),)), (calls.Totals(), (calls.Sums(),)),
                (calls.GiveBack((theirs.handle,)), (None,)),        # of the connection's own session only
            )
        }
        assert set(answers) == set(get_args(calls.Call)), "a call that is not tried here"
        for call, allowed in answers.values():
            assert bare.do(call) in allowed, call
        assert gateway.cluster.machine.counts("b") == before
    with_gateway(test, automatic=False, users={
        "boss": Account(of_words(["admin"]), None), "bare": Account(of_words([]), None)})
