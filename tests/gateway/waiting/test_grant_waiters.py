"""Clients that wait for turns: the rate is kept, nobody is forgotten, and grants of clients that are gone go on."""

from __future__ import annotations

import asyncio
import gc
import re
import weakref

import pytest

from sockpqd.core import Grant, Tick
from sockpqd.gateway.commands import pulses
from sockpqd.gateway.limits import GRANT_PROPOSALS_MAX, UNSURE_S
from sockpqd.gateway.waiting.grant_waiters import GrantWaiter
from tests.gateway.helpers.memory import MemoryClient, MemoryGateway, attached, with_gateway
from tests.gateway.pulses.writes import Writes

GO = re.compile(rb"200 OK GO (\d+) 0\r\n")


async def create(gateway: MemoryGateway, settings: bytes) -> MemoryClient:
    """Return a client that has created the pulse p."""
    client = gateway.connect()
    client.send(b"PULSE CREATE p " + settings + b"\r\n")
    await gateway.settle()
    if gateway.cluster.in_flight:
        gateway.cluster.commit()
        await gateway.settle()
    assert client.take() == b"200 OK\r\n"
    return client


def waiting(gateway: MemoryGateway, count: int) -> list[MemoryClient]:
    """Return this many clients that wait for p."""
    clients = [gateway.connect(str(number)) for number in range(count)]
    for client in clients:
        client.send(b"PULSE WAIT p\r\n")
    return clients


def grants(gateway: MemoryGateway) -> list[int]:
    """Return how many grants each operation of the log gave, except for checks whether there is such a pulse."""
    found = [operation for operation in gateway.cluster.operations(Grant) if isinstance(operation, Grant)]
    return [grant.count for grant in found if grant.count]


def test_never_more_than_the_rate_in_any_window_and_in_order() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await create(gateway, b"RATE 3 PER 0.1")
        clients = waiting(gateway, 12)
        writes = Writes(clients, GO)
        await asyncio.wait_for(writes.come(12), 30)
        assert writes.order == sorted(writes.order)
        assert writes.keep(3, 0.1)
        assert sum(grants(gateway)) == 12
    with_gateway(test)


def test_who_has_a_number_and_who_has_none_stand_in_one_line() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await create(gateway, b"RATE 1 PER 0.05")
        numbered = await attached(gateway)
        first, second = waiting(gateway, 2)
        await gateway.settle()
        assert GO.fullmatch(first.take())
        numbered.send(b"REQ 1 PULSE WAIT p\r\n")
        await gateway.settle()
        (last,) = waiting(gateway, 1)
        writes = Writes([second, numbered, last], GO)
        await asyncio.wait_for(writes.come(3), 30)
        assert writes.order == [0, 1, 2]
    with_gateway(test)


def test_all_that_is_free_is_one_operation() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await create(gateway, b"RATE 100")
        waiting(gateway, 40)
        await gateway.settle()
        assert grants(gateway) == [40]
    with_gateway(test)


def test_an_idle_pulse_writes_nothing() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await create(gateway, b"RATE 1 PER 0.02")
        (client,) = waiting(gateway, 1)
        await gateway.settle()
        assert GO.fullmatch(client.take())
        before = len(gateway.cluster.log)
        await asyncio.sleep(0.1)
        assert len(gateway.cluster.log) == before
        assert gateway.cluster.machine.next_due_ms() is None
    with_gateway(test)


def test_the_grant_of_a_client_that_is_gone_goes_to_the_next() -> None:
    async def test(gateway: MemoryGateway) -> None:
        setter = await create(gateway, b"RATE 1 PER 60")
        first, second = waiting(gateway, 2)
        await gateway.settle()
        assert gateway.cluster.in_flight == [Grant("p", 1)]
        first.vanish()
        await gateway.settle()
        gateway.cluster.commit()
        await gateway.settle()
        assert GO.fullmatch(second.take())
        setter.send(b"PULSE STAT p\r\n")
        await gateway.settle()
        assert b"GRANTED 1\r\n" in setter.take()
    with_gateway(test, automatic=False)


async def granted_without_lease(gateway: MemoryGateway) -> MemoryClient:
    """Return a client whose grant is applied while this node serves without its lease."""
    await create(gateway, b"RATE 1 PER 60")
    (client,) = waiting(gateway, 1)
    await gateway.settle()
    gateway.cluster.leased = False
    gateway.cluster.commit()
    await asyncio.sleep(4 * UNSURE_S)
    assert client.take() == b"", "it may be that another node leads"
    return client


def test_a_grant_waits_for_the_lease() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await granted_without_lease(gateway)
        client.send(b"PING\r\n")
        await gateway.settle()
        assert client.take() == b"", "answers keep their order"
        gateway.cluster.leased = True
        await asyncio.sleep(4 * UNSURE_S)
        assert re.fullmatch(GO.pattern + rb"200 OK\r\n", client.take())
    with_gateway(test, automatic=False)


