"""Queues, items, groups, pulses, searches and the cluster, each by its requests."""

from __future__ import annotations

import httpx

from tests.http.test_jobs import put, take
from tests.waiting import until


def test_a_queue_is_made_configured_paused_and_removed(web: httpx.Client) -> None:
    made = web.post("/v1/queues", json={"name": "calls", "limit": 4, "backoff": ["PT2S", "PT10M"], "expire": 60})
    assert made.status_code == 201
    assert made.json()["settings"]["limit"] == "4"
    assert web.post("/v1/queues", json={"name": "calls"}).json()["reason"] == "Queue Exists"
    assert web.patch("/v1/queues/calls/config", json={"group_by": "head:tenant", "sched": "fair"}).status_code == 200
    assert web.patch("/v1/queues/calls/config", json={}).status_code == 400
    assert web.get("/v1/queues/calls/config").json()["settings"]["sched"] == "FAIR"
    assert web.post("/v1/queues/calls/pause", json={"direction": "in"}).json() == {}
    refused = web.post("/v1/queues/calls/jobs", json={"text": "x"})
    assert (refused.status_code, refused.json()["reason"], refused.headers["retry-after"]) == (503, "Queue Paused", "1")
    assert web.post("/v1/queues/calls/resume").json() == {}
    put(web, "calls", text="x")
    assert web.get("/v1/queues/calls/stats").json()["counters"]["total_put"] >= 1
    assert [queue["ready"] for queue in web.get("/v1/queues", params={"prefix": "ca"}).json()["queues"]] == [1]
    assert web.delete("/v1/queues/calls").json()["reason"] == "Queue Not Empty"
    assert web.post("/v1/queues/calls/move", json={"to": "visits"}).json() == {"jobs": 1}
    assert web.get("/v1/totals", params={"queue": "visits"}).json()["jobs"] == 1
    assert web.post("/v1/queues/visits/purge", json={"state": "own"}).json() == {"count": 1}
    assert web.delete("/v1/queues/calls", params={"force": "true"}).json() == {}


def test_an_item_is_held_counted_retried_and_cancelled(web: httpx.Client) -> None:
    item = web.post("/v1/items", json={"expire": 600}).json()["item"]
    assert web.post(f"/v1/items/{item}/hold", json={"expire": 600, "then": "release"}).json() == {"item": item}
    put(web, "pages", text="1", item=item)
    assert web.get(f"/v1/items/{item}").json()["held"] is True
    assert [one["name"] for one in web.get("/v1/items", params={"held": "true"}).json()["items"]] == [item]
    (job,) = take(web, "pages")
    web.post(f"/v1/jobs/{job['id']}/bury")
    assert web.post(f"/v1/items/{item}/retry").json() == {"count": 1}
    assert web.post(f"/v1/items/{item}/release").json() == {"item_done": False}
    assert web.post(f"/v1/items/{item}/release").json()["reason"] == "Item Not Held"
    assert web.post(f"/v1/items/{item}/cancel", json={"reason": "late"}).json() == {"count": 1}
    until(lambda: web.get(f"/v1/items/{item}").status_code == 404, "its jobs are removed")


def test_a_group_is_limited_paused_and_freed(web: httpx.Client) -> None:
    web.post("/v1/queues", json={"name": "surveys", "sched": "groups"})
    put(web, "surveys", text="1", group="anna")
    assert web.patch("/v1/groups/anna", json={"limit": 1, "rate": 100, "per": "PT1M"}).json()["per"] == 60
    assert web.post("/v1/groups/anna/pause", json={"seconds": 600}).json() == {}
    assert take(web, "surveys") == []
    (group,) = web.get("/v1/groups", params={"prefix": "an"}).json()["groups"]
    assert (group["name"], group["ready"], group["paused"]) == ("anna", 1, True)
    assert web.post("/v1/groups/anna/resume").json() == {}
    assert len(take(web, "surveys")) == 1
    assert web.get("/v1/groups/anna").json()["limit"] == 1
    assert web.delete("/v1/groups/anna").json() == {}
    assert web.get("/v1/groups/nobody/share").json()["reason"] == "Group Not Found"
    assert isinstance(web.get("/v1/fair/levels").json()["levels"], list)
    assert web.patch("/v1/fair/config", json={"multiplier": 4}).json() == web.get("/v1/fair/config").json()


