"""The conversation with one client: its commands in their order, one at a time, and their answers.

It has no sockets and no timers. Calls to the queue go to a backend (calls.py); the result becomes the answer, or leads
to another call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Protocol

from msgspec import Struct

from sockpqd.beanstalk import answers, calls
from sockpqd.beanstalk.calls import (
    Backend,
    Call,
    CallFailure,
    Found,
    JobFigures,
    Names,
    NumberResult,
    Reserved,
    Result,
    Sums,
    TubeFigures,
)
from sockpqd.beanstalk.commands import ParsedCommand
from sockpqd.beanstalk.limits import (
    BODY_BYTES_PER_COMMAND,
    COMMANDS_PER_TURN,
    COUNTED_BYTES_MIN,
    FEW,
    NAMES_PER_COMMAND,
    OUTPUT_BYTES_PIECE,
    PER_PIECE,
    RESERVATION_BYTES,
    TOLD_NAME_BYTES,
    TTR_S_MIN,
    WATCHED_BYTES,
)
from sockpqd.beanstalk.reader import FOREIGN, Reader, Wrong
from sockpqd.beanstalk.reservations import Reservations
from sockpqd.beanstalk.server import BeanstalkdServer, Roll
from sockpqd.beanstalk.tubes import Tubes


class ClientLink(Protocol):
    """The connection to the client."""

    def write(self, data: bytes) -> None:
        ...

    def close(self) -> None:
        """Close when everything is sent; further input is ignored."""

    def read_on(self) -> None:
        """Resume reading, if it was paused and there may be room again."""

    def weigh(self) -> None:
        """Charge the client for more memory, although nothing was sent or received."""


class Asking(Struct):
    """A call whose result is awaited, with the function that makes the answer.

    Failures that it does not handle are answered as such.
    """

    call: Call
    then: Callable[[Result], Step]
    failed: Callable[[CallFailure], Step] | None = None


class Telling(Struct):
    """A long answer to a call, in pieces: each is made and sent when it has its turn."""

    call: Call
    pieces: Iterator[bytes]
    held_bytes: int = 0             # of memory that it needs meanwhile


Step = bytes | Asking | Telling

_FAILURES = {
    CallFailure.NOT_FOUND: answers.NOT_FOUND,
    CallFailure.DRAINING: answers.DRAINING,
    CallFailure.OUT_OF_MEMORY: answers.OUT_OF_MEMORY,
    CallFailure.FORBIDDEN: answers.INTERNAL_ERROR,
}


class BeanstalkdConversation:
    """One connection; all calls come from one thread."""

    def __init__(
        self, server: BeanstalkdServer, backend: Backend, link: ClientLink, no_room: Callable[[], bool] = lambda: False,
    ) -> None:
        """`no_room`: whether a body that has yet to arrive cannot be kept."""
        self.producer = self.worker = self.waiting = False
        self.held = Reservations()
        self.reader = Reader(server.body_bytes_max, no_room)
        self.closed = False                         # no more answers are sent
        self._server = server
        self._backend = backend
        self._link = link
        self._turns = server.turns
        self._tubes = Tubes(server.tubes)
        self._ended = False                         # the client has sent its last byte
        self._left = False                          # its jobs are on their way back, or are back
        self._full = False                          # the client does not read its answers
        self._asking: Asking | Telling | None = None
        self._undelivered: tuple[int, ...] = ()     # reservations of which the client will not hear
        self._stepping = False                      # commands are being executed, further up the stack
        self._turn_over = False                     # others have their turn first
        self._stopped = False                       # a long answer goes on when the client has read some of it
        self._out: list[bytes] = []
        self._out_bytes = 0
        server.enter(self)

    # ---- memory held for the client, and expected input

    @property
    def held_bytes(self) -> int:
        """Return the memory held besides written answers; 0 for the little that most connections need."""
        held = self.reader.held_bytes + self._out_bytes
        asking = self._asking
        if asking is not None:
            call = asking.call
            if type(call) is calls.PutJob:
                held += len(call.body) if len(call.body) >= COUNTED_BYTES_MIN else 0
            elif type(asking) is Telling:
                held += asking.held_bytes
            elif type(call) in OF_ALL_TUBES:
                held += len(self._server.tubes) * TOLD_NAME_BYTES
        watched, reserved = len(self._tubes.watched), len(self.held)
        if watched > FEW:
            held += watched * WATCHED_BYTES + 2 * self._tubes.names_bytes
        return held + reserved * RESERVATION_BYTES if reserved > FEW else held

    @property
    def holds_much(self) -> bool:
        """True if more is held than for most connections."""
        asking = self._asking
        return (
            len(self._tubes.watched) > FEW or len(self.held) > FEW or self.reader.pending
            or (asking is not None and type(asking.call) in OF_ALL_TUBES)
        )

    def expected(self) -> tuple[str, int]:
        """Return what is expected, and a number that changes when the client makes progress.

        "ours": nothing from the client; "hello": the first line; "next": the next command; "rest": the rest of one.
        """
        reader = self.reader
        if self.closed or self._ended or self._asking is not None or self._turn_over or self._full:
            return "ours", 0
        if self._server.leaving and self not in self._server.leaving:
            return "ours", 0
        if reader.amid_command and reader.commands:
            return "rest", reader.commands
        return ("next" if reader.commands else "hello"), reader.commands

    # ---- events of the connection

    def receive(self, data: bytes) -> None:
        """Process bytes received from the client."""
        reader = self.reader
        reader.feed(data)
        if self._asking is not None:
            return
        usual = reader.usual
        if (
            usual is None or self._stepping or self._turn_over or self._ended or self._full or self._out
            or self._server.leaving or self._turns.budget <= 0
        ):
            self.go_on()
            return
        reader.usual = None                         # nearly always: one command, and nothing to wait for
        self._turns.budget -= 1
        self._server.counts[usual.verb] += 1
        self._take(_DO[usual.verb](self, usual))
        if self._out:
            self._flush()

    def end(self) -> None:
        """Execute what the client has sent before its last byte; end its waiting `reserve`."""
        if not self._ended:
            self._ended = True
            self._begin_leaving()
            self.go_on()

    def lost(self) -> None:
        """Stop: the connection is gone, and commands not begun are not executed."""
        self.closed = self._ended = True
        self.reader.close()
        self._out.clear()
        self._begin_leaving()
        self.go_on()

    def output_full(self) -> None:
        """Stop executing commands until the client reads its answers."""
        self._full = True
        if self._ended and not self.closed:
            self._server.stays(self)

    def output_taken(self) -> None:
        """Resume after the client has read answers and there is room again."""
        self._full = False
        if self._stopped:
            self._stopped = False
            self._turns.do_piece(self._tell)
        self.go_on()

    def go_on(self) -> None:
        """Execute the commands that are complete."""
        if self._stepping or self._turn_over:
            return
        self._stepping = True
        left, turns = COMMANDS_PER_TURN, self._turns
        while self._asking is None and not self._left and (self.closed or not self._full):
            if self._server.leaving and self._server.holds_up(self):
                break
            if left <= 0 or (turns.budget <= 0 and self.reader.pending):
                self._turn_over = True
                turns.call_in_turn(self._next_turn)
                break
            command = None if self.closed else self.reader.next()
            if command is not None:
                cost = COSTS.get(command.verb, 1)
                left -= cost
                turns.budget -= cost
                self._take(self._answer_to(command))
            elif self._ended:
                self._leave()
            else:
                break
        self._stepping = False
        if self._out:
            self._flush()
        self._link.read_on()

    def _next_turn(self) -> None:
        self._turn_over = False
        self.go_on()

    # ---- steps

    def _answer_to(self, command: ParsedCommand | Wrong) -> Step:
        self._server.count(command.verb)
        if isinstance(command, Wrong):
            if command is FOREIGN:
                self._out.append(command.answer)
                self._hang_up()
                return b""
            return command.answer
        return _DO[command.verb](self, command)

    def _take(self, step: Step) -> None:
        if type(step) is bytes:
            if not self.closed:
                self._out.append(step)
                self._out_bytes += len(step)
                if self._out_bytes > OUTPUT_BYTES_PIECE:
                    self._flush()                   # the link says when it is too much
            return
        if type(step) is Telling:
            if not self.closed:
                self._flush()
                self._asking = step
                self._link.weigh()
                self._turns.do_piece(self._tell)
            return
        assert type(step) is Asking
        self._asking = step
        if self.waiting:
            self._flush()
        self._backend.execute(step.call, self._done)

    def _tell(self) -> bool:
        """Send the next piece of a long answer."""
        telling = self._asking
        if type(telling) is not Telling or self.closed:
            return False
        if self._full:
            self._stopped = True
            return False
        piece = next(telling.pieces, None)
        if piece is None:
            self._asking = None
            self.go_on()
        else:
            if piece:
                self._link.write(piece)
            self._turns.do_piece(self._tell)
        return True

    def _done(self, result: Result | CallFailure) -> None:
        """Answer the call, which has a result."""
        asking, self._asking = self._asking, None
        assert type(asking) is Asking
        if self.waiting:
            self.waiting = False
            tubes = self._server.tubes
            (tubes.leave_line if self.closed else tubes.wait_no_more)(self._tubes.watched)
        if type(result) is not CallFailure:         # cheaper than isinstance() of an enumeration
            step = b"" if self.closed and type(asking.call) in LONG else asking.then(result)  # type: ignore[arg-type]
        elif asking.failed is not None:
            step = asking.failed(result)
        else:
            step = self._refusal(result)
        if type(step) is bytes and not (self._out or self._stepping or self._ended or self.reader.pending):
            self._link.write(step)                      # nearly always
        else:
            self._take(step)
            self.go_on()

    def _refusal(self, failure: CallFailure) -> Step:
        if failure is CallFailure.GONE:
            self._hang_up()
            return b""
        return _FAILURES[failure]

    def _flush(self) -> None:
        if self._out and not self.closed:
            data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
            self._out.clear()
            self._out_bytes = 0
            self._link.write(data)

    # ---- the end

    def _begin_leaving(self) -> None:
        """Block other connections until the jobs of this one are back, unless it has commands to execute first."""
        if self._left:
            return
        if self.closed and type(self._asking) is Telling:
            self._asking = None
        long = self._asking is not None and type(self._asking.call) in LONG
        busy = not self.closed and (self._full or self.reader.pending or long)
        if (self.held or (self._asking is not None and not long)) and not busy:
            self._server.begin_leaving(self)
        if self.waiting or (long and self.closed and self._is_in_vain()):
            self._backend.cancel()

    def _is_in_vain(self) -> bool:
        """Return whether to cancel the long call of a lost connection: it only reads, or others wait for its jobs."""
        assert self._asking is not None
        return bool(self.held) or type(self._asking.call) is not calls.KickTube

    def hang_up(self) -> None:
        """Close the connection from our side; its jobs go back at once."""
        self._hang_up()
        self.go_on()

    def _hang_up(self) -> None:
        self._flush()
        self.reader.close()
        self._ended = True
        if not self.closed:
            self.closed = True
            self._link.close()
        self._begin_leaving()

    def _leave(self) -> None:
        """Give the jobs back, as the connection has ended."""
        self._left = True
        handles = self.held.handles()
        if handles or self._undelivered:
            self._server.begin_leaving(self)
            self._backend.execute(calls.GiveBack(handles, self._undelivered), self._gone)
        else:
            self._gone(None)

    def _gone(self, _: Result | CallFailure) -> None:
        """End the session: its jobs are back, or return when their time to run ends."""
        self._flush()
        self._tubes.close()
        if not self.closed:
            self.closed = True
            self._link.close()
        self._backend.leave()
        self._server.left(self)

    # ---- commands about jobs

    def _put(self, command: ParsedCommand) -> Step:
        self.producer = True
        priority, delay_s, ttr_s = command.numbers
        put = calls.PutJob(self._tubes.used, priority, delay_s, max(ttr_s, TTR_S_MIN), command.body)
        return Asking(put, self._inserted)

    def _inserted(self, result: Result) -> Step:
        assert isinstance(result, NumberResult)
        self._server.jobs += 1
        self._server.tubes.counts(self._tubes.used).jobs += 1
        return answers.inserted(result.number)

    def _reserve(self, command: ParsedCommand) -> Step:
        self.worker = True
        return self._ask_for_a_job(self._server.now() + command.numbers[0] if command.numbers else None)

    def _ask_for_a_job(self, until: float | None) -> Step:
        """Reserve until this time, or until a job of this connection is in the last second of its time to run."""
        wait_s = 0.0 if self._ended else None
        if not self._ended and (until is not None or self.held):
            now = self._server.now()
            ends = [end for end in (until, self.held.soon(now)) if end is not None]
            if ends:
                wait_s = max(min(ends) - now, 0.0)
        watched = self._tubes.watched
        if wait_s != 0.0:
            self.waiting = True
            self._server.tubes.wait(watched)
        if len(watched) > NAMES_PER_COMMAND:
            self._turns.budget -= len(watched) // NAMES_PER_COMMAND
        return Asking(calls.Reserve(watched, wait_s), partial(self._reserved_or_not, until))

    def _reserved_or_not(self, until: float | None, result: Result) -> Step:
        if result is not None:
            return self._reserved(result)
        now = self._server.now()
        soon = self.held.soon(now)
        if soon is not None and soon <= now:
            return answers.DEADLINE_SOON
        if self._ended or (until is not None and until <= now):
            return answers.TIMED_OUT
        return self._ask_for_a_job(until)

    def _reserved(self, result: Result) -> Step:
        assert isinstance(result, Reserved)
        if self.closed:
            self._undelivered += (result.handle,)
            return b""
        self.held.add(result.number, result.handle, result.tube, result.ttr_s, self._server.now())
        return answers.reserved(result.number, result.body)

    def _reserve_job(self, command: ParsedCommand) -> Step:
        self.worker = True
        return Asking(calls.ReserveJob(command.numbers[0]), self._reserved)

    def _delete(self, command: ParsedCommand) -> Step:
        number = command.numbers[0]
        handle = self.held.handle(number)
        return Asking(
            calls.DeleteJob(number, handle), partial(self._deleted, number, handle),
            partial(self._not_ended, number, handle))

    def _deleted(self, number: int, handle: int | None, result: Result) -> Step:
        tube = self.held.drop(number, handle)
        if result is not None:
            assert isinstance(result, Names)
            tube = result.names[0]
        if tube is not None:
            self._server.tubes.counts(tube).deletes += 1
        return answers.DELETED

    def _release(self, command: ParsedCommand) -> Step:
        number, priority, delay_s = command.numbers
        handle = self.held.handle(number)
        if handle is None:
            return answers.NOT_FOUND
        return self._ending(calls.Release(handle, priority, delay_s), number, handle, answers.RELEASED)

    def _bury(self, command: ParsedCommand) -> Step:
        number, priority = command.numbers
        handle = self.held.handle(number)
        if handle is None:
            return answers.NOT_FOUND
        return self._ending(calls.Bury(handle, priority), number, handle, answers.BURIED)

    def _ending(self, call: Call, number: int, handle: int, answer: bytes) -> Step:
        """Ask for a call that ends a reservation."""
        def ended(_: Result) -> Step:
            self.held.drop(number, handle)
            return answer

        return Asking(call, ended, partial(self._not_ended, number, handle))

    def _not_ended(self, number: int, handle: int | None, failure: CallFailure) -> Step:
        """Handle the refusal of a call on a reservation."""
        if failure is CallFailure.NOT_FOUND:
            self.held.drop(number, handle)
        return self._refusal(failure)

    def _touch(self, command: ParsedCommand) -> Step:
        number = command.numbers[0]
        handle = self.held.handle(number)
        if handle is None:
            return answers.NOT_FOUND
        began = self._server.now()

        def touched(_: Result) -> Step:
            self.held.touched(number, began)
            return answers.TOUCHED

        return Asking(calls.TouchJob(handle), touched, partial(self._not_ended, number, handle))

    def _kick(self, command: ParsedCommand) -> Step:
        return Asking(calls.KickTube(self._tubes.used, command.numbers[0]), _kicked)

    def _kick_job(self, command: ParsedCommand) -> Step:
        return Asking(calls.KickJob(command.numbers[0]), lambda _: answers.KICKED)

    def _peek(self, command: ParsedCommand) -> Step:
        return Asking(calls.Peek(command.numbers[0]), self._found)

    def _peek_first(self, command: ParsedCommand) -> Step:
        return Asking(calls.PeekFirst(self._tubes.used, command.verb.removeprefix("peek-")), self._found)

    def _found(self, result: Result) -> Step:
        assert isinstance(result, Found)
        self._turns.budget -= len(result.body) // BODY_BYTES_PER_COMMAND
        return answers.found(result.number, result.body)

    # ---- commands about tubes

    def _use(self, command: ParsedCommand) -> Step:
        self._tubes.use(command.name)
        return answers.using(command.name)

    def _watch(self, command: ParsedCommand) -> Step:
        if not self._tubes.watch(command.name):
            return answers.OUT_OF_MEMORY
        return answers.watching(len(self._tubes.watched))

    def _ignore(self, command: ParsedCommand) -> Step:
        if not self._tubes.ignore(command.name):
            return answers.NOT_IGNORED
        return answers.watching(len(self._tubes.watched))

    def _list_tube_used(self, command: ParsedCommand) -> Step:
        return answers.using(self._tubes.used)

    def _list_tubes_watched(self, command: ParsedCommand) -> Step:
        return answers.yaml_list(self._tubes.watched)

    def _list_tubes(self, command: ParsedCommand) -> Step:
        return Asking(calls.ListTubes(), self._all_tubes)

    def _all_tubes(self, result: Result) -> Step:
        assert isinstance(result, Names)
        own = self._server.tubes.names()
        if len(own) + len(result.names) <= PER_PIECE:
            return answers.yaml_list(dict.fromkeys((*own, *result.names)))
        return Telling(calls.ListTubes(), answers.long_yaml_list(_each_once((*own, *result.names))),
                       (len(own) + len(result.names)) * TOLD_NAME_BYTES)

    def _pause_tube(self, command: ParsedCommand) -> Step:
        def paused(_: Result) -> Step:
            self._server.tubes.counts(command.name).pauses += 1
            return answers.PAUSED

        def pause(known: bool) -> Step:
            return Asking(calls.Pause(command.name, command.numbers[0], known), paused)

        if command.name in self._server.tubes:
            return pause(known=True)
        return Asking(calls.TubeStats(command.name), lambda result: pause(_exists(result)))

    # ---- figures

    def _stats_job(self, command: ParsedCommand) -> Step:
        return Asking(calls.JobStats(command.numbers[0]), _job_stats)

    def _stats_tube(self, command: ParsedCommand) -> Step:
        return Asking(calls.TubeStats(command.name), partial(self._tube_stats, command.name))

    def _tube_stats(self, tube: str, result: Result) -> Step:
        assert isinstance(result, TubeFigures)
        if not result.exists and tube not in self._server.tubes:
            return answers.NOT_FOUND
        return answers.yaml_map(self._server.tube_figures(tube, result))

    def _stats(self, command: ParsedCommand) -> Step:
        return Asking(calls.Totals(tuple(self._server.tubes.names())), self._server_stats)

    def _server_stats(self, sums: Result) -> Step:
        assert isinstance(sums, Sums)
        pieces = self._figures(sums)
        if len(self._server.connections) <= PER_PIECE:
            return b"".join(pieces)
        return Telling(calls.Totals(), pieces)

    def _figures(self, sums: Sums) -> Iterator[bytes]:
        roll = Roll()
        for _ in self._server.count_all(roll):
            yield b""
        yield answers.yaml_map(self._server.figures(sums, roll))

    def _quit(self, command: ParsedCommand) -> Step:
        self._hang_up()
        return b""


def _each_once(names: Iterable[str]) -> Iterator[str]:
    known: set[str] = set()
    for name in names:
        if name not in known:
            known.add(name)
            yield name


def _kicked(result: Result) -> Step:
    assert isinstance(result, NumberResult)
    return answers.kicked(result.number)


def _exists(result: Result) -> bool:
    assert isinstance(result, TubeFigures)
    return result.exists


def _job_stats(result: Result) -> Step:
    assert isinstance(result, JobFigures)
    return answers.yaml_map({
        "id": result.number,
        "tube": answers.quoted(result.tube),
        "state": result.state,
        "pri": result.priority,
        "age": result.age_s,
        "delay": result.delay_s,
        "ttr": result.ttr_s,
        "time-left": result.left_s,
        "file": 0,
        "reserves": result.reserves,
        "timeouts": result.timeouts,
        "releases": result.releases,
        "buries": result.buries,
        "kicks": result.kicks,
    })


# Calls that may take long. They are cancelled when their connection has ended.
LONG = frozenset({calls.KickTube, calls.ListTubes, calls.Totals})
OF_ALL_TUBES = frozenset({calls.ListTubes, calls.Totals})

# Of the budget of a turn, in commands that are a single small operation; all others cost 1.
COSTS = {
    "watch": 2, "ignore": 2, "stats-job": 2, "stats-tube": 2, "kick": 8, "list-tubes": 8, "stats": 8,
    "list-tubes-watched": 16,
}

_DO: dict[str, Callable[[BeanstalkdConversation, ParsedCommand], Step]] = {
    "put": BeanstalkdConversation._put,
    "reserve": BeanstalkdConversation._reserve,
    "reserve-with-timeout": BeanstalkdConversation._reserve,
    "reserve-job": BeanstalkdConversation._reserve_job,
    "delete": BeanstalkdConversation._delete,
    "release": BeanstalkdConversation._release,
    "bury": BeanstalkdConversation._bury,
    "touch": BeanstalkdConversation._touch,
    "kick": BeanstalkdConversation._kick,
    "kick-job": BeanstalkdConversation._kick_job,
    "peek": BeanstalkdConversation._peek,
    "peek-ready": BeanstalkdConversation._peek_first,
    "peek-delayed": BeanstalkdConversation._peek_first,
    "peek-buried": BeanstalkdConversation._peek_first,
    "use": BeanstalkdConversation._use,
    "watch": BeanstalkdConversation._watch,
    "ignore": BeanstalkdConversation._ignore,
    "list-tubes": BeanstalkdConversation._list_tubes,
    "list-tube-used": BeanstalkdConversation._list_tube_used,
    "list-tubes-watched": BeanstalkdConversation._list_tubes_watched,
    "pause-tube": BeanstalkdConversation._pause_tube,
    "stats": BeanstalkdConversation._stats,
    "stats-job": BeanstalkdConversation._stats_job,
    "stats-tube": BeanstalkdConversation._stats_tube,
    "quit": BeanstalkdConversation._quit,
}
