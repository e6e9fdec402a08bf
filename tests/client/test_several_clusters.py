"""A program that uses two clusters as one: each command goes to the cluster that the map says."""

from __future__ import annotations

import threading

import pytest
from sockpq import (
    Aborted,
    BadArguments,
    Client,
    CrossCluster,
    Elsewhere,
    ItemNotFound,
    JobNotFound,
    Key,
    Number,
    OutcomeUnknown,
    Unavailable,
)
from sockpq._routing import known_clusters

from tests.client.conftest import MakeClient
from tests.client.pair import Pair
from tests.waiting import until

NOBODY = "127.0.0.1:2"


@pytest.fixture
def pair(clusters: Pair) -> Pair:
    """Both clusters without jobs, with a map by which b owns names that begin with "b."."""
    clusters.clear()
    clusters.set({"b.": "b"})
    return clusters


@pytest.fixture(params=["a", "b"])
def client(pair: Pair, make_client: MakeClient, request: pytest.FixtureRequest) -> Client:
    """A client that is given the servers of one of them."""
    return make_client(getattr(pair, request.param).servers, timeout=60)


def test_named_commands_go_to_the_owner(pair: Pair, client: Client) -> None:
    client.put("mail", b"1")
    client.put("b.film", b"2", key="k")
    assert (pair.count("a", "mail"), pair.count("b", "b.film")) == ((1, 0), (1, 0))
    assert (pair.count("b", "mail"), pair.count("a", "b.film")) == ((0, 0), (0, 0))
    found = client.peek(Key("b.film", "k"))
    assert found
    assert found.data == b"2"
    client.queue_create("b.made", capacity=1)
    assert client.queue_config("b.made")["capacity"] == "1"
    with pair.only("b") as only:
        assert "b.made" in [queue.name for queue in only.queues()] or only.queue_config("b.made")
    client.change(Key("b.film", "k"), priority=7)
    assert client.delete(Key("b.film", "k")).queue_done
    assert client.put_many("b.film", [b"3", b"4"]) == 2
    assert pair.count("b", "b.film") == (2, 0)


def test_the_first_call_may_be_of_any_kind(pair: Pair, make_client: MakeClient) -> None:
    with pair.only("b") as only:
        only.put("b.q", b"1", key="k")
    servers = pair.a.servers
    assert make_client(servers).total("b.q").jobs == 1
    assert [job.data for job in make_client(servers).peek_queue("b.q", "ready", 5)] == [b"1"]
    assert make_client(servers).put_many("b.q", [b"2"]) == 1
    with make_client(servers).get("b.q", expire=60) as job:
        assert job.data == b"1"
    (job,) = make_client(servers).get_many(5, "b.q", expire=60)
    job.done()
    late = make_client(servers)
    late.connect()
    late.put("b.q", b"3")
    assert pair.count("b", "b.q") == (1, 0)


def test_a_job_knows_its_cluster(pair: Pair, client: Client) -> None:
    """Both clusters count from the same number, so the ids would be equal."""
    for name in ("q", "b.q"):
        client.put(name, b"x", number=True)
        client.put(name, b"y")
    first, second, third, fourth = (client.get(name, expire=60, block=True) for name in ("q", "b.q", "q", "b.q"))
    assert len({first.id, second.id, third.id, fourth.id}) == 4
    second.touch()
    assert client.touch(fourth.id, 30) is not None
    assert client.done(fourth.id).queue_done is False
    assert (pair.count("a", "q"), pair.count("b", "b.q")) == ((0, 2), (0, 1))
    second.later()
    assert [bool(one) for one in client.done_many([first, third])] == [True, True]
    assert (pair.count("a", "q"), pair.count("b", "b.q")) == ((0, 0), (1, 0))


def test_numbers_are_of_one_cluster(pair: Pair, client: Client) -> None:
    stored = [client.put(name, name, number=True) for name in ("q", "b.q")]
    numbers = [one.number for one in stored]
    for name, number in zip(("q", "b.q"), numbers, strict=True):
        assert number
        assert client.job_stat(number).queue == name
        found = client.peek(Number(number))
        assert found
        assert (found.text, found.number) == (name, number)
    assert numbers[1]
    client.delete(Number(numbers[1]))
    assert (pair.count("a", "q"), pair.count("b", "b.q")) == ((1, 0), (0, 0))
    with pytest.raises(JobNotFound):
        client.delete(Number(5 << 48 | 1))


def test_an_id_is_written_for_other_clients(pair: Pair, make_client: MakeClient) -> None:
    """Each begins with another cluster, so their integers differ."""
    first, second = make_client(pair.a.servers, timeout=60), make_client(pair.b.servers, timeout=60)
    for name, cluster in (("q", "a"), ("b.q", "b")):
        number = first.put(name, name, number=True).number
        assert number
        text = first.id_text(number)
        assert text.startswith(f"{cluster}.")
        assert first.id_of(text) == number
        assert second.job_stat(second.id_of(text)).queue == name
    with pytest.raises(JobNotFound):
        first.id_of("c.17")
    for wrong in ("", "a.", "a.x", "x", "-1", "1" * 20):
        with pytest.raises(BadArguments):
            first.id_of(wrong)


