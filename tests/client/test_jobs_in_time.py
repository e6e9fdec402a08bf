"""Time, keys, batches, transactions and settings of queues against the real server."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Literal

import pytest
from sockpq import (
    Aborted,
    BadArguments,
    BatchFailed,
    BindingNotFound,
    Client,
    Finished,
    Job,
    JobExists,
    JobNotFound,
    JobRunning,
    Key,
    NoOutput,
    QueueExists,
    QueueFull,
    QueueNotEmpty,
    QueueNotFound,
    QueuePaused,
    Stored,
    TopicNotFound,
    WorkerBounds,
    WorkerNotFound,
    aio,
)

from devcluster.cluster import LocalCluster
from tests.client.conftest import MakeClient
from tests.waiting import until

STATES: tuple[Literal["ready", "delayed"], ...] = ("ready", "delayed")


@pytest.fixture(scope="module")
def servers() -> Iterator[list[str]]:
    with LocalCluster(nodes=1) as cluster:
        yield cluster.servers


@pytest.fixture
def client(servers: list[str], make_client: MakeClient) -> Iterator[Client]:
    client = make_client(servers, timeout=60)
    yield client
    for queue in client.queues():
        with suppress(QueueNotFound):               # it goes with its last job, unless it has settings
            client.queue_delete(queue.name, force=True)


def take(client: Client, queue: str, **options: object) -> Job:
    job = client.get(queue, expire=30, block=True, wait=60, **options)      # type: ignore[call-overload]
    assert job is not None
    return job                                                              # type: ignore[no-any-return]


def test_a_job_is_there_when_its_time_has_come(client: Client) -> None:
    client.put("q", b"past", at=1_000_000_000)
    client.put("q", b"far", at=time.time() + 3600, key="far")
    assert take(client, "q").data == b"past"
    assert client.get("q", expire=30) is None
    begun = time.monotonic()
    client.put("q", b"soon", delay=0.4)
    assert take(client, "q").data == b"soon"
    assert time.monotonic() - begun > 0.39          # the nodes count in milliseconds
    (far,) = client.peek_queue("q", "delayed", 5)
    assert (far.state, far.data, far.key) == ("delayed", b"far", "far")
    client.change(Key("q", "far"), delay=0, data=b"now", priority=3)
    job = take(client, "q", meta=True)
    assert (job.data, job.priority, job.meta.key, job.meta.attempt) == (b"now", 3, "far", 1)    # type: ignore[union-attr]


def test_a_wait_ends_in_time_and_leaves_its_connection_usable(client: Client) -> None:
    begun = time.monotonic()
    assert client.get("nothing", block=True, expire=30, wait=0.3) is None
    assert client.get_many(5, "nothing", block=True, expire=30, wait=0.3) == []
    with pytest.raises(NoOutput):
        client.call("asked", b"", "never", wait=0.3)
    assert 0.8 < time.monotonic() - begun < 60


def test_a_job_that_nobody_takes_goes_and_a_periodic_one_stays(client: Client) -> None:
    client.put("short", b"", ttl=0.2)
    client.put("tick", b"", every=0.3)
    for _ in range(2):
        ended = take(client, "tick").done()
        assert ended.next_at
        assert not ended.queue_done
    assert take(client, "tick").done(last=True) == Finished(True, False)
    assert client.total("short").jobs == 0


def test_a_job_comes_after_all_of_an_item(client: Client) -> None:
    client.put_many("parts", [b"1", b"2"], item="book")
    client.put("sum", b"all", after="book")
    for job in client.get_many(2, "parts", expire=30):
        assert client.get("sum", expire=30) is None
        job.done()
    assert take(client, "sum").data == b"all"


def test_a_key_is_there_once(client: Client) -> None:
    client.put("q", b"first", key="k")
    with pytest.raises(JobExists):
        client.put("q", b"second", key="k")
    client.put("q", b"third", key="k", on_duplicate="ignore")
    assert client.peek(Key("q", "k")).data == b"first"          # type: ignore[union-attr]
    client.put("q", b"fourth", key="k", on_duplicate="replace")
    assert client.put_many("q", [b"x", b"y"], keys=["k", "l"], on_duplicate="ignore") == 1
    with pytest.raises(BatchFailed) as failed:
        client.put_many("q", [b"x", b"y"], keys=["m", "l"])
    assert (failed.value.not_executed, type(failed.value.__cause__)) == ((1,), JobExists)
    job = take(client, "q")
    assert job.data == b"fourth"
    with pytest.raises(JobRunning):
        client.delete(Key("q", "k"))
    client.delete(Key("q", "l"))
    client.delete(job)
    with pytest.raises(JobNotFound):
        client.delete(job.id)
    assert client.peek(Key("q", "k")) is None


def test_thousands_go_in_and_out_at_once(client: Client) -> None:
    assert client.put_many("q", [b"%d" % number for number in range(5000)]) == 5000
    jobs = client.get_many(5000, "q", expire=30)
    assert [job.data for job in jobs] == [b"%d" % number for number in range(5000)]
    assert client.later_many([jobs[0], 10**12, jobs[1]]) == [True, False, True]
    ends = client.done_many(jobs)
    assert ends[:3] == [None, None, Finished(False, False)]
    assert sum(end is not None for end in ends) == 4998
    assert len(client.get_many(10, "q", expire=30)) == 2


def test_a_running_job_is_touched_changed_given_back_and_moved(client: Client) -> None:
    client.put("q", b"a", item="i", key="k")
    job = take(client, "q")
    assert job.touch(60) > time.time() + 50         # type: ignore[operator]
    assert job.touch(0) is None
    job.change(data=b"b", priority=4, item="j")
    assert (job.data, job.priority, job.item) == (b"b", 4, "j")
    seen = client.peek(job)
    assert seen is not None
    assert (seen.data, seen.state, seen.key) == (b"b", "running", "k")
    job.later(delay=0.1, priority=5)
    with pytest.raises(JobNotFound):
        job.touch()
    assert job.lost
    job = take(client, "q")
    assert (job.data, job.priority, job.item) == (b"b", 5, "j")
    job.later(yielded=True)
    job = take(client, "q", meta=True)
    assert job.meta and job.meta.attempt == 2       # noqa: PT018
    assert job.move("next", data=b"c", priority=1) == Finished(True, False)
    job = take(client, "next")
    assert (job.data, job.priority, job.item) == (b"c", 1, "j")


def test_a_job_that_fails_again_and_again_is_dead(client: Client) -> None:
    client.queue_create("q", tries=2, dead="graves")
    client.put_many("q", [b"bad", b"good"])
    for _ in range(2):
        job = take(client, "q")
        assert job.data == b"bad"
        job.later(first=True)
    take(client, "q").bury("no:luck")
    assert sorted(job.data for job in client.peek_queue("q", "dead", 5)) == [b"bad", b"good"]
    assert client.total("graves").jobs == 2
    assert client.kick("q", 1) == 1
    assert client.queue_purge("q", "dead") == 1
    with take(client, "q") as job:
        assert job.data == b"bad"


def test_only_jobs_of_an_item_and_the_greatest_priority_of_several_queues(client: Client) -> None:
    for item, priority in (("a", 1), ("b", 2)):
        client.put(f"q{priority}", item.encode(), priority, item=item)
    assert take(client, "q1", item="a").data == b"a"
    assert client.get(expire=30, item="a") is None
    client.put("q1", b"c")
    job = client.get(["q1", "q2"], expire=30, policy="priority")
    assert job is not None
    assert job.data == b"b"


def test_all_of_a_transaction_or_nothing(client: Client) -> None:
    client.put("q", b"in")
    with take(client, "q") as job, client.transaction() as t:
        t.put("next", b"out", new_item=True)
        t.put("next", b"unique", key="k")
        t.done(job)
    assert t.results[1:] == [Stored(key="k"), Finished(True, False)]
    assert t.results[0].item.startswith("i")
    client.put("q", b"in")

    def again() -> None:
        with take(client, "q") as job, client.transaction() as t:
            t.put("next", b"never")
            t.done(job)
            t.put("next", b"never", key="k")

    with pytest.raises(Aborted) as aborted:
        again()
    assert (aborted.value.position, type(aborted.value.reason)) == (3, JobExists)
    assert client.total("next").jobs == 2
    assert take(client, "q").data == b"in"          # the `with` block has put it back

    def fail() -> None:
        with client.transaction() as t:
            t.put("q", b"never")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert client.total("q").jobs == 0
    with client.transaction() as t:
        pass
    assert t.results == []


def test_a_queue_does_as_it_was_told(client: Client) -> None:
    client.queue_create("q", limit=1, capacity=2, order="time")
    with pytest.raises(QueueExists):
        client.queue_create("q")
    told = client.queue_config("q", keep=5, item_limit=3)
    assert {name: told[name] for name in ("limit", "capacity", "order", "keep", "item_limit")} == {
        "limit": "1", "capacity": "2", "order": "TIME", "keep": "5", "item_limit": "3"}
    client.put("q", b"late", at=2_000)
    client.put("q", b"early", at=1_000)
    with pytest.raises(QueueFull):
        client.put("q", b"too many")
    assert take(client, "q").data == b"early"
    assert client.get("q", expire=30) is None       # limit
    counters = client.queue_stat("q")
    assert (counters["ready"], counters["running"]) == (1, 1)
    with pytest.raises(QueueNotEmpty):
        client.queue_delete("q")
    client.queue_pause("q", "in")
    with pytest.raises(QueuePaused):
        client.put("q", b"")
    client.queue_resume("q")
    assert client.queue_purge("q", "all") == 1
    client.queue_delete("q", force=True)
    for command in (client.queue_config, client.queue_stat, client.queue_delete):
        with pytest.raises(QueueNotFound):
            command("q")                            # type: ignore[operator]


def test_one_job_comes_into_many_queues(client: Client) -> None:
    assert client.put_to(["many_a", "many_b"], b"both") == 2
    assert client.publish("many", b"nobody") == 0
    client.topic_bind("many", "many_a")
    client.topic_bind("many", "many_c", "x.*")
    assert client.publish("many", b"to both", route="x.y") == 2
    assert [one[1:] for one in client.topic_list("many")] == [("many_a", None), ("many_c", "x.*")]
    with client.transaction() as t:
        t.publish("many", b"one", route="y")
        t.put_to(["many_b", "many_c"], b"two")
    assert t.results == [1, 2]
    assert [job.data for job in client.peek_queue("many_c", "ready", 9)] == [b"to both", b"two"]
    client.topic_unbind("many", "many_c", "x.*")
    with pytest.raises(BindingNotFound):
        client.topic_unbind("many", "many_c", "x.*")
    client.topic_delete("many")
    with pytest.raises(TopicNotFound):
        client.topic_delete("many")


def test_a_pool_learns_what_is_wanted_of_it(client: Client) -> None:
    assert client.worker_beat("pool", 8, 3) == WorkerBounds(None, None, "run")
    client.worker_set("pool", most=4, state="pause")
    (found,) = [one for one in client.workers() if one.name == "pool"]
    assert (found.slots, found.busy, found.age <= 5) == (8, 3, True)
    assert client.worker_beat("pool", 8, 3) == WorkerBounds(4, None, "pause")
    with pytest.raises(WorkerNotFound):
        client.worker_set("nobody", state="stop")
    with pytest.raises(BadArguments):
        client.worker_set("pool", least=5)


def test_the_reason_of_a_failure_stays_with_the_job(client: Client) -> None:
    client.put("reasons", b"1")
    client.put("reasons", b"2")
    first, second = client.get_many(2, "reasons", expire=60)
    assert client.touch_many([first, second, 999_999], expire=90) == [True, True, False]
    client.later(first, reason="no.route", first=True)
    client.bury(second, "broken")
    (dead,) = client.peek_queue("reasons", "dead", 9)
    assert (dead.data, dead.reason) == (b"2", "broken")
    again = client.get("reasons", expire=60, meta=True)
    assert again is not None
    assert again.meta is not None
    assert (again.data, again.meta.reason) == (b"1", "no.route")


def test_a_queue_drops_what_is_too_old_and_goes_when_nobody_uses_it(client: Client) -> None:
    client.queue_create("brief", capacity=1, overflow="drop_oldest", idle=1, ttl=60)
    client.put("brief", b"1")
    client.put("brief", b"2", ttl=0)
    assert client.queue_stat("brief")["waiters"] == 0
    assert [job.data for job in client.peek_queue("brief", "ready", 9)] == [b"2"]
    until(lambda: not client.total("brief").queues)


def test_the_cluster_does_as_it_was_told(client: Client) -> None:
    assert client.config(autocreate=False, fast_empty=True)["autocreate"] == "OFF"
    try:
        assert client.get("q", expire=30) is None
        with pytest.raises(QueueNotFound):
            client.put("unknown", b"")
    finally:
        told = client.config(autocreate=True, fast_empty=False)
    assert (told["autocreate"], told["fast_empty"], told["expire_default"]) == ("ON", "OFF", "LATER")


def test_a_heartbeat_keeps_a_job_and_tells_when_it_is_lost(client: Client) -> None:
    client.put_many("q", [b"long", b"lost"])
    seen = []

    def work() -> None:
        for job in client.consume("q", expire=4, heartbeat=True, wait=0.1):
            if job.data == b"lost":
                client.delete(job.id)
                until(lambda: job.lost)        # noqa: B023
            else:
                time.sleep(5)
            seen.append((job.data, job.lost))

    with pytest.raises(JobNotFound):
        work()
    assert seen == [(b"long", False), (b"lost", True)]
    assert client.total("q") == (0, 0, 0, 0)


def test_a_heartbeat_stops_with_its_job(client: Client) -> None:
    client.put("q", b"x")
    for job in client.consume("q", expire=1.5, heartbeat=True, wait=0.1):
        job.later(delay=3600)
        time.sleep(1)
        assert not job.lost
    assert client.total("q").running == 0
    assert [thread.name for thread in threading.enumerate() if "heartbeat" in thread.name and settled(thread)] == []


def settled(thread: threading.Thread) -> bool:
    thread.join(60)
    return thread.is_alive()


def test_a_job_is_found_by_its_place(client: Client) -> None:
    client.put("q", b"1")
    client.put("q", b"2", priority=5)
    client.put("q", b"3", delay=600)
    places = [job.place for state in STATES for job in client.peek_queue("q", state, 9, places=True)]
    second, first, late = (place for place in places if place is not None)
    assert first.seq < second.seq < late.seq
    assert [job.data for place in (first, second, late) if (job := client.peek(place))] == [b"1", b"2", b"3"]
    client.change(first, data=b"one", priority=9)
    (changed,) = client.peek_queue("q", "ready", 1, places=True)
    assert (changed.data, changed.priority, changed.place) == (b"one", 9, first)
    client.change(late, delay=0)
    assert client.peek(late) is None
    assert client.peek_queue("q", "ready", 9)[2].place is None
    client.delete(first)
    with pytest.raises(JobNotFound):
        client.delete(first)
    with client.transaction() as transaction:
        transaction.change(second, item="i")
        transaction.delete(second)
    job = take(client, "q")
    (running,) = client.peek_queue("q", "running", 9, places=True)
    assert running.id == job.id
    assert running.place is not None
    with pytest.raises(JobNotFound):
        client.change(running.place, priority=1)


@pytest.mark.parametrize("meta", [False, True])
def test_a_job_tells_what_it_is_however_it_was_taken(servers: list[str], meta: bool) -> None:
    with Client(servers) as client:
        number = client.put("q", json={"to": "ann"}, key="a1", group="anna", number=True).number
        peeked = client.peek(Key("q", "a1"))
        assert peeked is not None
        assert (peeked.json(), peeked.text, peeked.group) == ({"to": "ann"}, '{"to":"ann"}', "anna")
        take(client, "q", meta=meta).later(reason="busy")
        job = take(client, "q", meta=meta)
        assert (job.key, job.number, job.group, job.attempt, job.reason) == ("a1", number, "anna", 2, "busy")
        job.done()
        assert job.key == "a1"                          # asked once
        client.put("q", b"x")
        gone = take(client, "q", meta=meta)
        gone.done()
        with suppress(AssertionError) if meta else pytest.raises(JobNotFound, match="meta=True"):
            assert gone.key


def test_a_property_does_not_ask_in_asyncio(servers: list[str]) -> None:
    async def look() -> None:
        async with aio.Client(servers) as client:
            await client.put("q", b"x", key="a1")
            async with client.get("q", expire=60, block=True) as job:
                with pytest.raises(BadArguments, match="meta=True"):
                    assert job.key
                await job.later()
            async with client.get("q", expire=60, block=True, meta=True) as job:
                assert job.key == "a1"

    asyncio.run(look())


def test_consume_finds_the_lease_of_the_queue(client: Client) -> None:
    client.queue_create("slow", expire=700, then="dead")
    for queues, seconds in (("slow", 700), (["slow"], 700), ("plain", 60), (["slow", "plain"], 60)):
        for queue in ("slow", "plain"):
            client.put(queue, b"x")
        for job in client.consume(queues, wait=0.1, meta=True):
            (running,) = client.running()
            assert running.expires_at is not None
            now = (client.touch(job, 1000) or 0) - 1000
            assert seconds - 60 < running.expires_at - now <= seconds + 1
        for queue in client.queues():
            client.queue_purge(queue.name, "all")


def test_consume_without_a_lease_keeps_its_job_alive(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("_sync", "_async"):
        monkeypatch.setattr(f"sockpq.{kind}.client.LEASE_S", 1.5)
    client.put("q", b"x")
    for job in client.consume("q", wait=0.1):
        first = client.running()[0].expires_at or 0
        until(lambda: (client.running()[0].expires_at or 0) > first)       # noqa: B023
        assert not job.lost
