"""Where each job is, told by the history: it waits, runs under an id, or has ended.

No two jobs have the same data, but the copies that one PUT has brought into several queues. So a PUT that was executed
twice shows when its second job is handed out, which happens at the latest when the queues are drained: then the first
one runs, or has ended. In the same way it shows when half of a transaction was executed, when a queue got two copies,
or when a periodic job has two next ones; and that a job was lost, or none follows a DONE of a periodic one, shows in
the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from msgspec import UNSET
from msgspec.structs import replace

from sockpqd.core import GetWith, Handed, NotFound, Operation, Reply, Then
from tests.sim.oracles.deadlines import Deadline
from tests.sim.oracles.settings_in_force import Rules
from tests.sim.oracles.unfinished_jobs import Life, Run, UnfinishedJobs, short
from tests.sim.world.trace import Violation


class JobStates:
    """Of all jobs. The clock is the replicated one."""

    def __init__(self, rules: Rules, seen: Counter[str]) -> None:
        self.rules = rules
        self.seen = seen
        self.lives = UnfinishedJobs()
        self.running: dict[int, Run] = {}
        self.clock_ms = 0
        self.used_ms: dict[str, int] = {}       # when somebody last used a queue
        self._issued: set[int] = set()
        self._burials = 0

    @property
    def blind(self) -> bool:
        """Has a CLONE replaced all jobs?"""
        return self.lives.blind

    # Hand-outs

    def hand(self, pick: GetWith, handed: Handed) -> None:
        """A job was handed out, not for the second time to a repeated request."""
        number = handed.id
        if number in self._issued:
            raise Violation(f"id {number} is handed out twice")
        self._issued.add(number)
        life = self._given(handed)
        self.seen["jobs handed out that had to wait"] += life.not_before_ms > 0
        life.run, life.queue, life.unsure = number, handed.queue, False
        self.used_ms[handed.queue] = self.clock_ms
        life.attempts += 1
        lease_ms, then = self.rules.lease(pick.get, handed.queue, life.lease_ms)
        lease = Deadline(None if lease_ms is None else self.clock_ms + lease_ms, lease_ms)
        told = replace(handed, meta=UNSET, turned=UNSET)        # nothing turns a cycle twice
        self.running[number] = run = Run(life, lease, lease_ms, then, pick.get.session, told)
        self.check_meta(pick, handed, run)

    def _given(self, handed: Handed) -> Life:
        life = self.lives.of(handed.data, handed.queue, self.clock_ms)
        if life is None and not self.blind:
            raise Violation(f"{short(handed.data)} is handed out as {handed.id}, and {self.lives.fate(handed.data)}")
        if life is None:
            life = Life(handed.data, handed.queue, loose=True)
            self.lives.begin(life)
            return life
        if not self.blind:
            if life.run is not None:
                raise Violation(f"{life} is handed out as {handed.id}, and runs as {life.run}")
            if life.burial and not life.loose:
                raise Violation(f"{life} is handed out as {handed.id}, and lies buried")
            if self.clock_ms < life.not_before_ms:
                raise Violation(f"{life} is handed out {life.not_before_ms - self.clock_ms} ms before its time")
            if handed.queue != (life.queue or handed.queue):
                raise Violation(f"{life} is handed out of {handed.queue}, and waits in {life.queue}")
        return life

    def check_meta(self, pick: GetWith, handed: Handed, run: Run) -> None:
        """What is told of attempts and lease must be so; nothing, if nobody asked."""
        meta, life = handed.meta, run.life
        if pick.meta != (meta is not UNSET):
            raise Violation(f"{pick} is answered {handed}")
        if meta is UNSET:
            return
        right = run.lease.ends_ms, meta.attempt if life.loose else life.attempts
        if (meta.deadline_ms, meta.attempt) != right:
            raise Violation(f"{handed} is told, right is (deadline, attempt) {right}")

    def again(self, pick: GetWith, handed: Handed) -> bool:
        """Is this what is told of a job that was handed out before, and runs?"""
        run = self.running.get(handed.id)
        if run is None:
            return self.blind
        self.check_meta(pick, handed, run)
        return replace(handed, meta=UNSET) == run.handed

    def bound(self, session: int) -> list[int]:
        """Ids of the jobs bound to a session."""
        return [number for number, run in self.running.items() if run.session == session]

    def deadlines(self) -> Iterator[tuple[int, Deadline]]:
        """Of all leases."""
        return ((number, run.lease) for number, run in self.running.items())

    def run_of(self, number: int, operation: Operation, reply: Reply) -> Run | None:
        """The hand-out that an operation names, which must be found if it is there, and only then."""
        run = self.running.get(number)
        unsure = self.blind and run is None
        if (run is None) != isinstance(reply, NotFound) and not unsure:
            raise Violation(f"{operation} is answered {reply}, and the job {'does not run' if run is None else 'runs'}")
        return run

    # How they end

    def end_lease(self, number: int) -> None:
        """The lease of a hand-out is over."""
        run = self.running.get(number)
        if run is None:
            return
        if run.then is Then.DONE and run.life.loose:        # if it is a periodic one, it may come again
            life = self.stop(number)
            life.unsure, life.not_before_ms = True, 0
        elif run.then is Then.DONE:
            self.done(number, last=False)
        elif run.then is Then.DEAD:
            self.bury(number)
        else:
            self.fail(number)

    def stop(self, number: int) -> Life:
        """A hand-out is over; its job waits, until somebody says something else."""
        life = self.running.pop(number).life
        life.run = None
        if life.queue is not None:
            self.used_ms[life.queue] = self.clock_ms
        return life

    def wait(self, life: Life) -> None:
        """The job waits (again), from its time on: its TTL counts anew."""
        life.fades_ms = None if life.ttl_ms is None else max(self.clock_ms, life.not_before_ms) + life.ttl_ms

    def put_off(self, life: Life, at_ms: int | None) -> None:
        """It waits for this time, or for none."""
        life.at_ms, life.not_before_ms = at_ms, at_ms or 0

    def done(self, number: int, *, last: bool) -> int | None:
        """The job is done; when it is a periodic one, its next time."""
        life = self.stop(number)
        if life.every_ms is None or last or life.origin is not None:
            self.lives.end(life)
            return None
        next_ms = life.at_ms or 0
        next_ms += max(0, (self.clock_ms - next_ms) // life.every_ms + 1) * life.every_ms
        self.seen["jobs that come again"] += 1
        life.attempts = 0
        self.put_off(life, next_ms)
        self.wait(life)
        return next_ms

    def fail(self, number: int, *, asked: bool = False) -> None:
        """Nobody has done the job: it waits again, or is dead. `asked`: it was put back, which is no failure."""
        life = self.running[number].life
        if self.worn_out(life):
            self.bury(number)
            return
        self.stop(number)
        if not asked:
            self.back_off(life)
        self.wait(life)
        if life.loose:
            life.queue = None

    def back_off(self, life: Life) -> None:
        """An attempt has failed: the job waits for at least nine tenths of what its queue says."""
        if life.loose or life.queue is None:
            return
        rule = self.rules.of(life.queue)
        full_ms = min(rule.backoff_max_ms, rule.backoff_ms * 2 ** (life.attempts - 1))
        if full_ms:
            self.seen["jobs that back off"] += 1
            life.not_before_ms = max(life.not_before_ms, self.clock_ms + full_ms - full_ms // 10)

    def worn_out(self, life: Life) -> bool:
        """Has it had all its attempts, as far as one knows?"""
        if life.loose:
            return False        # two of them may be taken for one: then where it is may be forgotten while it runs
        assert life.queue is not None
        tries = self.rules.of(life.queue).tries if life.tries is None or life.origin is not None else life.tries
        return 0 < tries <= life.attempts

    def bury(self, number: int) -> None:
        """The job is dead."""
        life = self.stop(number)
        if life.queue is None:
            return
        self.seen["jobs buried"] += 1
        life.origin, life.ttl_ms = life.queue, None
        self.put_off(life, None)
        self.wait(life)
        self.lives.give_up_key(life, self.rules.dead_queue(life.queue), self.clock_ms)

    # Many at once

    def remove(self, which: Callable[[Life], bool], count: int | None, operation: Operation) -> None:
        """So many of the waiting jobs of a kind have ended, None: all of them."""
        found = [life for life in self.lives if life.run is None and which(life)]
        self.seen["jobs purged"] += len(found) if count is None else count
        if count is not None and count > len(found) and not self._vague():
            raise Violation(f"{operation} has ended {count} jobs, and there were {len(found)}")
        lost = [life for life in self.lives if life.queue is None]      # they may be of this kind
        for life in (*found, *lost) if count is None or count else ():
            if life in found and (count is None or (count == len(found) and not lost)):
                self.lives.end(life)
            else:
                life.unsure = True

    def kick(self, queue: str, count: int) -> None:
        """So many dead jobs that come from this queue wait there again."""
        self.seen["jobs kicked"] += count
        dead = [life for life in self.lives if life.run is None and life.origin == queue and not life.burial]
        if count > len(dead) and not self._vague():
            raise Violation(f"{count} dead jobs of {queue} are kicked, and there were {len(dead)}")
        for life in dead:
            if count == len(dead) and not self._vague():
                life.origin, life.attempts = None, 0
                self.put_off(life, None if life.every_ms is None else self.clock_ms)
                self.lives.give_up_key(life, queue, self.clock_ms)
            elif count:
                self.lives.loosen(life, queue)
                life.queue = None
        for life in self.lives if count else ():
            if life.loose and life.run is None and life.origin is None:     # it may come from there, too
                self.lives.loosen(life, queue)
                life.queue = None

    def bury_here(self, number: int) -> None:
        """The job lies in its queue."""
        life = self.stop(number)
        self.seen["jobs buried in their queues"] += 1
        self._burials += 1
        life.burial, life.fades_ms = self._burials, None
        life.kept_key, life.key = life.key, None
        life.not_before_ms = 0

    def dig_up(self, life: Life, *, kicked: bool) -> None:
        """It is buried no more, and waits or is handed out."""
        if life.burial:
            life.burial, life.key = 0, life.kept_key
            if life.queue is not None:
                self.lives.give_up_key(life, life.queue, self.clock_ms)
            if kicked:
                life.attempts = 0
                self.put_off(life, None if life.every_ms is None else self.clock_ms)
        if life.at_ms is not None and life.at_ms > self.clock_ms:
            life.at_ms = self.clock_ms
        life.not_before_ms = 0
        self.wait(life)

    def kick_here(self, queue: str, count: int, *, buried: bool) -> None:
        """So many buried jobs of the queue wait again, or delayed ones."""
        self.seen["buried jobs kicked" if buried else "delayed jobs kicked"] += count
        waiting = [life for life in self.lives if life.run is None and life.queue in (queue, None)]
        if buried:
            lie = sorted((life for life in waiting if life.burial), key=lambda life: life.burial)
            if count > len(lie) and not self._vague():
                raise Violation(f"{count} buried jobs of {queue} are kicked, and there were {len(lie)}")
            vague = self._vague() or any(life.unsure for life in lie)
            for life in lie if vague else lie[:count]:
                self.dig_up(life, kicked=True)
                if vague:
                    self.lives.loosen(life)
            return
        for life in waiting if count else ():       # nobody can say which of them waited for items
            if not life.burial and life.not_before_ms > self.clock_ms:
                life.not_before_ms = 0
                if life.every_ms is not None:       # nor when it comes again
                    self.lives.loosen(life)
                life.fades_ms = None if life.ttl_ms is None else self.clock_ms + life.ttl_ms

    def _vague(self) -> bool:
        return self.blind or any(life.loose for life in self.lives)

    def forget(self) -> None:
        """A CLONE has replaced all jobs; ids are not used again all the same."""
        self.lives.forget()
        self.running.clear()
        self.used_ms = dict.fromkeys(self.used_ms, self.clock_ms)

    def left(self) -> dict[bytes, str]:
        """Where all jobs are that have not ended, as far as one knows."""
        return {} if self.blind else {
            life.body: "waits" if life.run is None else f"runs as {life.run}"
            for life in self.lives if not life.may_be_gone(self.clock_ms)
        }
