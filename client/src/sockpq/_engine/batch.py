"""A pipelined batch without IO: decides which commands to send next, and tracks the state of each."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import Any

from sockpq._engine.retry import NotRecognizedAnyMore
from sockpq._protocol.command import Command
from sockpq._protocol.protocol import Answer
from sockpq._protocol.session import WINDOW, Session, SessionLost
from sockpq.errors import Busy, NotServing, OutcomeUnknown
from sockpq.model import Handed

Refusal = Busy | NotServing | NotRecognizedAnyMore | SessionLost | OutcomeUnknown

WINDOW_COMMANDS_MAX = 1000
ANSWERS_BYTES_MAX = 33_554_432  # half of what a server keeps of unread answers before it cuts the connection
BODY_BYTES_USUAL = 8_388_608    # the longest body, unless a server is configured otherwise
WINDOW_BYTES_MAX = 262_144      # below what a server keeps for one connection, so that neither side waits for the other


class Batch:
    """Commands sent over one connection after another, until each has its answer.

    A position is waiting, sent or answered. When a connection is lost, the outcomes of the commands sent on it are
    open: their session will resolve them. Without a session they are unknown.
    """

    def __init__(self, commands: Sequence[Command[Any]], brings_jobs: bool = False) -> None:
        """`brings_jobs`: the answers are of unknown length, and no more are requested than a server remembers."""
        self.answers: list[Answer | None] = [None] * len(commands)
        self.refusal: Refusal | None = None                 # the server executes nothing for now: send no more
        self._commands = commands
        self._answer_bytes = BODY_BYTES_USUAL if brings_jobs else 1     # the longest to be expected
        self._session: Session | None = None
        self._numbers: dict[int, int] = {}                  # position -> its number in that session, once it was sent
        self._longest = 0                                   # of the jobs that have come
        self._waiting = deque(range(len(commands)))
        self._sent: deque[int] = deque()
        self._sent_bytes = 0
        self._refused: list[int] = []
        self._lost: list[int] = []                          # sent on a connection that ended
        self._open: set[int] = set()                        # lost once, in this session, perhaps sent again since then
        self._doubtful: set[int] = set()                    # the same without a session

    @property
    def needs(self) -> tuple[str, ...]:
        """The words of CAPS that the server must have."""
        return self._commands[0].needs

    @property
    def exact(self) -> bool:
        """True if the commands are numbered requests."""
        return self._session is not None

    @property
    def open(self) -> bool:
        """True if the session must be asked about any outcome."""
        return bool(self._open)

    @property
    def unknown(self) -> tuple[int, ...]:
        """The positions that have no answer and may have been executed."""
        return tuple(sorted(position for position in self._open | self._doubtful if self.answers[position] is None))

    @property
    def not_executed(self) -> tuple[int, ...]:
        """The positions that have no answer and were certainly not executed."""
        return tuple(sorted({*self._refused, *self._waiting} - self._open - self._doubtful))

    @property
    def in_flight(self) -> bool:
        """True if any answer is outstanding on this connection."""
        return bool(self._sent)

    def begin(self, session: Session | None) -> None:
        """Begin on the next connection, which is attached to this session."""
        if session is not self._session:
            self._session = session
            self._numbers.clear()
            self._doubtful |= self._open        # the answers of the session before are lost with it
            self._open.clear()

    def next(self) -> list[tuple[Command[Any], int]]:
        """Return the commands to send now, with their numbers.

        There are none while half the window is in flight, or after a refusal.
        """
        window = min(WINDOW if self._session else WINDOW_COMMANDS_MAX, ANSWERS_BYTES_MAX // self._answer_bytes or 1)
        if self.refusal or len(self._sent) > window // 2 or self._sent_bytes > WINDOW_BYTES_MAX // 2:
            return []
        requests = []
        while self._waiting and len(self._sent) < window:
            position = self._waiting[0]
            command = self._commands[position]
            size = len(command.line) + len(command.data)
            number = self._number(position)
            if self._sent and (
                self._sent_bytes + size > WINDOW_BYTES_MAX or number >= self._number(self._sent[0]) + window
            ):
                break
            self._sent.append(self._waiting.popleft())
            self._sent_bytes += size
            requests.append((command, number))
        return requests

    def answered(self, answers: Sequence[Answer]) -> bool:
        """Process the next answers of this connection, in order. Returns whether any command was executed."""
        progress = False
        lengths = [len(answer.value.data) for answer in answers if isinstance(answer.value, Handed)]
        if lengths:
            self._longest = max(self._longest, *lengths)
            self._answer_bytes = self._longest
        for answer in answers:
            position = self._sent.popleft()
            command = self._commands[position]
            self._sent_bytes -= len(command.line) + len(command.data)
            if isinstance(answer.error, OutcomeUnknown):
                self.refusal = answer.error
                self._lose([position])
            elif isinstance(answer.error, Refusal):
                self.refusal = answer.error
                self._refused.append(position)
            else:
                self.answers[position] = answer
                self._open.discard(position)
                progress = True
        return progress

    def not_sent(self, count: int) -> None:
        """Take back the last `count` commands given out by `next`, which did not leave this process."""
        self._refused += [self._sent.pop() for _ in range(count)]

    def lost(self) -> bool:
        """Give up the connection; return whether anything sent on it was still unanswered."""
        lost = bool(self._sent)
        if self._longest:
            self._answer_bytes = max(self._longest, BODY_BYTES_USUAL)       # perhaps it was too much
        self._lose(self._sent)
        self._sent.clear()
        self._sent_bytes = 0
        return lost

    def again(self) -> None:
        """Queue all commands without an answer again, in their old order, including unknown ones."""
        self._waiting = deque(sorted([*self._waiting, *self._refused, *self._lost]))
        self._refused, self._lost, self.refusal = [], [], None

    def _lose(self, positions: Collection[int]) -> None:
        self._lost += positions
        (self._open if self._session else self._doubtful).update(positions)

    def _number(self, position: int) -> int:
        if self._session is None:
            return 0
        number = self._numbers.get(position)
        if number is None:
            number = self._numbers[position] = self._session.take()
        return number
