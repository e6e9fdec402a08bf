"""A client without session: each command is tried once, and its outcome is recorded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from tests.chaos.workload.bodies import body, name_of
from tests.chaos.workload.history import (
    Command,
    Done,
    Finished,
    Get,
    Handed,
    History,
    Later,
    Outcome,
    Policy,
    Put,
    Record,
)
from tests.wire import Broken, Refused, Wire, server_number

ANSWER_S = 5.0          # an answer that is owed comes within this time, or is given up
ASK_S = 0.3             # a server that is alive sends its number within this time
LOOK_S = 1.0            # so often one that waits asks whether its server still leads
PAUSE_S = 0.02

FINISHED = {
    "200 OK": Finished(False, False), "200 OK FINQ": Finished(True, False), "200 OK FINI": Finished(False, True),
    "200 OK FINQ FINI": Finished(True, True),
}


class Unexpected(Exception):
    """An answer that the protocol does not allow there: a defect, never a fault of the network."""


class PlainClient:
    """One command after the other, on a connection to the server with the smallest number."""

    def __init__(self, name: str, servers: Mapping[str, str], history: History) -> None:
        """`servers`: the address of each node."""
        self.name = name
        self._servers = dict(servers)
        self._history = history
        self._stopping = threading.Event()
        self._wire: Wire | None = None
        self._server: str | None = None

    def stop(self) -> None:
        """Withdraw what waits, and stop connecting; for another thread."""
        self._stopping.set()

    def close(self) -> None:
        """End the connection."""
        if self._wire is not None:
            self._wire.close()
        self._wire = None

    # commands: each writes a record and returns it; None when no server was found

    def put(self, put: Put) -> Record | None:
        """PUT. An item `""` is one that the server names."""
        return self._run(put, lambda start: self._put(put, start))

    def get(self, get: Get) -> Record | None:
        """Send GET, GETB or GETBE, and record its outcome."""
        return self._run(get, lambda start: self._get(get, start))

    def done(self, number: int) -> Record | None:
        """Send DONE, and record its outcome."""
        return self._run(Done(number), lambda start: self._end(Done(number), start))

    def later(self, number: int) -> Record | None:
        """Send LATER, and record its outcome."""
        return self._run(Later(number), lambda start: self._end(Later(number), start))

    def call(self, put: Put, output: Get) -> list[Record]:
        """Execute PUT .. NEW WAIT; return the record of the PUT, and the output's if the PUT was executed."""
        first = self._run(put, lambda start: self._put(put, start, f" WAIT {output.queues[0]}{_lease(output)}"))
        if first is None or first.outcome is Outcome.NOT_EXECUTED:
            return [first] if first else []
        assert isinstance(first.command, Put)
        output = Get(output.queues, output.expire_ms, output.then_done, blocks=True, item=first.command.item)
        if first.outcome is Outcome.UNKNOWN:        # if it was executed it may have been given its output, too
            second = self._record(output, first.start_ns, Outcome.UNKNOWN)
            self._history.add(second)
            return [first, second]
        began = first.start_ns
        return [first, self._attempt(output, began, lambda start: self._handed(output, start, self._wait()))]

    # inside

    def _run(self, command: Command, execute: Callable[[int], Record]) -> Record | None:
        if not self._connected():
            return None
        return self._attempt(command, time.monotonic_ns(), execute)

    def _attempt(self, command: Command, start: int, execute: Callable[[int], Record]) -> Record:
        try:
            record = execute(start)
        except Refused:
            record = self._record(command, start, Outcome.NOT_EXECUTED)
            self.close()
        except Broken as broken:
            outcome = Outcome.UNKNOWN if broken.sent else Outcome.NOT_EXECUTED
            self._server = self._server if broken.sent else None
            record = self._record(command, start, outcome)
            self.close()
        self._history.add(record)
        return record

    def _record(self, command: Command, start: int, outcome: Outcome, **answer: object) -> Record:
        end = time.monotonic_ns()
        return Record(self.name, as_known(command), start, end, outcome, self._server, **answer)   # type: ignore[arg-type]

    def _put(self, put: Put, start: int, wait: str = "") -> Record:
        data = body(put.body)
        item = "" if put.item is None else f" IS {put.item}" if put.item else " NEW"
        line = self._say(f"PUT {put.queue} {put.priority} {len(data)}{item}{wait}", data)
        expected = "206 Wait for output" if wait else "200 OK"
        if put.item == "" and line.startswith(f"{expected} IS "):
            put = Put(put.body, put.queue, put.priority, line[len(expected) + 4:])
        elif line != expected or put.item == "":
            raise Unexpected(f"{line!r} to a PUT")
        return self._record(put, start, Outcome.OK)

    def _get(self, get: Get, start: int) -> Record:
        verb = "GETBE" if get.until_finished else "GETB" if get.blocks else "GET"
        self._send(f"{verb} {'|'.join(get.queues)}{_lease(get)}{by(get.policy)}")
        line = self._wait() if get.blocks else self._line()
        if line == "404 Queue Empty" and (get.until_finished or not get.blocks):
            return self._record(get, start, Outcome.OK)
        return self._handed(get, start, line)

    def _handed(self, get: Get, start: int, line: str) -> Record:
        words = line.split(" ")
        if words[:2] != ["200", "OK"] or len(words) not in (6, 8):
            raise Unexpected(f"{line!r} to a GET")
        assert self._wire
        data = self._wire.exactly(int(words[5]))
        item = words[7] if len(words) == 8 else None
        handed = Handed(int(words[3]), words[2], int(words[4]), name_of(data), item)
        return self._record(get, start, Outcome.OK, handed=handed)

    def _end(self, command: Done | Later, start: int) -> Record:
        verb = "DONE" if isinstance(command, Done) else "LATER"
        line = self._say(f"{verb} {command.id}")
        if line == "404 Job Not Found":
            return self._record(command, start, Outcome.OK, missing=True)
        if line not in FINISHED or (verb == "LATER" and line != "200 OK"):
            raise Unexpected(f"{line!r} to a {verb}")
        return self._record(command, start, Outcome.OK, finished=FINISHED[line] if verb == "DONE" else None)

    def _say(self, line: str, data: bytes = b"") -> str:
        self._send(line, data)
        return self._line()

    def _send(self, line: str, data: bytes = b"") -> None:
        assert self._wire
        self._wire.send(line, data)

    def _line(self, wait: float | None = None) -> str:
        assert self._wire
        line = self._wire.line(wait)
        if line in ("500 Offline Mode", "503 Busy"):
            raise Refused(line)
        return line

    def _wait(self) -> str:
        """The line of an answer that may be long in coming: as long as this server leads, and until `stop`."""
        assert self._wire
        while not self._stopping.is_set():
            try:
                return self._line(LOOK_S)
            except TimeoutError:
                if self._other_leads():
                    raise Broken("another server leads") from None
        self._wire.finish()
        return self._line()

    def _other_leads(self) -> bool:
        others = [name for name in self._servers if name != self._server]
        numbers = self._numbers([*others, self._server or ""])
        mine = numbers.pop(self._server or "", None)
        return bool(numbers) and (mine is None or min(numbers.values()) < mine)

    def _numbers(self, names: list[str]) -> dict[str, int]:
        with ThreadPoolExecutor(len(names)) as pool:
            numbers = pool.map(lambda name: server_number(self._servers[name], ASK_S), names)
            return {name: number for name, number in zip(names, numbers, strict=True) if number is not None}

    def _connected(self) -> bool:
        """Connect to the server that is most likely to serve; False when stopped."""
        while self._wire is None:
            if self._stopping.wait(PAUSE_S):
                return False
            numbers = self._numbers(list(self._servers))
            if numbers:
                self._server = min(numbers, key=numbers.__getitem__)
                try:
                    self._wire = Wire(self._servers[self._server], ANSWER_S)
                except Broken:
                    continue
        return True


def as_known(command: Command) -> Command:
    """Return the command for the record: an item that the server names has no name before the answer."""
    if isinstance(command, Put) and command.item == "":
        return Put(command.body, command.queue, command.priority)
    return command


def by(policy: Policy | None) -> str:
    """Return the BY option of a GET."""
    return "" if policy is None else f" BY {policy.upper()}"


def _lease(get: Get) -> str:
    if get.expire_ms is None:
        return ""
    return f" EXPIRE {get.expire_ms / 1000:g} THEN {'DONE' if get.then_done else 'LATER'}"
