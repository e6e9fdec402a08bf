"""Open-loop load: commands are sent at a given rate, whether or not earlier ones have been answered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import perf_counter_ns

from bench.load_generator.closed_loop import ANSWER_S
from bench.load_generator.figures import LoadFigures
from bench.load_generator.jobs import Jobs
from bench.load_generator.wire import LINE, LOST, Answer, Wire

LATE = "sent late by"       # the generator's own delay, reported separately from the server's
LOOK_S = 0.05
SLEEP_S_MIN = 0.001     # the resolution of the loop's clock: shorter sleeps would spin and take CPU from the nodes


class Pacer:
    """Sends PUTs over some connections in turn."""

    def __init__(self, wires: Sequence[Wire], jobs: Jobs, per_second: float, figures: LoadFigures) -> None:
        self._wires = wires
        self._jobs = jobs
        self._interval_ns = 1e9 / per_second
        self._figures = figures
        self._note_late, self._note_put = figures.noter(LATE), figures.noter("PUT")
        self._sent = 0
        self._answered = 0
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True

    async def run(self, seconds: float | None = None) -> float:
        """Send for `seconds`, or until stopped; returns the seconds from the first command to the last answer."""
        begun = perf_counter_ns()
        self._figures.begin(begun)
        until = None if seconds is None else begun + int(seconds * 1e9)
        while not self._stopped and (until is None or perf_counter_ns() < until):
            due = self._send(begun, perf_counter_ns())
            await asyncio.sleep(max((due - perf_counter_ns()) / 1e9, SLEEP_S_MIN))
        while self._answered < self._sent:
            if perf_counter_ns() - self._figures.last_ns > ANSWER_S * 1e9:
                self._figures.problems["no answer"] += self._sent - self._answered
                break
            await asyncio.sleep(LOOK_S)
        return max(self._figures.last_ns - begun, 1) / 1e9

    def _send(self, begun: int, now: int) -> int:
        """Send all commands that are due; returns the time of the next one."""
        used = []
        while (due := begun + int(self._sent * self._interval_ns)) <= now:
            wire = self._wires[self._sent % len(self._wires)]
            self._note_late(due, now)
            wire.ask(self._jobs.put(), LINE, self._on_answer)
            used.append(wire)
            self._sent += 1
        for wire in used:
            wire.flush()
        return due

    def _on_answer(self, answer: Answer) -> None:
        self._answered += 1
        if answer.good:
            self._note_put(answer.asked_ns, answer.now_ns)
        else:
            told = "connection lost" if answer.line == LOST else f"PUT: {answer.line.decode('ascii', 'replace')}"
            self._figures.problems[told] += 1
            self._stopped = self._stopped or answer.line == LOST
