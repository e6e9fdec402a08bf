"""Several commands, all or nothing: collected here, sent together, one entry of the log."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from sockpq._backends.sync import run
from sockpq._protocol import commands, job_commands
from sockpq._protocol.arguments import Then
from sockpq._protocol.commands import Command
from sockpq._protocol.job_replies import as_accepted, as_stored
from sockpq._protocol.replies import as_finished
from sockpq.errors import BadArguments, OutcomeUnknown
from sockpq.job import TakenJob
from sockpq.model import Key
from sockpq.options import ChangeOptions, Data, LaterOptions, MoveOptions, PutOptions

if TYPE_CHECKING:
    from sockpq._engine.executor import Caller


class Collected:
    """What the transactions of both clients have in common.

    Its methods only collect; the end of the `with` block sends all, unless the block raises: then nothing is sent.
    `results` then has what each command returns: an item's name or None for put, Finished for done, move, delete and
    bury, None for the others.
    """

    def __init__(self, caller: Caller, timeout: float | None) -> None:
        self.results: list[Any] = []
        self._caller = caller
        self._timeout = timeout
        self._over = False
        self._commands: list[Command[Any]] = []
        self._readers: list[Callable[[str], object]] = []
        self._ended: list[TakenJob] = []        # jobs that are in nobody's hands when it is executed

    def put(
        self, queue: str, data: Data, priority: int = 0, item: str | None = None, new_item: bool = False,
        **options: Unpack[PutOptions],
    ) -> None:
        """Queue a job. See Client.put."""
        command = commands.put(queue, data, priority, item, new_item, **options)
        self._add(command, lambda text: as_stored(text, item, new_item))

    def done(self, job: TakenJob | int) -> None:
        """Remove a running job."""
        self._add(commands.done(self._end(job)), as_finished)

    def later(self, job: TakenJob | int, **options: Unpack[LaterOptions]) -> None:
        """Put a running job back into its queue. See Client.later."""
        self._add(job_commands.later(self._end(job), **options), _nothing)

    def move(self, job: TakenJob | int, queue: str, **options: Unpack[MoveOptions]) -> None:
        """Put a running job into another queue. See Client.move."""
        self._add(job_commands.move(self._end(job), queue, **options), as_finished)

    def bury(self, job: TakenJob | int, reason: str | None = None) -> None:
        """Give a running job up."""
        self._add(job_commands.bury(self._end(job), reason), as_finished)

    def touch(self, job: TakenJob | int, expire: float | None = None, then: Then | None = None) -> None:
        """Let the lease of a running job begin anew."""
        self._add(job_commands.touch(id_of(job), expire, then), _nothing)

    def change(self, job: TakenJob | int | Key, **options: Unpack[ChangeOptions]) -> None:
        """Change a job. See Client.change."""
        self._add(job_commands.change(job if isinstance(job, Key) else id_of(job), **options), _nothing)

    def delete(self, job: TakenJob | int | Key) -> None:
        """Remove a job in whatever state."""
        self._add(job_commands.delete(job if isinstance(job, Key) else self._end(job)), as_finished)

    async def _commit(self) -> None:
        """Send all; the results are there afterwards. Raises Aborted."""
        self._over = True
        if not self._commands:
            return
        command = job_commands.transaction(self._commands, self._readers)
        try:
            self.results = await self._caller.run(command, timeout=self._timeout)
        except OutcomeUnknown:
            self._release()
            raise
        self._release()

    def _release(self) -> None:
        for job in self._ended:
            job._ended = True

    def _end(self, job: TakenJob | int) -> int:
        if isinstance(job, TakenJob):
            self._ended.append(job)
        return id_of(job)

    def _add(self, command: Command[Any], reader: Callable[[str], object]) -> None:
        if self._over:
            raise BadArguments("this transaction is over")
        self._commands.append(command)
        self._readers.append(reader)


class Transaction(Collected):
    """A transaction of the blocking client."""

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            run(self._commit())
        self._over = True


def id_of(job: TakenJob | int) -> int:
    """The id of a job in hand, or the id itself."""
    return job.id if isinstance(job, TakenJob) else job


def _nothing(text: str) -> None:
    as_accepted(text)
