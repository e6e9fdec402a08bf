"""The pool: one asyncio program that fetches jobs, dispatches them to its children and reports each outcome.

Everything happens in one event loop, so there are no other changes between two awaits. A job passes through these
stages: fetched (`_take_loop`), waiting (`_waiting`), with a child (`_members`), ending (`_sender`). Its lease is kept
until the server has the outcome.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

from sockpq._async.client import Client
from sockpq._protocol.command import Command
from sockpq._protocol.commands import jobs
from sockpq.errors import (
    BadArguments,
    CrossCluster,
    EventsLost,
    ForbiddenError,
    ForeignCluster,
    JobNotFound,
    NotSupported,
    SockpqError,
)
from sockpq.model import Handed
from sockpq.worker.app import App
from sockpq.worker.children.child import Result, Usage
from sockpq.worker.children.spawning import Spawner, spawner
from sockpq.worker.execution import lost
from sockpq.worker.failures import log_attempt
from sockpq.worker.outcome import Outcome
from sockpq.worker.pool.autoscale import Autoscaler
from sockpq.worker.pool.balancing import to_ask
from sockpq.worker.pool.charging import Charging
from sockpq.worker.pool.counters import PoolCounters
from sockpq.worker.pool.fetch import WAIT_S, request
from sockpq.worker.pool.leases import Due, Leases
from sockpq.worker.pool.members import Members
from sockpq.worker.pool.memory import MemoryShare
from sockpq.worker.pool.outcome_sender import CALL_S, PAUSE_S, OutcomeSender
from sockpq.worker.pool.queue_setup import set_up
from sockpq.worker.pool.settings import PoolSettings

LOG = logging.getLogger("sockpq.worker")

TICK_S = 1.0
RESTART_PAUSES_S = 1.0, 30.0        # after children that died before they were ready: the first, the longest
PREPARE_PAUSE_S = 5.0   # a periodic run whose next one cannot be put
CANCEL_S = 5.0          # how long a process may go on with a cancelled job
LISTEN_PAUSE_S = 2.0    # after a failure to hear events
NO_EVENTS_S = 60.0      # where there are none
RETIRE_S = 10.0         # how long a child that has no job may take to end


class Pool:
    """Runs until stop() or halt()."""

    def __init__(
        self, app: App, settings: PoolSettings,
        before_work: Callable[[Handed, Client], Coroutine[Any, Any, bool]] | None = None,
        children: Spawner | None = None,
    ) -> None:
        """`before_work`: called for each job of a queue with periodic tasks; False: it is DONE without work.

        `children`: creates them; by default according to the settings.
        """
        self.settings = settings.checked()
        self.counters = PoolCounters()
        self._app = app
        self._all_queues = app.queues
        self._before_work = before_work
        self._periodic = {task.queue for task in app.tasks.values() if task.schedule} if before_work else set()
        self._children = children or spawner(app, settings)
        self._paused = self._stopping = self._halting = False
        self._waiting: deque[Handed] = deque()
        self._failed_starts = 0
        self._foreign: ForeignCluster | None = None
        self._may_start_at = 0.0
        self._changed = asyncio.Event()
        self._interruptible: asyncio.Task[Any] | None = None
        self._touching = False
        self._cancelled: set[int] = set()       # running jobs that the server has no more
        self.client = app.new_async_client()
        self._leases = Leases()
        self._charging = Charging()
        self._sender = OutcomeSender(
            self.client._router, self._leases, self.counters, self._changed.set, self._is_timed
        )
        self._members = Members(
            lambda number: self._children.spawn(number, self, self.settings), settings.strategy, settings.inbox_max
        )
        self._lengths: dict[str, float] = {}        # of leases, by queue
        self._scaler = Autoscaler(settings.most, settings.least, monotonic(), settings.keepalive)
        self._memory = MemoryShare(settings.memory_share)

    # the interface for other parts of the program

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues from which jobs are taken."""
        return self.settings.queues or self._all_queues

    @property
    def size(self) -> int:
        """The number of children that work or will."""
        return self._members.size

    @property
    def busy(self) -> int:
        """The number of children that are processing a job."""
        return self._members.busy

    @property
    def held(self) -> int:
        """The number of jobs taken and not finished yet."""
        return len(self._waiting) + self._members.held

    @property
    def bounds(self) -> tuple[int, int]:
        """The maximum and minimum number of children."""
        return self._scaler.most, self._scaler.least

    @property
    def state(self) -> str:
        """The state set by the operator: RUN, PAUSE or STOP."""
        return "STOP" if self._stopping else "PAUSE" if self._paused else "RUN"

    def running(self) -> list[tuple[int, Handed, float]]:
        """Return each busy child with its job, and the seconds since it began."""
        now = monotonic()
        return [(one.child.number, one.job, now - one.begun_at) for one in self._members if one.job]

    def stop(self) -> None:
        """Finish running jobs, give back the others, and end."""
        self._stopping = True
        self._interrupt()

    def _leave(self, error: ForeignCluster) -> None:
        """Stop for good: this program's cluster is gone, and its jobs mean nothing to another cluster."""
        if self._foreign is None:
            self._foreign = error
            LOG.error("the worker ends: %s", error)
            self.stop()

    def halt(self) -> None:
        """Stop now: children are killed, their jobs go back."""
        self._halting = True
        self.stop()
        for member in self._members:
            self._members.kill(member.child.number, "halted")

    def pause(self, paused: bool = True) -> None:
        """Take no more jobs, or resume."""
        if paused != self._paused:
            self._paused = paused
            self._interrupt()

    def set_bounds(self, most: int | None, least: int | None) -> None:
        """Change the bounds of the number of children at once."""
        if (most in (None, self._scaler.most)) and (least in (None, self._scaler.least)):
            return
        self._scaler.set_bounds(most, least)
        LOG.info("children: at most %d, at least %d", self._scaler.most, self._scaler.least)
        self._interrupt()
        self._scale()

    def configure(self, settings: PoolSettings) -> None:
        """Use these settings from now on; `kind` and `name` stay. Raises BadArguments."""
        settings = settings._replace(kind=self.settings.kind, name=self.settings.name).checked()
        unknown = set(settings.queues) - set(self._app.queues)
        if unknown:
            raise BadArguments(f"the app has no task and no handler for queue {', '.join(sorted(unknown))}")
        self.settings = settings
        self._scaler.keepalive = settings.keepalive
        self._members.configure(settings.strategy, settings.inbox_max)
        self._memory = MemoryShare(settings.memory_share)
        self._interrupt()
        self.set_bounds(settings.most, settings.least)

    async def run(self) -> None:
        """Run until stop() or halt(). Raises ForeignCluster when the servers are those of another cluster."""
        if not self.queues:
            raise BadArguments("no queue to take jobs from: the app has no task and no handler")
        tick = asyncio.create_task(self._tick())
        looker = asyncio.create_task(self._charging.keep_looking(self.client, lambda: self.queues))
        listener = asyncio.create_task(self._hear_cancels())
        taker = asyncio.create_task(self._take_loop())
        try:
            self._scale()
            await taker
            await self._give_back_waiting()
            await self._wind_up()
        finally:
            self._stopping = True
            tick.cancel()
            looker.cancel()
            listener.cancel()
            taker.cancel()
            for member in self._members:
                self._members.kill(member.child.number, "the pool has ended")
            for helper in (tick, looker, listener):
                with suppress(asyncio.CancelledError):
                    await helper
            while not self._members.empty:
                await self._wait(RETIRE_S)
            await self._give_back_waiting()
            await self._sender.last_words()
            self._children.close()
            await self.client.close()
        if self._foreign:
            raise self._foreign

    # taking jobs

    async def _take_loop(self) -> None:
        while not self._stopping:           # no job is taken before a server has answered to this
            if await self._asked(set_up(self.client, self._app, self.queues), "the queues cannot be set up"):
                break
        while not self._stopping:
            count = 0 if self._paused else self._to_ask()
            if not count:
                await self._wait(None)
                continue
            await self._asked(self._take_some(count), "cannot take jobs")
            self._dispatch()
            self._scale()

    async def _asked(self, asking: Coroutine[Any, Any, None], complaint: str) -> bool:
        """Ask the servers for something until that is interrupted; returns whether they did it.

        An error is logged with this `complaint`, and followed by a pause.
        """
        task = self._interruptible = asyncio.create_task(asking)
        try:
            await task
            return True
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
        except ForeignCluster as error:
            self._leave(error)
        except SockpqError as error:
            LOG.warning("%s: %s", complaint, error, extra={"fields": {"queues": self.queues}})
            await self._sleep(PAUSE_S)
        finally:
            self._interruptible = None
        return False

    async def _take_some(self, count: int) -> None:
        for job in await self._take(count):
            self._arrived(job)

    async def _take(self, count: int) -> list[Handed]:
        """Request the next jobs, with the DONEs of finished ones in the same request; return the jobs."""
        await self._sender.tell_times()
        finished, told = self._sender.take_finished(), False

        def put_back(taken: list[Handed]) -> list[Command[Any]]:
            return [self._sender.giving_back(job) for job in taken]

        try:
            taken = await self.client._router.run_behind(
                self._sender.done(finished) if finished else None,
                request(self.queues, count, self._taken_for(), self.settings.by), put_back, timeout=CALL_S, wait=WAIT_S,
            )
            told = True
            return taken
        except asyncio.CancelledError:
            told = True                 # an interrupted call executes what goes before it
            raise
        finally:
            if told:
                self._sender.reported(finished)
            else:
                self._sender.not_reported(finished)

    def _taken_for(self) -> float:
        return min(self._length(queue) for queue in self.queues)

    def _length(self, queue: str) -> float:
        """Return the length of the leases of this queue's jobs, in seconds."""
        if queue not in self._lengths:
            self._lengths[queue] = self._app.lease_of(queue)
        return self._lengths[queue]

    def _to_ask(self) -> int:
        room = self._scaler.most - self._members.size if self._can_grow() else 0
        return to_ask(
            len(self._members.idle) + max(room, 0), max(self._members.ready + max(room, 0), 0), self.held,
            len(self._waiting), self.settings.prefetch,
        )

    def _can_grow(self) -> bool:
        return not self._failed_starts and self._scaler.most > self._scaler.least and self._memory.may_grow()

    def _arrived(self, job: Handed) -> None:
        self._leases.begin(
            job.id, self._taken_for(), self._length(job.queue), monotonic(), uncharged=self._is_timed(job)
        )
        if job.queue in self._periodic:
            self._sender.begin(self._prepare(job))
        else:
            self._waiting.append(job)

    async def _prepare(self, job: Handed) -> None:
        """Do the work that precedes a run of a periodic task; the run then waits for a child like other jobs."""
        assert self._before_work
        try:
            work = await self._before_work(job, self.client)
        except SockpqError as error:
            LOG.warning("the next run cannot be put: %s", error, extra={"fields": {"queue": job.queue, "id": job.id}})
            self._sender.end(job, Outcome("later", delay=PREPARE_PAUSE_S))
            return
        if not work:
            self._sender.finish(job, 0.0)
        elif self._stopping:
            await self._sender.give_back([job])
        else:
            self._waiting.append(job)
            self._dispatch()
            self._scale()

    # children

    def _dispatch(self) -> None:
        """Give waiting jobs to children; while one is idle, also jobs that wait behind a busy one."""
        if self._stopping:
            return
        if not self._waiting and self.settings.strategy == "fair" and self._members.idle:
            self._waiting += self._members.take_back_queued()
        if not self._waiting:
            return
        now = monotonic()
        good: list[Handed] = []
        until = math.inf
        room = self._members.room
        while self._waiting and len(good) < room:       # there may be thousands behind
            job = self._waiting.popleft()
            safe_until = self._leases.safe_until(job.id)
            if safe_until <= now:
                self._sender.begin(self._verify(job))
            else:
                good.append(job)
                until = min(until, safe_until)
        self._members.deal(good, until, {job.id for job in good if self._is_timed(job)})

    async def _verify(self, job: Handed) -> None:
        """Begin a job only if it is still ours, as the pool was suspended and its lease may have ended."""
        asked_at = monotonic()
        try:
            ran = 0.0 if self._is_timed(job) else None
            await self.client._router.run(jobs.touch(job, ran=ran), timeout=CALL_S)
        except SockpqError:
            self._sender.lost(job.id)
            return
        self._leases.renewed(job.id, asked_at)
        if self._stopping:
            await self._sender.give_back([job])
            return
        self._waiting.appendleft(job)
        self._dispatch()

    def _scale(self) -> None:
        """Start and end children, as many as there should be."""
        now = monotonic()
        if self._stopping:
            return
        target = self._scaler.target(self.held, self._members.size, now, self._memory.may_grow())
        size = self._members.size
        is_short = self._members.busy == size and self._scaler.least <= size < self._scaler.most
        self._memory.report(size, self._scaler.most, is_short)
        while self._members.size < target and now >= self._may_start_at:
            self._members.start_one()
        surplus = self._members.size - target
        for number in self._members.idle[:surplus] if surplus > 0 else []:
            self._retire(number)

    def _retire(self, number: int) -> None:
        self._waiting.extendleft(reversed(self._members.retire(number)))

    def ready(self, child: int) -> None:
        """Give jobs to a child that can work. See Parent."""
        self._failed_starts = 0
        self._may_start_at = 0.0
        self._members.is_ready(child)
        self._dispatch()
        self._changed.set()

    def ended(self, child: int, results: Sequence[Result]) -> None:
        """Take the results of jobs from a child. See Parent."""
        worn = False
        late: list[Handed] = []
        for result in results:
            job = self._members.ended(child, result.job, result.outcome is not None)
            if job is None:
                continue
            if result.outcome is None:
                late.append(job)
            else:
                worn = worn or self._is_worn(child, result.usage)
                self._account(job, result.outcome)
        self._waiting.extendleft(reversed(late))
        if worn:
            self._retire(child)
        self._dispatch()
        self._scale()
        self._changed.set()

    def _is_worn(self, child: int, usage: Usage) -> bool:
        """Return whether to replace the child because of its number of jobs or its memory."""
        member = self._members.get(child)
        if member is None or member.retiring:
            return False
        tasks_max, bytes_max = self.settings.tasks_max, self.settings.memory_bytes_max
        return (tasks_max is not None and member.tasks >= tasks_max) or (
            bytes_max is not None and (usage.memory_bytes or 0) > bytes_max
        )

    def gone(self, child: int, why: str) -> None:
        """Handle the end of a child. See Parent."""
        member = self._members.gone(child)
        if member is None:
            return
        not_begun = member.child.take_back()
        self._waiting.extendleft(reversed([job for job in member.jobs if job.id in not_begun]))
        for job in member.jobs:
            if job.id in not_begun:
                continue
            if self._halting:
                self._sender.begin(self._sender.give_back([job], counts=True))
                continue
            timed_out = member.killed == "time limit"
            message = f"the time limit of {self.settings.time_limit:g} s is over" if timed_out else member.killed or why
            kind = "TimeLimit" if timed_out else "ChildDied"
            outcome = lost(self._app, job, kind, message)
            self._account(job, outcome._replace(run_s=monotonic() - member.begun_at))
        if not member.ready and not self._stopping:
            self._failed_starts += 1
            first, longest = RESTART_PAUSES_S
            pause = min(first * 2 ** (self._failed_starts - 1), longest)
            self._may_start_at = monotonic() + pause
            LOG.error("a child ended before it was ready: %s; pause of %g s", member.killed or why, pause)
            if not self._members.ready:
                self._sender.begin(self._give_back_waiting())
        elif not member.retiring or member.killed:
            LOG.warning("a child has ended: %s", member.killed or why, extra={"fields": {"child": child}})
        self._dispatch()
        self._scale()
        self._changed.set()

    def _account(self, job: Handed, outcome: Outcome) -> None:
        """Count the outcome of a job, and report it to the server."""
        if job.id in self._cancelled:
            self._cancelled.discard(job.id)
            outcome = Outcome("cancelled", run_s=outcome.run_s)
        self.counters.ended(job.queue, outcome.kind, outcome.run_s)
        log_attempt(job, outcome)
        if outcome.kind in ("ended", "cancelled"):
            self._leases.end(job.id)
        elif outcome.kind == "done" and outcome.result is None and outcome.returned is None:
            self._sender.finish(job, outcome.run_s)
        else:
            self._sender.end(job, outcome)

    def _is_timed(self, job: Handed) -> bool:
        return self._charging.is_reported(job, self.settings.by)

    async def _give_back_waiting(self) -> None:
        """Put back the jobs that no child has begun, in their old places."""
        back = list(self._waiting)
        self._waiting.clear()
        for member in self._members:
            back += self._members.take_back(member.child.number)
        if back:
            await self._sender.give_back(back)

    # timers

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self._until_next())
            try:
                self._look(monotonic())
            except Exception:           # without the next looks, leases would end
                LOG.exception("a fault of the worker itself")

    def _look(self, now: float) -> None:
        for member in self._members:
            self._judge(member.child.number, now)
        if not self._touching and (due := self._leases.take_due(now)):
            self._touching = True
            self._sender.begin(self._touch(due, now))
        self._dispatch()
        self._scale()
        self._changed.set()

    def _until_next(self) -> float:
        """Return the seconds to the next check: one second, or less with short limits."""
        due = self._leases.next_due()
        least = min(TICK_S, self.settings.start_limit / 4, (self.settings.time_limit or TICK_S) / 4)
        return max(min(least, TICK_S if due is None else due - monotonic()), 0.01)

    def _judge(self, number: int, now: float) -> None:
        """End a child that takes too long: to start, for its job, to end."""
        member = self._members.get(number)
        if member is None or member.killed:
            return
        limit = self.settings.time_limit
        if member.retiring and not member.job:
            if now - member.retired_at > RETIRE_S:
                self._members.kill(number, "it did not end")
        elif not member.ready and now - member.started_at > self.settings.start_limit:
            self._members.kill(number, f"it did not report within {self.settings.start_limit:g} s of its start")
        elif member.job and member.cancelled_at and now - member.cancelled_at > CANCEL_S and member.retiring:
            self._members.kill(number, "its job was cancelled")
        elif member.job and limit is not None and now - member.begun_at > limit:
            self._members.kill(number, "time limit")

    async def _touch(self, due: list[Due], now: float) -> None:
        try:
            answers = await self.client._router.run_batch(
                [jobs.touch(one.job, one.expire, ran=one.ran) for one in due], timeout=CALL_S, each=True,
            )
        except ForeignCluster as error:
            self._leave(error)
            return
        except SockpqError as error:
            LOG.warning("leases cannot be renewed just now: %s", error)
            return
        finally:
            self._touching = False
        for one, answer in zip(due, answers, strict=True):
            if answer and answer.error is None:
                self._leases.renewed(one.job, now)
            elif answer and isinstance(answer.error, JobNotFound):
                self._not_ours(one.job)

    def _not_ours(self, job: int) -> None:
        """Give up a job whose lease has ended: drop it if it waits, ignore its result if it runs."""
        holder = next((member for member in self._members if any(one.id == job for one in member.jobs)), None)
        if holder:
            self._waiting += self._members.take_back(holder.child.number)
        waits = next((one for one in self._waiting if one.id == job), None)
        if waits:
            self._waiting.remove(waits)
        if waits or holder:
            self._sender.lost(job)
        self._dispatch()

    # cancelled jobs

    async def _hear_cancels(self) -> None:
        """Listen for the removal of jobs held here: in the cluster of all queues, or for each queue in its own."""
        try:
            await self._hear_cancels_of(self.queues)
        except CrossCluster:
            await asyncio.gather(*(self._hear_cancels_of((queue,)) for queue in self.queues))

    async def _hear_cancels_of(self, queues: Sequence[str]) -> None:
        while True:
            pause = LISTEN_PAUSE_S
            try:
                async with self.client.events("CANCEL", queues) as events:
                    async for event in events:
                        if event.id is not None:
                            self._cancel(event.id)
            except EventsLost:
                continue
            except CrossCluster:
                if len(queues) > 1:
                    raise
            except (NotSupported, BadArguments, ForbiddenError):
                pause = NO_EVENTS_S         # of an older server, or not for this user
            except SockpqError as error:
                LOG.debug("no events: %s", error)
            await asyncio.sleep(pause)

    def _cancel(self, job: int) -> None:
        """Drop a removed job, or interrupt the child that is processing it."""
        holder = next((member for member in self._members if any(one.id == job for one in member.jobs)), None)
        if holder:
            self._waiting += self._members.take_back(holder.child.number)
        waits = next((one for one in self._waiting if one.id == job), None)
        if waits:
            self._waiting.remove(waits)
        elif holder:
            self._cancelled.add(job)
            holder.cancelled_at = monotonic()
            if holder.child.cancel(job):
                self._retire(holder.child.number)
        if waits or holder:
            self._leases.end(job)
            LOG.info("a job was cancelled", extra={"fields": {"id": job}})
        self._dispatch()
        self._scale()

    # ends of the pool

    async def _wind_up(self) -> None:
        """Retire all children, and wait until they have ended."""
        while not self._members.empty:
            for member in self._members:
                if not member.retiring:
                    self._members.retire(member.child.number)
            await self._wait(TICK_S)

    # waking

    def _interrupt(self) -> None:
        """Wake the loop, even while it waits for jobs."""
        if self._interruptible:
            self._interruptible.cancel()
        self._changed.set()

    async def _wait(self, seconds: float | None) -> None:
        if seconds is None:
            await self._changed.wait()
        else:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._changed.wait()
        self._changed.clear()

    async def _sleep(self, seconds: float) -> None:
        """Pause, until stop() at the latest."""
        until = monotonic() + seconds
        while not self._stopping and (left := until - monotonic()) > 0:
            await self._wait(left)


