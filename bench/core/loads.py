"""Loads of the state machine alone, without nodes, disks or sockets: what one operation costs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from random import Random
from types import FrameType
from typing import Any

from sockpqd.core import Applied, Machine, Operation

NOW_MS = 1_000_000


class CoreAlone:
    """The name of the measurement, for the record."""

    kind = "The state machine alone"
    cluster = None

    def version(self) -> str | None:
        try:
            return version("sockpqd")
        except PackageNotFoundError:
            return None


class CoreDriver:
    """A machine, and entries for it with random bits of a fixed seed."""

    def __init__(self) -> None:
        self.machine = Machine()
        self._random = Random(1)
        self.now_ms = NOW_MS

    def entry(self, *operations: Operation) -> tuple[int, int, int, list[Operation]]:
        """The arguments of `apply` for the next entry."""
        return self.machine.index + 1, self.now_ms, self._random.getrandbits(64), list(operations)

    def do(self, *operations: Operation) -> Applied:
        return self.machine.apply(*self.entry(*operations))


def timed_ns(call: Callable[[], object]) -> int:
    """The processor time of a call."""
    began_ns = time.process_time_ns()
    call()
    return time.process_time_ns() - began_ns


def opcodes(call: Callable[[], object]) -> int:
    """The number of instructions that Python executes in a call; what is written in C counts as one."""
    counted = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal counted
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        counted += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return counted
