"""The demo's progress: two bars on a terminal, a line per second elsewhere."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from bench.demo.actors import Collector, Producer

BARS_S = 0.1
LINES_S = 1.0


class Progress:
    """Shows the progress of the jobs while the block runs."""

    def __init__(self, console: Console, jobs: int, producer: Producer, collector: Collector) -> None:
        self._console = console
        self._jobs = jobs
        self._producer = producer
        self._collector = collector
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._bars if console.is_terminal else self._lines, daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()

    def _bars(self) -> None:
        columns = TextColumn("{task.description:>12}"), BarColumn(None), MofNCompleteColumn(), TimeElapsedColumn()
        with ExitStack() as stack:
            bars = stack.enter_context(Bars(*columns, console=self._console, transient=True))
            acknowledged = bars.add_task("acknowledged", total=self._jobs)
            done = bars.add_task("done", total=self._jobs)
            while not self._stopping.wait(BARS_S):
                bars.update(acknowledged, completed=self._producer.acknowledged)
                bars.update(done, completed=len(self._collector.done))

    def _lines(self) -> None:
        while not self._stopping.wait(LINES_S):
            self._console.log(
                f"{self._producer.acknowledged} of {self._jobs} acknowledged, {len(self._collector.done)} done"
            )
