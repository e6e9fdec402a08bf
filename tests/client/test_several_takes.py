"""Taking jobs from two clusters that a program uses as one: in turn, waiting in both, and while names move."""

from __future__ import annotations

from typing import Any

import pytest
from sockpq import Client, CrossCluster, ForbiddenError, Key, Moving, QueuePaused, SockpqError, Unavailable
from sockpq._backends.sync import run
from sockpq._engine.call_runner import Call
from sockpq._engine.executor import Executor
from sockpq._protocol.commands.jobs import touch
from sockpq._routing import known_clusters, taking
from sockpq._streaming import bound_sessions, event_stream
from sockpq._streaming.bound_session import BoundSession
from sockpq.names import NAME_MAX

from tests.client.caller import Caller
from tests.client.conftest import MakeClient
from tests.client.pair import Pair
from tests.waiting import eventually, until


@pytest.fixture
def pair(clusters: Pair, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """Both clusters without jobs, with a map by which b owns names that begin with "b.", which clients read often."""
    monkeypatch.setattr(known_clusters, "READ_AGAIN_S", 0.3)
    clusters.clear()
    clusters.set({"b.": "b"})
    return clusters


@pytest.fixture
def client(pair: Pair, make_client: MakeClient) -> Client:
    return make_client(pair.a.servers, timeout=60, server_timeout=0.3)


def waiters(pair: Pair, cluster: str, queue: str) -> int:
    with pair.only(cluster) as only:
        return sum(only.queue_stat(queue)["waiters"] for one in only.queues() if one.name == queue)


def test_jobs_of_both_are_taken_in_turn(pair: Pair, client: Client) -> None:
    for name in ("q", "b.q"):
        client.put_many(name, [b"1", b"2", b"3"])
    queues = [job.queue for job in (client.get(["q", "b.q"], expire=60) for _ in range(4)) if job]
    assert sorted(queues) == ["b.q", "b.q", "q", "q"]
    assert {job.queue for job in (client.get(expire=60) for _ in range(2)) if job} == {"q", "b.q"}
    assert client.get(["q", "b.q"], expire=60) is None
    assert client.get(expire=60) is None


@pytest.mark.parametrize("to", ["q", "b.q"])
@pytest.mark.parametrize("queues", [["q", "b.q"], None])
def test_the_first_job_of_any_cluster_ends_the_wait(
    pair: Pair, client: Client, to: str, queues: list[str] | None
) -> None:
    client.connect()
    waiting = Caller(lambda: client.get(queues, expire=60, wait=25))
    assert not eventually(lambda: not waiting.runs, 0.3)
    with pair.only("b" if to == "b.q" else "a") as only:
        only.put(to, b"x")
    job = waiting.result()
    assert (job.queue, job.data) == (to, b"x")
    job.done()
    assert pair.count("a", "q") == pair.count("b", "b.q") == (0, 0)
    assert client.put(to, b"y").outcome == "new"
    assert client.get(queues, expire=60).data == b"y"           # nobody waits any more


def test_a_wait_in_both_ends_in_time(client: Client) -> None:
    assert client.get(["q", "b.q"], expire=60, wait=0.2) is None
    assert client.get_many(3, ["q", "b.q"], expire=60, wait=0.2) == []


@pytest.mark.parametrize(("failing", "error"), [(("b",), ForbiddenError), (("a", "b"), Unavailable)])
def test_a_wait_that_a_cluster_refuses_or_that_none_serves_is_over(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, failing: tuple[str, ...], error: type[SockpqError]
) -> None:
    """Only a silent cluster beside one that answers is asked again."""
    def fail_in(executor: Executor) -> None:
        run_call = executor.run_call

        async def fail(call: Call[Any], put_back: Any) -> Any:
            if call.command.line.startswith(b"GETB "):
                raise error("it failed")
            return await run_call(call, put_back)
        monkeypatch.setattr(executor, "run_call", fail)

    with Client(pair.a.servers, timeout=60) as client:
        client.connect()
        for route in run(client._router.sources(("q", "b.q"))):
            if route.name in failing:
                fail_in(route.executor)
        with pytest.raises(error):
            client.get(["q", "b.q"], expire=60, wait=3)
        assert client.get(["q", "b.q"], expire=60) is None


def test_a_second_job_goes_back_to_its_place(
    pair: Pair, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The waits in both clusters get a job: one is taken, the other one is as if it had not been handed out."""
    monkeypatch.setattr(taking, "_withdraw", lambda *_: None)
    client.connect()
    waiting = Caller(lambda: client.get(["q", "b.q"], expire=60, wait=25))
    with pair.only("a") as a, pair.only("b") as b:
        until(lambda: a.total("q").queues + 1)
        assert not eventually(lambda: not waiting.runs, 0.5)
        a.put("q", b"1")
        b.put("b.q", b"2")
        job = waiting.result()
        job.done()
        left, queue = (b, "b.q") if job.queue == "q" else (a, "q")
        until(lambda: left.total(queue).jobs == 1)
        again = left.get(queue, expire=60, meta=True)
        assert again
        assert again.attempt == 1


def test_a_loop_over_both(pair: Pair, client: Client) -> None:
    for name in ("q", "b.q"):
        client.put_many(name, [b"%d" % number for number in range(20)])
    for prefetch in (1, 7):
        found = [job.data for job in client.consume(["q", "b.q"], expire=60, wait=0.3, prefetch=prefetch)]
        assert sorted(found) == sorted(b"%d" % number for number in range(20) for _ in "ab")
        for name in ("q", "b.q"):
            client.put_many(name, [b"%d" % number for number in range(20)])
    jobs = client.consume(expire=60, wait=0.3, prefetch=7)
    next(jobs)
    jobs.close()
    assert (sum(pair.count("a", "q")), sum(pair.count("b", "b.q"))) == (20, 20)
    until(lambda: (pair.count("a", "q"), pair.count("b", "b.q")) == ((20, 0), (20, 0)))


def test_a_consumer_of_both(pair: Pair, make_client: MakeClient) -> None:
    with Client(pair.b.servers, timeout=60) as client, client.consumer(ttl=30) as consumer:
        client.put_many("q", [b"1", b"2"])
        client.put_many("b.q", [b"3", b"4"])
        jobs = [job for _ in "ab" for job in consumer.get_many(10, ["q", "b.q"])]
        assert sorted(job.data for job in jobs) == [b"1", b"2", b"3", b"4"]
        assert client.done_many(jobs[1:3]) != [None, None]
        assert consumer.get_many(10, ["q", "b.q"], wait=0.2) == []
        waiting = Caller(lambda: consumer.get_many(10, ["q", "b.q"]))
        assert not eventually(lambda: not waiting.runs, 0.3)
        client.put("b.q", b"5")
        assert [job.data for job in waiting.result()] == [b"5"]
        waiting = Caller(lambda: consumer.get_many(10, ["q", "b.q"]))
        assert not eventually(lambda: not waiting.runs, 0.3)
        consumer.wake()
        assert waiting.result() == []
    until(lambda: (pair.count("a", "q"), pair.count("b", "b.q")) == ((1, 0), (2, 0)))


@pytest.mark.parametrize("answers", [True, False])
def test_jobs_beyond_the_count_of_a_consumer_go_back(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    """The waits in both clusters get a job: one is returned, the other one goes back, or else is returned next."""
    monkeypatch.setattr(BoundSession, "wake", lambda session: None)
    if not answers:
        monkeypatch.setattr(bound_sessions, "untaken", no_answer)
    with (
        Client(pair.a.servers, timeout=60) as client, client.consumer(ttl=60) as consumer,
        pair.only("a") as a, pair.only("b") as b,
    ):
        waiting = Caller(lambda: consumer.get_many(1, ["q", "b.q"]))
        until(lambda: waiters(pair, "a", "q") and waiters(pair, "b", "b.q"))
        a.put("q", b"1")
        b.put("b.q", b"2")
        (job,) = waiting.result()
        left, queue = (b, "b.q") if job.queue == "q" else (a, "q")
        if answers:
            until(lambda: left.total(queue).jobs == 1)
            again = left.get(queue, expire=60, meta=True)
            assert again
            assert again.attempt == 1
        else:
            (other,) = consumer.get_many(1, ["q", "b.q"])
            assert other.queue == queue
            other.done()


def no_answer(*jobs: object) -> None:
    raise Unavailable("there is no answer")


def test_what_moves_is_taken_from_its_old_owner_first(pair: Pair, client: Client) -> None:
    with pair.only("b") as b:
        b.put_many("b.q", [b"old 1", b"old 2"])
    pair.set({}, {"b.": Moving("b", "a")})
    client.put("b.q", b"new", priority=9)
    assert pair.count("a", "b.q") == (1, 0)
    assert client.total("b.q").jobs == 3
    found = [client.get("b.q", expire=60) for _ in range(3)]
    assert [job.data for job in found if job] == [b"old 1", b"old 2", b"new"]
    for job in found:
        assert job
        job.done()
    assert client.get("b.q", expire=60, block="until_done") is None


def test_until_done_of_what_moves_is_about_both(pair: Pair, client: Client) -> None:
    with pair.only("b") as b:
        b.put("b.q", b"old")
    pair.set({}, {"b.": Moving("b", "a")})
    old = client.get("b.q", expire=60)
    assert old
    waiting = Caller(lambda: client.get("b.q", expire=60, block="until_done"))
    assert not eventually(lambda: not waiting.runs, 0.3)
    client.put("b.q", b"new")
    new = waiting.result()
    assert new.data == b"new"
    new.done()
    waiting = Caller(lambda: client.get("b.q", expire=60, block="until_done"))
    assert not eventually(lambda: not waiting.runs, 0.3)
    old.done()
    assert waiting.result() is None


def test_a_wait_follows_the_map(pair: Pair, client: Client) -> None:
    """It stands at the old owner, and no refusal informs it: it reads the map from time to time."""
    client.connect()
    waiting = Caller(lambda: client.get("b.q", expire=60, block=True))
    assert not eventually(lambda: not waiting.runs, 0.3)
    pair.set({"b.": "a"})
    with pair.only("a") as a:
        a.put("b.q", b"x")
    assert waiting.result().data == b"x"


def test_a_wait_follows_the_first_map(make_client: MakeClient) -> None:
    """A client of a cluster that had no map learns about it where it waits."""
    with Pair() as fresh:
        client = make_client(fresh.a.servers, timeout=60, server_timeout=0.3)
        loop = client.consume("b.q", expire=60)
        client.put("b.q", b"before")
        before = next(loop)
        assert before.data == b"before"
        waiting = Caller(lambda: next(loop))
        assert not eventually(lambda: not waiting.runs, 0.3)
        fresh.set({"b.": "b"})
        with fresh.only("b") as b:
            b.put("b.q", b"after")
        assert waiting.result().data == b"after"
        loop.close()
        assert fresh.count("b", "b.q") == (1, 0)


def test_events_follow_the_map(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "BEAT_S", 0.3)
    with Client(pair.a.servers) as client, client.events("MSG", "b.news").open() as events:
        with pair.only("b") as b:
            assert b.notify("b.news", b"1") == 1
        assert next(iter(events)).data == b"1"
        waiting = Caller(lambda: next(iter(events)))
        pair.set({"b.": "a"})
        with pair.only("a") as a:
            until(lambda: a.notify("b.news", b"2"))
        assert waiting.result().data == b"2"


def test_a_loop_follows_the_map(pair: Pair, client: Client) -> None:
    client.put_many("b.q", [b"1", b"2"])
    loop = client.consume("b.q", expire=60, wait=20)
    assert next(loop).data == b"1"
    pair.set({}, {"b.": Moving("b", "a")})
    client.put("b.q", b"3")
    assert [next(loop).data for _ in "ab"] == [b"2", b"3"]
    pair.set({"b.": "a"})
    client.put("b.q", b"4")
    assert next(loop).data == b"4"
    loop.close()
    assert (pair.count("a", "b.q"), pair.count("b", "b.q")) == ((1, 0), (0, 0))


def test_a_spread_queue(pair: Pair, client: Client) -> None:
    pair.set({}, spread=("s",))
    for number in range(20):
        client.put("s", b"%d" % number)
    assert {sum(pair.count("a", "s")), sum(pair.count("b", "s"))} == {10}
    assert client.total("s").jobs == 20
    assert sorted(job.data for job in client.consume("s", expire=60, wait=0.3)) == sorted(
        b"%d" % number for number in range(20))
    for _ in "ab":
        for number in range(20):
            client.put("s", b"", key=f"k{number}", on_duplicate="ignore")
    assert sum(pair.count("a", "s")) + sum(pair.count("b", "s")) == 20
    assert pair.count("a", "s") != (0, 0)
    assert pair.count("b", "s") != (0, 0)
    with pytest.raises(CrossCluster):
        client.get("s", block="until_done", expire=60)
    before = {name: sum(pair.count(name, "s")) for name in "ab"}
    keys = [f"k{number}" for number in range(30)]
    assert client.put_many("s", [b""] * 30, keys=keys, on_duplicate="ignore") == 10
    assert client.put_many("s", [b"1", b"2"]) == client.put_many("s", [b"3", b"4"]) == 2
    assert sum(pair.count(name, "s")[0] for name in "ab") - sum(before.values()) == 14
    assert client.peek(Key("s", "k29"))


def test_dead_letters_of_a_spread_queue(pair: Pair, client: Client) -> None:
    """Its jobs die where they lie, so each cluster has some of them, and accepts others."""
    pair.set({}, spread=("s",))
    client.put_many("s", [b"%d" % number for number in range(6)])
    for number in range(6, 12):
        client.put("s", b"%d" % number)
    for job in client.consume("s", expire=60, wait=0.3):
        job.bury()
    dead = [sum(pair.count(name, "s_dead")) for name in "ab"]
    assert min(dead) >= 3
    assert client.total("s_dead").jobs == 12
    assert len(list(client.find("s_dead"))) == len(client.peek_queue("s_dead", "ready", 20)) == 12
    client.kick("s", 20)
    assert [sum(pair.count(name, "s")) for name in "ab"] == dead
    for job in client.consume("s", expire=60, wait=0.3):
        job.bury()
    taken = [client.get("s_dead", expire=60) for _ in range(7)]
    for found in taken:
        assert found
        found.done()
    assert client.total("s_dead").jobs == 5
    assert client.queue_purge("s_dead", "ready") == 5
    assert client.total("s_dead").jobs == 0
    for number in range(10):
        client.put("s_dead", b"%d" % number)
    assert [sum(pair.count(name, "s_dead")) for name in "ab"] == [5, 5]
    assert client.get("s_dead_dead", expire=60) is None


def test_settings_of_a_spread_queue_hold_in_every_cluster(pair: Pair, client: Client) -> None:
    pair.set({}, spread=("s",))
    client.queue_create("s", tries=5)
    client.queue_config("s", tries=3, weight=2)
    client.queue_config("s_dead", expire=9)
    client.queue_pause("s", "in")
    for name in "ab":
        with pair.only(name) as alone:
            settings = alone.queue_config("s")
            assert (settings["tries"], settings["weight"]) == ("3", "2")
            assert float(alone.queue_config("s_dead")["expire"]) == 9
            with pytest.raises(QueuePaused):
                alone.put("s", b"")
    client.queue_resume("s")
    for _ in "ab":
        client.put("s", b"")
    assert [sum(pair.count(name, "s")) for name in "ab"] == [1, 1]


def test_dead_letters_under_a_cut_name_are_found_in_every_cluster(pair: Pair, client: Client) -> None:
    """The map has only the longer name: each cluster has dead jobs, and the owner of what is left accepts new ones."""
    kept = "s" * (NAME_MAX - len("_dead"))
    spread, ruled, dead = f"{kept}s", f"{kept}r", f"{kept}_dead"
    pair.set({ruled: "b"}, spread=(spread,))
    for queue in spread, spread, ruled:
        client.put(queue, b"")
    for job in client.consume([spread, ruled], expire=60, wait=0.3):
        job.bury()
    assert [sum(pair.count(name, dead)) for name in "ab"] == [1, 2]
    assert client.total(dead).jobs == 3
    client.put(dead, b"")
    assert [sum(pair.count(name, dead)) for name in "ab"] == [2, 2]
    with pytest.raises(CrossCluster):
        client.get(dead, block="until_done", expire=60)
    assert len(list(client.consume(dead, expire=60, wait=0.3))) == 4


def test_a_job_of_any_cluster_is_moved_to_a_spread_queue(pair: Pair, client: Client) -> None:
    pair.set({"b.": "b"}, spread=("s",))
    for queue, to in (("q", "s"), ("b.q", "s"), ("q", "s_dead"), ("b.q", "s_dead")):
        client.put(queue, b"")
        job = client.get(queue, expire=60)
        assert job
        client.move(job, to)
    assert [sum(pair.count(name, queue)) for name in "ab" for queue in ("s", "s_dead")] == [1, 1, 1, 1]


def test_lists_are_about_all_clusters(pair: Pair, client: Client) -> None:
    client.put("q", b"1", number=True)
    client.put("b.q", b"22", number=True)
    assert client.total().jobs == 2
    assert {(queue.name, queue.cluster) for queue in client.queues()} == {("q", "a"), ("b.q", "b")}
    found = {job.queue: job for job in client.find()}
    assert {(name, job.cluster) for name, job in found.items()} == {("q", "a"), ("b.q", "b")}
    assert client.job_stat(found["b.q"].number).queue == "b.q"
    assert [job.queue for job in client.find("b.q")] == ["b.q"]
    assert len(list(client.find(count=1))) == 2
    job = client.get("b.q", expire=60)
    assert job
    assert [one.id for one in client.running()] == [job.id]


def test_settings_of_groups_are_in_all_clusters(pair: Pair, client: Client) -> None:
    client.group_config("anna", limit=3)
    for name in "ab":
        with pair.only(name) as only:
            assert only.group_config("anna").limit == 3
    client.group_delete("anna")


def test_spread_jobs_go_to_clusters_that_answer(make_client: MakeClient) -> None:
    with Pair() as dying:
        dying.set({}, spread=("s",))
        client = make_client(dying.a.servers, timeout=5, server_timeout=0.5, connect_timeout=0.3)
        dying.b.kill("n1")
        for number in range(6):
            client.put("s", b"%d" % number)
        assert client.put_many("s", [b"6", b"7"]) == 2
        assert dying.count("a", "s") == (8, 0)


def test_a_dead_cluster_delays_only_what_it_owns(make_client: MakeClient) -> None:
    with Pair() as dying:
        dying.set({"b.": "b"})
        client = make_client(dying.a.servers, timeout=2, server_timeout=0.5, connect_timeout=0.3)
        client.put("b.q", b"1")
        dying.b.kill("n1")
        client.put("q", b"2")
        with pytest.raises(Unavailable):
            client.put("b.q", b"3", timeout=0.5)
        job = client.get(["b.q", "q"], expire=60)
        assert job
        assert job.queue == "q"
        job.done()
        waiting = Caller(lambda: client.get(["q", "b.q"], expire=60, wait=25))
        client.put("q", b"4")
        assert waiting.result().data == b"4"
        waiting = Caller(lambda: client.get(["q", "b.q"], expire=60, wait=60))
        dying.b.restart("n1")
        dying.b.wait_for_leader()
        assert waiting.result().data == b"1"


def test_leases_in_a_live_cluster_are_renewed_while_another_is_dead() -> None:
    with Pair() as dying, Client(dying.a.servers, server_timeout=0.5, connect_timeout=0.3) as client:
        dying.set({"b.": "b"})
        client.put("q", b"1")
        client.put("b.q", b"2")
        jobs = [client.get(name, expire=60, block=True) for name in ("b.q", "q")]
        dying.b.kill("n1")
        touches = [touch(job, 90) for job in jobs]
        answers = run(client._router.run_batch(touches, timeout=1, each=True))
        assert [answer and type(answer.error) for answer in answers] == [Unavailable, type(None)]
        with pytest.raises(Unavailable):
            client.done_many(jobs, timeout=1)
        assert dying.count("a", "q") == (0, 0)
