"""Jobs over HTTP: put in all forms, taken, finished, looked at, by id, number, key and place."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from typing import Any

import httpx
from sockpq import Client
from sockpq.testing import Server
from sockpq_http.server.app import application
from sockpq_http.values.patterns import WORDS


def put(web: httpx.Client, queue: str, **job: Any) -> dict[str, Any]:
    """Put a job; returns what is stored."""
    answer = web.post(f"/v1/queues/{queue}/jobs", json=job)
    assert answer.status_code == 201, answer.text
    stored: dict[str, Any] = answer.json()
    return stored


def take(web: httpx.Client, queue: str, **how: Any) -> list[dict[str, Any]]:
    """Take jobs from a queue; returns them as the answer has them."""
    answer = web.post(f"/v1/queues/{queue}/take", json=how)
    assert answer.status_code == 200, answer.text
    jobs: list[dict[str, Any]] = answer.json()["jobs"]
    return jobs


def test_a_job_is_put_taken_and_done(web: httpx.Client) -> None:
    assert put(web, "mail", json={"to": "ann"}, priority=5) == {"outcome": "new"}
    (job,) = take(web, "mail", lease=60)
    assert (job["queue"], job["priority"], job["json"], job["attempt"]) == ("mail", 5, {"to": "ann"}, 1)
    assert job["headers"] == {"content-type": "application/json"}
    assert job["expires_at"].endswith("Z")
    done = web.post(f"/v1/jobs/{job['id']}/done")
    assert (done.status_code, done.json()) == (200, {"queue_done": True, "item_done": False})
    again = web.post(f"/v1/jobs/{job['id']}/done")
    assert again.status_code == 404
    assert again.headers["content-type"] == "application/problem+json"
    assert {name: again.json()[name] for name in ("type", "code", "reason")} == {
        "type": "urn:sockpq:problem:job-not-found", "code": 404, "reason": "Job Not Found",
    }


def test_the_body_of_a_request_is_that_of_the_job(web: httpx.Client, http_node: Server) -> None:
    raw = web.post(
        "/v1/queues/files/jobs", params={"priority": "7", "key": "a", "delay": "PT0S"}, content=b"\x00\xff",
        headers={"content-type": "image/png", "Sockpq-Header-Tenant": "shop"},
    )
    assert raw.json() == {"outcome": "new", "key": "a"}
    with Client(http_node.address) as client:
        job = client.get("files", expire=60, headers=True)
        assert job is not None
        assert (job.data, job.priority) == (b"\x00\xff", 7)
        assert job.headers == {"content-type": "image/png", "tenant": "shop"}
    mixed = web.post("/v1/queues/files/jobs", params={"priority": "7"}, json={"text": "x"})
    assert mixed.status_code == 400


def test_a_large_job_is_put_and_taken(web: httpx.Client) -> None:
    """Frameworks have limits of their own; 8 MiB is the greatest job, headers included."""
    data = bytes(range(256)) * 32_000
    put(web, "large", base64=b64encode(data).decode())
    (job,) = take(web, "large")
    assert b64decode(job["base64"]) == data
    refused = web.post("/v1/queues/large/jobs", content=b"a" * (8 << 20) + b"b", headers={"content-type": "a/b"})
    assert (refused.status_code, refused.json()["code"]) == (413, 413)


def test_many_jobs_have_an_outcome_each(web: httpx.Client) -> None:
    answer = web.post("/v1/queues/mail/jobs", json={"jobs": [
        {"text": "1", "key": "a"}, {"text": "2", "key": "a"}, {"text": "3", "number": True},
    ]})
    first, second, third = answer.json()["results"]
    assert first == {"stored": {"outcome": "new", "key": "a"}}
    assert (second["problem"]["status"], second["problem"]["reason"]) == (409, "Job Exists")
    assert third["stored"]["number"].isdigit()
    assert [job["text"] for job in take(web, "mail", count=10)] == ["1", "3"]


def test_several_are_finished_put_back_and_prolonged_together(web: httpx.Client) -> None:
    web.post("/v1/queues/mail/jobs", json={"jobs": [{"text": str(n)} for n in range(3)]})
    first, second, third = (job["id"] for job in take(web, "mail", count=3))
    assert web.post("/v1/jobs/touch", json={"ids": [first, "999999"], "lease": 60}).json() == {"running": [True, False]}
    assert web.post("/v1/jobs/later", json={"ids": [second], "first": True}).json() == {"running": [True]}
    done = web.post("/v1/jobs/done", json={"ids": [first, third, "999999"]}).json()["results"]
    assert [one is not None for one in done] == [True, True, False]
    assert [job["text"] for job in take(web, "mail", count=9)] == ["1"]


def test_a_running_job_is_changed_moved_and_given_up(web: httpx.Client) -> None:
    put(web, "raw", text="ann", item="i_1")
    (job,) = take(web, "raw")
    url = f"/v1/jobs/{job['id']}"
    assert web.get(url).json()["state"] == "running"
    assert web.patch(url, json={"text": "Ann", "headers": {"Seen": "1"}}).json() == {}
    assert web.post(f"{url}/touch", json={"lease": 600, "progress": 50}).json()["expires_at"]
    assert web.get(url).json()["progress"] == 50
    assert web.post(f"{url}/move", json={"queue": "ready"}).status_code == 200
    (moved,) = take(web, "ready")
    assert (moved["text"], moved["headers"], moved["item"]) == ("Ann", {"seen": "1"}, "i_1")
    url = f"/v1/jobs/{moved['id']}"
    assert web.post(f"{url}/later", json={"delay": "PT0S", "reason": "busy", "error": "no line"}).status_code == 200
    (again,) = take(web, "ready")
    assert (again["attempt"], again["reason"]) == (2, "busy")
    assert web.post(f"/v1/jobs/{again['id']}/bury", json={"reason": "broken"}).status_code == 200
    assert web.post("/v1/queues/ready/kick", json={"count": 9}).json() == {"count": 1}
    (last,) = take(web, "ready")
    assert web.delete(f"/v1/jobs/{last['id']}").json() == {"queue_done": True, "item_done": True}


def test_a_job_is_found_by_its_number_also_when_it_has_ended(web: httpx.Client) -> None:
    web.post("/v1/queues", json={"name": "sums", "retain": 3600})
    number = put(web, "sums", text="2+2", number=True)["number"]
    url = f"/v1/jobs/number/{number}"
    assert web.get(f"{url}/await", params={"wait": "0"}).json() == {"state": "unfinished"}
    assert web.patch(url, json={"priority": 3}).status_code == 200
    (job,) = web.post(f"{url}/take").json()["jobs"]
    assert (job["number"], job["priority"]) == (number, 3)
    assert web.post(f"/v1/jobs/{job['id']}/done", json={"result": "4"}).status_code == 200
    assert web.get(f"{url}/await").json() == {"state": "done", "text": "4"}
    assert web.get(f"{url}/result").json() == {"text": "4"}
    seen = web.get(url).json()
    assert (seen["state"], seen["life"]["taken"]) == ("done", 1)
    assert [one["number"] for one in web.get("/v1/queues/sums/jobs", params={"state": "ended"}).json()["jobs"]] == [
        number
    ]
    assert web.post(f"{url}/retry").json() == {"count": 1}
    assert web.get(f"{url}/stat").json()["state"] == "ready"
    assert web.delete(url).json()["queue_done"] is True
    assert web.delete(f"{url}/record").status_code == 200
    assert web.get(url).status_code == 404


def test_a_job_is_found_by_its_key_and_its_place(web: httpx.Client) -> None:
    put(web, "orders", text="3 apples", key="o_17")
    url = "/v1/queues/orders/keys/o_17"
    assert web.get(url).json()["text"] == "3 apples"
    assert web.patch(url, json={"text": "4 apples"}).status_code == 200
    assert web.get(f"{url}/error").json() == {}
    assert web.get(f"{url}/await", params={"wait": "PT0S"}).json() == {"state": "unfinished"}
    (job,) = web.get("/v1/queues/orders/jobs").json()["jobs"]
    assert job["text"] == "4 apples"
    place = f"/v1/queues/orders/places/{job['place']}"
    assert web.get(place).json()["key"] == "o_17"
    assert web.patch(place, json={"delay": 3600}).status_code == 200
    assert web.post(f"{place}/kick").json() == {"count": 1}
    assert web.delete(url).json()["queue_done"] is True
    assert web.get(url).status_code == web.delete(place).status_code == 404


def test_a_call_returns_the_answer_of_its_worker(web: httpx.Client, http_node: Server) -> None:
    from threading import Thread

    def work() -> None:
        with Client(http_node.address) as client, client.get("questions", block=True, expire=60) as question:
            client.put("answers", question.data.upper(), item=question.item)

    worker = Thread(target=work)
    worker.start()
    answer = web.post("/v1/queues/questions/call", json={"text": "what?", "output": "answers", "wait": 60}).json()
    worker.join()
    assert answer["text"] == "WHAT?"
    assert web.post(f"/v1/jobs/{answer['id']}/done").status_code == 200
    late = web.post("/v1/queues/questions/call", json={"text": "?", "output": "answers", "wait": 0})
    assert late.status_code == 504
    assert late.json()["item"]


def test_one_job_goes_into_many_queues(web: httpx.Client) -> None:
    assert web.post("/v1/jobs", json={"queues": ["a", "b"], "text": "x", "key": "k"}).json() == {"count": 2}
    assert web.post("/v1/topics/news/bindings", json={"queue": "a", "pattern": "sport.#"}).json() == {}
    assert web.post("/v1/topics/news/jobs", json={"text": "y", "route": "sport.chess"}).json() == {"count": 1}
    assert web.get("/v1/topics").json() == {"bindings": [{"topic": "news", "queue": "a", "pattern": "sport.#"}]}
    assert web.post("/v1/take", json={"queues": ["a", "b"], "count": 9, "by": "order"}).status_code == 200
    assert web.delete("/v1/topics/news/bindings", params={"queue": "a", "pattern": "sport.#"}).status_code == 200
    assert web.delete("/v1/topics/news").status_code == 404


def test_what_is_wrong_is_named(web: httpx.Client) -> None:
    for body, pointer in (
        ({"text": "x", "colour": "red"}, "#/colour"), ({"text": "x", "delay": "soon"}, "#/delay"),
        ({"jobs": [{"priority": "high"}]}, "#/jobs/0/priority"), ([], "#"), ({"text": "x", "key": "a b"}, None),
    ):
        answer = web.post("/v1/queues/mail/jobs", json=body)
        assert answer.status_code == 400, body
        assert answer.headers["content-type"] == "application/problem+json"
        if pointer is not None:
            assert answer.json()["errors"][0]["pointer"] == pointer
    broken = web.post("/v1/queues/mail/jobs", content=b"{", headers={"content-type": "application/json"})
    assert broken.status_code == 400
    for method, path, status in (("GET", "/v1/nothing", 404), ("PUT", "/v1/queues", 405), ("GET", "/v1/jobs/x", 400)):
        answer = web.request(method, path)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert web.get("/v1/totals").json()["jobs"] == 0


def test_what_does_not_exist_is_named_in_words(web: httpx.Client) -> None:
    answer = web.post("/v1/queues/mail/jobs", json={"txt": "x"})
    assert answer.json()["detail"] == "#/txt: there is no such field or parameter"
    for path in ("/", "/v1/queue/mail"):
        answer = web.get(path)
        assert (answer.status_code, answer.json()["detail"]) == (404, "there is no such path: /docs shows all requests")


def test_a_path_without_a_method_names_others(web: httpx.Client) -> None:
    answer = web.get("/v1/queues/mail")
    assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE")
    assert answer.json()["detail"] == (
        "there is no GET here, only DELETE; but there is GET of /v1/queues/{queue}/config, /v1/queues/{queue}/jobs, "
        "/v1/queues/{queue}/stats"
    )
    answer = web.put("/v1/queues")
    assert (answer.headers["allow"], answer.json()["detail"]) == ("GET, POST", "there is no PUT here, only GET, POST")
    assert (web.post("/healthz").status_code, web.post("/healthz").headers["allow"]) == (405, "GET")


def test_a_text_of_another_form_is_refused_in_words(web: httpx.Client) -> None:
    """Also where the pattern is a parameter's, whose error the framework makes."""
    asked = [
        web.get("/v1/queues/@b/stats"), web.post("/v1/queues", json={"name": "a b"}), web.get("/v1/jobs/x"),
        web.get("/v1/queues/q/places/x"), web.get("/v1/queues/q/keys/a b"), web.get("/v1/events?type=PUT&after=x"),
        web.delete("/v1/topics/t/bindings", params={"queue": "q", "pattern": "a b"}),
        web.post("/v1/jobs/1/bury", json={"reason": "a b"}),
    ]
    found = {answer.json()["errors"][0]["detail"] for answer in asked}
    assert found == set(WORDS.values())
    assert asked[0].json()["detail"].startswith("path.queue: a name is 1 to 255 of ")


def test_each_pattern_has_words() -> None:
    patterns = set(re.findall(r'"pattern": ?("(?:[^"\\]|\\.)*")', application().state.document))
    assert {json.loads(pattern) for pattern in patterns} == WORDS.keys()
