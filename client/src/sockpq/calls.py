"""The calls both clients offer: arguments to commands, answers to values. sockpq.Client tells what each is for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar, Unpack

from sockpq._backends.base import Network
from sockpq._engine.executor import Caller
from sockpq._engine.limits import Limits
from sockpq._protocol import commands, job_commands
from sockpq._protocol.addresses import parse_servers
from sockpq._protocol.arguments import Then, integer, switch
from sockpq._protocol.commands import Block, Command, Repeat
from sockpq._protocol.job_commands import BATCH_JOBS_MAX, Part
from sockpq.errors import (
    AuthError,
    BadArguments,
    BatchFailed,
    ForbiddenError,
    JobNotFound,
    NoOutput,
    NotSupported,
    OutcomeUnknown,
    SockpqError,
)
from sockpq.job import TakenJob
from sockpq.model import Finished, Handed, Key, Waiting
from sockpq.options import ChangeOptions, Data, GetOptions, LaterOptions, MoveOptions, PutOptions
from sockpq.queue_calls import QueueCalls
from sockpq.transaction import id_of

J = TypeVar("J", bound=TakenJob)


class Calls(QueueCalls, Generic[J]):
    """Every call of a client, over whatever network. `J` is the kind of job it hands out."""

    def __init__(
        self, network: Network, job: Callable[[Calls[Any], Handed], J], servers: str | Iterable[str], limits: Limits
    ) -> None:
        self._caller = Caller(network, parse_servers(servers), limits)
        self._job = job

    async def close(self) -> None:
        """End all connections and sessions, and all calls under way with an error."""
        self._caller.close()

    async def put(
        self,
        queue: str,
        data: Data,
        priority: int = 0,
        item: str | None = None,
        new_item: bool = False,
        *,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
        **options: Unpack[PutOptions],
    ) -> str | None:
        """Queue a job; returns the item's name, or None."""
        command = commands.put(queue, data, priority, item, new_item, **options)
        return await self._caller.run(command, timeout=timeout, retry_unknown=retry_unknown)

    async def put_many(
        self,
        queue: str,
        datas: Iterable[Data],
        priority: int = 0,
        item: str | None = None,
        *,
        keys: Iterable[str] | None = None,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
        **options: Unpack[PutOptions],
    ) -> int:
        """Queue a job for each of `datas`; returns how many are queued because of it."""
        if keys is None:
            puts = commands.puts(queue, datas, priority, item, **options)
        else:
            puts = []
            for data, options["key"] in zip(datas, keys, strict=True):
                puts += commands.puts(queue, [data], priority, item, **options)
        results = await self._put_parts(puts, timeout, retry_unknown)
        refused = {position: found for position, found in enumerate(results) if isinstance(found, SockpqError)}
        for error in refused.values():
            if len(refused) == len(puts) and isinstance(error, AuthError | ForbiddenError):
                raise error
            raise BatchFailed(f"{len(refused)} of {len(puts)} refused: {error}", (), tuple(refused)) from error
        return sum(found is not False for found in results)

    async def _put_parts(
        self, puts: Sequence[Command[str | None]], timeout: float | None, retry_unknown: bool | None
    ) -> list[object]:
        """What became of each job: False when it exists, its error when it was refused. Raises BatchFailed."""
        parts = job_commands.puts_batch(puts)
        try:
            return await self._run_parts(parts, timeout, retry_unknown)
        except NotSupported:
            return await self._run_parts([Part(put, 1) for put in puts], timeout, retry_unknown)

    async def _run_parts(
        self, parts: Sequence[Part], timeout: float | None, retry_unknown: bool | None = None
    ) -> list[object]:
        """Run a batch in parts; returns for each of its members what came for it. Raises BatchFailed, of members."""
        starts = list(accumulate((part.members for part in parts), initial=0))

        def members(positions: Iterable[int]) -> tuple[int, ...]:
            return tuple(member for at in positions for member in range(starts[at], starts[at + 1]))

        try:
            answers = await self._caller.run_batch(
                [part.command for part in parts], timeout=timeout, retry_unknown=retry_unknown
            )
        except BatchFailed as error:
            whole = BatchFailed(str(error), members(error.unknown), members(error.not_executed))
            raise whole from error.__cause__
        results: list[object] = []
        for part, answer in zip(parts, answers, strict=True):
            assert answer is not None
            if answer.error:
                results += [answer.error] * part.members
            else:
                results += answer.value if isinstance(answer.value, list) else [answer.value]
        return results

    async def get(
        self,
        queues: str | Iterable[str] | None = None,
        *,
        block: Block = False,
        expire: float | None = None,
        then: Then | None = None,
        wait: float | None = None,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
        **options: Unpack[GetOptions],
    ) -> J | None:
        """Take a job, the greatest priority first; None when there is none."""
        command = commands.get(queues, block, expire, then, wait, **options)
        return await self._take(command, wait, timeout, retry_unknown)

    def _consuming(
        self, queues: str | Iterable[str] | None, expire: float, then: Then | None, until_done: bool,
        wait: float | None, options: GetOptions,
    ) -> Command[Handed | None]:
        """What consume() says to get each of its jobs; checks its arguments."""
        block: Block = "until_done" if switch(until_done, "until_done") else True
        return _leased(commands.get(queues, block, expire, then, wait, **options), "consume")

    async def _take(
        self, command: Command[Handed | None], wait: float | None, timeout: float | None, retry_unknown: bool | None
    ) -> J | None:
        """Take a job with this command."""
        handed = await self._caller.run(command, timeout=timeout, wait=wait, retry_unknown=retry_unknown)
        return self._job(self, handed) if handed else None

    async def get_many(
        self,
        count: int,
        queues: str | Iterable[str] | None = None,
        *,
        expire: float,
        then: Then | None = None,
        block: Block = False,
        wait: float | None = None,
        timeout: float | None = None,
        **options: Unpack[GetOptions],
    ) -> list[J]:
        """Take up to `count` jobs at once; [] when there is none."""
        count = integer(count, "count", 1, 10_000)
        single = _leased(commands.get(queues, False, expire, then, **options), "get_many")
        jobs: list[J] = []
        names = queues if queues is None or isinstance(queues, str) else tuple(queues)
        while True:
            asked = min(count - len(jobs), BATCH_JOBS_MAX)
            command = job_commands.get_batch(asked, names, block, expire, then, wait, **options)
            try:
                handed = await self._caller.run(command, timeout=timeout, wait=wait) or []  # None: taken back
            except NotSupported:
                if block or jobs:
                    raise
                return await self._get_singly(single, count, timeout)
            jobs += [self._job(self, one) for one in handed]
            if len(handed) < asked or len(jobs) == count:
                return jobs
            block, wait = False, None

    async def _get_singly(self, command: Command[Handed | None], count: int, timeout: float | None) -> list[J]:
        """The same with an original sockPQd, which knows no COUNT."""
        answers = await self._caller.run_batch([command] * count, timeout=timeout, partly=True)
        for answer in answers:
            if answer and answer.error:
                raise answer.error
        return [self._job(self, answer.value) for answer in answers if answer and answer.value]

    async def done(
        self, job: J | int, *, last: bool = False, timeout: float | None = None, retry_unknown: bool | None = None
    ) -> Finished:
        """Remove a running job; tells whether its queue or its item has come to an end with it."""
        command = job_commands.done_last(id_of(job)) if switch(last, "last") else commands.done(id_of(job))
        at_least_once = self._caller.limits.retry_unknown if retry_unknown is None else retry_unknown
        try:
            return await self._caller.run(command, timeout=timeout, retry_unknown=retry_unknown)
        except OutcomeUnknown as error:
            if at_least_once and isinstance(error.__cause__, JobNotFound):
                return Finished(False, False)
            raise

    async def done_many(self, jobs: Iterable[J | int], *, timeout: float | None = None) -> list[Finished | None]:
        """Remove many running jobs; None in the place of a job that is not running (any more)."""
        ids = [id_of(job) for job in jobs]
        singles = [commands.done(number) for number in ids]
        found = await self._end_parts(job_commands.ends("DONE", ids), singles, timeout)
        return [one if isinstance(one, Finished) else None for one in found]

    async def later_many(self, jobs: Iterable[J | int], *, timeout: float | None = None) -> list[bool]:
        """Put many running jobs back; False in the place of a job that is not running (any more)."""
        ids = [id_of(job) for job in jobs]
        singles = [commands.later(number) for number in ids]
        found = await self._end_parts(job_commands.ends("LATER", ids), singles, timeout)
        return [not isinstance(one, SockpqError) for one in found]

    async def _end_parts(
        self, parts: Sequence[Part], singles: Sequence[Command[Any]], timeout: float | None
    ) -> list[object]:
        """What came for each job: its value or JobNotFound; raises any other error."""
        try:
            found = await self._run_parts(parts, timeout)
        except NotSupported:
            found = await self._run_parts([Part(single, 1) for single in singles], timeout)
        for one in found:
            if isinstance(one, SockpqError) and not isinstance(one, JobNotFound):
                raise one
        return found

    async def later(self, job: J | int, *, timeout: float | None = None, **options: Unpack[LaterOptions]) -> None:
        """Put a running job back at the end of its queue, or as `options` say."""
        number = id_of(job)
        command = job_commands.later(number, **options) if options else commands.later(number)
        try:
            await self._caller.run(command, timeout=timeout)
        except OutcomeUnknown as error:
            if not isinstance(error.__cause__, JobNotFound):    # after a lost answer: it is back, or was done
                raise

    async def touch(
        self, job: J | int, expire: float | None = None, then: Then | None = None, *, timeout: float | None = None
    ) -> int | None:
        """Let the lease of a running job begin anew; returns when it ends, in Unix time."""
        return await self._caller.run(job_commands.touch(id_of(job), expire, then), timeout=timeout)

    async def change(
        self, job: J | int | Key, *, timeout: float | None = None, **options: Unpack[ChangeOptions]
    ) -> None:
        """Change a job."""
        command = job_commands.change(job if isinstance(job, Key) else id_of(job), **options)
        await self._caller.run(command, timeout=timeout)

    async def delete(
        self, job: J | int | Key, *, timeout: float | None = None, retry_unknown: bool | None = None
    ) -> Finished:
        """Remove a job in whatever state."""
        command = job_commands.delete(job if isinstance(job, Key) else id_of(job))
        return await self._caller.run(command, timeout=timeout, retry_unknown=retry_unknown)

    async def move(
        self, job: J | int, queue: str, *, timeout: float | None = None, **options: Unpack[MoveOptions]
    ) -> Finished:
        """Put a running job into another queue, at once."""
        return await self._caller.run(job_commands.move(id_of(job), queue, **options), timeout=timeout)

    async def bury(self, job: J | int, reason: str | None = None, *, timeout: float | None = None) -> Finished:
        """Put a running job into the dead queue."""
        return await self._caller.run(job_commands.bury(id_of(job), reason), timeout=timeout)

    async def call(
        self,
        queue: str,
        data: Data,
        output: str,
        *,
        priority: int = 0,
        item: str | None = None,
        expire: float | None = None,
        then: Then | None = None,
        wait: float | None = None,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> J:
        """Queue a job and wait for the job of the same item in queue `output`."""
        command = commands.call(queue, data, output, priority, item, expire, then, wait)
        handed = await self._caller.run(command, timeout=timeout, wait=wait, retry_unknown=retry_unknown)
        if isinstance(handed, Waiting):
            raise NoOutput("the job is queued, its output did not come in time", handed.item)
        return self._job(self, handed)


def _leased(command: Command[Handed | None], caller: str) -> Command[Handed | None]:
    """Insists on a lease: with it a lost hand-out does no harm."""
    if command.repeat is not Repeat.HARMLESS:
        raise BadArguments(f"{caller} needs a lease: expire must be positive")
    return command
