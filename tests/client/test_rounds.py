"""Workers against the real machine: one round trip for a job, several jobs at once; none lost or doubled at any end."""

from __future__ import annotations

import asyncio
import time

import pytest
from sockpq import BadArguments, Client, JobNotFound, NotSupported, OutcomeUnknown, aio

from tests.client.conftest import MakeClient
from tests.client.faults import Fault
from tests.client.memory_cluster import MemoryCluster
from tests.client.real_server import RealServer


@pytest.fixture
def real(server: RealServer, make_client: MakeClient) -> Client:
    return make_client(server.address, timeout=30, server_timeout=2)


def bodies(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def waiting(client: Client, queue: str = "q") -> list[bytes]:
    """Return the bodies of the jobs that wait, in order."""
    return [job.data for job in client.peek_queue(queue, "ready", 1000)]


def test_the_end_of_a_job_and_the_next_one_are_one_round(server: RealServer, real: Client) -> None:
    real.put_many("q", bodies(50))
    before = len(server.entries())
    assert [job.data for job in real.consume("q", expire=30, until_done=True)] == bodies(50)
    entries = server.entries()[before:]
    together = [entry for entry in entries if {"Done", "Get"} <= set(entry)]
    assert len(together) >= 49
    assert len(entries) < 65
    assert real.total("q").running == 0


def test_prefetched_jobs_come_in_order_and_are_all_done(
    server: RealServer, real: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for flavour in ("_sync", "_async"):         # a tenth of a second is no reason for a round
        monkeypatch.setattr(f"sockpq.{flavour}.consume.TELL_S", 600.0)
    real.put_many("q", bodies(500))
    before = len(server.entries())
    assert [job.data for job in real.consume("q", expire=30, until_done=True, prefetch=100)] == bodies(500)
    assert len(server.entries()) - before < 10        # a hundred jobs a round, not fewer and more often
    assert (real.total("q").jobs, real.total("q").running) == (0, 0)


def test_a_slow_loop_does_not_keep_what_it_has_finished(real: Client) -> None:
    """Where each job takes a tenth of a second its DONE waits for no other."""
    real.put_many("q", bodies(4))
    left = []
    for _ in real.consume("q", expire=30, prefetch=100, wait=0.1):
        time.sleep(0.11)
        totals = real.total("q")
        left.append(totals.jobs + totals.running)
    assert left == [4, 3, 2, 1]


@pytest.mark.parametrize("prefetch", [1, 10])
def test_a_loop_that_is_left_gives_back_what_it_has_not_begun(real: Client, prefetch: int) -> None:
    real.put_many("q", bodies(20))
    for job in real.consume("q", expire=30, prefetch=prefetch):
        if job.data == b"3":
            break
    assert waiting(real) == [*bodies(20)[4:], b"3"]
    assert real.total("q").running == 0


@pytest.mark.parametrize("prefetch", [1, 10])
def test_a_loop_that_raises_gives_back_what_it_has_not_begun(real: Client, prefetch: int) -> None:
    real.put_many("q", bodies(20))

    def work() -> None:
        for job in real.consume("q", expire=30, prefetch=prefetch):
            if job.data == b"3":
                raise RuntimeError("no luck")

    with pytest.raises(RuntimeError, match="no luck"):
        work()
    assert waiting(real) == [*bodies(20)[4:], b"3"]
    assert real.total("q").running == 0


@pytest.mark.parametrize("prefetch", [1, 3])
def test_a_lost_job_ends_the_loop_and_nothing_else_is_taken(
    server: RealServer, real: Client, prefetch: int
) -> None:
    """The DONE is refused, so what came for the GETB behind it goes back to its place."""
    real.put_many("q", bodies(10))

    def work() -> None:
        for _ in real.consume("q", expire=30, prefetch=prefetch):
            server.pass_time(60)

    with pytest.raises(JobNotFound):
        work()
    assert real.total("q").running == 0
    assert sorted(waiting(real)) == bodies(10)


def test_a_job_whose_lease_ended_while_it_waited_here_is_not_worked_on(server: RealServer, real: Client) -> None:
    real.put_many("q", bodies(3))
    seen = []

    def work() -> None:
        for job in real.consume("q", expire=0.6, prefetch=3):
            seen.append(job.data)
            server.pass_time(5)
            time.sleep(0.5)             # a heartbeat learns it

    with pytest.raises(JobNotFound):
        work()
    assert seen == [b"0"]
    assert sorted(waiting(real)) == bodies(3)


def test_jobs_that_wait_here_keep_their_leases(server: RealServer, real: Client) -> None:
    real.put_many("q", bodies(3))
    seen = []
    for job in real.consume("q", expire=0.6, heartbeat=True, prefetch=3, wait=0.1):
        seen.append(job.data)
        for _ in range(6):
            time.sleep(0.15)
            server.pass_time(0.15)
    assert seen == bodies(3)
    assert real.total("q").jobs == 0


def test_what_the_loop_ends_itself_is_not_ended_again(real: Client) -> None:
    real.put_many("q", bodies(6))
    seen = []
    for job in real.consume("q", expire=30, prefetch=4, until_done=True):
        seen.append(job.data)
        if job.data == b"1" and seen.count(b"1") == 1:
            job.later()
        elif job.data == b"2":
            job.done()
    assert sorted(seen) == sorted([*bodies(6), b"1"])


def test_a_cancelled_task_takes_no_job_with_it(server: RealServer) -> None:
    async def main() -> None:
        async with aio.Client(server.address, timeout=30) as client:
            await client.put("q", b"first")
            worked = asyncio.Event()

            async def work() -> None:
                async for _ in client.consume("q", expire=30):
                    worked.set()

            for _ in range(20):
                task = asyncio.create_task(work())
                await worked.wait()
                worked.clear()
                await asyncio.sleep(0.002)          # the DONE is on its way, or done, and the GETB waits
                put = asyncio.create_task(client.put("q", b"next"))
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await put
                totals = await client.total("q")
                assert (totals.jobs, totals.running) == (1, 0)

    asyncio.run(main())


def test_a_cancelled_loop_gives_back_what_it_has_not_begun(server: RealServer) -> None:
    async def main() -> None:
        async with aio.Client(server.address, timeout=30) as client:
            await client.put_many("q", bodies(10))

            async def work() -> None:
                async for _ in client.consume("q", expire=30, prefetch=5):
                    await asyncio.sleep(60)

            task = asyncio.create_task(work())
            while not (await client.total("q")).running:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(0)
        async with aio.Client(server.address, timeout=30) as client:
            assert sorted(job.data for job in await client.peek_queue("q", "ready", 20)) == bodies(10)

    asyncio.run(main())


@pytest.mark.parametrize(("verb", "fault"), [
    ("DONE", Fault.CLOSE), ("DONE", Fault.EXECUTE_AND_CLOSE), ("DONE", Fault.HALF_ANSWER), ("DONE", Fault.REFUSE),
    ("DONE", Fault.STALL), ("DONE", Fault.EXECUTE_AND_STALL),
    ("GETB", Fault.CLOSE), ("GETB", Fault.EXECUTE_AND_CLOSE), ("GETB", Fault.HALF_ANSWER), ("GETB", Fault.REFUSE),
])
def test_a_server_that_fails_between_the_two_answers_costs_nothing(
    cluster: MemoryCluster, client: Client, verb: str, fault: Fault
) -> None:
    client.put_many("q", bodies(6))
    cluster.servers[0].fail(verb, None, fault, None, fault)
    seen = [job.data for job in client.consume("q", expire=30, wait=0.3)]
    assert seen == bodies(6)
    assert cluster.running == []
    assert cluster.done("q") == 6


def test_a_leader_that_dies_between_the_two_answers_costs_nothing(cluster: MemoryCluster, client: Client) -> None:
    client.put_many("q", bodies(6))
    cluster.servers[0].fail("GETB", None, None, Fault.EXECUTE_AND_CLOSE)
    seen = []
    for job in client.consume("q", expire=30, wait=0.3):
        seen.append(job.data)
        if len(seen) == 3:
            cluster.lead(cluster.servers[1])
            cluster.servers[0].stop()
    assert seen == bodies(6)
    assert cluster.running == []
    assert cluster.done("q") == 6


def test_a_lost_session_is_told_by_the_done_whose_outcome_it_knew(cluster: MemoryCluster, client: Client) -> None:
    client.put_many("q", bodies(3))
    cluster.servers[0].fail("DONE", Fault.FORGET)

    def work() -> None:
        for _ in client.consume("q", expire=30, wait=0.3):
            pass

    with pytest.raises(OutcomeUnknown):
        work()
    assert cluster.running == []


def test_prefetch_is_checked_and_needs_a_server_that_knows_it(cluster: MemoryCluster, client: Client) -> None:
    for wrong in (0, 1001):
        with pytest.raises(BadArguments):
            client.consume("q", expire=30, prefetch=wrong)
    with pytest.raises(NotSupported):
        list(client.consume("q", expire=30, prefetch=2))        # these servers know no COUNT
