"""The jobs that a connection holds: its DELETE of them sends no CANCEL, and what has ended is forgotten."""

from __future__ import annotations

import random
import re

import pytest

from sockpqd.core import Handed, HandedMany
from sockpqd.gateway.commands.context.hand_outs import HandOuts
from sockpqd.gateway.limits import HAND_OUT_BYTES, HAND_OUTS_PER_LOOK
from tests.gateway.helpers.memory import MemoryClient, MemoryGateway, with_gateway

TAKEN = re.compile(rb"q (\d+) 0 1")
PUT = b"PUT q 0 1 IS i\r\na"


async def take(gateway: MemoryGateway, client: MemoryClient, ask: bytes, *, waits: bool = False) -> bytes:
    """Return the id of the one job that this command is answered with; `waits`: it is put later."""
    client.take()
    if not waits:
        await gateway.talk(PUT)
    client.send(ask)
    await gateway.settle()
    if waits:
        await gateway.talk(PUT)
    (number,) = TAKEN.findall(client.take())
    return bytes(number)


@pytest.mark.parametrize(("ask", "waits"), [
    (b"GET q\r\n", False), (b"GET q COUNT 3\r\n", False), (b"GET q META\r\n", False), (b"GETB q\r\n", False),
    (b"GETB q\r\n", True), (b"GETB q COUNT 3\r\n", True), (b"PUT p 0 1 IS i WAIT q\r\nb", True),
])
@pytest.mark.parametrize("create", [b"", b"QUEUE CREATE q RATE 100\r\n"], ids=["plain", "with a rate"])
def test_only_the_connection_that_was_handed_a_job_deletes_it_silently(
    create: bytes, ask: bytes, waits: bool,
) -> None:
    async def test(gateway: MemoryGateway) -> None:
        await gateway.talk(create)
        listener, holder, other = gateway.connect("listener"), gateway.connect("holder"), gateway.connect("other")
        listener.send(b"SUBSCRIBE CANCEL\r\n")
        kept, number = [await take(gateway, holder, ask, waits=waits) for _ in range(2)]
        listener.take()
        holder.send(b"DELETE %b\r\n" % number)
        await gateway.settle()
        assert (holder.take(), listener.take()) == (b"200 OK\r\n", b"")
        other.send(b"DELETE %b\r\n" % kept)
        await gateway.settle()
        assert listener.take().split()[-3:] == [b"CANCEL", b"q", kept]

    with_gateway(test)


def test_a_connection_that_took_one_job_does_not_hold_those_of_others() -> None:
    async def test(gateway: MemoryGateway) -> None:
        listener, holder, other = gateway.connect("listener"), gateway.connect("holder"), gateway.connect("other")
        listener.send(b"SUBSCRIBE CANCEL\r\n")
        number = await take(gateway, holder, b"GET q\r\n")
        await take(gateway, other, b"GET q\r\n")
        listener.take()
        other.send(b"DELETE %b\r\n" % number)
        await gateway.settle()
        assert listener.take().split()[-3:] == [b"CANCEL", b"q", number]

    with_gateway(test)


class Running:
    """The running jobs, the only part of a machine that is used."""

    def __init__(self) -> None:
        self.now: set[int] = set()
        self.asked = 0

    def still_running(self, numbers: list[int]) -> list[int]:
        self.asked += len(numbers)
        return [number for number in numbers if number in self.now]


def handed(number: int) -> Handed:
    return Handed(number, "q", 0, b"")


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("count", [1, 7, 1000])
def test_what_has_ended_is_forgotten_and_what_runs_is_not(share: float, count: int) -> None:
    """`share` of the jobs of each answer stay, as far as 1,000 are reached."""
    rng, machine, hand_outs = random.Random(count), Running(), HandOuts()
    numbers = iter(range(10 ** 9))
    most = 0
    for _ in range(10_000 // count):
        jobs = tuple(handed(next(numbers)) for _ in range(count))
        machine.now |= {job.id for job in jobs}
        asked = machine.asked
        hand_outs.note(jobs[0] if count == 1 else HandedMany(jobs))
        if hand_outs.looks:
            hand_outs.look(machine)         # type: ignore[arg-type]
        assert machine.asked - asked <= 2 * (HAND_OUTS_PER_LOOK + count)
        most = max(most, len(machine.now))
        assert len(hand_outs._ids) == len(hand_outs._in_order) <= 2 * most + 2 * (HAND_OUTS_PER_LOOK + count)
        assert len(hand_outs.new) < HAND_OUTS_PER_LOOK
        machine.now -= {job.id for job in jobs if rng.random() >= share or len(machine.now) > 1_000}
    assert all(number in hand_outs for number in machine.now)
    kept = len(hand_outs._ids) + len(hand_outs.new)
    assert hand_outs.held_bytes == (kept * HAND_OUT_BYTES if kept > 2 * HAND_OUTS_PER_LOOK else 0)


def test_many_hand_outs_of_a_connection_are_charged_to_it_until_it_goes() -> None:
    async def test(gateway: MemoryGateway) -> None:
        many = 10 * HAND_OUTS_PER_LOOK
        client = gateway.connect()
        for _ in range(many // HAND_OUTS_PER_LOOK):
            client.send(b"PUT q 0 1\r\na" * HAND_OUTS_PER_LOOK + b"GET q\r\n" * HAND_OUTS_PER_LOOK)
            await gateway.settle()
            assert client.take().count(b"q ") == HAND_OUTS_PER_LOOK
        assert gateway.hub.account.held_bytes >= many * HAND_OUT_BYTES
        client.vanish()
        await gateway.settle()
        assert gateway.hub.account.held_bytes == 0

    with_gateway(test)
