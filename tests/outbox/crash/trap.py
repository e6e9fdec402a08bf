"""The trap of a round, in memory that all processes share: at the k-th point the victim is killed, or falls asleep.

A point is a chunk of bytes that passes a proxy (proxies.py), or a statement of a database without a network.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
from typing import NamedTuple

FIELDS = struct.Struct("<6q")
KIND_BYTES = 64


class State(NamedTuple):
    """`after`: it acts when the chunk has been passed on. `fired`: it has acted."""

    armed: int = 0
    count: int = 0
    at: int = 0
    after: int = 0
    stops: int = 0
    victim: int = 0


class Trap:
    """Made before the first fork."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, FIELDS.size + 1 + KIND_BYTES)

    def arm(self, victim: int, at: int, *, after: bool, stops: bool) -> None:
        """Let the victim be killed, or stopped, at the point number `at`, counted from 1."""
        self._memory[FIELDS.size :] = bytes(1 + KIND_BYTES)
        self._write(State(1, 0, at, after, stops, victim))

    def disarm(self) -> None:
        """Let nothing more happen to a victim."""
        self._write(self._read()._replace(armed=0))

    @property
    def count(self) -> int:
        """The number of points so far."""
        return self._read().count

    @property
    def fired(self) -> str | None:
        """The kind of the point at which it has acted."""
        kind = bytes(self._memory[FIELDS.size + 1 :]).rstrip(b"\0")
        return kind.decode() if self._memory[FIELDS.size] else None

    def before(self, kind: str) -> bool:
        """Count a point; returns False if the victim was killed there, so that the chunk is to be dropped."""
        state = self._read()
        if not state.armed:
            return True
        state = state._replace(count=state.count + 1)
        self._write(state)
        if state.count == state.at and not state.after:
            self._act(state, f"before {kind}")
            return bool(state.stops)
        return True

    def after(self, kind: str) -> None:
        """Act if this was the point, and what came there has happened."""
        state = self._read()
        if state.armed and state.after and state.count == state.at:
            self._act(state, f"after {kind}")

    def _act(self, state: State, kind: str) -> None:
        self._write(state._replace(armed=0))
        self._memory[FIELDS.size + 1 :] = kind.encode()[:KIND_BYTES].ljust(KIND_BYTES, b"\0")
        self._memory[FIELDS.size] = 1
        os.kill(state.victim, signal.SIGSTOP if state.stops else signal.SIGKILL)

    def _read(self) -> State:
        return State(*FIELDS.unpack_from(self._memory))

    def _write(self, state: State) -> None:
        FIELDS.pack_into(self._memory, 0, *state)
