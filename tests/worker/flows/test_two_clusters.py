"""Flows and batches where two clusters are used as one: all of each is in the cluster that owns its queues."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from sockpq import CrossCluster, Moving
from sockpq.worker import App

from tests.client.pair import Pair
from tests.waiting import until
from tests.worker.flows import conftest
from tests.worker.flows.batches import batch_app, watched
from tests.worker.flows.working import RAN, Worker, at_work, call

STEP_S = 0.05       # in which a node has done what is due, mostly; else another step follows


class RealTime:
    """Two clusters whose time passes by itself."""

    def pass_time(self, seconds: float) -> None:
        time.sleep(max(seconds, STEP_S))


@pytest.fixture(scope="module")
def clusters() -> Iterator[Pair]:
    with Pair() as pair:
        yield pair


@pytest.fixture
def pair(clusters: Pair) -> Pair:
    """Clusters without jobs; "q", in which all tasks are, is owned by b, and what begins with "mail" by a."""
    RAN.clear()
    clusters.clear()
    clusters.set({"q": "b"})
    return clusters


@pytest.fixture(params=["a", "b"])
def app(pair: Pair, request: pytest.FixtureRequest) -> Iterator[App]:
    app = conftest.made_app(getattr(pair, request.param).servers[0])
    keep(app)
    yield app
    app.close()


@pytest.fixture
def batches(pair: Pair) -> Iterator[App]:
    app = batch_app(pair.a.servers[0])
    yield app
    app.close()


@pytest.fixture
def worker(app: App) -> Iterator[Worker]:
    with at_work(RealTime(), app) as worker:
        yield worker


def keep(app: App) -> None:
    """Let the owner of the queue keep the ends of its jobs, as a worker does at its start."""
    app.client.queue_config("q", retain=3600)


def items(pair: Pair, cluster: str) -> list[str]:
    with pair.only(cluster) as only:
        return [item.name for item in only.items()]


def test_a_flow_is_where_its_queues_are(pair: Pair, app: App, worker: Worker) -> None:
    fetch, add = call(app, "fetch"), call(app, "add")
    handle = app.flow((fetch.s(1) | fetch.s(2)) >> add.s() >> add.s(more=4))
    assert items(pair, "a") == []
    assert {name.rpartition(".")[2] for name in items(pair, "b")} == {"b"}
    worker.work_off()
    assert handle.wait(timeout=30) == 7
    assert app.flow_handle(handle.saved()).wait(timeout=30) == 7
    assert items(pair, "b") == []


def test_a_failure_ends_a_flow_of_the_other_cluster(pair: Pair, app: App, worker: Worker) -> None:
    fail, show = call(app, "fail"), call(app, "show")
    app.flow((fail.s(1) | fail.s(2)) >> show.s("never"), on_failure=call(app, "sorry").s("failed"))
    worker.work_off()
    assert RAN.count(("sorry", "failed")) == 1
    assert ("show", "never") not in RAN
    cancelled = app.flow(show.s(1) >> show.s(2))
    assert cancelled.cancel()
    worker.work_off()
    assert ("show", 1) not in RAN


def test_a_flow_of_several_clusters_is_refused(pair: Pair, app: App) -> None:
    fetch = call(app, "fetch")
    mail = app.task("mail", name="mail", retain=60)(lambda: None)
    for canvas, on_failure in ((fetch.s(1) >> mail.si(), None), (fetch.s(1), mail.si())):
        with pytest.raises(CrossCluster, match="common prefix in the map: they are owned, q by b, mail by a"):
            app.flow(canvas, on_failure=on_failure)
    assert items(pair, "a") == items(pair, "b") == []


@pytest.mark.parametrize("steps", ["fetch", "show"])
def test_a_flow_is_put_where_its_queues_are_now(pair: Pair, app: App, worker: Worker, steps: str) -> None:
    """The program has an old map: nothing stays behind in the cluster that owned them. `show` needs no results."""
    pair.set({"q": "a"})
    with pair.only("a") as a:
        a.queue_config("q", retain=3600)
    one, two = call(app, steps).s(1), call(app, "show").si(2)
    handle = app.flow(one >> (call(app, "add").s() if steps == "fetch" else two))
    assert items(pair, "b") == []
    assert {name.rpartition(".")[2] for name in items(pair, "a")} == {"a"}
    worker.work_off()
    assert handle.wait(timeout=30) == (1 if steps == "fetch" else [2])


def test_a_flow_in_the_middle_of_a_move_ends_where_it_is(pair: Pair, app: App, worker: Worker) -> None:
    """Its watch, which cannot be put again, looks from time to time, and fails what is left."""
    fail, show, fetch = call(app, "fail"), call(app, "show"), call(app, "fetch")
    handle = app.flow((fail.s(1) >> show.s("a")) | (fetch.s(1) >> fail.s(2) >> show.s("b")))
    pair.set({}, {"q": Moving("b", "a")})

    def over() -> bool:
        worker.work_off()
        return [node.state for node in handle.graph().nodes] == ["dead", "cancelled", "done", "dead", "cancelled"]

    until(over, lambda: str(handle.graph()))
    assert pair.count("a", "q") == (0, 0)


def test_a_batch_is_where_its_callbacks_are(pair: Pair, batches: App) -> None:
    with at_work(RealTime(), batches) as worker:
        with watched(batches) as batch:
            assert batch.item.endswith(".b")
            batch.add(batches.tasks["work"], "a")
            batch.add(batches.tasks["spread"], 2)
            batch.add(batches.tasks["aspread"], 1)
            worker.work_off()
            stat = batch.progress()
            assert stat is not None
            assert (stat.done, stat.held) == (6, True)
        worker.work_off()
        assert sorted(RAN[:-2]) == ["a", "member 0", "member 0", "member 1"]
        assert sorted(RAN[-2:]) == ["complete", "success"]
        with batches.batch() as batch:              # without callbacks it is where the app's first queue is
            batch.add(batches.tasks["work"], "b")
            assert batches.batch_handle(batch.item).cancel() == 1
    assert items(pair, "a") == []


def test_a_batch_has_no_members_in_other_clusters(pair: Pair, batches: App) -> None:
    mail = batches.task("mail", name="mail")(lambda: None)
    batch = watched(batches).__enter__()
    batch.add(batches.tasks["work"], "never")
    with pytest.raises(CrossCluster, match=r"item \S+ is in cluster b, and queue mail is owned by a: queues") as caught:
        batch.add(mail)
    batch.__exit__(CrossCluster, caught.value, None)
    assert sum(pair.count("a", "mail")) == 0
    with pytest.raises(CrossCluster, match="common prefix"):
        batches.batch(on_success=mail.s(), on_complete=batches.tasks["told"].s("never")).__enter__()
    with at_work(RealTime(), batches) as worker:
        worker.work_off()
    assert [ran for ran in RAN if ran != "failure" and ran != "complete"] == []


def test_a_batch_begins_where_its_queues_are_now(pair: Pair, batches: App) -> None:
    batches.tasks["work"].put("so the map is known")
    pair.set({"q": "a"})
    with watched(batches) as batch:
        assert batch.item.endswith(".a")
        batch.add(batches.tasks["work"], "a")
    with at_work(RealTime(), batches) as worker:
        worker.work_off()
    assert sorted(RAN) == ["a", "complete", "success"]


def test_a_batch_whose_queue_moves_is_cancelled(pair: Pair, batches: App) -> None:
    """No member is put into a cluster that does not have the batch: its author gets an error."""
    batch = watched(batches).__enter__()
    batch.add(batches.tasks["work"], "before")
    pair.set({}, {"q": Moving("b", "a")})
    with pytest.raises(CrossCluster) as caught:
        batch.add(batches.tasks["work"], "behind")
    batch.__exit__(CrossCluster, caught.value, None)
    assert pair.count("a", "q") == (0, 0)
    with at_work(RealTime(), batches) as worker:
        worker.work_off()
    assert "success" not in RAN
