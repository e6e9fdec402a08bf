"""The report of the demo."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

SHOWN_PATHS_MAX = 5


@dataclass(frozen=True)
class Report:
    """The counts of one run; `lost` and `wrong` are paths, times are in seconds."""

    folder: Path
    jobs: int
    acknowledged: int
    done: int
    lost: list[bytes]
    wrong: list[bytes]
    twice: int
    unreadable: int
    changed: int
    longest_gap_s: float
    seconds: float

    @property
    def good(self) -> bool:
        """True if every job was acknowledged and done, and nothing was lost or wrong."""
        return not self.lost and not self.wrong and self.acknowledged == self.jobs == self.done

    def print(self, console: Console) -> None:
        """Print the report, with the verdict last."""
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(justify="left", no_wrap=True)
        table.add_column(justify="right")
        table.add_column(justify="left", style="dim")
        table.add_row("jobs", str(self.jobs), "one per file")
        table.add_row("acknowledged", str(self.acknowledged))
        table.add_row("done", str(self.done), self._remark())
        table.add_row("lost", str(len(self.lost)), style="red" if self.lost else "")
        table.add_row("wrong", str(len(self.wrong)), style="red" if self.wrong else "")
        table.add_row("delivered twice", str(self.twice), "what may have got lost was sent again")
        table.add_row("longest time without an acknowledged command", f"{self.longest_gap_s:.3f} s")
        table.add_row("jobs per second", f"{self.done / self.seconds:.0f}", f"in {self.seconds:.1f} s")
        console.print(table)
        for what, paths in (("lost", self.lost), ("wrong", self.wrong)):
            for path in paths[:SHOWN_PATHS_MAX]:
                console.print(f"{what}: {os.fsdecode(path)!r}", style="red", markup=False)
        if self.good:
            console.print("Nothing was lost, nothing is wrong.", style="bold green")
        else:
            console.print("Something was lost or is wrong.", style="bold red")

    def _remark(self) -> str:
        remarks = [(self.unreadable, "unreadable, which is a result too"), (self.changed, "changed while the demo ran")]
        return ", ".join(f"{count} {what}" for count, what in remarks if count)