def test_many_jobs_of_both_are_ended_at_once(pair: Pair, client: Client) -> None:
    for name in ("q", "b.q"):
        client.put_many(name, [b"1", b"2"])
    jobs = [*client.get_many(2, "q", expire=60), *client.get_many(2, "b.q", expire=60)]
    mixed = [jobs[0], jobs[2], jobs[1], jobs[3]]
    assert client.later_many(mixed[:2]) == [True, True]
    assert [one is not None for one in client.done_many(mixed)] == [False, False, True, True]
    assert (pair.count("a", "q"), pair.count("b", "b.q")) == ((1, 0), (1, 0))


def test_what_is_one_piece_is_in_one_cluster(pair: Pair, client: Client) -> None:
    client.put("q", b"1")
    job = client.get("q", expire=60)
    assert job
    mixed = client.transaction()
    mixed.done(job)
    mixed.put("b.next", b"2")
    with pytest.raises(CrossCluster):
        mixed.__exit__(None, None, None)
    with pytest.raises(CrossCluster):
        client.put_to(["q", "b.q"], b"3")
    with pytest.raises(CrossCluster):
        client.move(job.id, "b.next")
    with pytest.raises(CrossCluster):
        client.get(["q", "b.q"], block="until_done", expire=60)
    assert (pair.count("a", "q"), pair.count("b", "b.next")) == ((0, 1), (0, 0))
    with client.transaction() as transaction:
        transaction.put("b.next", b"2", number=True)
        transaction.put("b.then", b"3")
    assert pair.count("b", "b.next") == (1, 0)
    assert client.job_stat(transaction.results[0].number).queue == "b.next"
    next_ = client.get("b.next", expire=60)
    assert next_
    with client.transaction() as transaction:
        transaction.done(next_)
        transaction.put("b.then", b"4")
    assert (pair.count("b", "b.next"), pair.count("b", "b.then")) == ((0, 0), (2, 0))


def test_the_map_is_read_again_after_elsewhere(pair: Pair, client: Client) -> None:
    client.put("q", b"1")
    client.put("b.q", b"1")
    pair.set({"b.": "a"})
    client.put("b.q", b"2")
    with client.transaction() as transaction:
        transaction.put("b.q", b"3")
    assert client.put_many("b.q", [b"4", b"5"]) == 2
    assert (pair.count("a", "b.q"), pair.count("b", "b.q")) == ((4, 0), (1, 0))


def test_many_puts_go_on_after_a_change(pair: Pair, client: Client) -> None:
    client.put("b.q", b"1")
    pair.set({"b.": "a"})
    assert client.put_many("b.q", [b"4", b"5"]) == 2
    assert (pair.count("a", "b.q"), pair.count("b", "b.q")) == ((2, 0), (1, 0))


def test_a_name_that_nobody_owns_is_waited_for(pair: Pair, client: Client) -> None:
    client.put("b.q", b"1")
    pair.set({"b.": None})
    done = threading.Event()

    def put() -> None:
        client.put("b.q", b"2")
        done.set()

    thread = threading.Thread(target=put)
    thread.start()
    assert not done.wait(0.5)
    pair.set({"b.": "a"}, where="a")        # b follows later
    assert done.wait(60)
    thread.join()
    pair.tell("b")
    assert (pair.count("a", "b.q"), pair.count("b", "b.q")) == ((1, 0), (1, 0))


def test_a_call_ends_when_nobody_owns_the_name_for_long(pair: Pair, client: Client) -> None:
    pair.set({"b.": None})
    with pytest.raises(Elsewhere):
        client.put("b.q", b"2", timeout=0.5)
    with pytest.raises((Aborted, Elsewhere)), client.transaction(timeout=0.5) as transaction:
        transaction.put("b.q", b"2")
    assert (pair.count("a", "b.q"), pair.count("b", "b.q")) == ((0, 0), (0, 0))


@pytest.mark.parametrize("named", [True, False])
def test_only_one_cluster_is_used_on_demand(pair: Pair, *, named: bool) -> None:
    with pair.only("a") if named else Client(pair.a.servers, follow_map=False) as only:
        with pytest.raises(Elsewhere):
            only.put("b.q", b"1")
        only.put("q", b"1")
        assert only.total().jobs == 1


