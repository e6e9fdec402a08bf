"""Fair shares: groups, the time that work took, levels and settings, as the client sends and reads them."""

from __future__ import annotations

from typing import Any

import pytest
from sockpq import BadArguments, Client, FairGroup, FairLevel
from sockpq._protocol.commands import jobs, queues
from sockpq._protocol.reader import Reader

from tests.client.real_server import RealServer


def answered(reader: Reader[Any], *pieces: bytes) -> Any:
    """Return the client's reading of these lines."""
    next(reader)
    for piece in pieces:
        try:
            reader.send(piece)
        except StopIteration as end:
            return end.value
    raise AssertionError("it wants more")


def test_lines_of_jobs() -> None:
    assert jobs.put("q", b"x", group="user_7").line == b"PUT q 0 1 GROUP user_7\r\n"
    assert jobs.done(5, ran=2.5).line == b"DONE 5 RAN 2.500\r\n"
    assert jobs.done(5, last=True, ran=1).line == b"DONE 5 LAST RAN 1\r\n"
    assert jobs.later(5, yielded=True, ran=1).line == b"LATER 5 YIELD RAN 1\r\n"
    assert jobs.touch(5, ran=0.5).line == b"TOUCH 5 RAN 0.500\r\n"
    assert jobs.get("q", policy="fair").line == b"GET q BY FAIR\r\n"
    for wrong in ("", "a b", "x" * 65):
        with pytest.raises(BadArguments):
            jobs.put("q", b"x", group=wrong)
    with pytest.raises(BadArguments):
        jobs.done(5, ran=-1)
    with pytest.raises(BadArguments):
        jobs.get("q", policy="best")       # type: ignore[arg-type]


def test_levels_and_groups() -> None:
    levels = queues.sched_levels()
    assert levels.line == b"SCHED SHOW\r\n"
    assert answered(levels.read(), b"200 OK 1", b"LEVEL 0 TIME 1500000 WAITING 2 SELECTED 3") == [
        FairLevel(0, 1_500_000, 2, 3),
    ]
    group = queues.sched_group("user_7")
    assert group.line == b"SCHED GROUP user_7\r\n"
    for name in ("mail@print", "q" * 255, ".u"):        # of queues without groups, too
        assert queues.sched_group(name).line == f"SCHED GROUP {name}\r\n".encode()
    for wrong in ("", "a b", "q" * 256):
        with pytest.raises(BadArguments):
            queues.sched_group(wrong)
    assert answered(group.read(), b"200 OK LEVEL 1 USED 2 PRIORITY 3 WAITING 4 RUNNING 5") == FairGroup(1, 2, 3, 4, 5)


def test_settings() -> None:
    steps = queues.sched_config({"levels": (0, 5), "cap": 5, "multiplier": 4, "group_keep": 0.5})
    assert [one.line for one in steps.before] == [b"SCHED CONFIG LEVELS 0|5 CAP 5 MULTIPLIER 4 GROUPKEEP 0.500\r\n"]
    assert queues.sched_config({}).before == ()
    assert queues.queue_config("q", {"sched": "fair"}).before[0].line == b"QUEUE CONFIG q SCHED FAIR\r\n"


def test_what_a_loop_tells_is_charged_once() -> None:
    with RealServer() as server, Client(server.address, timeout=60) as client:
        for queue in ("touched", "ended"):
            client.put(queue, b"1", group=queue)
        for job in client.consume("touched", policy="fair", expire=60, wait=0.01):
            server.pass_time(30)
            job.progress(50)
            job.touch()
        assert client.sched_group("touched").used_us < 15_000_000      # what the loop measures: hardly any time
        for job in client.consume("ended", policy="fair", expire=60, wait=0.01):
            server.pass_time(30)
            job.done()
        assert client.sched_group("ended").used_us < 15_000_000
