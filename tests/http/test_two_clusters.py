"""Two clusters that are used as one: ids have the name of their cluster, and each keeps markers of its own."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from sockpq import ClusterMap, MappedCluster
from sockpq_http.idempotency.marker import QUEUE, Item, queue_of

from tests.client.pair import Pair
from tests.http.door import Door
from tests.http.test_jobs import put, take


@pytest.fixture(scope="module")
def doors() -> Iterator[tuple[Door, Door]]:
    """An instance at the servers of each cluster; names that begin with "b." belong to the second."""
    with Pair() as pair:
        pair.set({"b.": "b"})
        with Door(pair.a.servers[0]) as first, Door(pair.b.servers[0]) as second:
            yield first, second


def test_an_id_is_good_at_every_instance(doors: tuple[Door, Door]) -> None:
    with doors[0].client() as here, doors[1].client() as there:
        for queue, cluster in (("mail", "a"), ("b.film", "b")):
            number = put(here, queue, text="x", number=True)["number"]
            assert number.startswith(f"{cluster}.")
            assert there.get(f"/v1/jobs/number/{number}").json()["queue"] == queue
            (job,) = take(here, queue)
            assert job["id"].startswith(f"{cluster}.")
            assert there.get(f"/v1/jobs/{job['id']}").json()["queue"] == queue
            assert there.post(f"/v1/jobs/{job['id']}/done").json()["queue_done"] is True
        assert there.post("/v1/jobs/c.17/done").status_code == 404
        assert there.post("/v1/jobs/a./done").status_code == 400
        clusters = {one["cluster"] for one in here.get("/v1/queues").json()["queues"]}
        assert clusters <= {"a", "b"}


@pytest.mark.parametrize("queue", ["orders", "b.orders"])
def test_a_key_is_good_at_every_instance(doors: tuple[Door, Door], queue: str) -> None:
    def keyed(web: httpx.Client, path: str, body: object) -> httpx.Response:
        return web.post(path, json=body, headers={"Idempotency-Key": f"of-{queue}"})

    with doors[0].client() as here, doors[1].client() as there:
        jobs = {"jobs": [{"text": "1"}, {"text": "2"}]}
        assert len(keyed(here, f"/v1/queues/{queue}/jobs", jobs).json()["results"]) == 2
        assert keyed(there, f"/v1/queues/{queue}/jobs", jobs).json() == {"replayed": True}
        first, second = (job["id"] for job in take(here, queue, count=9))
        assert keyed(there, f"/v1/jobs/{first}/done", {}).status_code == 200
        assert keyed(here, f"/v1/jobs/{first}/done", {}).json() == {"replayed": True}
        operations = {"operations": [{"op": "done", "id": second}, {"op": "put", "queue": f"{queue}_2", "text": "x"}]}
        assert len(keyed(here, "/v1/transactions", operations).json()["results"]) == 2
        assert keyed(there, "/v1/transactions", operations).json() == {"replayed": True}


def test_markers_are_in_a_queue_of_their_cluster() -> None:
    clusters = {name: MappedCluster(name * 16, ("h:1",)) for name in ("a", "b")}
    both = ClusterMap(1, clusters, {"b.": "b"})
    assert queue_of(both, "", "mail", str) == queue_of(both, "", None, str) == QUEUE
    assert queue_of(both, "", "b.mail", str) == queue_of(both, "", Item("i17.b"), str) == f"b.{QUEUE}"
    assert queue_of(both, "", 17, lambda number: f"b.{number}") == f"b.{QUEUE}"
    assert queue_of(ClusterMap(), "", "b.mail", str) == QUEUE
    assert queue_of(ClusterMap(), "ann", "b.mail", str) == f"{QUEUE}.ann@"
    assert queue_of(both, "ann", "b.mail", str) == f"b.{QUEUE}.ann@"
