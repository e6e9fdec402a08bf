"""A queue in memory that executes calls by the rules of beanstalkd, on a clock that stands still until it is moved."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from sockpqd.beanstalk import Call, CallFailure, Done, Result, calls


@dataclass
class Job:
    """A job. `at`: when it was buried or is due, depending on its state."""

    number: int
    tube: str
    priority: int
    ttr_s: int
    body: bytes
    created: float
    state: str = "ready"
    at: float = 0.0
    delay_s: int = 0
    handle: int | None = None
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("reserves", "timeouts", "releases", "buries", "kicks"), 0))

    @property
    def place(self) -> tuple[int, int]:
        return self.priority, self.number


class Queue:
    """All jobs, and the waiting clients."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.jobs: dict[int, Job] = {}
        self.draining = False
        self.pauses: dict[str, float] = {}
        self.waiting: list[MemoryBackend] = []
        self.handed_out: list[tuple[Done, Result]] = []     # while `slow`
        self.slow = False                                   # what is handed out waits in `handed_out`
        self._numbers = itertools.count(1)
        self._handles = itertools.count(1)

    def now(self) -> float:
        return self.time

    def advance(self, seconds: float) -> None:
        """Let time pass, in steps."""
        for _ in range(round(seconds * 10)):
            self.time += 0.1
            self.look()

    def look(self) -> None:
        """Do what is due, and serve waiting clients, the longest first."""
        for job in self.jobs.values():
            if job.state in ("delayed", "reserved") and job.at <= self.time + 1e-6:
                job.counts["timeouts"] += job.state == "reserved"
                job.state, job.handle = "ready", None
        for backend in list(self.waiting):
            if backend in self.waiting:
                backend.look()

    def take(self, job: Job) -> calls.Reserved:
        job.state, job.handle, job.at = "reserved", next(self._handles), self.time + job.ttr_s
        job.counts["reserves"] += 1
        return calls.Reserved(job.number, job.handle, job.tube, job.ttr_s, job.body)

    def first(self, tubes: tuple[str, ...]) -> Job | None:
        return min(
            (job for job in self.jobs.values()
             if job.state == "ready" and job.tube in tubes and self.pauses.get(job.tube, 0) <= self.time),
            key=lambda job: job.place, default=None,
        )

    def held(self, handle: int | None) -> Job | None:
        return next((job for job in self.jobs.values() if handle is not None and job.handle == handle), None)

    # ---- the calls

    def put(self, call: calls.PutJob) -> Result | CallFailure:
        if self.draining:
            return CallFailure.DRAINING
        job = Job(next(self._numbers), call.tube, call.priority, call.ttr_s, call.body, self.time)
        self.jobs[job.number] = job
        self.set_delay(job, call.delay_s)
        return calls.NumberResult(job.number)

    def set_delay(self, job: Job, delay_s: int) -> None:
        job.delay_s, job.handle = delay_s, None
        job.state, job.at = ("delayed", self.time + delay_s) if delay_s else ("ready", 0.0)

    def reserve_job(self, call: calls.ReserveJob) -> Result | CallFailure:
        job = self.jobs.get(call.number)
        return CallFailure.NOT_FOUND if job is None or job.state == "reserved" else self.take(job)

    def delete(self, call: calls.DeleteJob) -> Result | CallFailure:
        job = self.jobs.get(call.number)
        if job is None or (job.state == "reserved" and job.handle != call.handle):
            return CallFailure.NOT_FOUND
        del self.jobs[call.number]
        return calls.Names((job.tube,))

    def release(self, call: calls.Release) -> Result | CallFailure:
        if (job := self.held(call.handle)) is None:
            return CallFailure.NOT_FOUND
        job.priority = call.priority
        job.counts["releases"] += 1
        self.set_delay(job, call.delay_s)
        return None

    def bury(self, call: calls.Bury) -> Result | CallFailure:
        if (job := self.held(call.handle)) is None:
            return CallFailure.NOT_FOUND
        job.state, job.handle, job.priority, job.at = "buried", None, call.priority, self.time
        job.counts["buries"] += 1
        return None

    def touch(self, call: calls.TouchJob) -> Result | CallFailure:
        if (job := self.held(call.handle)) is None:
            return CallFailure.NOT_FOUND
        job.at = self.time + job.ttr_s
        return None

    def peek(self, call: calls.Peek) -> Result | CallFailure:
        job = self.jobs.get(call.number)
        return CallFailure.NOT_FOUND if job is None else calls.Found(job.number, job.body)

    def in_state(self, tube: str, state: str) -> list[Job]:
        jobs = [job for job in self.jobs.values() if job.tube == tube and job.state == state]
        return sorted(jobs, key=lambda job: job.place if state == "ready" else (job.at, job.number))

    def peek_first(self, call: calls.PeekFirst) -> Result | CallFailure:
        found = self.in_state(call.tube, call.state)
        return calls.Found(found[0].number, found[0].body) if found else CallFailure.NOT_FOUND

    def kick(self, call: calls.KickTube) -> Result | CallFailure:
        found = self.in_state(call.tube, "buried") or self.in_state(call.tube, "delayed")
        for job in found[:call.count]:
            job.state = "ready"
            job.counts["kicks"] += 1
        return calls.NumberResult(len(found[:call.count]))

    def kick_job(self, call: calls.KickJob) -> Result | CallFailure:
        job = self.jobs.get(call.number)
        if job is None or job.state not in ("buried", "delayed"):
            return CallFailure.NOT_FOUND
        job.state = "ready"
        job.counts["kicks"] += 1
        return None

    def pause(self, call: calls.Pause) -> Result | CallFailure:
        if not call.known:
            return CallFailure.NOT_FOUND
        self.pauses[call.tube] = self.time + call.seconds
        return None

    def job_stats(self, call: calls.JobStats) -> Result | CallFailure:
        job = self.jobs.get(call.number)
        if job is None:
            return CallFailure.NOT_FOUND
        left = job.at - self.time if job.state in ("delayed", "reserved") else 0
        return calls.JobFigures(
            job.number, job.tube, job.state, job.priority, int(self.time - job.created), job.delay_s, job.ttr_s,
            int(left), **job.counts,
        )

    def tube_stats(self, call: calls.TubeStats) -> Result | CallFailure:
        jobs = [job for job in self.jobs.values() if job.tube == call.tube]
        states = [job.state for job in jobs]
        return calls.TubeFigures(
            sum(job.state == "ready" and job.priority < 1024 for job in jobs), states.count("ready"),
            states.count("reserved"), states.count("delayed"), states.count("buried"), exists=bool(jobs),
        )

    def tubes(self, call: calls.ListTubes) -> Result | CallFailure:
        return calls.Names(tuple(dict.fromkeys(job.tube for job in self.jobs.values())))

    def totals(self, call: calls.Totals) -> Result | CallFailure:
        states = [job.state for job in self.jobs.values()]
        tubes = len({job.tube for job in self.jobs.values()} | {*call.beside})
        return calls.Sums(
            0, *(states.count(state) for state in ("ready", "reserved", "delayed", "buried")), tubes)

    def give_back(self, call: calls.GiveBack) -> Result | CallFailure:
        held = {job.handle: job for job in self.jobs.values() if job.handle is not None}
        for handle in (*call.handles, *call.undelivered):
            if (job := held.get(handle)) is not None:
                job.state, job.handle = "ready", None
                job.counts["reserves"] -= handle in call.undelivered
        return None


