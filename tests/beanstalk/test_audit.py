"""Administrative commands of beanstalkd clients leave a line in the audit log; other commands do not."""

from __future__ import annotations

import asyncio
import logging

import pytest

from sockpqd.beanstalk import Call, CallFailure, calls
from sockpqd.core import Kick, PauseQueue
from sockpqd.gateway.auth.users_file import Account
from sockpqd.gateway.rights import of_words
from tests.beanstalk.test_node_backend import NOTHING, Place, kinds, put
from tests.gateway.helpers.memory import MemoryGateway, with_gateway


def buried(place: Place, tube: str = "q") -> int:
    """Bury a job of the tube; returns its number."""
    place.do(put(tube))
    job = place.do(calls.Reserve((tube,), 0))
    assert isinstance(job, calls.Reserved)
    assert place.do(calls.Bury(job.handle, 0)) is None
    return job.number


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the lines of the audit log so far."""
    return [record.getMessage() for record in caplog.records if record.name == "sockpqd.audit"]


def test_what_pauses_a_tube_or_brings_jobs_back_is_noted(caplog: pytest.LogCaptureFixture) -> None:
    async def test(gateway: MemoryGateway) -> None:
        place = Place(gateway, user="ann")
        buried(place)
        number = buried(place)
        assert place.do(calls.KickTube("q", 1)) == calls.NumberResult(1)
        assert place.do(calls.KickJob(number)) is None
        assert place.do(calls.KickJob(number)) is CallFailure.NOT_FOUND
        assert place.do(calls.Pause("q", 5)) is None
        place.do(calls.Pause("others", 5))
        assert place.do(calls.Pause("q2", 5, known=False)) is CallFailure.NOT_FOUND
        place.do(calls.Peek(number))
        about = "user=ann address=10.0.0.9:1 action="
        assert lines(caplog) == [
            f"{about}kick object='tube=q count=1' outcome='KICKED 1'",
            f"{about}kick-job object='number={number}' outcome='KICKED'",
            f"{about}kick-job object='number={number}' outcome='NOT_FOUND'",
            f"{about}pause-tube object='tube=q seconds=5' outcome='PAUSED'",
            f"{about}pause-tube object='tube=others seconds=5' outcome='FORBIDDEN'",
            f"{about}pause-tube object='tube=q2 seconds=5' outcome='NOT_FOUND'",
        ]
    with caplog.at_level(logging.INFO, "sockpqd.audit"):
        with_gateway(test, automatic=False, users={"ann": Account(of_words(["put:q*", "get:q*", "queue:q*"]), None)})


def test_of_what_follows_the_end_of_its_connection_a_line_is_left_too(caplog: pytest.LogCaptureFixture) -> None:
    async def test(gateway: MemoryGateway) -> None:
        place = Place(gateway)
        buried(place)
        place.call(calls.KickTube("q", 10_000))
        place.backend.cancel()
        gateway.cluster.commit()
        assert place.result is not NOTHING
        assert len(lines(caplog)) == 1
        assert "action=kick object='tube=q count=10000'" in lines(caplog)[0]
    with caplog.at_level(logging.INFO, "sockpqd.audit"):
        with_gateway(test, automatic=False)


@pytest.mark.parametrize("call", [calls.KickTube("q", 1), calls.Pause("q", 5)])
def test_while_many_lines_wait_none_of_these_is_begun(caplog: pytest.LogCaptureFixture, call: Call) -> None:
    """A flood of them would lose lines."""
    async def test(gateway: MemoryGateway) -> None:
        behind = True
        gateway.hub.audit_behind = lambda: behind
        first, second, other = Place(gateway), Place(gateway), Place(gateway)
        buried(first)
        before = len(kinds(gateway))
        first.call(call)
        second.call(call)
        other.do(calls.PutJob("q", 0, 0, 60, b"x"))
        assert not {Kick, PauseQueue}.intersection(kinds(gateway)[before:])
        assert (first.result, second.result) == (NOTHING, NOTHING)
        behind = False
        async with asyncio.timeout(60):
            while NOTHING in (first.result, second.result):
                await asyncio.sleep(0.01)
                gateway.cluster.commit()
        assert len(lines(caplog)) == 2
    with caplog.at_level(logging.INFO, "sockpqd.audit"):
        with_gateway(test, automatic=False)


def test_one_that_waits_for_room_and_is_given_up_is_not_executed(caplog: pytest.LogCaptureFixture) -> None:
    async def test(gateway: MemoryGateway) -> None:
        place = Place(gateway)
        buried(place)
        gateway.hub.audit_behind = lambda: True
        before = len(kinds(gateway))
        place.call(calls.KickTube("q", 1))
        place.backend.cancel()
        assert place.result is None
        gateway.hub.audit_behind = lambda: False
        async with asyncio.timeout(60):
            while gateway.hub.audit_line.locked():
                await asyncio.sleep(0.01)
        gateway.cluster.commit()
        assert len(kinds(gateway)) == before
        assert len(lines(caplog)) == 1
        assert "the client has gone" in lines(caplog)[0]
    with caplog.at_level(logging.INFO, "sockpqd.audit"):
        with_gateway(test, automatic=False)
