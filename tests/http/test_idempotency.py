"""Idempotency-Key: a repeated request is executed once, whichever instance it comes to."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from sockpq import Client
from sockpq.testing import Server
from sockpq_http.idempotency.marker import KEYS_MAX, QUEUE

from tests.http.door import Door
from tests.http.test_jobs import put, take
from tests.waiting import until


def keyed(web: httpx.Client, method: str, path: str, key: str, body: Any = None) -> httpx.Response:
    return web.request(method, path, json=body, headers={"Idempotency-Key": key})


def test_a_put_is_executed_once_and_answered_alike(web: httpx.Client, http_node: Server) -> None:
    job = {"text": "hello"}
    first = keyed(web, "POST", "/v1/queues/mail/jobs", "k1", job)
    with Door(http_node.address) as other, other.client() as there:
        second = keyed(there, "POST", "/v1/queues/mail/jobs", '"k1"', job)      # as structured fields write it
    assert first.status_code == second.status_code == 201
    assert first.json() == {"outcome": "new", "number": first.json()["number"]}
    assert second.json() == {**first.json(), "replayed": True}
    assert second.headers["idempotency-replayed"] == "true"
    assert len(take(web, "mail", count=9)) == 1
    keyed(web, "POST", "/v1/queues/mail/jobs", "k2", job)
    keyed(web, "POST", "/v1/queues/other/jobs", "k1", job)          # another path has keys of its own
    assert len(take(web, "mail", count=9)) == len(take(web, "other", count=9)) == 1


def test_a_put_is_remembered_after_its_job_has_ended(web: httpx.Client) -> None:
    number = keyed(web, "POST", "/v1/queues/mail/jobs", "k", {"text": "x"}).json()["number"]
    (job,) = take(web, "mail")
    web.post(f"/v1/jobs/{job['id']}/done")
    assert keyed(web, "POST", "/v1/queues/mail/jobs", "k", {"text": "x"}).json()["number"] == number
    assert take(web, "mail") == []


def test_a_put_that_has_found_a_job_is_executed_once_too(web: httpx.Client) -> None:
    """Nothing is put by the repetition, although no job bears its key any more."""
    put(web, "mail", text="1", key="a")
    job = {"text": "2", "key": "a", "on_duplicate": "ignore"}
    assert keyed(web, "POST", "/v1/queues/mail/jobs", "k", job).json()["outcome"] == "exists"
    (found,) = take(web, "mail")
    web.post(f"/v1/jobs/{found['id']}/done")
    again = keyed(web, "POST", "/v1/queues/mail/jobs", "k", job)
    assert (again.status_code, again.json(), again.headers["idempotency-replayed"]) == (201, {"replayed": True}, "true")
    assert take(web, "mail") == []
    assert keyed(web, "POST", "/v1/queues/mail/jobs", "k", {**job, "text": "3"}).status_code == 422


def test_a_put_that_was_dropped_is_executed_once_too(web: httpx.Client) -> None:
    """Its item has ended when it is put; when it is repeated that is there again."""
    job = {"text": "too late", "after": ["album"], "when": "failed"}
    assert keyed(web, "POST", "/v1/queues/mail/jobs", "k", job).json()["outcome"] == "dropped"
    put(web, "mail", text="x", item="album")
    assert keyed(web, "POST", "/v1/queues/mail/jobs", "k", job).json() == {"replayed": True}
    assert len(web.get("/v1/queues/mail/jobs", params={"state": "delayed"}).json()["jobs"]) == 0


def test_many_jobs_are_put_together_and_once(web: httpx.Client) -> None:
    jobs = {"jobs": [{"text": "1"}, {"text": "2"}]}
    first = keyed(web, "POST", "/v1/queues/mail/jobs", "k", jobs)
    assert [one["stored"]["outcome"] for one in first.json()["results"]] == ["new", "new"]
    second = keyed(web, "POST", "/v1/queues/mail/jobs", "k", jobs)
    assert (second.status_code, second.json()) == (201, {"replayed": True})
    refused = keyed(web, "POST", "/v1/queues/mail/jobs", "k3", {"jobs": [
        {"text": "3", "key": "a"}, {"text": "4", "key": "a"},
    ]})
    assert (refused.status_code, refused.json()["operation"], refused.json()["reason"]) == (409, 1, "Job Exists")
    assert [job["text"] for job in take(web, "mail", count=9)] == ["1", "2"]


def test_ends_of_jobs_are_executed_once(web: httpx.Client) -> None:
    for how in ("done", "later", "bury"):
        put(web, how, text="x")
        (job,) = take(web, how)
        path = f"/v1/jobs/{job['id']}/{how}"
        assert keyed(web, "POST", path, "k", {}).status_code == 200
        again = keyed(web, "POST", path, "k", {})
        assert (again.status_code, again.json()) == (200, {"replayed": True})
        assert web.post(path).status_code == 404


def test_requests_at_the_same_time_are_executed_once(web: httpx.Client) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = [*pool.map(lambda _: keyed(web, "POST", "/v1/jobs", "k", {"queues": ["a", "b"], "text": "x"}),
                             range(8))]
    assert {answer.status_code for answer in answers} == {201}
    assert sum("replayed" not in answer.json() for answer in answers) == 1
    assert len(take(web, "a", count=99)) == len(take(web, "b", count=99)) == 1


def test_a_refused_request_may_come_again_with_its_key(web: httpx.Client) -> None:
    refused = keyed(web, "DELETE", "/v1/queues/mail/keys/a", "k")
    assert (refused.status_code, refused.json()["reason"]) == (404, "Job Not Found")
    put(web, "mail", text="x", key="a")
    assert keyed(web, "DELETE", "/v1/queues/mail/keys/a", "k").json()["queue_done"] is True
    assert keyed(web, "DELETE", "/v1/queues/mail/keys/a", "k").json() == {"replayed": True}


def test_where_a_key_would_promise_too_much_it_is_refused(web: httpx.Client) -> None:
    put(web, "mail", text="x")
    for path, body in (("/v1/queues/mail/take", {}), ("/v1/queues/mail/purge", {"state": "all"}),
                       ("/v1/jobs/done", {"ids": ["1"]})):
        answer = keyed(web, "POST", path, "k", body)
        assert (answer.status_code, answer.json()["type"]) == (400, "urn:sockpq:problem:no-key-here")
    assert len(take(web, "mail")) == 1
    both = keyed(web, "POST", "/v1/queues/mail/jobs", "k", {"text": "x", "dedup": {"key": "a", "seconds": 60}})
    assert both.status_code == 400


def test_nobody_takes_the_markers(web: httpx.Client, http_node: Server) -> None:
    with Door(http_node.address) as other, other.client() as there:     # it has not paused their queue yet
        assert keyed(there, "POST", "/v1/jobs", "k", {"queues": ["a"], "text": "x"}).status_code == 201
    jobs = web.post("/v1/take", json={"count": 9}).json()["jobs"]
    assert [job["queue"] for job in jobs] == ["a"]
    with Client(http_node.address) as client:
        assert client.total(QUEUE).jobs == 2        # the key, and the key with its request


def test_the_keys_of_a_queue_are_bounded(web: httpx.Client) -> None:
    web.post("/v1/queues", json={"name": "small", "dedup_max": 1})
    assert keyed(web, "POST", "/v1/queues/small/jobs", "k1", {"text": "x"}).status_code == 201
    full = keyed(web, "POST", "/v1/queues/small/jobs", "k2", {"text": "x"})
    assert (full.status_code, full.json()["reason"], full.headers["retry-after"]) == (503, "Queue Full", "60")
    assert "PATCH /v1/queues/small/config" in full.json()["detail"]
    assert web.patch("/v1/queues/small/config", json={"dedup_max": 2}).json()["settings"]["dedup_max"] == "2"
    assert keyed(web, "POST", "/v1/queues/small/jobs", "k2", {"text": "x"}).status_code == 201


def test_a_queue_that_does_not_exist_gets_room_for_keys(web: httpx.Client) -> None:
    assert web.patch("/v1/queues/new/config", json={"dedup_max": 1}).status_code == 200
    assert keyed(web, "POST", "/v1/queues/new/jobs", "k1", {"text": "x"}).status_code == 201
    assert keyed(web, "POST", "/v1/queues/new/jobs", "k2", {"text": "x"}).status_code == 503


@pytest.mark.parametrize(("path", "first", "second"), [
    ("/v1/queues/mail/jobs", {"text": "1"}, {"text": "2"}),
    ("/v1/queues/mail/jobs", {"jobs": [{"text": "1"}]}, {"jobs": [{"text": "2"}]}),
    ("/v1/jobs", {"queues": ["mail"], "text": "1"}, {"queues": ["mail"], "text": "2"}),
    ("/v1/transactions", {"operations": [{"op": "put", "queue": "mail", "text": "1"}]},
     {"operations": [{"op": "put", "queue": "mail", "text": "2"}]}),
], ids=("one", "many", "several queues", "transaction"))
def test_a_key_is_refused_for_another_request(web: httpx.Client, path: str, first: Any, second: Any) -> None:
    assert keyed(web, "POST", path, "k", first).is_success
    for _ in range(2):
        other = keyed(web, "POST", path, "k", second)
        assert (other.status_code, other.json()["type"]) == (422, "urn:sockpq:problem:key-used")
    assert keyed(web, "POST", path, "k", first).json()["replayed"] is True
    assert [job["text"] for job in take(web, "mail", count=9)] == ["1"]


def test_a_key_is_refused_for_another_request_after_its_job_has_ended(web: httpx.Client) -> None:
    path = "/v1/queues/mail/jobs"
    number = keyed(web, "POST", path, "k", {"text": "1"}).json()["number"]
    (job,) = take(web, "mail")
    web.post(f"/v1/jobs/{job['id']}/done")
    for _ in range(2):
        assert keyed(web, "POST", path, "k", {"text": "2"}).status_code == 422
        again = keyed(web, "POST", path, "k", {"text": "1"})
        assert (again.json(), again.headers["idempotency-replayed"]) == (
            {"replayed": True, "outcome": "new", "number": number}, "true")
    assert take(web, "mail") == []


def test_a_job_has_no_header_for_its_key(web: httpx.Client) -> None:
    keyed(web, "POST", "/v1/queues/mail/jobs", "k", {"text": "1"})
    (job,) = take(web, "mail")
    assert "headers" not in job


def test_a_key_may_be_used_for_another_request_once_it_is_forgotten(http_node: Server, web: httpx.Client) -> None:
    """Marker, fingerprint and key are forgotten together, so a key begins again as a whole."""
    path = "/v1/queues/mail/jobs"
    with Door(http_node.address, idempotency_s=1.0) as door, door.client() as there:
        for text in ("1", "2"):
            until(lambda: keyed(there, "POST", path, "k", {"text": text}).json().get("outcome") == "new"  # noqa: B023
                  and len(take(web, "mail")) == 1, f"{text} is put")


def test_an_operator_decides_how_many_keys_the_markers_have(web: httpx.Client, http_node: Server) -> None:
    def room() -> str:
        found: str = web.get(f"/v1/queues/{QUEUE}/config").json()["settings"]["dedup_max"]
        return found

    with Door(http_node.address) as other, other.client() as there:
        assert keyed(there, "POST", "/v1/queues/mail/jobs", "k1", {"text": "x"}).status_code == 201
    assert room() == str(KEYS_MAX)
    web.patch(f"/v1/queues/{QUEUE}/config", json={"dedup_max": 1})
    try:
        with Door(http_node.address) as other, other.client() as there:
            full = keyed(there, "POST", "/v1/queues/mail/jobs", "k2", {"text": "x"})
        assert room() == "1"
    finally:
        web.patch(f"/v1/queues/{QUEUE}/config", json={"dedup_max": KEYS_MAX})
    assert (full.status_code, full.json()["reason"]) == (503, "Queue Full")
    assert f"PATCH /v1/queues/{QUEUE}/config" in full.json()["detail"]


def test_headers_and_parameters_of_a_raw_body_belong_to_the_request(web: httpx.Client) -> None:
    def put_raw(priority: int, tenant: str) -> int:
        return web.post(f"/v1/queues/mail/jobs?priority={priority}", content=b"x", headers={
            "Idempotency-Key": "k", "Content-Type": "text/plain", "Sockpq-Header-Tenant": tenant,
        }).status_code

    assert [put_raw(1, "a"), put_raw(2, "a"), put_raw(1, "b"), put_raw(1, "a")] == [201, 422, 422, 201]


def test_a_job_with_as_many_headers_as_there_may_be_is_put_with_a_key(web: httpx.Client) -> None:
    headers = {f"h{number}": "x" for number in range(64)}
    assert keyed(web, "POST", "/v1/queues/mail/jobs", "k", {"text": "x", "headers": headers}).status_code == 201
    (job,) = take(web, "mail")
    assert job["headers"] == headers
