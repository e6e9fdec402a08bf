"""Runs the program of a node, and counts what its event loop executes between two SIGUSR2.

    python bench/opcodes/node.py PROGRAM [ARGUMENT ..]

The second signal writes the counts to the file in OPCODES_FILE as JSON: a list of [file, function, opcodes, calls].
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any


class OpcodeCounter:
    """Counts in the thread in which it is started: instructions and calls, by file and function."""

    def __init__(self, into: Path) -> None:
        self._into = into
        self._counting = False
        self._begin()

    def _begin(self) -> None:
        self._opcodes: Counter[tuple[str, str]] = Counter()
        self._calls: Counter[tuple[str, str]] = Counter()

    def toggle(self, number: int, frame: FrameType | None) -> None:
        """Begin to count, or end and write what was counted: a handler of a signal."""
        self._counting = not self._counting
        sys.settrace(self._trace if self._counting else None)
        if not self._counting:
            rows = [[*name, count, self._calls[name]] for name, count in self._opcodes.items()]
            written = self._into.with_suffix(".new")
            written.write_text(json.dumps(rows))
            written.rename(self._into)          # which is complete when it appears
            self._begin()

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        name = frame.f_code.co_filename, frame.f_code.co_qualname
        if event == "opcode":
            self._opcodes[name] += 1
        elif event == "call":
            self._calls[name] += 1
        return self._trace


def main() -> None:
    """Run the program that the arguments name, in this process."""
    del sys.argv[0], sys.path[0]        # the folder of this file
    signal.signal(signal.SIGUSR2, OpcodeCounter(Path(os.environ["OPCODES_FILE"])).toggle)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
