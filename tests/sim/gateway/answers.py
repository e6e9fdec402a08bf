"""Answers and events cut out of a stream of bytes, as far as simulated clients ask for them."""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import NamedTuple

from tests.sim.world.trace import Violation

GO = (b"GO", b"NOGO")


class Form(Enum):
    """The possible answers to a command; LINE is also for refusals of the others."""

    LINE = "a line"
    TURN = "a line, or a grant with its data"
    JOBS = "a line, or a list of jobs"
    END = "a line, or the end of a job with its data"
    EVENT = "nothing was asked: an event or a message"


EVENT = b"250 "


class Asked(NamedTuple):
    """The form that an answer must have, and the pulse that was asked for a turn."""

    form: Form = Form.LINE
    pulse: str | None = None


class Answer(NamedTuple):
    """One whole answer, or an event.

    `ticket`: of a grant. `jobs`: queue and id of each job. `data`: of a message, or of the end of a job.
    """

    asked: Asked
    line: bytes
    ticket: int | None = None
    jobs: tuple[tuple[bytes, int], ...] = ()
    data: bytes = b""


class AnswerReader:
    """Reads the answers to commands that are put into `expected`."""

    def __init__(self) -> None:
        self.expected: deque[Asked] = deque()
        self._data = b""

    def feed(self, data: bytes) -> list[Answer]:
        """Return the answers that these bytes complete. Raises Violation for an answer without a request."""
        self._data += data
        answers: list[Answer] = []
        while self._data:
            if self._data.startswith(EVENT):
                event = self._event()
                if event is None:
                    break
                answers.append(event)
                continue
            if not self.expected:
                raise Violation(f"nobody has asked for {self._data!r}")
            found = self._next(self.expected[0])
            if found is None:
                break
            self.expected.popleft()
            answers.append(found)
        return answers

    def _next(self, asked: Asked) -> Answer | None:
        form, line = asked.form, self._line(0)
        if line is None:
            return None
        end, words = len(line) + 2, line.split()
        if len(words) < 2 or not words[0].isdigit():
            raise Violation(f"{line!r} is no answer")
        ticket: int | None = None
        jobs: list[tuple[bytes, int]] = []
        length = 0
        if form is Form.TURN and words[2:3] and words[2] in GO:
            ticket, length = int(words[3]), int(words[4])
        elif form is Form.JOBS and words[:2] == [b"200", b"OK"]:
            for _ in range(int(words[2])):
                job = self._line(end)
                if job is None:
                    return None
                queue, number, _, size, *_ = job.split()
                jobs.append((queue, int(number)))
                end += len(job) + 2
                length += int(size)
        elif form is Form.END and words[:2] == [b"200", b"OK"]:
            length = int(words[3])
        if len(self._data) < end + length:
            return None
        data, self._data = self._data[end:end + length], self._data[end + length:]
        return Answer(asked, line, ticket, tuple(jobs), data if form is Form.END else b"")

    def _event(self) -> Answer | None:
        line = self._line(0)
        if line is None:
            return None
        end, words = len(line) + 2, line.split()
        length = int(words[-1]) if words[2] == b"MSG" else 0
        if len(self._data) < end + length:
            return None
        data, self._data = self._data[end:end + length], self._data[end + length:]
        return Answer(Asked(Form.EVENT), line, data=data)

    def _line(self, start: int) -> bytes | None:
        end = self._data.find(b"\r\n", start)
        return None if end < 0 else self._data[start:end]
