"""The pool with a real gateway and machine, with children that the test plays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sockpq import BadArguments, Client
from sockpq.worker import App
from sockpq.worker.children.child import Usage
from sockpq.worker.outcome import Outcome
from sockpq.worker.pool.pool import Pool
from sockpq.worker.pool.settings import PoolSettings

from tests.client.real_server import RealServer
from tests.worker.pool.fake_children import FakeChildren

WAIT_S = 60.0


class Stage:
    """A pool at work, its children, and a client for the test."""

    def __init__(self, server: RealServer, pool: Pool, children: FakeChildren, client: Client) -> None:
        self.server = server
        self.pool = pool
        self.children = children
        self.client = client
        self.run: asyncio.Task[None] | None = None

    async def put(self, count: int, queue: str = "q") -> None:
        await asyncio.to_thread(self.client.put_many, queue, [b"%d" % number for number in range(count)])

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds, for WAIT_S seconds at most."""
        async with asyncio.timeout(WAIT_S):
            while not condition():
                await asyncio.sleep(0.005)

    async def until_dealt(self, jobs: int, to: int) -> None:
        """Wait until the pool holds so many jobs and so many children work: it deals jobs a moment after they came."""
        await self.until(lambda: self.pool.held == jobs and len(self.children.busy) == to)

    async def stopped(self) -> None:
        """Wait for the end of the pool."""
        assert self.run
        await asyncio.wait_for(self.run, WAIT_S)

    def gets(self) -> int:
        """Return how often jobs were asked for."""
        return sum(kind.startswith("Get") for entry in self.server.entries() for kind in entry)


@asynccontextmanager
async def stage(
    children: FakeChildren | None = None, queues: tuple[str, ...] = ("q",), expire: float = 60, **settings: Any,
) -> AsyncIterator[Stage]:
    children = children or FakeChildren()
    with RealServer() as server, Client(server.address) as client:
        app = App(server.address)
        for queue in queues:
            app.handler(queue, expire=expire, tries=3, backoff=(0, 0))(lambda job: None)
        pool = Pool(app, PoolSettings(**settings), children=children.spawner())
        made = Stage(server, pool, children, client)
        made.run = asyncio.create_task(pool.run())
        try:
            yield made
        finally:
            pool.halt()
            await made.stopped()


def run(test: Callable[[], Any]) -> None:
    asyncio.run(test())


def test_fair_jobs_go_to_idle_children_only_and_a_busy_pool_sends_no_get() -> None:
    async def main() -> None:
        async with stage(most=3, least=3, prefetch=4) as on:
            await on.put(100)
            await on.until(lambda: len(on.children.busy) == 3)
            held = on.pool.held
            assert 3 <= held <= 12
            gets = on.gets()
            await asyncio.sleep(0.3)
            assert on.gets() == gets                    # nobody is idle
            assert on.pool.held == held
            (first, *_) = on.children.busy
            first.end()
            await on.until(lambda: len(on.children.busy) == 3)
            assert on.gets() == gets                    # there was one waiting here
    run(main)


def test_fair_jobs_behind_a_busy_child_go_to_the_next_idle_one() -> None:
    async def main() -> None:
        async with stage(most=2, least=2, prefetch=4) as on:
            await on.put(8)
            await on.until_dealt(8, to=2)
            stuck, quick = on.children.busy
            for _ in range(7):                          # all but the one of the stuck child
                await on.until(lambda: quick.job is not None)
                quick.end()
            await on.until(lambda: len(on.client.running()) == 1)
            assert stuck.job
            assert on.pool.held == 1
            assert sorted(int(job.data) for job in on.children.seen) == list(range(8))
    run(main)


def test_fast_spreads_jobs_to_busy_children_as_well() -> None:
    async def main() -> None:
        async with stage(most=2, least=2, prefetch=3, strategy="fast") as on:
            await on.put(100)
            await on.until_dealt(6, to=2)
            assert not on.pool._waiting                 # all have a child, though only two are worked on
    run(main)


