"""Delivers the jobs of one target: takes as many as it may send at a time, sends them, and reports their ends.

Each target has a consumer, a circuit and connections of its own, so one that is slow or dead holds up no other. The
jobs are bound to the session of the consumer: they need no lease, and go back when this process dies.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from contextlib import suppress

from sockpq import AuthError, BadArguments, ForbiddenError, ForeignCluster, JobNotFound, SockpqError, Untrusted
from sockpq.aio import Client, Job

from sockpq_http.push.answers import Answer, Failure, Policy, Verdict, judge
from sockpq_http.push.circuit import Circuit
from sockpq_http.push.configuration import Target
from sockpq_http.push.figures import TargetFigures
from sockpq_http.push.guard import Lookup
from sockpq_http.push.headers import message_id, request_headers
from sockpq_http.push.host_limits import HostLimits
from sockpq_http.push.outcomes import Outcomes
from sockpq_http.push.queue_facts import QueueFacts
from sockpq_http.push.sending import Sender
from sockpq_http.push.signing import Secrets, signature_headers

LOG = logging.getLogger("sockpq-http")

TAKE_S = 30.0               # of one request for jobs
FIRST_S = 0.1               # of one that shows whether the cluster hands out jobs
TOGETHER_MAX = 100          # jobs of one request
CALL_S = 10.0
PAUSE_S, PAUSE_S_MAX = 0.5, 10.0    # after a request for jobs that failed
SLEEP_S_MAX = 86_400.0
UNSENT_S = 1.0              # the delay of a job that has had no turn
LOGGED = frozenset({"connect", "dns", "refused_address", "tls", "timeout"})   # texts that have nothing of the receiver


class TargetRunner:
    """Runs one target until stop()."""

    def __init__(
        self, name: str, target: Target, client: Client, outcomes: Outcomes, hosts: HostLimits, ttl_s: float,
        proxy: str | None = None, lookup: Lookup | None = None, share: Callable[[], float] = random.random,
    ) -> None:
        """`ttl_s`: jobs go back after this long without a sign of life; `proxy` and `lookup` as for Sender; `share`:
        a random number from 0 to 1.
        """
        self.figures = TargetFigures(name)
        self._name = name
        self._target = target
        self._client = client
        self._outcomes = outcomes
        self._hosts = hosts
        self._consumer = client.consumer(ttl_s)
        self._facts = QueueFacts(client)
        self._sender = Sender(target, proxy, lookup)
        self._secrets = None if target.secret_file is None else Secrets(target.secret_file)
        self._policy = Policy(target.result, target.bury, target.retry_after_max_s)
        self._circuit = Circuit(target.failures, target.pause_max_s, share)
        self._in_flight: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Task[None]] = set()      # those of them that wait for a turn
        self._changed = asyncio.Event()     # a place is free, the circuit has opened, or the end has come
        self._stopping = False
        self._failing = False               # requests for jobs, at present

    def stop(self) -> None:
        """Take no more jobs; run() returns when those in flight have ended."""
        self._stopping = True
        for task in self._waiting:
            task.cancel()
        self._changed.set()
        self._consumer.wake()

    def cut(self) -> None:
        """End the requests in flight now; their jobs go back."""
        for task in self._in_flight:
            task.cancel()

    async def close(self) -> None:
        """End the session: jobs that were not ended go back to their places. Call this after run()."""
        with suppress(SockpqError):
            await self._consumer.close()

    async def run(self) -> None:
        """Deliver until stop(). Raises ForeignCluster, and BadArguments for a name that no queue or pulse can have."""
        async with self._sender:
            try:
                await self._take()
            finally:
                while self._in_flight:
                    await asyncio.wait(set(self._in_flight))
                self.figures.taking = False

    # taking

    async def _take(self) -> None:
        pause_s = PAUSE_S
        while room := await self._room():
            try:
                jobs = await self._consumer.get_many(
                    min(room, TOGETHER_MAX), self._target.queues, wait=TAKE_S if self.figures.taking else FIRST_S,
                    meta=True, headers=True, timeout=CALL_S,
                )
            except (ForeignCluster, BadArguments):
                raise
            except SockpqError as error:
                self._cannot_take(error)
                await self._pause(pause_s)
                pause_s = min(pause_s * 2, PAUSE_S_MAX)
                continue
            pause_s = PAUSE_S
            self.figures.taking = True
            if self._failing:
                self._failing = False
                LOG.info("target %s: the cluster hands out jobs again", self._name)
            for job in jobs:
                self._begin(job)

    async def _room(self) -> int:
        """Wait until jobs may be taken; returns how many, 0 when the end has come."""
        while not self._stopping:
            self._changed.clear()
            left_s = self._circuit.left_s(time.monotonic())
            self.figures.resting = left_s > 0
            room = (1 if self._circuit.on_trial else self._target.concurrency) - len(self._in_flight)
            if left_s > 0:
                await self._pause(left_s)
            elif room > 0:
                return room
            else:
                await self._changed.wait()
        return 0

    async def _pause(self, seconds: float) -> None:
        """Wait for this long, or until something changes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    def _cannot_take(self, error: SockpqError) -> None:
        self.figures.taking = False
        if self._stopping:
            return
        level = logging.DEBUG if self._failing else logging.WARNING
        self._failing = True
        what = "refuses" if isinstance(error, AuthError | ForbiddenError | Untrusted) else "does not hand out"
        LOG.log(level, "target %s: the cluster %s its jobs, trying again: %s", self._name, what, error)

    # sending

    def _begin(self, job: Job) -> None:
        task = asyncio.create_task(self._deliver(job))
        self._in_flight.add(task)
        self.figures.in_flight = len(self._in_flight)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._in_flight.discard(task)
        self.figures.in_flight = len(self._in_flight)
        self._changed.set()
        if not task.cancelled() and (error := task.exception()):
            LOG.error("a fault of this program: report it, with this line", exc_info=error)

    async def _deliver(self, job: Job) -> None:
        """Send a job, and report its end. When this is cancelled the job goes back with the session."""
        try:
            async with self._hosts.place(self._target.host):
                verdict = await self._attempt(job)
        except asyncio.CancelledError:
            self.figures.count("unsent", "stopped")
            raise
        except Exception:
            LOG.exception("a fault of this program: report it, with this line")
            verdict = Verdict("later", "other", failed=True)
        if verdict is None:
            self.figures.count("unsent", "lease")
            return
        self.figures.count(verdict.kind, verdict.reason)
        if verdict.kind == "done" and verdict.result is None:
            self._outcomes.finish(job)
        else:                   # the place is free when it is executed: after SLEEP the next job is of another group
            await self._outcomes.end(job, verdict, has_backoff=self._facts.has_backoff(job.queue))

    async def _attempt(self, job: Job) -> Verdict | None:
        """Return the outcome of an attempt to deliver a job; None if the job had gone back before."""
        if self._stopping or self._circuit.left_s(time.monotonic()) > 0:    # it was taken before that
            return Verdict("unsent", "stopped" if self._stopping else "resting")
        if job.meta is not None and job.meta.expires_at is not None and not await self._keep(job):
            return None
        if self._target.pulse is None:
            return await self._send(job)
        return await self._send_in_turn(job, self._target.pulse)

    async def _send_in_turn(self, job: Job, pulse: str) -> Verdict:
        """Wait for a turn, send the job, and report the outcome of the turn. stop() ends the wait."""
        task = asyncio.current_task()
        assert task is not None
        verdict: Verdict | None = None
        self._waiting.add(task)
        try:
            async with self._client.pulse(pulse).turn() as turn:
                self._waiting.discard(task)
                verdict = await self._send(job)
                if verdict.rest_s:
                    turn.sleep(min(verdict.rest_s, SLEEP_S_MAX), verdict.reason)
                elif verdict.slow:
                    turn.slow(verdict.reason)
                elif verdict.failed:
                    turn.fail(verdict.reason)
        except SockpqError as error:
            if verdict is None:
                self._note_failure("turn", str(error), time.monotonic())
                return Verdict("unsent", "turn", rest_s=UNSENT_S)
            LOG.warning("target %s: could not report a turn of pulse %s: %s", self._name, pulse, error)
        finally:
            self._waiting.discard(task)
        return verdict

    async def _keep(self, job: Job) -> bool:
        """Remove the lease that a job has from its queue or its PUT: the session puts it back in any case.

        Returns whether it is still ours.
        """
        try:
            await job.touch(0, timeout=CALL_S)
        except JobNotFound:
            return False
        except SockpqError as error:        # it may be sent twice, as after any lease that ends
            LOG.warning("target %s: could not lift the lease of a job: %s", self._name, error)
        return True

    async def _send(self, job: Job) -> Verdict:
        begun = time.monotonic()
        headers = request_headers(job, self._target.headers, self._target.content_type)
        if self._secrets is not None:
            headers |= signature_headers(self._secrets.keys(), message_id(job), int(time.time()), job.data)
        answer = await self._sender.send(headers, job.data)
        self.figures.took(time.monotonic() - begun)
        verdict = judge(answer, self._policy, time.time)
        if verdict.kind == "later":
            await self._facts.look(job.queue, time.monotonic())
        self._note(job, verdict, answer, begun)
        return verdict

    def _note(self, job: Job, verdict: Verdict, answer: Answer | Failure, begun: float) -> None:
        """Report the outcome to the circuit and the log."""
        now = time.monotonic()
        if verdict.rest_s:
            if not self._facts.holds_groups(job.queue):
                self._rest(self._circuit.rest(now, verdict.rest_s), "the receiver asks for it")
        elif verdict.failed:
            text = answer.text if isinstance(answer, Failure) and answer.reason in LOGGED else ""
            self._note_failure(verdict.reason, text, begun)
        elif self._circuit.succeeded(begun):
            LOG.info("target %s: works again", self._name)
            self._changed.set()
        if verdict.kind == "bury":
            LOG.warning("target %s: gave up %s of queue %s: %s", self._name, message_id(job), job.queue, verdict.reason)

    def _note_failure(self, reason: str, text: str, begun: float) -> None:
        rest_s = self._circuit.failed(time.monotonic(), begun)
        if rest_s is not None:
            self._rest(rest_s, f"{reason}: {text}" if text else reason)

    def _rest(self, seconds: float, why: str) -> None:
        self.figures.rests += 1
        self.figures.resting = True
        LOG.warning("target %s: rests for %.1f s: %s", self._name, seconds, why)
        self._changed.set()
        self._consumer.wake()
