"""The commands that end a job, by its outcome."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from sockpq._protocol import arguments
from sockpq._protocol.command import Command
from sockpq._protocol.commands import batches, jobs
from sockpq._protocol.reader import Reader
from sockpq._routing.router import Router
from sockpq.errors import Aborted, CrossCluster, DataTooLarge, JobNotFound
from sockpq.model import Handed
from sockpq.worker.errors import BadResult
from sockpq.worker.outcome import Failure, Outcome
from sockpq.worker.task import RESULTS

LOG = logging.getLogger("sockpq.worker")

RESULT_TTL_S = 3600         # a result that nobody fetches, because its caller is gone, is not kept for ever
LEAST_DELAY_S = 0.001


async def end_job(router: Router, job: Handed, outcome: Outcome, timeout: float, ran: float | None = None) -> bool:
    """End the job; returns False if it was no longer ours, as its lease had ended. Raises another SockpqError.

    `ran`: the seconds to charge to its group, instead of the time since the hand-out.
    """
    command = _end(job, outcome, ran)
    try:
        if outcome.kind == "dead" and ran is not None:
            await router.run(jobs.touch(job, ran=ran), timeout=timeout)       # BURY does not tell it
        if outcome.result is None or job.item is None:
            await _run(router, job, outcome, command, timeout)
            return True
        result = jobs.put(job.queue + RESULTS, outcome.result, item=job.item, ttl=RESULT_TTL_S)
        try:
            await router.run(_together(command, result), timeout=timeout)
        except Aborted as aborted:
            if isinstance(aborted.reason, JobNotFound):
                return False
            await _run(router, job, outcome, command, timeout)    # the queue of results is full: the job ends anyway
        except CrossCluster:            # the queue moves, and the caller, who waits in this cluster, gets no output
            await _run(router, job, outcome, command, timeout)
        return True
    except JobNotFound:
        return False


async def _run(router: Router, job: Handed, outcome: Outcome, command: Command[Any], timeout: float) -> None:
    """Run the command; a result that is too long for the queue is a permanent failure of its task."""
    try:
        await router.run(command, timeout=timeout)
    except DataTooLarge as error:
        if outcome.returned is None:
            raise
        text = f"what the task returned has {len(outcome.returned)} bytes: {error}"
        LOG.error("a job failed: %s", text, extra={"fields": {"queue": job.queue, "id": job.id, "outcome": "dead"}})
        given_up = Outcome("dead", reason=BadResult.__name__, failure=Failure(BadResult.__name__, text, ""))
        await router.run(_end(job, given_up), timeout=timeout)


def _together(command: Command[Any], result: Command[Any]) -> Command[Any]:
    """Return the end of the job and the result for its caller, both or none."""
    plain = batches.transaction([_plain(command), result])
    if command.older is None:
        return plain
    return batches.transaction([command, result])._replace(needs=command.needs, older=plain)


def give_back(job: Handed, counts: bool = False, ran: float | None = None) -> Command[Any]:
    """Put a job back in its old place; unless its attempt `counts`, as if it had not been taken. `ran`: see end_job."""
    return jobs.later(job, first=True, yielded=not counts, ran=ran)


def done(ids: list[int], hear: Callable[[Sequence[object]], None]) -> Command[list[Any]]:
    """DONE of several jobs; for each a Finished, or JobNotFound, which `hear` gets as well."""
    (part,) = batches.ends("DONE", ids)
    read = part.command.read
    return part.command._replace(read=lambda: _with_listener(read(), hear))


def _with_listener(reader: Reader[list[Any]], hear: Callable[[Sequence[object]], None]) -> Reader[list[Any]]:
    answers = yield from reader
    hear(answers)
    return answers


def _end(job: Handed, outcome: Outcome, ran: float | None = None) -> Command[Any]:
    if outcome.kind == "done":
        older = jobs.done(job, ran=ran)
        if outcome.returned is None:
            return older
        return jobs.done(job, ran=ran, result=outcome.returned)._replace(older=older)
    if outcome.kind == "dead":
        return _with_error(jobs.bury(job, outcome.reason), outcome)
    delay = outcome.delay if outcome.delay >= LEAST_DELAY_S else None
    told = outcome.slow or outcome.sleep is not None        # to the pulse: that was no failure, and no attempt
    plain = jobs.later(job, delay=delay, yielded=told, ran=ran)
    words = " SLOW" if outcome.slow else f" SLEEP {outcome.sleep:.3f}" if told else ""
    words += f" REASON {outcome.reason}" if outcome.reason else ""
    ended = _with(plain, words) if words else plain
    return ended if told else _with_error(ended, outcome)


def _with_error(command: Command[Any], outcome: Outcome) -> Command[Any]:
    """Return the command with the error text; without it for servers that do not keep it."""
    if outcome.failure is None:
        return command
    text = arguments.error_text(outcome.failure.text)
    return jobs.ending_with(command, "ERROR", text, "backoff")._replace(older=command)


def _with(command: Command[Any], words: str) -> Command[Any]:
    """Return the command with words introduced with pulses; without them for older servers."""
    line = command.line.removesuffix(b"\r\n") + words.encode() + b"\r\n"
    return command._replace(line=line, needs=(*command.needs, "pulse"), older=command)


def _plain(command: Command[Any]) -> Command[Any]:
    """Return the command as every server knows it: a transaction cannot depend on features."""
    while command.older is not None:
        command = command.older
    return command


