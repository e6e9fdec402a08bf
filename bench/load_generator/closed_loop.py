"""Closed-loop load: each client sends its next command when its last one is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import perf_counter_ns

from bench.load_generator.figures import LoadFigures
from bench.load_generator.jobs import Jobs, put_ns
from bench.load_generator.wire import GOOD, JOB, LINE, LOST, Answer, Wire

KINDS = {"PUT": LINE, "GET": JOB, "GETB": JOB, "DONE": LINE}
ANSWER_S = 10.0         # without any answer for this long, the run is aborted
LOOK_S = 0.25


class Shift:
    """The state shared by several cycles: how many times they may still begin, and how many are at work."""

    def __init__(self, times: int | None = None) -> None:
        """Allow `times` cycles in all, or any number until stopped (None)."""
        self._left = times
        self._working = 0
        self._stopped = False
        self.over = asyncio.Event()

    def join(self) -> None:
        """Count a cycle that starts work."""
        self._working += 1

    def leave(self) -> None:
        """Count a cycle that has finished work."""
        self._working -= 1
        if not self._working:
            self.over.set()

    def take(self) -> bool:
        """Take permission for one more round; returns False if there is none left."""
        if self._stopped or self._left == 0:
            return False
        if self._left is not None:
            self._left -= 1
        return True

    def stop(self) -> None:
        """Allow no further rounds; the current ones are completed."""
        self._stopped = True


class Cycle:
    """Repeats steps, like PUT or GET and DONE, one command at a time."""

    def __init__(self, wire: Wire, steps: Sequence[str], jobs: Jobs, figures: LoadFigures, shift: Shift) -> None:
        self._wire = wire
        self._steps = steps
        self._kinds = [KINDS[step] for step in steps]
        self._makers = [self._maker(step, jobs) for step in steps]
        self._notes = [figures.noter(step) for step in steps]
        self._note_delivery = figures.noter("delivery") if jobs.stamped else None
        self._figures = figures
        self._shift = shift
        self._place = 0
        self._job_id = b""
        shift.join()

    def start(self) -> None:
        self._begin()
        self._wire.flush()

    def _maker(self, step: str, jobs: Jobs) -> Callable[[], bytes]:
        """The function that makes the command of this step."""
        if step == "PUT":
            return jobs.put
        if step == "DONE":
            return lambda: b"DONE %b\r\n" % self._job_id
        command = jobs.get if step == "GET" else jobs.getb
        return lambda: command

    def _begin(self) -> None:
        if self._shift.take():
            self._place = 0
            self._send()
        else:
            self._shift.leave()

    def _send(self) -> None:
        self._wire.ask(self._makers[self._place](), self._kinds[self._place], self._answered)

    def _answered(self, answer: Answer) -> None:
        line, data, asked_ns, now_ns = answer
        place = self._place
        if not line.startswith(GOOD):
            self._failed(self._steps[place], line)
            return
        self._notes[place](asked_ns, now_ns)
        if self._kinds[place] == JOB:
            self._job_id = line.split(b" ", 4)[3]
            if self._note_delivery:
                self._note_delivery(put_ns(data), now_ns)
        self._place += 1
        if self._place < len(self._steps):
            self._send()
        else:
            self._figures.cycles += 1
            self._begin()

    def _failed(self, step: str, line: bytes) -> None:
        """Count a failed step, and stop this cycle unless it only found an empty queue that will fill again."""
        told = "connection lost" if line == LOST else f"{step}: {line.decode('ascii', 'replace')}"
        self._figures.problems[told] += 1
        if line.startswith(b"404") and self._steps[0] == "PUT":
            self._begin()       # others were faster, and there will be more
        else:
            self._shift.leave()


async def work(cycles: Sequence[Cycle], shifts: Sequence[Shift], figures: LoadFigures, seconds: float | None) -> float:
    """Run the cycles to their end, or for `seconds`; returns the seconds until the last answer."""
    begun = perf_counter_ns()
    figures.begin(begun)
    for cycle in cycles:
        cycle.start()
    until = None if seconds is None else begun + int(seconds * 1e9)
    over = asyncio.gather(*(shift.over.wait() for shift in shifts))
    while not over.done():
        await asyncio.wait((over,), timeout=LOOK_S if until is None else min(LOOK_S, seconds or LOOK_S))
        now = perf_counter_ns()
        if until is not None and now >= until:
            for shift in shifts:
                shift.stop()
        if now - figures.last_ns > ANSWER_S * 1e9:
            figures.problems["no answer"] += 1
            over.cancel()
            break
    return max(figures.last_ns - begun, 1) / 1e9
