"""Parses the commands of WORKER: each function reads the words of one."""

from __future__ import annotations

from sockpqd.core import BeatWorker, SetWorker, WorkerState
from sockpqd.gateway.limits import WORKER_SLOTS_MAX
from sockpqd.gateway.protocol.arguments import ArgumentError, between, worker
from sockpqd.gateway.protocol.command import Command, Words
from sockpqd.gateway.protocol.grammar.parts.options import Option, one_of, read_options

_RESERVED = b"LIST", b"SET"     # with these, the line is another command

_slots = between(0, WORKER_SLOTS_MAX)

_SET = {
    b"MAX": Option("most", _slots),
    b"MIN": Option("least", _slots),
    b"STATE": Option("state", one_of({state.name.encode(): state for state in WorkerState})),
}


def _name(word: bytes) -> str:
    if word in _RESERVED:
        raise ArgumentError("a worker cannot be called LIST or SET")
    return worker(word)


def heartbeat(words: Words) -> Command:
    """WORKER <name> <slots> <busy>: it belongs to the connection's session."""
    if len(words) != 4:
        raise ArgumentError("WORKER takes a name, the number of slots, and how many are busy")
    return Command(BeatWorker(_name(words[1]), _slots(words[2]), _slots(words[3])), bound=True)


def set_worker(words: Words) -> Command:
    """WORKER SET <name>, and at least one of MAX, MIN, STATE."""
    if len(words) < 3:
        raise ArgumentError("WORKER SET takes a name, and MAX, MIN or STATE")
    found = read_options(words, 2, _SET)
    operation = SetWorker(_name(words[1]), **found)
    if operation.most is not None and operation.least is not None and operation.least > operation.most:
        raise ArgumentError("MIN is above MAX")
    return Command(operation)