def test_a_grant_is_not_written_when_the_node_serves_no_longer() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await granted_without_lease(gateway)
        gateway.cluster.follow("n2")
        await asyncio.sleep(4 * UNSURE_S)
        assert client.take() == b"500 Offline Mode\r\n"
    with_gateway(test, automatic=False)


def test_a_grant_that_waits_for_the_lease_goes_on_when_its_client_is_gone() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await granted_without_lease(gateway)
        client.vanish()
        await gateway.settle()
        gateway.cluster.leased = True
        (other,) = waiting(gateway, 1)
        await gateway.settle()
        gateway.cluster.commit()
        await gateway.settle()
        assert GO.fullmatch(other.take())
    with_gateway(test, automatic=False)


def test_a_new_leader_counts_what_the_old_one_may_have_written() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await create(gateway, b"RATE 1 PER 0.2")
        (client,) = waiting(gateway, 1)
        await gateway.settle()
        assert GO.fullmatch(client.take())
        (other,) = waiting(gateway, 1)
        await gateway.settle()
        gateway.cluster.follow("n2")
        await gateway.settle()
        assert other.take() == b"500 Offline Mode\r\n"
        gateway.cluster.lead()
        led = asyncio.get_running_loop().time()
        (client,) = waiting(gateway, 1)
        while not GO.fullmatch(client.take()):
            await asyncio.sleep(0.001)
        assert asyncio.get_running_loop().time() - led >= 0.2
    with_gateway(test)


def test_a_grant_of_a_former_term_is_not_written() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await create(gateway, b"RATE 1 PER 60")
        windows, stamp_ms = gateway.hub.pulse_windows, gateway.cluster.machine.clock_ms
        claim = windows.claim("p")
        assert claim.may_write(stamp_ms)
        gateway.cluster.follow("n2")
        gateway.cluster.lead()
        assert not claim.may_write(stamp_ms)
        assert windows.claim("p").may_write(stamp_ms)
    with_gateway(test)


