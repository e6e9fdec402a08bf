"""A PUTS while it arrives: its jobs so far, and the answers to those that are malformed or too large.

Memory is bounded however long it takes: a PUTS that is too large or refused as a whole is read to its end and dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from sockpqd.core import JobPut, Put
from sockpqd.gateway.limits import BATCH_BYTES_MAX, BATCH_DATA_BYTES_MAX, COMMAND_BYTES, SKIPPED_BYTES_MAX
from sockpqd.gateway.protocol.arguments import ArgumentError
from sockpqd.gateway.protocol.command import Command, Words
from sockpqd.gateway.protocol.grammar.jobs.puts import put
from sockpqd.gateway.protocol.grammar.parts.bodies import length_at
from sockpqd.gateway.protocol.responses import TOO_LARGE, bad_arguments

NOT_IN_LINES = "CR, VT and FF cannot stand within a line"
LENGTH_AT = 2       # the position of the length in an argument line


class PutsSoFar:
    """Collects the jobs that follow the line of a PUTS, which is `command`.

    `guard` checks each job before its data are read, like a command of its row; refusing one refuses the whole PUTS.
    `answer` is set once the PUTS is refused: the answer that its client gets, as nothing is executed.
    """

    def __init__(
        self, command: Command, guard: Callable[[Command], bytes | None] | None, data_bytes_max: int,
    ) -> None:
        self.command = command
        self.answer = command.answer
        self.amid_job = False                   # the line has been read, but not the block
        self.late = False                       # it did not arrive at once, so rights may have changed meanwhile
        self._guard = guard
        self._data_bytes_max = data_bytes_max
        self._left = command.length or 0        # jobs still to come
        self._digest = command.digest if isinstance(command.digest, blake2b) else None
        # Bytes: the answer to an invalid job.
        self._puts: list[JobPut | bytes] = []
        self._kept_bytes = 0                    # lines and data
        self._data_bytes = 0
        self._dropped_bytes = 0
        self._job: Command | bytes = b""
        self._data = bytearray()                # of the current job

    @property
    def held_bytes(self) -> int:
        """Bytes held, as if the current job were complete."""
        return 0 if self.answer is not None else self._kept_bytes + COMMAND_BYTES * len(self._puts)

    @property
    def refused_job(self) -> bool:
        """True if the current job is malformed or too large, so that its answer is known already."""
        return isinstance(self._job, bytes)

    def take_line(self, words: Words, line: bytes) -> int | None:
        """Take the next job's line and return how many bytes follow. None: unknown or too many; then see `answer`."""
        if self._digest is not None:
            self._digest.update(b" ".join(words) + b"\n")
        try:
            if b"\r" in line or b"\v" in line or b"\f" in line:     # not allowed in any line
                raise ArgumentError(NOT_IN_LINES)
            job = put([b"PUT", *words])
            if job is None or job.length is None:
                raise ArgumentError("a job of PUTS cannot have WAIT")
            self._job, length = job, job.length
            job.row = self.command.row
            self._look_at(job, length, len(line))
        except ArgumentError as error:
            known, answer = length_at(words, LENGTH_AT), bad_arguments(error.reason)
            if known is None:
                self.answer = answer
                return None
            self._job, length = answer, known
        if self.answer is not None or isinstance(self._job, bytes):
            self._dropped_bytes += length
            if self._dropped_bytes > SKIPPED_BYTES_MAX:
                self.answer = self.answer or TOO_LARGE
                return None
        self.amid_job = True
        return length

    def _look_at(self, job: Command, length: int, line_bytes: int) -> None:
        """Check the job's rights and size; a refusal for lack of rights takes precedence over one for size."""
        if self._guard is not None and self.answer in (None, TOO_LARGE) and (refusal := self._guard(job)) is not None:
            self.refuse(refusal)
        if self.answer is not None:
            return
        if length > self._data_bytes_max:
            self._job = TOO_LARGE
            return
        self._data_bytes += length
        self._kept_bytes += line_bytes + length
        if self._data_bytes > BATCH_DATA_BYTES_MAX or self._kept_bytes > BATCH_BYTES_MAX:
            self.refuse(TOO_LARGE)

    def refuse(self, answer: bytes) -> None:
        """Refuse the whole PUTS with this answer and free its jobs."""
        self.answer = answer
        self._puts.clear()
        self._data = bytearray()

    def refusal_meanwhile(self) -> bytes | None:
        """Return the answer if the client may no longer put all of the jobs, else None."""
        if self._guard is None or not self.late:
            return None
        distinct: dict[object, JobPut] = {
            (put.queue, put.item) if isinstance(put, Put) else number: put
            for number, put in enumerate(self._puts) if not isinstance(put, bytes)
        }
        refusals = (self._guard(Command(operation=put, row=self.command.row)) for put in distinct.values())
        return next((refusal for refusal in refusals if refusal is not None), None)

    def take_data(self, piece: bytes) -> None:
        """Add bytes to the current job's block."""
        if self._digest is not None:
            self._digest.update(piece)
        if self.answer is None and not isinstance(self._job, bytes):
            self._data += piece

    def end_job(self) -> bool:
        """Complete the current job. Returns whether it was the last; then either the command is complete or `answer`
        is set.
        """
        self.amid_job = False
        self._left -= 1
        job = self._job
        if self.answer is None:
            if isinstance(job, bytes):
                self._puts.append(job)
            else:
                job.fill(bytes(self._data))
                self._puts.append(job.operation if job.answer is None else job.answer)
        self._data = bytearray()
        if self._left:
            return False
        self.command.length = None
        self.command.arguments = tuple(self._puts)
        if self._digest is not None:
            self.command.digest = self._digest.digest()
        return True
