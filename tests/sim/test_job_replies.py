"""Each promise about time, keys, batches and queues can be seen broken: histories with one wrong reply.

Beside it the right one, which is green. The notation is that of test_session_promises.py.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sockpqd.core import (
    DURATION_MS_MAX,
    Aborted,
    Accepted,
    Batch,
    BeatWorker,
    BindQueue,
    Change,
    CloseSession,
    Configure,
    ConfigureQueue,
    CreateQueue,
    Delete,
    DeleteQueue,
    Done,
    Due,
    End,
    ExpireQueue,
    Feedback,
    Finished,
    Get,
    GetWith,
    Handed,
    HandedMany,
    How,
    InTurn,
    JobExists,
    JobReplaced,
    JobRunning,
    JobState,
    Kick,
    Later,
    Leased,
    Meta,
    Move,
    NotFound,
    Number,
    OnDup,
    Overflow,
    Place,
    Policy,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    QueueNotEmpty,
    Rearmed,
    Removed,
    Reply,
    Results,
    Return,
    Selector,
    Spread,
    Stored,
    StoredNumber,
    Then,
    Tick,
    ToQueues,
    ToTopic,
    Touch,
    TouchSession,
    UnbindQueue,
    WorkerBounds,
    WorkerState,
)
from tests.sim.oracles.unfinished_jobs import short
from tests.sim.test_session_promises import (
    GET,
    GETB,
    GONE,
    LATE_MS,
    NOTHING,
    OPENED,
    STORED,
    Step,
    X,
    Y,
    lead,
    req,
    told,
    x,
    y,
)
from tests.sim.world.trace import Violation

Q, KEY = Selector(1), Selector(queue="q", key="k")
FIRST = Place("q", 1)
MANY = GetWith(GET, 2)
META = GetWith(GETB, meta=True)
FIN, OK = Finished(), Accepted()
IN_100 = PutWith(X, Due(100))
KEYED = PutWith(X, key="k")
SECOND = PutWith(Y, key="k")
EVERY = PutWith(X, every_ms=100)
GOT = (0, GET, x())
TWO = [STORED, (0, Y, Stored()), (0, MANY, HandedMany((x(), y(2))))]
TRIES = (0, ConfigureQueue("q", QueueChange(tries=1)), OK)
DEAD = [TRIES, STORED, GOT, (0, Later(1), OK)]


COPIES = (0, PutWith(X, targets=ToQueues(("q", "p"))), Spread(2))
GET_P = Get(("p",))
GET_NONE = Get(("q",), item="none")
BIND = (0, BindQueue("t", "q"), OK)
IDLE = (0, ConfigureQueue("q", QueueChange(idle_ms=100)), OK)
DROPS = (0, ConfigureQueue("q", QueueChange(capacity=1, overflow=Overflow.DROPOLDEST)), OK)
FADES = (0, ConfigureQueue("q", QueueChange(ttl_ms=50)), OK)
BOUND_QUEUE = (0, CreateQueue("q", QueueChange(), 1), OK)


def x_of(queue: str, id_: int) -> Handed:
    return Handed(id_, queue, 0, b"x")


def dead_x(id_: int = 2) -> Handed:
    return Handed(id_, "q_dead", 0, b"x")


def meta(attempt: int, deadline_ms: int | None) -> Handed:
    return Handed(1, "q", 0, b"x", meta=Meta(None, attempt, None, deadline_ms))


# The name of a promise; what happened before; what was done then; the right reply; a wrong one; what is said to that.
BROKEN: dict[str, tuple[list[Step], tuple[int, object], Reply, Reply, str]] = {
    "a job waits for its time": ([(0, IN_100, Stored())], (99, GET), NOTHING, x(), "1 ms before its time"),
    "a job waits for the time it is put for": (
        [(0, PutWith(X, Due(at_ms=500)), Stored())], (400, GET), NOTHING, x(), "100 ms before its time"),
    "a job put back for later waits": (
        [STORED, GOT, (0, End(1, How.LATER, Due(100)), OK)], (50, GET), NOTHING, x(2), "50 ms before its time"),
    "a job moved for later waits": (
        [STORED, GOT, (0, Move(1, "p", when=Due(100)), Finished(True))],
        (50, GET), NOTHING, Handed(2, "p", 0, b"x"), "50 ms before its time"),
    "a job whose time was changed waits": (
        [STORED, GOT, (0, Change(Q, when=Due(100)), OK), (0, Later(1), OK)],
        (50, GET), NOTHING, x(2), "50 ms before its time"),
    "a job whose time was changed by its key waits": (
        [(0, KEYED, Stored()), (0, Change(KEY, when=Due(100)), OK)], (50, GET), NOTHING, x(), "50 ms before its time"),
    "a job that was returned need not wait": (
        [STORED, GOT, (0, Change(Q, when=Due(100)), OK), (0, Return(1), OK)], (0, GET), x(2), x(), "handed out twice"),

    "a periodic job comes again": (
        [(0, EVERY, Stored()), GOT], (0, Done(1)), Rearmed(100), FIN, "the next time is 100"),
    "a periodic job comes at its time": (
        [(0, EVERY, Stored()), GOT], (350, Done(1)), Rearmed(400), Rearmed(450), "the next time is 400"),
    "a periodic job waits for its next time": (
        [(0, EVERY, Stored()), GOT, (0, Done(1), Rearmed(100))], (50, GET), NOTHING, x(2), "50 ms before its time"),
    "a periodic job has one next one": (
        [(0, EVERY, Stored()), GOT, (0, Done(1), Rearmed(100)), (100, GET, x(2))],
        (100, GET), NOTHING, x(3), "x is handed out as 3, and runs as 2"),
    "a periodic job ends at last": (
        [(0, EVERY, Stored()), GOT], (0, End(1, How.DONE, last=True)), FIN, Rearmed(100), "the next time is None"),
    "a periodic job whose lease is done with comes again": (
        [(0, EVERY, Stored()), (0, Get(None, 50, Then.DONE), x()), (70, Tick(), OK)],
        (99, GET), NOTHING, x(2), "1 ms before its time"),

    "a key is taken": ([(0, KEYED, Stored())], (0, SECOND), JobExists(), Stored(), "both have key k"),
    "a key is taken while its job runs": ([(0, KEYED, Stored()), GOT], (0, SECOND), JobExists(), Stored(), "both have"),
    "a key is free again": (
        [(0, KEYED, Stored()), GOT, (0, Done(1), FIN)], (0, SECOND), Stored(), JobExists(), "nobody has its key"),
    "a key is that of its queue": (
        [(0, PutWith(Put("p", 0, b"x"), key="k"), Stored())], (0, SECOND), Stored(), JobExists(), "nobody has its key"),
    "a key goes with its job": (
        [(0, KEYED, Stored()), GOT, (0, Move(1, "p"), FIN)], (0, SECOND), Stored(), JobExists(), "nobody has its key"),
    "a job that runs is not replaced": (
        [(0, KEYED, Stored()), GOT], (0, PutWith(Y, key="k", on_dup=OnDup.REPLACE)), JobRunning(), JobReplaced(),
        "runs"),
    "a job that was replaced is gone": (
        [(0, KEYED, Stored()), (0, PutWith(Y, key="k", on_dup=OnDup.REPLACE), JobReplaced())],
        (0, GET), y(1), x(), "x is handed out as 1, and has ended"),
    "a job is found by its key": ([(0, KEYED, Stored())], (0, Delete(KEY)), FIN, NotFound(), "waits"),
    "a job that runs belongs to its holder": ([(0, KEYED, Stored()), GOT], (0, Delete(KEY)), JobRunning(), FIN, "runs"),
    "what was deleted is gone": (
        [(0, KEYED, Stored()), (0, Delete(KEY), FIN)], (0, GET), NOTHING, x(), "x is handed out as 1, and has ended"),

    "a transaction that was aborted has put nothing": (
        [STORED, (0, Batch((Y, Done(9)), True), Aborted(2, NotFound()))], (0, GET), x(), y(1),
        "y is handed out as 1, and was"),
    "a transaction that was aborted has ended nothing": (
        [STORED, GOT, (0, Batch((Done(1), Done(9)), True), Aborted(2, NotFound()))],
        (0, Done(1)), FIN, NotFound(), "the job runs"),
    "a transaction has ended everything": (
        [*TWO, (0, Batch((Done(1), Done(2)), True), Results((FIN, FIN)))], (0, Done(2)), NotFound(), FIN,
        "does not run"),
    "whatever is no transaction is answered one by one": (
        [STORED, GOT], (0, Batch((Done(1), Done(9)), False)), Results((FIN, NotFound())), Results((FIN, FIN)),
        "does not run"),
    "several jobs are several hand-outs": (
        [STORED, (0, Y, Stored())], (0, MANY), HandedMany((x(), y(2))), HandedMany((x(), x(2))), "runs as 1"),
    "no more jobs are given than were asked for": (
        [STORED, (0, Y, Stored())], (0, GetWith(GET, 1)), HandedMany((x(),)), HandedMany((x(), y(2))), "is answered"),
    "DONE ends several": (
        TWO, (0, End((1, 2), How.DONE)), Results((FIN, FIN)), Results((FIN, NotFound())), "the job runs",
    ),
    "what several DONE ended has ended": (
        [*TWO, (0, End((1, 2), How.DONE), Results((FIN, FIN)))], (0, GET), NOTHING, y(3),
        "y is handed out as 3, and has ended"),
    "LATER puts several back": (
        [*TWO, (0, End((1, 2), How.LATER), Results((OK, OK)))], (0, Done(2)), NotFound(), FIN, "does not run"),
    "several jobs are given again": (
        [OPENED, STORED, (0, Y, Stored()), (0, req(MANY), HandedMany((x(), y(2))))],
        (0, req(MANY)), HandedMany((x(), y(2))), HandedMany((x(),)), "was answered"),
    "those of several jobs that run are given again": (
        [OPENED, STORED, (0, Y, Stored()), (0, req(MANY), HandedMany((x(), y(2)))), (0, Done(1), FIN)],
        (0, req(MANY)), HandedMany((y(2),)), HandedMany((x(), y(2))), "was answered"),
    "a job that was changed is given again as it is": (
        [OPENED, STORED, (0, req(GET), x()), (0, Change(Q, 5), OK)], (0, req(GET)), Handed(1, "q", 5, b"x"), x(),
        "was"),

    "so is one that was changed by its number": (
        [OPENED, (0, PutWith(X, number=True), StoredNumber(9)), (0, req(GET), x()),
         (0, Change(Number(9), 5), OK)], (0, req(GET)), Handed(1, "q", 5, b"x"), x(), "was"),

    "LATER .. FIRST puts several back": (
        [
            *TWO, (0, End((1, 2), How.LATER, first=True), Results((OK, OK)))
        ], (0, Done(2)), NotFound(), FIN, "does not run"),
    "a TOUCH lengthens several leases": (
        [STORED, (0, GETB, x())], (900, Touch((1,))), Results((Leased(1900),)), Results((Leased(1000),)),
        "right is 1900"),

    "a job of a group is there": (
        [(0, PutWith(X, key="k", group="g"), Stored())], (0, SECOND), JobExists(), Stored(), "both have key k"),
    "a job put to several queues is there": (
        [
            (0, replace(KEYED, targets=ToQueues(("q",))), Spread(1)),
        ], (0, SECOND), JobExists(), Stored(), "both have key k"),
    "a job is in all queues it was put to": (
        [], (0, replace(KEYED, targets=ToQueues(("q",)))), Spread(1), Spread(0), "is answered",
    ),
    "a job is in the queue of its topic": (
        [BIND, (0, PutWith(X, targets=ToTopic("t", "")), Spread(1))], (0, Get(None)), x(), dead_x(1), "waits in q"),
    "a job that reached no queue is not there": (
        [(0, PutWith(X, targets=ToTopic("t", "")), Spread(0))], (0, GET), NOTHING, x(), "was never put"),
    "a topic reaches the queue bound to it": (
        [BIND], (0, PutWith(X, targets=ToTopic("t", ""))), Spread(1), Spread(2), "is answered"),
    "a pattern keeps other routes out": (
        [(0, BindQueue("t", "q", "*.y"), OK), (0, BindQueue("t", "p", "#.y.#"), OK)],
        (0, PutWith(X, targets=ToTopic("t", "y"))), Spread(1), Spread(2), "right is \\['p'\\]"),
    "a binding that is gone leads nowhere": (
        [BIND, (0, UnbindQueue("t", "q", None), OK)],
        (0, PutWith(X, targets=ToTopic("t", ""))), Spread(0), Spread(1), "right is \\[\\]"),
    "a copy is handed out once in each queue": (
        [COPIES, GOT], (0, Get(None)), x_of("p", 2), x(2), "runs as 1"),
    "a copy is done once in each queue": (
        [COPIES, GOT, (0, Done(1), FIN), (0, GET_P, x_of("p", 2)), (0, Done(2), FIN)],
        (0, Get(None)), NOTHING, x(3), "has ended"),
    "a job put into a queue that is named twice is there once": (
        [(0, PutWith(X, targets=ToQueues(("q", "q"))), Spread(1)), GOT], (0, GET), NOTHING, x(2), "runs as 1"),
    "copies moved into one queue are two jobs": (
        [COPIES, (0, GET_P, x_of("p", 1)), (0, Move(1, "q"), FIN), (0, GET, x(2)), (0, GET, x(3))],
        (0, GET), NOTHING, x(4), "runs as 2|runs as 3"),
    "a copy that may be anywhere stays so when one is handed out where another waits": (
        [TRIES, COPIES, (0, Y, Stored()), (0, MANY, HandedMany((x(), y(2)))), (
            0, End((1, 2), How.LATER), Results((OK, OK)),
        ),
         (0, Kick("q", 1), Removed(1)), (0, GET_P, x_of("p", 3)), (0, Done(3), FIN), (0, GET, x(4))],
        (0, GET_P), NOTHING, x_of("p", 5), "runs as 4"),
    "an idle queue is deleted with its jobs": (
        [IDLE, STORED, (100, ExpireQueue("q", 0), OK)], (100, GET), NOTHING, x(), "has ended"),
    "a queue that was used is not idle": (
        [IDLE, (0, KEYED, Stored()), (60, GET_NONE, NOTHING), (100, ExpireQueue("q", 0), OK)],
        (100, SECOND), JobExists(), Stored(), "both have key k"),
    "a queue goes with its session": (
        [OPENED, BOUND_QUEUE, STORED, (LATE_MS, Tick(), OK)], (LATE_MS, GET), NOTHING, x(), "has ended"),
    "a queue goes when its session is closed": (
        [OPENED, BOUND_QUEUE, STORED, (0, CloseSession(1, False), OK)], (0, GET), NOTHING, x(), "has ended"),
    "a queue that is gone is no longer bound to its topic": (
        [OPENED, BOUND_QUEUE, BIND, (LATE_MS, Tick(), OK)],
        (LATE_MS, PutWith(X, targets=ToTopic("t", ""))), Spread(0), Spread(1), "right is \\[\\]"),
    "what was deleted by its place is gone": (
        [STORED, (0, Delete(FIRST), FIN)], (0, GET), NOTHING, x(), "has ended"),
    "what runs has no place to be deleted by": (
        [STORED, GOT], (0, Delete(FIRST)), NotFound(), FIN, "has ended 1 jobs, and there were 0"),
    "what runs has no place to be changed by": (
        [STORED, GOT], (0, Change(FIRST, 1)), NotFound(), OK, "no job waits there"),
    "a measured DONE ends a job": (
        [
            STORED, GOT, (0, End(1, How.DONE, ran_ms=5), FIN),
        ], (0, GET), NOTHING, x(2), "x is handed out as 2, and has ended"),
    "a measured LATER puts a job back": (
        [STORED, GOT, (0, End(1, How.LATER, Due(100), reason="why", ran_ms=5), OK)],
        (50, GET), NOTHING, x(2), "50 ms before its time"),
    "a measured TOUCH lengthens the lease": (
        [STORED, (0, GETB, x())], (900, Touch(1, ran_ms=5)), Leased(1900), Leased(1000), "right is 1900"),
    "an end with a result is one": (
        [
            STORED, GOT, (0, End(1, How.DONE, last=True, feedback=Feedback.SLOW), FIN),
        ], (0, Done(1)), NotFound(), FIN, "does not run"),
    "a job is buried for a reason": (
        [STORED, GOT, (0, End(1, How.BURY, reason="why"), FIN)], (0, Get(None)), dead_x(), x(2), "waits in q_dead"),
    "a job is taken in turn": (
        [STORED, (0, GetWith(GET, policy=Policy.RR, turn=InTurn()), x())], (0, GET), NOTHING, x(2), "runs as 1"),
    "a job is taken by a grant": (
        [STORED, (0, GetWith(GET, free=()), x())], (0, GET), NOTHING, x(2), "runs as 1"),
    "a job taken in turn is given again": (
        [OPENED, STORED, (0, req(GetWith(GET, policy=Policy.RR, turn=InTurn())), x())],
        (0, req(GetWith(GET, policy=Policy.RR, turn=InTurn()))), x(), NOTHING, "was answered"),
    "a queue created with more has a lease": (
        [(0, CreateQueue("q", QueueChange(expire_ms=100)), OK), STORED, GOT],
        (116, Done(1)), NotFound(), FIN, "does not run"),
    "a queue configured with more has a lease": (
        [(0, ConfigureQueue("q", QueueChange(expire_ms=100)), OK), STORED, GOT],
        (116, Done(1)), NotFound(), FIN, "does not run"),
    "a worker is in a session that lives": (
        [OPENED], (0, BeatWorker("w", 1, 0, session=1)), WorkerBounds(None, None, WorkerState.RUN), GONE, "lives"),
    "a worker is in no session that is over": (
        [], (0, BeatWorker("w", 1, 0, session=1)), GONE, WorkerBounds(None, None, WorkerState.RUN), "is over"),

    "a TOUCH lengthens the lease": (
        [STORED, (0, GETB, x()), (900, Touch(1), Leased(1900))], (1800, Done(1)), FIN, NotFound(), "the job runs"),
    "a TOUCH tells the end of the lease": (
        [STORED, (0, GETB, x())], (900, Touch(1)), Leased(1900), Leased(1000), "right is 1900"),
    "a TOUCH may shorten the lease": (
        [STORED, (0, GETB, x()), (0, Touch(1, 100), Leased(100))], (116, Done(1)), NotFound(), FIN, "does not run"),
    "a TOUCH may change what follows": (
        [STORED, (0, GETB, x()), (0, Touch(1, 100, Then.DONE), Leased(100))], (116, GET), NOTHING, x(2), "has ended"),
    "a queue has a lease": (
        [(0, ConfigureQueue("q", QueueChange(expire_ms=100)), OK), STORED, GOT],
        (116, Done(1)), NotFound(), FIN, "does not run"),
    "the cluster has a grace": (
        [(0, Configure(grace_ms=500), OK), STORED, (0, GETB, x()), (900, lead(0), OK)],
        (1399, Done(1)), FIN, NotFound(), "the job runs"),
    "the end of the lease is told": ([STORED], (0, META), meta(1, 1000), meta(1, 900), "right is"),
    "a job may have a lease of its own": (
        [(0, PutWith(X, lease_ms=300), Stored())], (0, GetWith(Get(("q",)), meta=True)), meta(1, 300),
        meta(1, None), "right is"),
    "the job's own lease ends": (
        [(0, PutWith(X, lease_ms=300), Stored()), GOT], (316, Done(1)), NotFound(), FIN, "does not run"),
    "attempts are counted": ([STORED], (0, META), meta(1, 1000), meta(0, 1000), "right is"),

    "a dead job is in the dead queue": (DEAD, (0, GET), NOTHING, x(2), "handed out of q, and waits in q_dead"),
    "a job that was put back is where it was": (
        [STORED, GOT, (0, Later(1), OK)], (0, Get(None)), x(2), dead_x(), "handed out of q_dead, and waits in q"),
    "a lease may end in the dead queue": (
        [STORED, (0, Get(None, 50, Then.DEAD), x()), (70, Tick(), OK)], (70, Get(None)), dead_x(), x(2),
        "waits in q_dead"),
    "a job is buried": ([STORED, GOT, (0, End(1, How.BURY), FIN)], (0, Get(None)), dead_x(), x(2), "waits in q_dead"),
    "a job is kicked": ([*DEAD, (0, Kick("q", 9), Removed(1))], (0, Get(None)), x(2), dead_x(), "waits in q"),
    "what does not count is no attempt": (
        [TRIES, STORED, GOT, (0, End(1, How.LATER, yielded=True), OK)], (0, Get(None)), x(2), dead_x(), "waits in q"),

    "what was purged is gone": (
        [STORED, (0, PurgeQueue("q", None), Removed(1))], (0, GET), NOTHING, x(), "has ended"),
    "what runs is not purged": (
        [STORED, GOT], (0, PurgeQueue("q", None)), Removed(0), Removed(1), "has ended 1 jobs, and there were 0"),
    "what is purged is counted": (
        [STORED], (0, PurgeQueue("q", JobState.READY)), Removed(1), Removed(2), "has ended 2 jobs"),
    "a queue with jobs is not deleted": ([STORED], (0, DeleteQueue("q", False)), QueueNotEmpty(), OK, "has ended x"),
    "what runs in a deleted queue is gone": (
        [STORED, GOT, (0, DeleteQueue("q", True), OK)], (0, Done(1)), NotFound(), FIN, "does not run"),
    "a session that is over changes nothing": (
        [OPENED, STORED, GOT, (2000, req(Delete(Q)), GONE)], (2000, Done(1)), FIN, NotFound(), "the job runs"),
}


@pytest.mark.parametrize("promise", BROKEN)
def test_the_right_reply_is_green(promise: str) -> None:
    before, (now_ms, operation), right, _, _ = BROKEN[promise]
    told(*before, (now_ms, operation, right))       # type: ignore[arg-type]


@pytest.mark.parametrize("promise", BROKEN)
def test_the_wrong_reply_is_red(promise: str) -> None:
    before, (now_ms, operation), _, wrong, match = BROKEN[promise]
    ledger = told(*before)
    with pytest.raises(Violation, match=match):
        ledger.applied(now_ms, [operation], [wrong])        # type: ignore[list-item]


def left(*steps: Step) -> dict[str, str]:
    return {short(body): place for body, place in told(*steps).jobs.left().items()}


def test_what_waits_or_runs_is_left() -> None:
    assert left((0, IN_100, Stored()), (0, Y, Stored()), (0, GET, y(1))) == {"x": "waits", "y": "runs as 1"}
    assert left(*DEAD) == {"x": "waits"}
    assert left((0, EVERY, Stored()), GOT, (0, Done(1), Rearmed(100))) == {"x": "waits"}
    assert left(*TWO, (0, End((1, 2), How.DONE), Results((FIN, FIN)))) == {}


def test_a_ttl_is_no_loss_when_it_is_over() -> None:
    steps = (0, PutWith(X, Due(100), ttl_ms=50), Stored()), (100, Tick(), OK)
    assert left(*steps) == {"x": "waits"}
    assert left(*steps, (149, Tick(), OK)) == {"x": "waits"}
    assert left(*steps, (150, Tick(), OK)) == {}
    assert left(*steps, (120, GET, x()), (999, Tick(), OK)) == {"x": "runs as 1"}


def test_copies_are_left_until_each_has_ended() -> None:
    assert left(COPIES, GOT, (0, Done(1), FIN)) == {"x": "waits"}
    assert left(COPIES, GOT, (0, Done(1), FIN), (0, GET_P, x_of("p", 2)), (0, Done(2), FIN)) == {}


def test_a_queue_gives_its_jobs_a_ttl_unless_they_have_one() -> None:
    assert left(FADES, STORED, (49, Tick(), OK)) == {"x": "waits"}
    assert left(FADES, STORED, (50, Tick(), OK)) == {}
    assert left(FADES, (0, PutWith(X, ttl_ms=DURATION_MS_MAX), Stored()), (999, Tick(), OK)) == {"x": "waits"}


def test_a_full_queue_that_drops_keeps_the_new_job() -> None:
    assert left(DROPS, STORED) == {"x": "waits"}
    assert left(DROPS, STORED, (0, Y, Stored())) == {"y": "waits"}


def test_a_queue_that_is_in_use_is_left_with_its_jobs() -> None:
    assert left(IDLE, STORED, (99, ExpireQueue("q", 0), OK)) == {"x": "waits"}
    assert left(IDLE, STORED, (100, GET, x()), (300, ExpireQueue("q", 200), OK)) == {"x": "runs as 1"}
    assert left(OPENED, BOUND_QUEUE, STORED, (900, TouchSession(1), OK), (LATE_MS, Tick(), OK)) == {"x": "waits"}


# What a job is put for at 0; what a CHANGE at 40 says; when its TTL of 50 ms may be over.
TTLS: dict[str, tuple[Due | None, Due, int]] = {
    "READY before and after": (None, Due(0), 50),
    "READY before and after, for a time in the past": (None, Due(at_ms=10), 50),
    "due before, and perhaps READY": (Due(20), Due(0), 70),
    "READY, then DELAYED": (None, Due(5), 95),
    "DELAYED, then READY": (Due(100), Due(0), 90),
    "DELAYED before and after": (Due(100), Due(200), 290),
}


@pytest.mark.parametrize("states", TTLS)
def test_a_ttl_counts_anew_when_a_change_of_time_makes_the_job_ready(states: str) -> None:
    put_for, changed_to, fades_ms = TTLS[states]
    steps = (0, PutWith(X, put_for, ttl_ms=50, key="k"), Stored()), (40, Change(KEY, when=changed_to), OK)
    assert left(*steps, (fades_ms, SECOND, Stored())) == {"y": "waits"}
    with pytest.raises(Violation, match="y and x both have key k"):
        told(*steps, (fades_ms - 1, SECOND, Stored()))


def test_the_ttl_of_a_job_that_may_have_been_changed_ends_as_early_as_it_may() -> None:
    in_r = Selector(queue="r", key="k")
    dead = [TRIES, (0, KEYED, Stored()), GOT, (0, Later(1), OK), (0, PutWith(Y, key="k", ttl_ms=50), Stored())]
    delayed = (0, PutWith(Put("r", 0, b"z"), Due(1000), ttl_ms=50, key="k"), Stored())
    doubted = [*dead, delayed, (50, Kick("q", 9), Removed(1)), (50, Change(KEY, when=Due(0)), OK)]
    called = [*doubted, (60, Change(in_r, when=Due(0)), OK)]
    assert left(*called, (109, Tick(), OK)) == {"z": "waits"}
    assert left(*called, (110, Tick(), OK)) == {}


def test_a_kicked_job_keeps_its_key_if_the_job_that_had_it_is_gone() -> None:
    third = PutWith(Put("q", 0, b"z"), key="k", on_dup=OnDup.REPLACE)
    dead = [TRIES, (0, KEYED, Stored()), GOT, (0, Later(1), OK), (0, PutWith(Y, key="k", ttl_ms=50), Stored())]
    assert left(*dead, (49, Kick("q", 9), Removed(1)), (49, third, JobReplaced())) == {"x": "waits", "z": "waits"}
    assert left(*dead, (50, Kick("q", 9), Removed(1)), (50, third, JobReplaced())) == {"z": "waits"}


def test_what_was_purged_in_part_may_be_gone_or_there() -> None:
    steps = (0, IN_100, Stored()), (0, Y, Stored()), (0, PurgeQueue("q", JobState.READY), Removed(1))
    assert left(*steps) == {}
    assert left(*steps, (100, GET, x())) == {"x": "runs as 1"}