def test_a_turn_of_a_pulse_is_waited_for_and_reported(web: httpx.Client) -> None:
    assert web.post("/v1/pulses", json={"name": "ga", "rate": 100, "max_run": "PT1H"}).status_code == 201
    assert web.put("/v1/pulses/ga/payload", json={"json": {"version": 2}}).json() == {}
    turn = web.post("/v1/pulses/ga/wait", json={"wait": 30}).json()
    assert (turn["act"], turn["text"]) == (True, '{"version":2}')
    outcome = {"ticket": turn["ticket"], "feedback": "slow", "reason": "tooFast"}
    assert web.post("/v1/pulses/ga/result", json=outcome).json() == {}
    assert web.post("/v1/pulses/ga/result", json=outcome).json()["reason"] == "Ticket Not Found"
    assert web.get("/v1/pulses").json() == {"pulses": ["ga"]}
    assert web.get("/v1/pulses/ga").json()["figures"]["granted"] == 1
    web.put("/v1/pulses/ga/payload", json={"deny": True})
    web.patch("/v1/pulses/ga", json={"rate": 50})
    denied = web.post("/v1/pulses/ga/wait").json()
    assert denied["act"] is False
    web.post("/v1/pulses/ga/result", json={"ticket": denied["ticket"], "feedback": "sleep", "sleep": 600})
    assert web.post("/v1/pulses/ga/wait", json={"wait": 0.05}).json()["reason"] == "Wait Timeout"
    assert web.delete("/v1/pulses/ga").json() == {}


def test_jobs_are_found_by_what_they_are(web: httpx.Client) -> None:
    for number in range(5):
        put(web, "mail", text=str(number), key=f"m_{number}", headers={"Task": "welcome"})
    put(web, "other", text="x", headers={"task": "other"})
    found = web.get("/v1/find", params={"header": "Task:welcome", "state": ["ready", "dead"], "limit": 3}).json()
    assert (len(found["jobs"]), found["more"]) == (3, True)
    assert {job["queue"] for job in found["jobs"]} == {"mail"}
    one = web.get("/v1/find", params={"queue": "mail", "key": "m_4", "since": "2020-01-01T00:00:00Z"}).json()
    assert ([job["key"] for job in one["jobs"]], one["more"]) == (["m_4"], False)
    assert web.get("/v1/find", params={"header": "task"}).status_code == 400


def test_the_cluster_shows_itself(web: httpx.Client) -> None:
    cluster = web.get("/v1/cluster").json()
    assert [node["role"] for node in cluster["nodes"]] == ["LEADER"]
    assert "dedup" in cluster["caps"]
    assert web.get("/v1/cluster/map").json()["version"] == 0
    settings = web.patch("/v1/cluster/config", json={"fast_empty": True}).json()["settings"]
    assert settings == web.get("/v1/cluster/config").json()["settings"]
    assert web.get("/v1/workers").json() == {"workers": []}
    assert web.patch("/v1/workers/nobody", json={"state": "pause"}).json()["reason"] == "Worker Not Found"


def test_a_transaction_is_executed_as_a_whole_or_not_at_all(web: httpx.Client) -> None:
    put(web, "raw", text="ann")
    number = put(web, "later", text="x", number=True, delay=3600)["number"]
    (job,) = take(web, "raw")
    operations = [
        {"op": "put", "queue": "ready", "text": "Ann", "number": True}, {"op": "done", "id": job["id"]},
        {"op": "change", "number": number, "priority": 3}, {"op": "item_hold"},
        {"op": "put_to", "queues": ["a", "b"], "text": "y"},
    ]
    refused = web.post("/v1/transactions", json={"operations": [*operations, {"op": "touch", "id": "99999"}]})
    assert (refused.status_code, refused.json()["operation"], refused.json()["reason"]) == (409, 5, "Job Not Found")
    assert take(web, "ready") == []
    answer = web.post("/v1/transactions", json={"operations": operations}, headers={"Idempotency-Key": "t"})
    results = answer.json()["results"]
    assert [result["op"] for result in results] == ["put", "done", "change", "item_hold", "put_to"]
    assert results[0]["stored"]["number"]
    assert results[1]["finished"]["queue_done"] is True
    assert (bool(results[3]["item"]), results[4]["count"]) == (True, 2)
    again = web.post("/v1/transactions", json={"operations": operations}, headers={"Idempotency-Key": "t"})
    assert again.json() == {"replayed": True}
    assert len(take(web, "ready", count=9)) == 1
    both = web.post("/v1/transactions", json={"operations": [{"op": "delete", "number": number, "id": job["id"]}]})
    assert both.status_code == 400
