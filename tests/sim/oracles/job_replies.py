"""What operations on jobs and queues do to the whereabouts of jobs, as their replies say.

It does not know which job a hand-out should give, nor what an operation should be answered: the model of the queue
does. It knows what a client may rely on once it was answered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from sockpqd.core import (
    DURATION_MS_MAX,
    Aborted,
    Accepted,
    Batch,
    Change,
    Delete,
    DeleteQueue,
    Done,
    Due,
    End,
    ExpireQueue,
    Finished,
    Get,
    GetWith,
    Handed,
    HandedMany,
    How,
    JobExists,
    JobIgnored,
    JobReplaced,
    JobRunning,
    JobState,
    Kick,
    Later,
    Leased,
    Move,
    NotFound,
    Number,
    Operation,
    Place,
    PurgeQueue,
    Put,
    PutWith,
    Rearmed,
    Removed,
    Reply,
    Results,
    Return,
    Selector,
    SessionNotFound,
    Spread,
    Stored,
    StoredNumber,
    Then,
    ToQueues,
    ToTopic,
    Touch,
)
from tests.sim.oracles.deadlines import Deadline
from tests.sim.oracles.job_states import JobStates
from tests.sim.oracles.plain_forms import plain
from tests.sim.oracles.settings_in_force import Rules
from tests.sim.oracles.unfinished_jobs import Life, Run
from tests.sim.world.trace import Violation

Severals = End | Touch | Batch
OnRunning = Done | Later | End | Return | Touch | Move
OnNumbered = Change | Delete | GetWith


class JobReplies(JobStates):
    """Fed with what was executed."""

    def __init__(self, rules: Rules, seen: Counter[str]) -> None:
        super().__init__(rules, seen)
        self.numbered: dict[int, Life] = {}

    def executed(self, operation: Operation, reply: Reply) -> None:
        """An operation and its reply."""
        operation = plain(operation)
        match operation:
            case PutWith(targets=ToQueues() | ToTopic() as targets):
                self._spread(operation, targets, reply)
            case PutWith() if operation.number or operation.lease_ms is not None:
                self._put_numbered(operation, reply)
            case Put() | PutWith():
                self._put(operation if isinstance(operation, PutWith) else PutWith(operation), reply)
            case GetWith(number=int() as number):
                self._on_numbered(operation, Number(number), reply)
            case Get() | GetWith():
                self._hand(operation if isinstance(operation, GetWith) else GetWith(operation), reply)
            case Done() | Later() | End(ids=int()) | Return() | Move() | Touch(ids=int()):
                self._on_running(operation, reply)
            case Change(selector=Number()) | Delete(selector=Number()):
                self._on_numbered(operation, operation.selector, reply)
            case Change(selector=Place() as place):
                self._at_place(operation, place, reply)
            case Delete(selector=Place() as place):
                if not isinstance(reply, NotFound):
                    self.remove(self._waits_in(place.queue), 1, operation)
            case Change() | Delete():
                self._on_selected(operation, reply)
            case End() | Touch() | Batch():
                self._several(operation, reply)
            case Kick():
                if isinstance(reply, Removed):
                    self._kick(operation, reply)
            case PurgeQueue():
                if isinstance(reply, Removed):
                    self._purge(operation, reply.count)
            case DeleteQueue():
                self._delete_queue(operation)
            case ExpireQueue():
                self._expire(operation)

    def _several(self, operation: Severals, reply: Reply) -> None:
        """All of them, or none: what was aborted leaves no trace."""
        if isinstance(operation, Batch) and isinstance(reply, Aborted) and operation.atomic:
            self.seen["transactions aborted"] += 1
            return
        self.seen["transactions executed"] += isinstance(operation, Batch) and operation.atomic
        if isinstance(operation, Batch):
            parts: list[Operation] = list(operation.operations)
        else:
            assert isinstance(operation.ids, tuple)
            parts = [replace(operation, ids=number) for number in operation.ids]
        if not isinstance(reply, Results) or len(reply.replies) != len(parts):
            raise Violation(f"{operation} is answered {reply}")
        for part, its_reply in zip(parts, reply.replies, strict=True):
            self.executed(part, its_reply)

    def _hand(self, pick: GetWith, reply: Reply) -> None:
        for queue in pick.get.queues or () if not isinstance(reply, SessionNotFound) else ():
            self.used_ms[queue] = self.clock_ms
        if isinstance(reply, Handed):
            self.hand(pick, reply)
        elif isinstance(reply, HandedMany):
            if not 1 <= len(reply.jobs) <= (pick.count or 0):
                raise Violation(f"{pick} is answered {reply}")
            self.seen["portions handed out"] += len(reply.jobs) > 1
            for handed in reply.jobs:
                self.hand(pick, handed)

    # Puts

    def _moment(self, when: Due | None) -> int | None:
        if when is None:
            return None
        return max(when.at_ms, 0) if when.at_ms is not None else self.clock_ms + max(when.delay_ms, 0)

    def _put(self, wish: PutWith, reply: Reply) -> None:
        put = wish.put
        match reply:
            case Stored():
                self._stored(wish, (put.queue,))
            case JobReplaced():
                self.seen["jobs replaced"] += 1
                life = self._twin(wish, reply)
                self.lives.rename(life, put.data)
                self._take_wishes(life, wish, put.queue)
            case JobRunning():
                self._twin(wish, reply)
            case JobExists() | JobIgnored():
                self.seen["keys taken"] += 1
                if put.queue not in self.rules.keepers:
                    self._twin(wish, reply)

    def _put_numbered(self, operation: PutWith, reply: Reply) -> None:
        if operation.number != isinstance(reply, StoredNumber) and isinstance(reply, Stored | StoredNumber):
            raise Violation(f"{operation} is answered {reply}")
        if not isinstance(reply, StoredNumber):
            self._put(operation, reply)
            if isinstance(reply, Stored | JobReplaced):
                self._take_lease(operation)
            return
        if reply.number <= max(self.numbered, default=0) and not self.lives.blind:
            raise Violation(f"{operation} is answered {reply}, and a greater number was given before")
        self._put(operation, Stored(reply.item))
        self._take_lease(operation)
        put = operation.put
        life = self.lives.of(put.data, put.queue, self.clock_ms)
        if life is not None:
            self.numbered[reply.number] = life

    def _take_lease(self, operation: PutWith) -> None:
        life = self.lives.of(operation.put.data, operation.put.queue, self.clock_ms)
        if life is not None:
            life.lease_ms = operation.lease_ms

    def _kick(self, operation: Kick, reply: Removed) -> None:
        if operation.selector is None and operation.here:
            self.kick_here(operation.queue, reply.count, buried=reply.buried is True)
        elif operation.selector is None:
            self.kick(operation.queue, reply.count)
        else:
            life = self._of_number(operation, operation.selector, reply)
            if life is not None:
                self.seen["jobs kicked by number"] += 1
                self.dig_up(life, kicked=True)

    def _of_number(self, operation: Operation, selector: Number, reply: Reply) -> Life | None:
        """The job with this number, which an operation has found."""
        life = self.numbered.get(selector.number)
        if life is None or not any(one is life for one in self.lives):
            if not self._vague():
                raise Violation(f"{operation} is answered {reply}, and no job has this number")
            return None
        self.seen["jobs found by number"] += 1
        return life

    def _on_numbered(self, operation: OnNumbered, selector: Number, reply: Reply) -> None:
        if isinstance(reply, SessionNotFound):
            return
        if isinstance(reply, NotFound):
            life = self.numbered.get(selector.number)
            there = any(one is life for one in self.lives)
            if life is not None and there and not (life.may_be_gone(self.clock_ms) or self._vague()):
                raise Violation(f"{operation} is answered {reply}, and {life} has this number")
            return
        life = self._of_number(operation, selector, reply)
        if life is None:
            if isinstance(operation, GetWith) and isinstance(reply, Handed):
                self.hand(operation, reply)
            return
        if isinstance(operation, Delete) and isinstance(reply, Finished):
            if operation.unless_running and life.run is not None:
                raise Violation(f"{operation} is answered {reply}, and {life} runs")
            if life.run is not None:
                self.stop(life.run)
            self.lives.end(life)
        elif isinstance(operation, Change) and isinstance(reply, Accepted):
            self._change(operation, life)
        elif isinstance(reply, JobRunning):
            if life.run is None and not self.blind:
                raise Violation(f"{operation} is answered {reply}, and {life} waits")
        elif isinstance(operation, GetWith) and isinstance(reply, Handed):
            self.seen["jobs taken by number"] += 1
            if reply.data != life.body and not self.blind:
                raise Violation(f"{operation} is answered {reply}, and {life} has this number")
            if life.run is None:
                self.dig_up(life, kicked=False)
            self.hand(operation, reply)

    def _stored(self, wish: PutWith, queues: Sequence[str]) -> None:
        """There is such a job in each of the queues, one or several."""
        copies = [Life(wish.put.data, queue, key=wish.key) for queue in queues]
        self.lives.begin(*copies)
        for life, queue in zip(copies, queues, strict=True):
            self.lives.claim(life, queue, self.clock_ms)
            self._take_wishes(life, wish, queue)
            self._overflow(life, queue)

    def _overflow(self, new: Life, queue: str) -> None:
        """The new job may have cost another one its place."""
        rule = self.rules.of(queue)
        others = [
            life for life in self.lives
            if life.run is None and life.queue in (queue, None) and life is not new and not life.burial
        ]
        if rule.drops and 0 < rule.capacity <= len(others):
            self.seen["queues that overflow"] += 1
            for life in others:
                life.unsure = True

    def _spread(self, wish: PutWith, targets: ToQueues | ToTopic, reply: Reply) -> None:
        """Into all that are named, or bound to the topic, or none."""
        if not isinstance(reply, Spread):
            return
        if isinstance(targets, ToQueues):
            queues = list(dict.fromkeys(targets.queues))
        else:
            queues = self.rules.topics.reached(targets.topic, targets.route)
        if reply.queues != len(queues):
            raise Violation(f"{wish} is answered {reply}, right is {queues}")
        self.seen["jobs spread"] += reply.queues
        self.seen["jobs put into several queues"] += reply.queues > 1
        if queues:
            self._stored(wish, queues)

    def _ttl_ms(self, queue: str, asked_ms: int | None) -> int | None:
        if asked_ms is None:
            return self.rules.of(queue).ttl_ms or None
        return asked_ms if asked_ms < DURATION_MS_MAX else None

    def _twin(self, wish: PutWith, reply: Reply) -> Life:
        """The job that has the key already, because of which this is the reply."""
        assert wish.key is not None
        life = self.lives.holder(wish.put.queue, wish.key)
        if life is None:
            if not self.lives.vague(wish.put.queue, wish.key):
                raise Violation(f"{wish} is answered {reply}, and nobody has its key")
            life = Life(wish.put.data, wish.put.queue, loose=True)
            if isinstance(reply, JobReplaced):
                self.lives.doubt(wish.key)
                self.lives.begin(life)
        elif not isinstance(reply, JobExists | JobIgnored) and (life.run is not None) != isinstance(reply, JobRunning):
            raise Violation(f"{wish} is answered {reply}, and {life} {'waits' if life.run is None else 'runs'}")
        return life

    def _take_wishes(self, life: Life, wish: PutWith, queue: str) -> None:
        at_ms = self._moment(wish.when)
        self.used_ms[queue] = self.clock_ms
        life.every_ms, life.lease_ms = wish.every_ms, None
        if at_ms is None and life.every_ms is not None:
            at_ms = self.clock_ms
        life.key, life.tries, life.unsure = wish.key, wish.tries, False
        life.ttl_ms = self._ttl_ms(queue, wish.ttl_ms)
        self.put_off(life, at_ms)
        self.wait(life)

    # Running jobs

    def _on_running(self, operation: OnRunning, reply: Reply) -> None:
        number = operation.id
        run = self.run_of(number, operation, reply)
        if run is None:
            return
        match operation:
            case Done() | End(how=How.DONE):
                self._done(operation, run, reply)
            case Later():
                self.fail(number)
            case End(how=How.LATER):
                self._later(operation, run.life)
            case Return():
                life = self.stop(number)
                life.attempts -= 1
                life.not_before_ms = 0
            case End():
                (self.bury_here if operation.here else self.bury)(number)
            case Touch():
                self._touch(operation, run, reply)
            case Move():
                if isinstance(reply, Finished):
                    self._move(operation, run.life)

    def _done(self, operation: Done | End, run: Run, reply: Reply) -> None:
        loose, number = run.life.loose, operation.id
        if loose and isinstance(reply, Rearmed):
            self.put_off(self.stop(number), reply.next_ms)
            return
        next_ms = self.done(number, last=loose or (isinstance(operation, End) and operation.last))
        right = isinstance(reply, Finished) if next_ms is None else reply == Rearmed(next_ms)
        if not right:
            raise Violation(f"{operation} is answered {reply}, and the next time is {next_ms}")

    def _later(self, later: End, life: Life) -> None:
        if later.yielded:
            life.attempts -= 1
        elif self.worn_out(life):
            self.bury(later.id)
            return
        if later.when is not None:
            self.put_off(life, self._moment(later.when))
        self.stop(later.id)
        if later.when is None and not later.first and not later.yielded:
            self.back_off(life)
        self.wait(life)
        if life.loose:
            life.queue = None

    def _touch(self, touch: Touch, run: Run, reply: Reply) -> None:
        if touch.expire_ms is not None:
            if touch.then is not Then.DEFAULT:
                run.then = touch.then
            elif run.lease.ends_ms is None:
                run.then = self.rules.expire_default
        lease_ms = run.lease_ms if touch.expire_ms is None else touch.expire_ms or None
        # A new leader grants what the hand-out named (spec/state-machine 3.3).
        run.lease = Deadline(None if lease_ms is None else self.clock_ms + lease_ms, run.lease_ms)
        self.seen["leases touched"] += 1
        if reply != Leased(run.lease.ends_ms):
            raise Violation(f"{touch} is answered {reply}, right is {run.lease.ends_ms}")

    def _move(self, move: Move, life: Life) -> None:
        self.seen["jobs moved"] += 1
        self.stop(move.id)
        self.lives.rename(life, move.data)
        life.attempts, life.every_ms, life.origin = 0, None, None
        life.ttl_ms = self._ttl_ms(move.queue, None)
        self.put_off(life, self._moment(move.when))
        self.wait(life)
        self.lives.claim(life, move.queue, self.clock_ms)
        self.used_ms[move.queue] = self.clock_ms
        self._overflow(life, move.queue)

    # Jobs that are selected

    def _on_selected(self, operation: Change | Delete, reply: Reply) -> None:
        selector = operation.selector
        if selector.id:
            run = self.run_of(selector.id, operation, reply)
            life = None if run is None else run.life
        else:
            life = self._selected(operation, selector, reply)
        if life is None or not isinstance(reply, Accepted | Finished):
            return
        if isinstance(operation, Delete):
            if life.run is not None:
                self.stop(life.run)
            self.lives.end(life)
        else:
            self._change(operation, life)

    def _waits_in(self, queue: str) -> Callable[[Life], bool]:
        return lambda life: life.queue == queue and not life.burial

    def _at_place(self, change: Change, place: Place, reply: Reply) -> None:
        """Some job that waits is changed: clients change nothing there that could be seen before its hand-out."""
        queues = (place.queue, None)
        waiting = [life for life in self.lives if life.run is None and life.queue in queues and not life.burial]
        if not isinstance(reply, NotFound) and not waiting and not self._vague():
            raise Violation(f"{change} is answered {reply}, and no job waits there")
        self.seen["jobs changed by place"] += not isinstance(reply, NotFound)

    def _selected(self, operation: Operation, selector: Selector, reply: Reply) -> Life | None:
        """The job that has the key, which must be found if it is there."""
        life = self.lives.holder(selector.queue, selector.key)
        if self.lives.vague(selector.queue, selector.key):
            if isinstance(reply, Accepted | Finished):
                self.lives.doubt(selector.key)
                if isinstance(operation, Change) and operation.data is not None:
                    self.lives.begin(Life(operation.data, None, loose=True, unsure=True))
            return None
        there = life is not None and not life.may_be_gone(self.clock_ms)
        if life is None or not there:
            if not isinstance(reply, NotFound) and life is None:
                raise Violation(f"{operation} is answered {reply}, and nobody has the key")
            return life
        if isinstance(reply, NotFound) or (life.run is not None) != isinstance(reply, JobRunning):
            raise Violation(f"{operation} is answered {reply}, and {life} {'waits' if life.run is None else 'runs'}")
        return life

    def _change(self, change: Change, life: Life) -> None:
        self.seen["jobs changed"] += 1
        self.lives.rename(life, change.data)
        due = life.not_before_ms <= self.clock_ms
        if change.when is not None:
            self.put_off(life, self._moment(change.when))
        if life.run is None:
            life.unsure = False
            # Who was due may have been READY, and stays it if due again: then its TTL does not count anew.
            if change.when is not None and not (due and life.not_before_ms <= self.clock_ms):
                self.wait(life)
            elif change.when is not None and life.loose and life.fades_ms is not None:
                faded_ms = life.fades_ms        # nobody knows whether it was due
                self.wait(life)
                life.fades_ms = min(faded_ms, life.fades_ms)
            return
        run = self.running[life.run]
        told = run.handed
        item = None if change.no_item else told.item if change.item is None else change.item
        priority = told.priority if change.priority is None else change.priority
        run.handed = replace(told, data=life.body, priority=priority, item=item)

    # Queues

    def _purge(self, purge: PurgeQueue, count: int) -> None:
        queue, state = purge.queue, purge.state
        if state is JobState.DEAD:
            self.remove(lambda life: life.origin == queue and not life.burial, count, purge)
        elif state is JobState.BURIED:
            self.remove(lambda life: life.queue == queue and life.burial > 0, count, purge)
        elif state is None:
            self.remove(lambda life: queue in (life.queue, life.origin), count, purge)
        else:
            self.remove(self._waits_in(queue), count, purge)

    def _delete_queue(self, delete: DeleteQueue) -> None:
        queue = delete.queue
        certain = [life for life in self.lives if life.queue == queue and not life.may_be_gone(self.clock_ms)]
        if certain and not delete.force and not self.blind:
            raise Violation(f"{delete} has ended {certain[0]}")
        self.remove_queue(queue, delete)

    def _expire(self, expire: ExpireQueue) -> None:
        """The queue is deleted if it has IDLE, and by all that is known nobody has used it for so long."""
        queue, since_ms = expire.queue, expire.since_ms
        idle_ms = self.rules.of(queue).idle_ms
        if not idle_ms or self.used_ms.get(queue, 0) > since_ms or self.clock_ms < since_ms + idle_ms:
            return
        if not any(run.life.queue == queue for run in self.running.values()):
            self.seen["idle queues deleted"] += 1
            self.remove_queue(queue, expire)

    def remove_queue(self, queue: str, operation: Operation) -> None:
        """The queue is no more, nor are its jobs."""
        for number, run in list(self.running.items()):
            if run.life.queue == queue:
                self.lives.end(self.stop(number))
        self.remove(lambda life: life.queue == queue, None, operation)
        for life in self.lives:
            if life.run is None and life.origin == queue:       # unless it is deferred
                life.unsure = True
        self.rules.remove(queue)
