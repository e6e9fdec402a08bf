"""The rates of queues from their counters, also of queues that are gone as soon as they are empty."""

from __future__ import annotations

import asyncio

from sockpqd.core import Machine, Put
from sockpqd.gateway.samples.flows import PORTION, STILL, Flows
from tests.gateway.helpers.dashboard import Site, run


class Clock:
    """A clock that advances two seconds from one look to the next."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 2.0
        return self.now


def test_rates_are_of_the_time_between_two_looks() -> None:
    async def test(found: Site) -> None:
        flows, machine = Flows(Clock()), found.cluster.machine
        await found.say(b"PUT mail 0 1\r\nx")
        await flows.look(machine)               # what was before the first look counts nowhere
        assert flows.total is None
        await found.say(b"PUT mail 0 1\r\nxPUT mail 0 1\r\nxPUT new 0 1\r\nxGET mail\r\nLATER 1\r\n")
        await flows.look(machine)
        assert flows.of["mail"].put == 1.0
        assert (flows.of["mail"].taken, flows.of["mail"].failed, flows.of["mail"].done) == (0.5, 0.5, 0.0)
        assert flows.of["new"].put == 0.5
        assert flows.total is not None
        assert flows.total.put == 1.5
        await flows.look(machine)
        assert flows.of == {}
        assert flows.total == STILL

    run(test)


def test_a_queue_whose_workers_keep_up_is_seen_though_it_is_gone_at_each_look() -> None:
    async def test(found: Site) -> None:
        flows, machine = Flows(Clock()), found.cluster.machine
        await flows.look(machine)
        job = 0
        for _ in range(2):
            for _ in range(4):
                job += 1
                await found.say(b"PUT mail 0 1\r\nxGET mail\r\nDONE %d\r\n" % job)
            assert machine.queue_names("") == []
            await flows.look(machine)
            assert (flows.of["mail"].put, flows.of["mail"].done) == (2.0, 2.0)
        await found.say(b"PUT mail 0 1\r\nx")
        await flows.look(machine)
        await found.say(b"GET mail\r\nDONE 9\r\nPUT mail 0 1\r\nxPUT mail 0 1\r\nx")    # gone, and there again
        await flows.look(machine)
        assert (flows.of["mail"].put, flows.of["mail"].taken, flows.of["mail"].done) == (1.0, 0.5, 0.5)

    run(test)


def test_a_queue_that_a_transaction_did_not_finish_after_all_is_counted_once() -> None:
    async def test(found: Site) -> None:
        flows, machine = Flows(Clock()), found.cluster.machine
        await found.say(b"PUT mail 0 1\r\nxPUT mail 0 1\r\nxGET mail\r\nDONE 1\r\nGET mail\r\n")
        await flows.look(machine)
        answer = await found.say(b"BEGIN\r\nDONE 2\r\nDONE 77\r\nCOMMIT\r\n")
        assert b"409 Aborted" in answer or b"404" in answer
        await flows.look(machine)
        assert flows.of == {}

    run(test)


def test_what_a_node_that_is_behind_catches_up_with_is_no_rate() -> None:
    async def test(found: Site) -> None:
        flows, machine = Flows(Clock()), found.cluster.machine
        await flows.look(machine)
        flows.forget()
        await found.say(b"PUT mail 0 1\r\nx")
        await flows.look(machine)
        assert flows.total is None
        assert flows.of == {}

    run(test)


def test_all_queues_are_looked_at_in_portions() -> None:
    machine, flows = Machine(), Flows(Clock())
    turns = 0

    async def test() -> None:
        nonlocal turns
        await flows.look(machine)
        machine.apply(1, 0, 0, [Put(f"q{number}", 0, b"x") for number in range(10 * PORTION)])
        looking = asyncio.ensure_future(flows.look(machine))
        while not looking.done():
            turns += 1
            await asyncio.sleep(0)

    asyncio.run(test())
    assert turns >= 10
    assert len(flows.of) == 10 * PORTION


def test_a_look_right_behind_one_that_was_late_makes_no_great_rate() -> None:
    async def test(found: Site) -> None:
        times = iter((0.0, 1.99, 2.0, 3.0))
        flows, machine = Flows(lambda: next(times)), found.cluster.machine
        for _ in range(2):
            await flows.look(machine)
        await found.say(b"PUT mail 0 1\r\nx")
        await flows.look(machine)
        assert flows.of == {}
        await flows.look(machine)
        assert round(flows.of["mail"].put, 2) == 0.99

    run(test)
