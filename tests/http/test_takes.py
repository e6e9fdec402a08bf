"""Takes that wait: a job that comes, one that does not, a client that hangs up, and a program that stops."""

from __future__ import annotations

import json
import socket
import threading

import httpx
from sockpq import Client
from sockpq.testing import Server

from tests.http.door import Door
from tests.waiting import until

IN_PROGRESS = "sockpq_http_requests_in_progress "


def waiting_take(door: Door, queue: str) -> socket.socket:
    """A connection on which a take waits that asks for a long lease."""
    body = json.dumps({"wait": 60, "lease": 86_400}).encode()
    connection = socket.create_connection(("127.0.0.1", door.port))
    connection.sendall(
        b"POST /v1/queues/%s/take HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (queue.encode(), len(body), body)
    )
    return connection


def waiters(client: Client, queue: str) -> int:
    return client.queue_stat(queue)["waiters"]


def in_progress(web: httpx.Client) -> int:
    """The requests that the instance executes, this one included."""
    (line,) = (line for line in web.get("/metrics").text.splitlines() if line.startswith(IN_PROGRESS))
    return int(float(line.removeprefix(IN_PROGRESS)))


def test_a_take_waits_for_a_job(web: httpx.Client, http_node: Server) -> None:
    with Client(http_node.address) as client:
        client.queue_create("mail")
        taken: list[httpx.Response] = []
        thread = threading.Thread(
            target=lambda: taken.append(web.post("/v1/queues/mail/take", json={"wait": "PT60S"})))
        thread.start()
        until(lambda: waiters(client, "mail") == 1, "it waits")
        client.put("mail", "hello")
        thread.join()
    assert taken[0].json()["jobs"][0]["text"] == "hello"


def test_a_take_ends_without_a_job(web: httpx.Client) -> None:
    assert web.post("/v1/queues/mail/take", json={"wait": 0.05}).json() == {"jobs": []}
    assert web.post("/v1/queues/mail/take", json={"wait": 60, "until_done": True}).json() == {"jobs": []}
    assert web.post("/v1/queues/mail/take").json() == {"jobs": []}
    assert web.post("/v1/queues/mail/take", json={"wait": 61}).status_code == 400
    assert web.post("/v1/queues/mail/take", json={"lease": 0}).status_code == 400


def test_a_take_says_the_rate_of_its_queue(web: httpx.Client) -> None:
    web.post("/v1/pulses", json={"name": "ga", "rate": 5, "per": 2})
    web.post("/v1/queues", json={"name": "rated", "rate": 100, "per": 60})
    web.post("/v1/queues", json={"name": "pulsed", "pulse": "ga"})
    found = {queue: web.post(f"/v1/queues/{queue}/take").headers.get("ratelimit-policy")
             for queue in ("rated", "pulsed", "free")}
    assert found == {"rated": '"rated";q=100;w=60', "pulsed": '"ga";q=5;w=2', "free": None}


def test_a_client_that_hangs_up_takes_nothing(web: httpx.Client, door: Door, http_node: Server) -> None:
    with Client(http_node.address) as client:
        client.queue_create("mail")
        for _ in range(3):
            connection = waiting_take(door, "mail")
            until(lambda: waiters(client, "mail") == 1, "it waits")
            connection.close()
            until(lambda: in_progress(web) == 1, "it has ended")      # its wait, and the look for a job that has come
        client.put("mail", "hello")
        job = client.get("mail", expire=60, meta=True)
        assert job is not None
        assert job.attempt == 1


def test_a_job_that_comes_while_its_client_hangs_up_goes_back(
    web: httpx.Client, door: Door, http_node: Server
) -> None:
    with Client(http_node.address) as client:
        client.queue_create("mail")
        for _ in range(5):                  # both at the same time: whichever comes first, the job is there
            connection = waiting_take(door, "mail")
            until(lambda: waiters(client, "mail") == 1, "it waits")
            connection.close()
            client.put("mail", "hello")
            until(lambda: client.total("mail").jobs == 1 and client.total("mail").running == 0, "it is back")
            client.queue_purge("mail", "ready")


def test_a_take_ends_when_the_program_stops(http_node: Server) -> None:
    with Client(http_node.address) as client, Door(http_node.address) as door:
        client.queue_create("late")
        connection = waiting_take(door, "late")
        until(lambda: waiters(client, "late") == 1, "it waits")
        door.begin_to_stop()
        answer = b""
        while piece := connection.recv(65_536):
            answer += piece
        connection.close()
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert answer.endswith(b'{"jobs":[]}')
        until(door.ended, "it ends")
