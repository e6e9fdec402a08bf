"""Load at a given rate, without a server."""

from __future__ import annotations

from time import perf_counter_ns, process_time

import pytest
import uvloop

from bench.load_generator import open_loop
from bench.load_generator.figures import LoadFigures
from bench.load_generator.jobs import Jobs
from bench.load_generator.open_loop import LATE, Pacer
from bench.load_generator.wire import Answer, OnAnswer, Wire
from tests.waiting import until

SECONDS = 0.5


class Answering(Wire):
    """Answers at once, or never."""

    def __init__(self, line: bytes | None) -> None:
        super().__init__()
        self.line = line
        self.asked = 0

    def ask(self, command: bytes, kind: int, on_answer: OnAnswer) -> None:
        self.asked += 1
        if self.line is not None:
            on_answer(Answer(self.line, b"", perf_counter_ns(), perf_counter_ns()))


def pace(line: bytes | None, per_second: float) -> tuple[LoadFigures, list[int]]:
    figures, wires = LoadFigures(), [Answering(line) for _ in range(4)]
    uvloop.run(Pacer(wires, Jobs(["q"], 0), per_second, figures).run(SECONDS))
    return figures, [wire.asked for wire in wires]


def test_the_rate_is_kept_over_all_connections_in_turn() -> None:
    def is_kept() -> bool:
        """Return whether it was, unless the machine held up the end of it."""
        begun = process_time()
        figures, asked = pace(b"200 OK", 2000)
        assert process_time() - begun < 0.7 * SECONDS       # or it would take the processor from what is measured
        assert sum(asked) <= 2000 * SECONDS + 1
        assert max(asked) - min(asked) <= 1
        assert len(figures.latencies_us["PUT"]) == len(figures.latencies_us[LATE]) == sum(asked)
        assert not figures.problems
        return sum(asked) > 0.9 * 2000 * SECONDS

    until(is_kept)


def test_it_sends_when_nothing_is_answered_and_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_loop, "ANSWER_S", 0.1)
    figures, asked = pace(None, 100)
    assert sum(asked) > 1
    assert figures.problems == {"no answer": sum(asked)}


def test_what_is_refused_is_no_latency() -> None:
    figures, asked = pace(b"503 Busy", 100)
    assert figures.problems == {"PUT: 503 Busy": sum(asked)}
    assert not figures.latencies_us["PUT"]


def test_a_lost_connection_is_the_end() -> None:
    figures, asked = pace(b"", 100)
    assert figures.problems == {"connection lost": 1}
    assert sum(asked) == 1
