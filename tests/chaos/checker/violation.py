"""A promise that was broken, and its description."""

from __future__ import annotations

from msgspec import Struct

from tests.chaos.checker.facts import Facts
from tests.chaos.workload.history import (
    Beat,
    Cascade,
    Command,
    Copies,
    Done,
    DoneMany,
    Get,
    GetMany,
    Later,
    LaterMany,
    Move,
    Put,
    PutOff,
    Puts,
    PutWith,
    Record,
    Steer,
    Touch,
    TouchMany,
)


class Violation(Struct, frozen=True):
    """A violation: nothing that could have happened explains these records."""

    rule: str
    text: str                       # a sentence; its times are relative to the start of the run
    records: tuple[Record, ...]


class Teller:
    """Describes times, commands and records in words for a sentence."""

    def __init__(self, facts: Facts) -> None:
        self._start_ns = facts.start_ns

    def at(self, ns: int) -> str:
        """Format a time as seconds since the start of the history."""
        return f"{(ns - self._start_ns) / 1e9:.3f} s"

    def record(self, record: Record) -> str:
        """Describe who did what, when and where."""
        end = "open" if record.end_ns is None else self.at(record.end_ns)
        where = "" if record.server is None else f" at {record.server}"
        return f"{_command(record)} by {record.client}{where} [{self.at(record.start_ns)} .. {end}]"


def _command(record: Record) -> str:
    command = record.command
    match command:
        case Put():
            return f"PUT {command.queue} {command.priority} of {command.body}"
        case Get():
            by = "" if command.policy is None else f" BY {command.policy.upper()}"
            what = f"{_verb(command)} {'|'.join(command.queues) or '*'}{by}"
            handed = record.handed
            return what if handed is None else f"{what} that gave {handed.body} as {handed.id}"
        case Done():
            return f"DONE {command.id}"
        case Later():
            return f"LATER {command.id}"
        case GetMany():
            given = ", ".join(f"{one.body} as {one.id}" for one in record.given)
            what = "|".join(command.queues) if command.number is None else f"NUMBER {command.number}"
            return f"GET COUNT {command.count} {what} that gave {given or 'nothing'}"
        case _:
            return _wish(command)


def _wish(command: Command) -> str:
    match command:
        case PutWith():
            key = "" if command.key is None else f" KEY {command.key}"
            delay = f" DELAY {command.delay_ms} ms" if command.delay_ms else ""
            return f"PUT {command.queue} {command.priority}{delay}{key} of {command.body}"
        case Puts():
            return f"PUTS of {', '.join(put.body for put in command.puts)}"
        case Copies():
            return f"PUT of {', '.join(put.body for put in command.puts)}"
        case DoneMany():
            return f"DONE {' '.join(map(str, command.ids))}"
        case PutOff(kicked=number) if number is not None:
            return f"BURY {command.id} HERE and KICK JOB NUMBER {number}"
        case PutOff():
            return f"LATER {command.id} DELAY {command.delay_ms} ms"
        case LaterMany():
            return f"LATER {' '.join(map(str, command.ids))} FIRST"
        case TouchMany():
            return f"TOUCH {' '.join(map(str, command.ids))} EXPIRE {command.expire_ms} ms"
        case Beat():
            return f"WORKER {command.pool}"
        case Steer():
            return f"WORKER SET {command.pool} MAX {command.most}"
        case Touch():
            return f"TOUCH {command.id} EXPIRE {command.expire_ms} ms"
        case Move():
            return f"MOVE {command.id} {command.queue}"
        case Cascade():
            return f"transaction of DONE {command.done} and PUT of {', '.join(put.body for put in command.puts)}"
        case _:
            return repr(command)


def _verb(get: Get) -> str:
    if get.item is not None:
        return f"hand-out of item {get.item} in"
    if get.until_finished:
        return "GETBE"
    return "GETB" if get.blocks else "GET"
