"""The loop and the reader of answers that simulated gateways are run with."""

from __future__ import annotations

import asyncio

import pytest

from tests.sim.gateway.answers import AnswerReader, Asked, Form
from tests.sim.gateway.loop import SimLoop
from tests.sim.world.events import RIGHT_MS, UNIX_MS, DriftingClock, Events
from tests.sim.world.trace import Violation


class Time:
    now = 5.0

    def __call__(self) -> float:
        return self.now


def test_callbacks_come_in_order_and_timers_at_their_time() -> None:
    time, told = Time(), []
    loop = SimLoop(time)
    loop.call_later(2.0, told.append, "later")
    loop.call_later(1.0, told.append, "never").cancel()
    loop.call_soon(told.append, "soon")
    loop.first(lambda: told.append("first"))
    assert loop.busy
    loop.run()
    assert (told, loop.busy, loop.next_s()) == (["first", "soon"], False, 7.0)
    time.now = 7.0
    loop.run()
    assert told[2:] == ["later"]


def test_what_becomes_ready_meanwhile_waits_for_the_next_iteration() -> None:
    loop, told = SimLoop(Time()), []
    loop.call_soon(lambda: loop.call_soon(told.append, "next"))
    loop.run()
    assert not told
    loop.run()
    assert told == ["next"]


def test_tasks_sleep_by_its_clock() -> None:
    time, told = Time(), []
    loop = SimLoop(time)

    async def work() -> None:
        await asyncio.sleep(3)
        told.append(loop.time())
    with loop.running():
        loop.create_task(work())
        loop.run()
        time.now = 8.0
        while loop.busy or loop.next_s() <= time.now:
            loop.run()
    assert told == [8.0]


def test_an_error_in_a_callback_is_raised() -> None:
    loop = SimLoop(Time())
    loop.call_soon(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        loop.run()


def test_answers_are_cut_out_of_a_stream_however_it_comes() -> None:
    stream = b"200 OK\r\n200 OK GO 7 3\r\nab\n200 OK 2\r\nq 5 0 1\r\nr 6 0 2\r\nxyz404 Queue Empty\r\n"
    for size in (1, 5, len(stream)):
        reader = AnswerReader()
        reader.expected.extend([Asked(), Asked(Form.TURN, "p"), Asked(Form.JOBS), Asked(Form.JOBS)])
        answers = [answer for at in range(0, len(stream), size) for answer in reader.feed(stream[at:at + size])]
        assert [answer.line.split()[0] for answer in answers] == [b"200", b"200", b"200", b"404"]
        assert (answers[1].ticket, answers[2].jobs) == (7, ((b"q", 5), (b"r", 6)))


def test_nobody_is_told_what_was_not_asked() -> None:
    with pytest.raises(Violation):
        AnswerReader().feed(b"200 OK\r\n")


@pytest.mark.parametrize("speed", [0.98, 1.02])
def test_wall_clocks_stay_right_for_an_hour_however_fast_monotonic_ones_run(speed: float) -> None:
    events = Events()
    clock = DriftingClock(events, 0.0, speed)
    for events.now in (1.0, 60.0, 3600.0):
        assert abs(clock.wall_ms() - UNIX_MS - events.now * 1000) <= RIGHT_MS
    assert clock.monotonic() == pytest.approx(3600 * speed)
    clock.wall_offset_ms = 86_400_000
    assert clock.wall_ms() > UNIX_MS + 86_400_000