def test_a_waiter_is_forgotten_when_it_has_its_turn_or_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the garbage collector, which does not see waiters."""
    waiters: list[weakref.ref[GrantWaiter]] = []

    class Watched(GrantWaiter, weakref=True, gc=True, eq=False):
        def __post_init__(self) -> None:
            waiters.append(weakref.ref(self))
    monkeypatch.setattr(pulses, "GrantWaiter", Watched)

    async def test(gateway: MemoryGateway) -> None:
        await create(gateway, b"RATE 1 PER 60")
        first, second = waiting(gateway, 2)
        await gateway.settle()
        gateway.cluster.commit()
        await gateway.settle()
        assert GO.fullmatch(first.take())
        assert [waiter() is None for waiter in waiters] == [True, False]
        second.vanish()
        await gateway.settle()
        assert waiters[1]() is None
    gc.disable()
    try:
        with_gateway(test, automatic=False)
    finally:
        gc.enable()


def test_a_leader_that_serves_again_remembers_what_it_wrote() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await create(gateway, b"RATE 1 PER 60")
        (client,) = waiting(gateway, 1)
        await gateway.settle()
        assert GO.fullmatch(client.take())
        gateway.hub.serving_changed(False)
        gateway.hub.serving_changed(True)
        assert gateway.hub.pulse_windows.free(gateway.cluster.machine.pulses["p"]) == 0
    with_gateway(test)


def test_together_all_go_at_one_moment() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await create(gateway, b"RATE 3 PER 0.05 TOGETHER MAXWAIT 0.6")
        clients = waiting(gateway, 2)
        await gateway.settle()
        assert [client.take() for client in clients] == [b"", b""]
        clients += waiting(gateway, 2)
        await gateway.settle()
        assert [bool(GO.fullmatch(client.take())) for client in clients] == [True, True, True, False]
        begun = asyncio.get_running_loop().time()
        while not GO.fullmatch(clients[3].take()):
            await asyncio.sleep(0.001)
        assert asyncio.get_running_loop().time() - begun >= 0.6        # the window is clear, and nobody else comes
    with_gateway(test)


def test_a_sleep_ends_by_replicated_time() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await create(gateway, b"RATE 5")
        client.send(b"PULSE WAIT p\r\n")
        await gateway.settle()
        ticket = GO.fullmatch(client.take())
        assert ticket is not None
        client.send(b"PULSE RESULT " + ticket[1] + b" SLEEP 0.05\r\nPULSE WAIT p WITHIN 0\r\nPULSE WAIT p\r\n")
        await gateway.settle()
        assert client.take() == b"200 OK\r\n408 Wait Timeout\r\n"
        writes = Writes([client], GO)
        gateway.cluster.pass_time(0.05)
        await asyncio.wait_for(writes.come(1), 30)
    with_gateway(test)


def test_within_ends_the_wait_and_the_grant_goes_on() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await create(gateway, b"RATE 1 PER 60")
        client.send(b"PULSE WAIT p WITHIN 0\r\nPULSE WAIT p WITHIN 0.01\r\n")
        await asyncio.sleep(0.05)
        gone = client.take()
        assert GO.match(gone)
        assert gone.endswith(b"408 Wait Timeout\r\n")
    with_gateway(test)


def test_a_repeated_wait_takes_the_place_of_the_first() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await create(gateway, b"RATE 1 PER 60")
        client = await attached(gateway)
        (taken,) = waiting(gateway, 1)
        await gateway.settle()
        assert GO.fullmatch(taken.take())
        client.send(b"REQ 1 PULSE WAIT p\r\n")
        await gateway.settle()
        other = gateway.connect()
        other.send(b"SESSION 1_9f3c5a7e11d0c2b4\r\nREQ 1 PULSE WAIT p\r\n")
        await gateway.settle()
        assert other.take().startswith(b"200 OK SESSION")
        assert client.closed
        writes = Writes([other], GO)
        taken.send(b"PULSE CONFIG p PER 0.01\r\n")      # the window is over: it goes
        await asyncio.wait_for(writes.come(1), 30)
        assert (go := GO.fullmatch(other.take()))
        again = gateway.connect()
        again.send(b"SESSION 1_9f3c5a7e11d0c2b4\r\nREQ 1 PULSE WAIT p\r\n")
        await gateway.settle()
        assert again.take().endswith(go[0])             # its ticket again
    with_gateway(test)


def test_a_pulse_created_by_the_command_before() -> None:
    async def test(gateway: MemoryGateway) -> None:
        assert await gateway.talk(b"PULSE CREATE p\r\nPULSE WAIT p\r\n") == b"200 OK\r\n200 OK GO 1 0\r\n"
        assert await gateway.talk(b"PULSE DELETE p\r\nPULSE WAIT p\r\n") == b"200 OK\r\n404 Pulse Not Found\r\n"
    with_gateway(test)


def test_after_the_end_of_input_nobody_waits() -> None:
    async def test(gateway: MemoryGateway) -> None:
        await create(gateway, b"RATE 1 PER 60")
        _, second = waiting(gateway, 2)
        await gateway.settle()
        assert gateway.hub.grant_waiters.waiting("p") == 1
        second.end()
        await gateway.settle()
        assert second.closed
        assert gateway.hub.grant_waiters.waiting("p") == 0
    with_gateway(test)


def test_results_make_a_pulse_slower_for_those_who_wait() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = await create(gateway, b"RATE 2 PER 0.05")
        client.send(b"PULSE WAIT p\r\n")
        await gateway.settle()
        client.take()
        client.send(b"PULSE RESULT 1 SLOW REASON userRateLimitExceeded\r\n")
        await gateway.settle()
        gateway.cluster.pass_time(0.05)
        gateway.cluster.propose(Tick(), _Ignored())
        client.send(b"PULSE STAT p\r\n")
        await gateway.settle()
        assert b"NOW 1\r\n" in client.take()
    with_gateway(test)


class _Ignored:
    def applied(self, reply: object) -> None: ...
    def refused(self) -> None: ...
    def unknown(self) -> None: ...


def test_grants_of_few_pulses_are_in_flight_and_all_who_wait_get_theirs() -> None:
    many = 3 * GRANT_PROPOSALS_MAX

    async def test(gateway: MemoryGateway) -> None:
        gateway.connect().send(b"".join(b"PULSE CREATE p%d\r\n" % number for number in range(many)))
        await gateway.settle()
        gateway.cluster.commit()
        await gateway.settle()
        clients = [gateway.connect(str(number)) for number in range(many)]
        for number, client in enumerate(clients):
            client.send(b"PULSE WAIT p%d\r\n" % number)
        for _ in range(many // GRANT_PROPOSALS_MAX):
            await gateway.settle()
            assert len(gateway.cluster.in_flight) == GRANT_PROPOSALS_MAX
            gateway.cluster.commit()
        await gateway.settle()
        assert not gateway.cluster.in_flight
        assert all(client.take().startswith(b"200 OK GO ") for client in clients)
    with_gateway(test, automatic=False)


def test_waits_go_on_when_grants_in_flight_were_lost() -> None:
    async def test(gateway: MemoryGateway) -> None:
        gateway.connect().send(b"".join(b"PULSE CREATE p%d\r\n" % number for number in range(2 * GRANT_PROPOSALS_MAX)))
        await gateway.settle()
        gateway.cluster.commit()
        await gateway.settle()
        for number in range(2 * GRANT_PROPOSALS_MAX):
            gateway.connect(str(number)).send(b"PULSE WAIT p%d\r\n" % number)
        await gateway.settle()
        gateway.cluster.follow("n2")
        gateway.cluster.lose()
        await gateway.settle()
        gateway.cluster.lead()
        client = gateway.connect("again")
        client.send(b"PULSE WAIT p0\r\n")
        await gateway.settle()
        gateway.cluster.commit()
        await gateway.settle()
        assert client.take().startswith(b"200 OK GO ")
    with_gateway(test, automatic=False)
