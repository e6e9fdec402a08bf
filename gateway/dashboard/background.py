"""Actions on all jobs that a filter finds, in the background: they report their progress and can be stopped.

They end with their node. Each job is named by its place or number, so a command sent twice, because its outcome was
unknown, does nothing the second time.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing, suppress

from msgspec import Struct

from sockpqd.cluster.api import NotLeader
from sockpqd.core import EndState, JobState, JobView
from sockpqd.gateway import audit
from sockpqd.gateway.dashboard.actions import BadForm, word
from sockpqd.gateway.dashboard.commands import execute_at_leader
from sockpqd.gateway.dashboard.job_filter import JobFilter, matches
from sockpqd.gateway.dashboard.visitor import Visitor
from sockpqd.gateway.server.hub import Hub

log = logging.getLogger("sockpqd.http")

RUNNING_MAX = 2             # of one node
KEPT_MAX = 20               # those that have ended are shown so long
BATCH = 100                 # commands sent together
REST_S = 0.02               # after a batch
AGAIN_S = 1.0               # before a batch that was not executed is sent again
ATTEMPTS = 60               # of one batch
LineOf = Callable[[JobView], str | None]


class BackgroundAction(Struct):
    """An action on many jobs. `state`: counting, running, done, stopped, or failed, then with `why`.

    `line`: the FIND command for its jobs; `words`: which ones these are, for people.
    `total`: jobs found so far, all of them once it is `counted`; `done`: jobs handled; `gone`: jobs that had moved or
    ended by then; `refused`: refusals, with the last answer; `skipped`: jobs to which no command applies.
    """

    number: str
    name: str
    line: str
    words: str
    user: str | None
    address: str
    begun_ms: int
    state: str = "counting"
    why: str = ""
    total: int = 0
    counted: bool = False
    done: int = 0
    gone: int = 0
    refused: int = 0
    answer: str = ""
    skipped: int = 0

    @property
    def ended(self) -> bool:
        """True if it has ended."""
        return self.state not in ("counting", "running")

    def progress(self) -> str:
        """Return its progress in words."""
        parts = [f"{self.done:,} of {'' if self.counted else 'at least '}{self.total:,}"]
        for count, what in (
            (self.gone, "were gone by then"),
            (self.skipped, "left alone: their state does not allow it, or they are buried without a number"),
            (self.refused, f"refused: {self.answer}"),
        ):
            if count:
                parts.append(f"{count:,} {what}")
        return "; ".join(parts)


def retry_line(job: JobView) -> str | None:
    """Return the command that makes a job ready again, None if there is none."""
    if job.ended_ms is not None:
        return f"KICK JOB NUMBER {job.number} ENDED"
    if job.state is JobState.DEAD or (job.state is JobState.DELAYED and job.due_ms is not None):
        return f"KICK JOB SEQ {job.queue} {job.seq}"
    return f"KICK JOB NUMBER {job.number}" if job.state is JobState.BURIED and job.number is not None else None


def cancel_line(job: JobView) -> str | None:
    """Return the command that removes a job, or the record of one that has ended; None if there is none."""
    if isinstance(job.state, EndState):
        return f"DELETE NUMBER {job.number} ENDED"
    if job.state is JobState.RUNNING:
        return f"DELETE {job.id}"
    if job.state is JobState.BURIED:
        return None if job.number is None else f"DELETE NUMBER {job.number}"
    return f"DELETE SEQ {job.queue} {job.seq}"


def move_line(job: JobView, to: str) -> str | None:
    """Return the command that moves a job to this queue; None if it does not wait, or waits there already."""
    ready = job.state in (JobState.READY, JobState.DEAD) and job.queue != to
    return f"QUEUE MOVE {job.queue} {to} SEQ {job.seq}" if ready else None


WORDS = {"jobs.retry": "retry", "jobs.cancel": "remove", "jobs.move": "move"}
STOP = "jobs.stop"
MOVE = "jobs.move"
HARM = {
    "jobs.cancel": "all jobs that the search finds are removed for good, running ones too",
    MOVE: "the ready and dead jobs that the search finds wait in the other queue, and what failed in them is forgotten",
}


def _moves(fields: Mapping[str, str]) -> LineOf:
    to = word(fields, "to")
    return lambda job: move_line(job, to)


# By the name of an action: what makes, of its fields, the command for each job. Raises BadForm for wrong fields.
LINES: dict[str, Callable[[Mapping[str, str]], LineOf]] = {
    "jobs.retry": lambda fields: retry_line, "jobs.cancel": lambda fields: cancel_line, MOVE: _moves,
}


class ActionStopped(Exception):
    """The action has been asked to stop."""


class BackgroundActions:
    """The actions of one node, the newest last."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._actions: dict[str, BackgroundAction] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stops: dict[str, asyncio.Event] = {}

    def seen_by(self, visitor: Visitor) -> Iterator[BackgroundAction]:
        """Yield the visitor's own actions, or all to one who administers the cluster, the newest first."""
        for action in reversed(self._actions.values()):
            if visitor.admin or action.user == visitor.user:
                yield action

    def begin(self, name: str, chosen: JobFilter, fields: Mapping[str, str], visitor: Visitor) -> BackgroundAction:
        """Begin an action of LINES. Raises BadForm for wrong fields, or if too many are running."""
        line = LINES[name](fields)
        if len(self._tasks) >= RUNNING_MAX:
            raise BadForm(f"{RUNNING_MAX} actions in the background are going on: wait for one, or stop it")
        to = f" to {fields['to']}" if name == MOVE else ""
        action = BackgroundAction(
            secrets.token_urlsafe(9), name, f"{chosen.line}{to}", f"{WORDS[name]} {chosen.in_words()}{to}",
            visitor.user, visitor.address, self._hub.cluster.time_ms)
        self._actions[action.number] = action
        for number in [number for number, one in self._actions.items() if one.ended][:-KEPT_MAX]:
            del self._actions[number]
        self._stops[action.number] = asyncio.Event()
        self._tasks[action.number] = asyncio.create_task(self._run(action, chosen, line, visitor))
        return action

    def stop(self, number: str, visitor: Visitor) -> None:
        """Stop an action; what it has done stays done. Raises BadForm if the visitor has none of this number.

        It ends when the commands in flight are answered, which still count.
        """
        if not any(one.number == number for one in self.seen_by(visitor)):
            raise BadForm("there is no such action in the background any more")
        if number in self._stops:
            self._stops[number].set()

    async def close(self) -> None:
        """End all actions, as the node stops."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, action: BackgroundAction, chosen: JobFilter, line: LineOf, visitor: Visitor) -> None:
        try:
            await self._carry_out(action, chosen, line, visitor)
            action.state = "done" if not action.why else "failed"
        except (asyncio.CancelledError, ActionStopped):
            action.state = "stopped"
        except Exception:               # a page on the disk that is lost, say
            log.exception("an action in the background failed: report it, with this line")
            action.state, action.why = "failed", "an error, which the log of this node has"
        finally:
            del self._tasks[action.number], self._stops[action.number]
            audit.note(action.user, action.address, action.name, action.line,
                       f"{action.state}: {action.progress()}{f' ({action.why})' if action.why else ''}")

    async def _carry_out(self, action: BackgroundAction, chosen: JobFilter, line_of: LineOf, visitor: Visitor) -> None:
        before_seq = self._hub.cluster.machine.next_seq
        async with aclosing(matches(self._hub, visitor, chosen, before_seq=before_seq)) as slices:
            async for jobs, _ in slices:
                action.total += len(jobs)
                await self._rest(action, 0)
        action.counted, action.state = True, "running"
        lines: list[str] = []
        async with aclosing(matches(self._hub, visitor, chosen, before_seq=before_seq)) as slices:
            async for jobs, place in slices:
                for job in jobs:
                    line = line_of(job)
                    action.skipped += line is None
                    lines += [] if line is None else [line]
                while lines and not action.why and (place is None or len(lines) >= BATCH):
                    await self._send(action, lines[:BATCH], visitor)
                    del lines[:BATCH]
                if action.why:
                    return
                await self._rest(action, 0)

    async def _rest(self, action: BackgroundAction, seconds: float) -> None:
        """Wait for `seconds`. Raises ActionStopped as soon as the action is stopped."""
        stop = self._stops[action.number]
        if seconds and not stop.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await stop.wait()
        if stop.is_set():
            raise ActionStopped

    async def _send(self, action: BackgroundAction, lines: list[str], visitor: Visitor) -> None:
        """Send the commands until each is answered; meanwhile `action.why` has the problem. Raises ActionStopped."""
        last = ""
        for _ in range(ATTEMPTS):
            data = "".join(f"{line}\r\n" for line in lines).encode()
            try:
                answers = await execute_at_leader(self._hub, visitor.user, visitor.address + audit.DASHBOARD, data)
            except NotLeader:
                answers = b""
            for answer in answers.decode("utf-8", "replace").split("\r\n")[:-1][:len(lines)]:
                if answer.startswith(("500", "503")):
                    last = answer
                    break                       # not executed, nor are those after it, or they do it again
                del lines[0]
                self._note(action, answer)
            if not lines or action.why:
                await self._rest(action, REST_S)
                return
            await self._rest(action, AGAIN_S)
        action.why = f"the last answer was {last}" if last else "no node answered"

    def _note(self, action: BackgroundAction, answer: str) -> None:
        if answer.startswith("200"):
            action.done += 1
        elif answer.startswith("404"):
            action.gone += 1
        elif answer.startswith("403"):
            action.why = "the rights do not suffice (any more)"
        else:
            action.refused, action.answer = action.refused + 1, answer