@pytest.mark.parametrize("strategy", ["fair", "fast"])
def test_held_jobs_never_exceed_slots_times_prefetch_and_rotation_is_even(strategy: str) -> None:
    async def main() -> None:
        children = FakeChildren(run_s=0.0)
        most = 0
        async with stage(children, most=4, least=4, prefetch=5, strategy=strategy) as on:
            await on.put(1500)
            while len(children.seen) < 1500:
                most = max(most, on.pool.held)
                await asyncio.sleep(0)
            await on.until(lambda: on.client.total("q").jobs == 0)
            assert most <= 20
            assert sorted(int(job.data) for job in children.seen) == list(range(1500))
            assert all(337 <= count <= 413 for count in children.given.values()), children.given
    run(main)


def test_done_comes_after_the_work_and_rides_with_the_next_get() -> None:
    async def main() -> None:
        async with stage(most=1, least=1, prefetch=1) as on:
            await on.put(2)
            await on.until(lambda: bool(on.children.busy))
            await asyncio.sleep(0.2)
            assert len(on.client.running()) == 1        # not before
            before = len(on.server.entries())
            on.children.busy[0].end()
            await on.until(lambda: len(on.children.seen) == 2)
            (entry,) = on.server.entries()[before:]
            assert len(entry) == 2                      # DONE and GETB, in one entry
    run(main)


def test_all_queues_are_served() -> None:
    async def main() -> None:
        children = FakeChildren()
        async with stage(children, queues=("a", "b", "c"), most=2, least=2) as on:
            for queue in ("a", "b", "c"):
                await on.put(100, queue)
            await on.until(lambda: len(children.busy) == 2)
            children.run_s = 0.0                        # only now, when all are there
            for child in children.busy:
                child.end()
            await on.until(lambda: len(children.seen) == 300)
            early = {job.queue for job in children.seen[:60]}
            assert early == {"a", "b", "c"}             # none waits until another is empty
    run(main)


def test_pools_compete_for_jobs() -> None:
    async def main() -> None:
        one, two = FakeChildren(run_s=0.001), FakeChildren(run_s=0.001)
        async with stage(one, most=2, least=2, prefetch=1) as on:
            app = App(on.server.address)
            app.handler("q")(lambda job: None)
            other = Pool(app, PoolSettings(most=2, least=2, prefetch=1), children=two.spawner())
            work = asyncio.create_task(other.run())
            await on.put(300)
            await on.until(lambda: len(one.seen) + len(two.seen) == 300)
            assert min(len(one.seen), len(two.seen)) > 60
            other.stop()
            await asyncio.wait_for(work, WAIT_S)
    run(main)


def test_three_levels_of_choice_lead_a_job_to_a_child() -> None:
    async def main() -> None:
        one, two = FakeChildren(), FakeChildren()
        async with stage(one, queues=("a", "b"), most=2, least=2, prefetch=1, by="priority") as on:
            on.pool.pause()
            await asyncio.to_thread(on.client.put_many, "a", [b"a0", b"a1", b"a2"], 1)
            await asyncio.to_thread(on.client.put_many, "b", [b"b0", b"b1", b"b2"], 5)
            on.pool.pause(False)
            await on.until(lambda: len(one.seen) == 2)
            app = App(on.server.address)
            for queue in ("a", "b"):
                app.handler(queue)(lambda job: None)
            other = Pool(app, PoolSettings(most=3, least=3, prefetch=1, by="priority"), children=two.spawner())
            work = asyncio.create_task(other.run())
            await on.until(lambda: len(two.seen) == 3)
            taken = [job.data for job in (*one.seen, *two.seen)]
            assert sorted(taken[:3]) == [b"b0", b"b1", b"b2"]       # the server: the queue of more priority first
            assert (len(one.seen), len(two.seen)) == (2, 3)         # the pools: the one with idle children
            assert set(two.given.values()) == {1}                   # the children: each in its turn
            one.busy[0].end()
            await on.until(lambda: len(one.seen) == 3)
            assert one.seen[2].data == b"a2"
            other.halt()
            await asyncio.wait_for(work, WAIT_S)
    run(main)