def test_remote_call_in_the_other_cluster(pair: Pair, client: Client) -> None:
    with pair.only("b") as worker:
        def answer() -> None:
            job = worker.get("b.work", block=True, expire=60)
            assert job
            worker.put("b.answers", b"pong", item=job.item)
            job.done()

        thread = threading.Thread(target=answer)
        thread.start()
        with client.call("b.work", b"ping", "b.answers", expire=60) as output:
            assert output.data == b"pong"
        thread.join()
    with pytest.raises(CrossCluster):
        client.call("b.work", b"ping", "answers", expire=60)


def test_a_hold_is_where_the_jobs_go(pair: Pair, client: Client) -> None:
    with client.hold("album", queue="b.q") as item:
        client.put("b.q", b"1", item=item)
        with client.get("b.q", expire=60, block=True) as job:
            job.done()
        with pair.only("b") as only:
            assert only.item_stat("album")
    with pair.only("b") as only, pytest.raises(ItemNotFound):
        only.item_stat("album")
    with client.transaction() as transaction:
        transaction.item_hold(expire=10)
        transaction.put("b.q", b"2")
    with pair.only("b") as only:
        assert transaction.results[0] in [held.name for held in only.items(held=True)]


def test_a_new_item_is_found_by_its_name(pair: Pair, client: Client) -> None:
    here, there = client.put("q", b"1", new_item=True).item, client.put("b.q", b"2", new_item=True).item
    assert here is not None
    assert there is not None
    assert (here[-2:], there[-2:]) == (".a", ".b")
    assert client.item_stat(there).ready == 1
    client.item_cancel(there)
    assert client.item_stat(here).ready == 1
    with pair.only("b") as only, pytest.raises(ItemNotFound):
        only.item_stat(here)


def test_pulses_and_messages_are_at_the_owner(pair: Pair) -> None:
    with Client(pair.a.servers, timeout=60) as client:
        client.pulse_create("b.rate", rate=100)
        with pair.only("b") as only:
            assert [pulse for pulse in only.pulses() if pulse.startswith("b.")]
        with client.pulse("b.rate").turn(within=10) as turn:
            assert turn.ticket
        client.pulse_delete("b.rate")
        with client.events("MSG", "b.news", wait=20).open() as events:
            assert client.notify("b.news", b"hello") == 1
            assert next(iter(events)).data == b"hello"
        with client.events("TAKE", "b.q", wait=20).open() as events:
            client.put("b.q", b"1")
            with client.get("b.q", expire=60, block=True) as job:
                assert next(iter(events)).id == job.id
        with pytest.raises(CrossCluster):
            client.events("DONE", ["q", "b.q"]).open()


# The servers of the map

def with_servers(pair: Pair, *servers: str) -> None:
    """Set the next version of the map, with these servers of b."""
    clusters = {**pair.map.clusters, "b": pair.map.clusters["b"]._replace(servers=servers)}
    pair.map = pair.map._replace(version=pair.map.version + 1, clusters=clusters)
    pair.tell("ab")


def test_a_client_in_use_dials_the_servers_of_a_corrected_map(
    pair: Pair, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(known_clusters, "READ_AGAIN_S", 0.3)
    with_servers(pair, NOBODY)
    client = make_client(pair.a.servers, timeout=2)
    with pytest.raises(Unavailable):
        client.put("b.q", b"1")
    with_servers(pair, *pair.b.servers)

    def put() -> bool:
        try:
            client.put("b.q", b"1")
        except (Unavailable, OutcomeUnknown):
            return False
        return True

    until(put)
    assert pair.count("b", "b.q") != (0, 0)


def test_a_cluster_is_asked_for_its_map_though_its_first_server_is_down(
    pair: Pair, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(known_clusters, "READ_AGAIN_S", 0.3)
    with_servers(pair, NOBODY, *pair.b.servers)
    client = make_client(pair.a.servers, timeout=60)
    client.put("c.q", b"1")
    pair.map = pair.map._replace(version=pair.map.version + 1, rules={"b.": "b", "c.": "b"})
    pair.tell("b")

    def goes_to_b() -> bool:
        client.put("c.q", b"2")
        return pair.count("b", "c.q") != (0, 0)

    until(goes_to_b)


def test_a_map_that_nobody_had_is_asked_for_again_soon(
    pair: Pair, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = 0

    async def nobody(*_: object) -> dict[object, object]:
        nonlocal asked
        asked += 1
        return {}

    monkeypatch.setattr(known_clusters, "READ_AGAIN_S", 0.3)
    client = make_client(pair.a.servers, timeout=60)
    client.put("c.q", b"1")
    monkeypatch.setattr(known_clusters, "BLIND_S", 0.1)
    with monkeypatch.context() as patch:
        patch.setattr(known_clusters, "ask_all", nobody)
        patch.setattr(known_clusters, "READ_AGAIN_S", 3600.0)

        def was_asked() -> bool:
            client.put("c.q", b"1")
            return asked >= 2

        until(was_asked)
