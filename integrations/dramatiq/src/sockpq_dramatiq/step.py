"""The end of a message as one transaction: its acknowledgement, with everything that it sends and stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, NamedTuple

from dramatiq.errors import ConnectionClosed
from dramatiq.logging import get_logger
from sockpq import Aborted, Client, CrossCluster, DataTooLarge, Job, JobNotFound, SockpqError, Transaction

from sockpq_dramatiq.errors import FOR_NOW, errors_of_dramatiq

logger = get_logger(__name__)

# Room for the end of the message itself is left below the limits of a transaction: 1,000 commands, 16 MiB.
COMMANDS_MAX = 900
BYTES_MAX = 12 * 1024 * 1024
ATTEMPTS = 3            # when a part of the step has lost a job that it held

Commands = Client | Transaction


def _nothing(result: Any) -> None:
    pass


class Command(NamedTuple):
    """One command of a step: `add` calls it, `executed` is called with its result once it is executed."""

    add: Callable[[Commands], Any]
    executed: Callable[[Any], None] = _nothing


class Part:
    """One thing that a step does besides ending the message. `bytes`: the size of its data."""

    def __init__(self, commands: Sequence[Command] = (), data_bytes: int = 0) -> None:
        self.bytes = data_bytes
        self._commands = commands

    def commands(self) -> Sequence[Command]:
        """Return its commands; called for each attempt to execute the step."""
        return self._commands

    def lost(self) -> bool:
        """Record that a job which it holds is gone; returns whether it can do without, so that the step is repeated."""
        return False

    def release(self) -> None:
        """Give back what it holds, as the step is not executed."""


class Step:
    """Collects what goes with the end of one message, between the end of its actor and its acknowledgement.

    Atomic actors collect from their beginning on. A retry of the message itself is not a part but the way in which the
    message ends: see `retry`.
    """

    def __init__(self, client: Client, job: Job) -> None:
        self.client = client
        self.job = job
        self.collects = False
        self._parts: list[Part] = []
        self._retry: Sequence[Command] = ()

    def begin(self) -> None:
        """Collect from now on, in this thread and in coroutines that it runs."""
        self.collects = True
        current.set(self)

    def close(self) -> None:
        """Stop collecting: the message has ended."""
        self.collects = False
        current.set(None)

    def clear(self) -> None:
        """Forget what was collected, as the actor has failed."""
        self._parts.clear()
        self._retry = ()

    def add(self, part: Part) -> None:
        """Add a part. Raises DataTooLarge when it would be too much for one transaction."""
        if len(self._parts) >= COMMANDS_MAX or sum(one.bytes for one in self._parts) + part.bytes > BYTES_MAX:
            raise DataTooLarge(
                f"one message sends at most {COMMANDS_MAX} messages with {BYTES_MAX >> 20} MiB in one transaction: "
                "let the actor send some of them from another message, or without atomic=True"
            )
        self._parts.append(part)

    @property
    def retries(self) -> bool:
        """True if the message goes back to its queue instead of being done."""
        return bool(self._retry)

    def retry(self, commands: Sequence[Command]) -> None:
        """Let the message end with these commands, which put it back, instead of with DONE."""
        self._retry = commands

    def acknowledge(self) -> bool:
        """Put the message back if it is to be retried, else remove it. See `_end`."""
        return self._end(self._retry or (Command(lambda to: to.done(self.job)),))

    def reject(self, commands: Sequence[Command]) -> bool:
        """End the message with these commands, which make it a dead letter. See `_end`."""
        return self._end(commands)

    def _end(self, ending: Sequence[Command]) -> bool:
        """Execute all that was collected and the end of the message, as a whole or not at all.

        Returns False if the message no longer belonged to this worker: then nothing happened. Raises ConnectionClosed
        when it is to be tried again. A part that is refused for good makes the message a dead letter.
        """
        try:
            self._execute(ending)
        except JobNotFound:
            self._release()
            return False
        except FOR_NOW as error:
            raise ConnectionClosed(f"the cluster takes nothing for this queue at present: {error}") from error
        except SockpqError as error:
            self._refused(error)
        return True

    def _execute(self, ending: Sequence[Command]) -> None:
        """Execute the parts and the end. Raises JobNotFound, a refusal, or ConnectionClosed."""
        for attempt in range(ATTEMPTS):
            parts = [(part, list(part.commands())) for part in self._parts]
            try:
                with errors_of_dramatiq():
                    execute(self.client, [*(command for _, some in parts for command in some), *ending])
                return
            except Aborted as error:
                at = error.position
                gone = isinstance(error.reason, JobNotFound) and attempt + 1 < ATTEMPTS
                for part, some in parts:
                    if 0 < at <= len(some) and gone and part.lost():
                        break
                    at -= len(some)
                else:
                    raise error.reason from error

    def _release(self) -> None:
        for part in self._parts:
            part.release()

    def _refused(self, error: SockpqError) -> None:
        self._release()
        logger.error("What job %d sends was refused for good; it is a dead letter now: %s", self.job.id, error)
        text = f"what this message sends was refused: {error}"
        with errors_of_dramatiq(), suppress(JobNotFound):
            self.job.bury(reason="Refused", error=text)


def execute(client: Client, commands: Sequence[Command]) -> None:
    """Execute these commands in one transaction, or directly if there is one; with several clusters, one by one."""
    if len(commands) == 1:
        results = [commands[0].add(client)]
    else:
        try:
            with client.transaction() as transaction:
                for command in commands:
                    command.add(transaction)
            results = transaction.results
        except CrossCluster:
            results = [command.add(client) for command in commands]
    for command, result in zip(commands, results, strict=True):
        command.executed(result)


current: ContextVar[Step | None] = ContextVar("sockpq_dramatiq_step", default=None)


def collecting() -> Step | None:
    """Return the step to which a message sent in this context belongs, if any."""
    step = current.get()
    return step if step is not None and step.collects else None