def test_a_burst_grows_the_pool_at_once_and_an_empty_queue_shrinks_it_after_the_keepalive() -> None:
    async def main() -> None:
        children = FakeChildren()
        async with stage(children, most=10, least=3, prefetch=1, keepalive=1.0) as on:
            await on.until(lambda: len(children.alive) == 3)
            await on.put(10_000)
            await on.until(lambda: len(children.busy) == 10)
            assert len(children.alive) == 10
            await asyncio.to_thread(on.client.queue_purge, "q", "ready")
            for child in children.busy:
                child.end()
            await on.until(lambda: len(children.alive) == 3)
            assert not [end for end in children.ends if end[2]]         # no busy child was ended
    run(main)


def test_a_busy_child_is_never_ended_by_shrinking() -> None:
    async def main() -> None:
        children = FakeChildren()
        async with stage(children, most=4, least=1, prefetch=1, keepalive=0.2) as on:
            await on.put(4)
            await on.until(lambda: len(children.busy) == 4)
            await asyncio.sleep(1.5)
            assert len(children.alive) == 4
            kept = children.busy[2]
            for child in children.busy:
                if child is not kept:
                    child.end()
            await on.until(lambda: list(children.alive) == [kept.number])
    run(main)


def test_bounds_change_at_run_time() -> None:
    async def main() -> None:
        children = FakeChildren()
        async with stage(children, most=2, least=2) as on:
            await on.until(lambda: len(children.alive) == 2)
            on.pool.set_bounds(5, 5)
            await on.until(lambda: len(children.alive) == 5)
            on.pool.set_bounds(1, 1)
            await on.until(lambda: len(children.alive) == 1)
            on.pool.configure(on.pool.settings._replace(most=3, least=3, prefetch=2))
            await on.until(lambda: len(children.alive) == 3)
            await on.put(20)
            await on.until(lambda: len(children.busy) == 3)
            assert on.pool.held <= 6
            with pytest.raises(BadArguments, match="no handler for queue x"):
                on.pool.configure(on.pool.settings._replace(queues=("x",)))
            assert on.pool.queues == ("q",)
    run(main)


def test_no_growth_beyond_the_share_of_memory() -> None:
    async def main() -> None:
        children = FakeChildren()
        async with stage(children, most=10, least=2, prefetch=4, memory_share=0.000001) as on:
            await on.put(100)
            await on.until(lambda: len(children.busy) == 2)
            await asyncio.sleep(1.2)
            assert len(children.alive) == 2
            assert on.pool.held <= 8
    run(main)


def test_the_job_of_a_killed_child_is_done_by_another() -> None:
    async def main() -> None:
        async with stage(most=2, least=2, prefetch=1) as on:
            await on.put(1)
            await on.until(lambda: len(on.children.busy) == 1)
            on.children.busy[0].kill()
            await on.until(lambda: len(on.children.seen) == 2)
            (again,) = on.children.busy
            assert on.children.seen[0].data == on.children.seen[1].data == b"0"
            assert on.children.seen[1].meta
            assert on.children.seen[1].meta.attempt == 2
            assert len(on.children.alive) == 2          # the killed one is replaced
            again.end()
            await on.until(lambda: not on.client.running())
            assert on.client.total("q").jobs == 0
    run(main)


def test_a_child_that_is_silent_after_its_start_is_replaced() -> None:
    async def main() -> None:
        children = FakeChildren(silent=1)
        async with stage(children, most=1, least=1, start_limit=0.3) as on:
            await on.put(1)
            await on.until(lambda: len(children.busy) == 1)
            assert children.ends == [(1, "killed", False)]
            assert on.pool.settings.start_limit == 0.3
    run(main)


