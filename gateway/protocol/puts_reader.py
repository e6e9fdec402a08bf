"""A PUTS while it arrives: its jobs so far, and what is answered to those that are none.

What is kept is bounded, however long it takes: a PUTS whose lines and data are too large, or that is refused as a
whole, is read to its end and dropped.
"""

from __future__ import annotations

from collections.abc import Callable

from core import Put, PutWith
from gateway.limits import BATCH_BYTES_MAX, COMMAND_BYTES, SKIPPED_BYTES_MAX
from gateway.protocol.arguments import ArgumentError
from gateway.protocol.grammar import DataHead, PutHead, PutsHead, Words, length_at, put
from gateway.protocol.requests import Numbered, Puts, PutWait, Refused
from gateway.protocol.responses import BAD_ARGUMENTS, TOO_LARGE

LENGTH_AT = 2       # the place of the length in an argument line


class PutsSoFar:
    """What has arrived behind the line of a PUTS.

    `guard` is asked about each job before its data are read: when it refuses one, it refuses the PUTS. `answer`: what
    is said instead of executing it, when that is known already.
    """

    def __init__(
        self, head: PutsHead, guard: Callable[[PutHead | DataHead], bytes | None] | None, data_bytes_max: int,
    ) -> None:
        self.answer = head.answer
        self.amid_job = False                   # a line has been read, its block has not
        self._head = head
        self._guard = guard
        self._data_bytes_max = data_bytes_max
        self._left = head.count                 # jobs still to come
        self._puts: list[Put | PutWith | Refused] = []
        self._kept_bytes = 0
        self._dropped_bytes = 0
        self._job: PutHead | DataHead | Refused = Refused(BAD_ARGUMENTS)
        self._data = bytearray()                # of this job

    @property
    def held_bytes(self) -> int:
        """What is kept, as if the present job were complete."""
        return 0 if self.answer is not None else self._kept_bytes + COMMAND_BYTES * len(self._puts)

    def take_line(self, words: Words, line: bytes) -> int | None:
        """The arguments of the next PUT: how many bytes follow. None: nobody knows, or too many; then say `answer`."""
        if self._head.digest is not None:
            self._head.digest.update(b" ".join(words) + b"\n")
        try:
            if b"\r" in line or b"\v" in line or b"\f" in line:     # as in all lines
                raise ArgumentError
            job = put([b"PUT", *words])
            if _waits(job):
                raise ArgumentError
            self._job, length = job, job.length
            self._look_at(job, len(line))
        except ArgumentError:
            known = length_at(words, LENGTH_AT)
            if known is None:
                self.answer = BAD_ARGUMENTS
                return None
            self._job, length = Refused(BAD_ARGUMENTS), known
        if self.answer is not None or isinstance(self._job, Refused):
            self._dropped_bytes += length
            if self._dropped_bytes > SKIPPED_BYTES_MAX:
                self.answer = self.answer or TOO_LARGE
                return None
        self.amid_job = True
        return length

    def _look_at(self, job: PutHead | DataHead, line_bytes: int) -> None:
        """May it be put, and is there room? The refusal of a right goes before that of a size."""
        if self._guard is not None and self.answer in (None, TOO_LARGE) and (refusal := self._guard(job)) is not None:
            self.refuse(refusal)
        if self.answer is not None:
            return
        if job.length > self._data_bytes_max:
            self._job = Refused(TOO_LARGE)
            return
        self._kept_bytes += line_bytes + job.length
        if self._kept_bytes > BATCH_BYTES_MAX:
            self.refuse(TOO_LARGE)

    def refuse(self, answer: bytes) -> None:
        """Nothing of it is executed, and nothing of it is kept any more."""
        self.answer = answer
        self._puts.clear()
        self._data = bytearray()

    def take_data(self, piece: bytes) -> None:
        """The next bytes of the job's block."""
        if self._head.digest is not None:
            self._head.digest.update(piece)
        if self.answer is None and not isinstance(self._job, Refused):
            self._data += piece

    def end_job(self) -> Puts | Numbered | Refused | None:
        """The block is complete: the request if this was the last one."""
        self.amid_job = False
        self._left -= 1
        job = self._job
        if self.answer is None:
            if isinstance(job, Refused):
                self._puts.append(job)
            else:
                filled = job.with_data(bytes(self._data))
                assert isinstance(filled, Put | PutWith)
                self._puts.append(filled)
        self._data = bytearray()
        return None if self._left else self._request()

    def _request(self) -> Puts | Numbered | Refused:
        if self.answer is not None:
            return Refused(self.answer)
        puts, head = Puts(tuple(self._puts)), self._head
        return puts if head.digest is None else Numbered(head.number, head.digest.digest(), puts)


def _waits(job: PutHead | DataHead) -> bool:
    return job.wait is not None if isinstance(job, PutHead) else isinstance(job.request, PutWait)