class MemoryBackend:
    """A backend at such a queue. With `later` no call ends before `settle` is called."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._waiting: tuple[calls.Reserve, float | None, Done] | None = None
        self.left = False

    def execute(self, call: Call, done: Done) -> None:
        if isinstance(call, calls.Reserve):
            until = None if call.wait_s is None else self._queue.time + call.wait_s
            self._waiting = call, until, done
            self._queue.waiting.append(self)
            self.look()
            return
        result = _DO[type(call)](self._queue, call)
        done(result)
        self._queue.look()

    def look(self) -> None:
        assert self._waiting is not None
        call, until, done = self._waiting
        job = self._queue.first(call.tubes)
        if job is not None:
            result = self._queue.take(job)
            if self._queue.slow:
                self._leave_line()
                self._queue.handed_out.append((done, result))
            else:
                self._end(result)
        elif until is not None and until <= self._queue.time + 1e-6:
            self._end(None)

    def cancel(self) -> None:
        if self._waiting is not None:
            self._end(None)

    def leave(self) -> None:
        self.left = True

    def _leave_line(self) -> None:
        self._waiting = None
        self._queue.waiting.remove(self)

    def _end(self, result: Result) -> None:
        assert self._waiting is not None
        done = self._waiting[2]
        self._leave_line()
        done(result)


_DO: dict[type, Callable[[Queue, object], Result | CallFailure]] = {
    calls.PutJob: Queue.put, calls.ReserveJob: Queue.reserve_job, calls.DeleteJob: Queue.delete,
    calls.Release: Queue.release, calls.Bury: Queue.bury, calls.TouchJob: Queue.touch, calls.Peek: Queue.peek,
    calls.PeekFirst: Queue.peek_first, calls.KickTube: Queue.kick, calls.KickJob: Queue.kick_job,
    calls.Pause: Queue.pause, calls.JobStats: Queue.job_stats, calls.TubeStats: Queue.tube_stats,
    calls.ListTubes: Queue.tubes, calls.Totals: Queue.totals, calls.GiveBack: Queue.give_back,
}