def test_a_fault_in_one_look_does_not_end_the_looks(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with stage(FakeChildren(silent=1), most=1, least=1, start_limit=0.2) as on:
            with monkeypatch.context() as broken:
                broken.setattr(on.pool, "_judge", None)
                await on.until(lambda: "a fault of the worker itself" in caplog.text)
            await on.until(lambda: on.children.ends == [(1, "killed", False)])
    run(main)


def test_the_usual_time_to_report_is_a_minute() -> None:
    assert PoolSettings().start_limit == 60.0


def test_a_child_that_hangs_is_killed_at_its_time_limit() -> None:
    async def main() -> None:
        async with stage(most=1, least=1, time_limit=0.3) as on:
            await on.put(1)
            await on.until(lambda: len(on.children.seen) == 2)
            assert on.children.ends == [(1, "killed", True)]
            await on.until(lambda: len(on.children.seen) == 3)
            await on.until(lambda: on.client.queue_stat("q")["dead"] == 1)     # three tries are all
            (dead,) = on.client.peek_queue("q", "dead")
            assert dead.data == b"0"
    run(main)


def test_leases_are_kept_for_what_runs_and_for_what_waits() -> None:
    async def main() -> None:
        async with stage(most=1, least=1, prefetch=3, expire=0.9) as on:
            await on.put(3)
            await on.until_dealt(3, to=1)
            for _ in range(12):
                await asyncio.sleep(0.2)
                await asyncio.to_thread(on.server.pass_time, 0.2)
            assert len(on.client.running()) == 3
            assert on.pool.held == 3
            for rest in (2, 1, 0):
                await on.until(lambda: on.children.busy)
                on.children.busy[0].end()
                await on.until(lambda rest=rest: len(on.client.running()) == rest)
            assert on.pool.counters.lost == 0
    run(main)


def test_a_job_whose_lease_has_ended_is_not_begun() -> None:
    async def main() -> None:
        async with stage(most=1, least=1, prefetch=2, expire=60) as on:
            await on.put(2)
            await on.until_dealt(2, to=1)
            await asyncio.to_thread(on.server.pass_time, 61)
            (child,) = on.children.busy
            ((job, until),) = child.inbox
            on.pool._leases._leases[job.id].renewed_at -= 61                    # the pool stood still
            child.inbox[0] = job, until - 61
            child.end()
            await on.until(lambda: len(on.children.seen) == 2)
            assert on.pool.counters.lost >= 1
            assert len({job.id for job in on.children.seen}) == 2
            assert on.children.seen[1].meta
            assert on.children.seen[1].meta.attempt == 2                        # taken again, not begun from here
    run(main)


def test_work_that_was_done_when_its_lease_had_ended_is_counted_as_lost() -> None:
    async def main() -> None:
        async with stage(most=1, least=1, prefetch=1, expire=60) as on:
            await on.put(1)
            await on.until(lambda: bool(on.children.busy))
            await asyncio.to_thread(on.server.pass_time, 61)
            on.children.busy[0].end()                   # its DONE rides with the GETB that takes the job again
            await on.until(lambda: len(on.children.seen) == 2)
            assert on.pool.counters.lost == 1
    run(main)


def test_stop_finishes_what_runs_and_gives_back_the_rest_to_its_place() -> None:
    async def main() -> None:
        async with stage(most=1, least=1, prefetch=3) as on:
            await on.put(3)
            await on.until_dealt(3, to=1)
            on.pool.stop()
            await on.until(lambda: on.client.total("q").jobs == 2)
            assert len(on.children.busy) == 1
            on.children.busy[0].end()
            await on.stopped()
            assert on.client.running() == []
            back = on.client.get_many(2, "q", expire=60, meta=True)
            assert [(job.data, job.meta.attempt) for job in back if job.meta] == [(b"1", 1), (b"2", 1)]
    run(main)


def test_halt_kills_children_and_all_jobs_go_back() -> None:
    async def main() -> None:
        async with stage(most=1, least=1, prefetch=3) as on:
            await on.put(3)
            await on.until_dealt(3, to=1)
            on.pool.halt()
            await on.stopped()
            assert on.client.running() == []
            assert [job.data for job in on.client.get_many(3, "q", expire=60)] == [b"0", b"1", b"2"]
    run(main)


def test_a_pause_takes_no_jobs_and_withdraws_the_request() -> None:
    async def main() -> None:
        async with stage(FakeChildren(run_s=0.0), most=1, least=1) as on:
            await on.put(1)
            await on.until(lambda: len(on.children.seen) == 1)
            on.pool.pause()
            await asyncio.sleep(0.2)
            await on.put(1)
            await asyncio.sleep(0.3)
            assert len(on.children.seen) == 1
            assert (on.pool.state, on.client.total("q").jobs) == ("PAUSE", 1)
            on.pool.pause(False)
            await on.until(lambda: len(on.children.seen) == 2)
    run(main)


def test_a_child_is_replaced_after_its_tasks_and_when_it_is_large() -> None:
    async def main() -> None:
        async with stage(most=1, least=1, tasks_max=2, memory_bytes_max=1000) as on:
            await on.put(3)
            for _ in range(2):
                await on.until(lambda: bool(on.children.busy))
                on.children.busy[0].end(usage=Usage(900))
            await on.until(lambda: [child.number for child in on.children.busy] == [2])
            on.children.busy[0].end(usage=Usage(1001))
            await on.until(lambda: list(on.children.alive) == [3])
    run(main)


def test_what_becomes_of_jobs() -> None:
    async def main() -> None:
        async with stage(most=1, least=1) as on:
            await on.put(1)
            for outcome, state in ((Outcome("later", 5.0, "Busy"), "delayed"), (Outcome("dead", reason="Bad"), "dead")):
                await on.until(lambda: bool(on.children.busy))
                on.children.busy[0].end(outcome)
                await on.until(lambda state=state: on.client.queue_stat("q")[state] == 1)      # type: ignore[misc]
                await asyncio.to_thread(on.server.pass_time, 6)
            assert on.pool.counters.jobs == {("q", "later"): 1, ("q", "dead"): 1}
    run(main)



@pytest.mark.parametrize("how", ["by", "group", "sched"])
def test_a_group_is_charged_for_work_and_not_for_waiting_in_the_pool(how: str) -> None:
    async def main() -> None:
        by = {"by": "fair"} if how == "by" else {}
        async with stage(most=1, least=1, prefetch=50, expire=0.6, **by) as on:
            if how == "sched":
                await asyncio.to_thread(on.client.queue_config, "q", sched="fair")
                await on.pool._charging.look(on.pool.client, on.pool.queues)
            group = "anna" if how == "group" else None
            for number in range(6):
                await asyncio.to_thread(on.client.put, "q", b"%d" % number, group=group)
            for outcome in (
                Outcome("done", run_s=100.0), Outcome("later", run_s=200.0, delay=1000.0),
                Outcome("dead", run_s=400.0), Outcome("done", run_s=800.0, result=b"{}"), Outcome("done", run_s=1600.0),
            ):
                await on.until(lambda: bool(on.children.busy))
                (child,) = on.children.busy
                await asyncio.sleep(0.3)        # the leases of those that wait are renewed meanwhile
                child.end(outcome)
            await on.until(lambda: len(on.children.seen) == 6)
            await on.until(lambda: len(on.client.running()) == 1)
            used_s = (await asyncio.to_thread(on.client.sched_group, group or "q")).used_us / 1e6
            assert 3100 <= used_s < 3100.2     # but for the moment between a TOUCH that tells it and a BURY
            on.pool.stop()
            await on.until(lambda: on.children.alive[1].stopped)
            on.children.alive[1].end(Outcome("done", run_s=0.0))
            await on.stopped()
            assert (await asyncio.to_thread(on.client.sched_group, group or "q")).used_us < 3100.2e6
    run(main)


def test_without_a_prefetch_limit_a_busy_pool_takes_all_there_are() -> None:
    async def main() -> None:
        async with stage(most=1, least=1, prefetch=0) as on:
            await on.put(3000)
            await on.until_dealt(3000, to=1)
            (child,) = on.children.busy
            for _ in range(100):
                child.end()
            assert sorted(int(job.data) for job in on.children.seen[:101]) == list(range(101))
            on.pool.stop()
            await on.until(lambda: child.stopped)
            child.end()
            await on.stopped()
            assert (await asyncio.to_thread(on.client.queue_stat, "q"))["ready"] == 2899
    run(main)


def test_a_pool_that_memory_stops_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with stage(most=5, least=1, memory_share=0.000001) as on:
            await on.put(10)
            await on.until(lambda: bool(on.children.busy))
            await on.until(lambda: "stays at 1 of 5 children: " in caplog.text)
            assert (on.pool.size, "stays at 0" in caplog.text) == (1, False)
    run(main)
