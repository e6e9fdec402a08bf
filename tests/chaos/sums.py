"""Keeps in a file how long each scenario of a campaign has run, so that a campaign can be resumed."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct, field

from tests.chaos.runner import Result

FAILURES_MAX = 20


class Sum(Struct):
    """All runs of one scenario. `fault_s`: for how long its faults were there, in runs that passed or failed."""

    fault_s: float = 0.0
    passed: int = 0
    failed: int = 0
    void: int = 0
    commands: int = 0
    failures: list[str] = field(default_factory=list)   # seeds, variants and what was broken


class Sums:
    """Written to the file after each run."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.by_name: dict[str, Sum] = {}
        if file.exists():
            self.by_name = msgspec.json.decode(file.read_bytes(), type=dict[str, Sum])

    def seconds(self, name: str) -> float:
        """Return how long this scenario was run, in seconds."""
        return self.by_name[name].fault_s if name in self.by_name else 0.0

    def voids(self, name: str) -> int:
        """Return how many of its runs proved nothing."""
        return self.by_name[name].void if name in self.by_name else 0

    def add(self, result: Result) -> None:
        """Count a run. One that is void proves nothing, so its time does not count."""
        total = self.by_name.setdefault(result.scenario, Sum())
        total.commands += result.commands
        if result.violations:
            total.failed += 1
            text = f"seed {result.seed} ({', '.join(result.variants)}): {result.violations[0]}"
            total.failures = [*total.failures, text][:FAILURES_MAX]
        elif result.void:
            total.void += 1
        else:
            total.passed += 1
        if result.violations or not result.void:
            total.fault_s += result.fault_s
        new = self._file.with_suffix(".new")
        new.write_bytes(msgspec.json.format(msgspec.json.encode(self.by_name)))
        new.replace(self._file)

    def table(self) -> str:
        """Return a line for each scenario, in Markdown."""
        lines = ["| scenario | minutes | passed | failed | void | commands |", "|---|---|---|---|---|---|"]
        lines += [f"| {name} | {total.fault_s / 60:.1f} | {total.passed} | {total.failed} | {total.void} "
                  f"| {total.commands:,} |" for name, total in sorted(self.by_name.items())]
        return "\n".join(lines)
