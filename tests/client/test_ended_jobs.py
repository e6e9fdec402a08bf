"""Jobs that have ended and are kept, results, progress and cancelled jobs, against the real gateway in memory."""

from __future__ import annotations

import pytest
from sockpq import BadArguments, Client, JobNotFound, Number, QueueNotFound

from tests.client.conftest import MakeClient
from tests.client.real_server import RealServer


@pytest.fixture
def client(server: RealServer, make_client: MakeClient) -> Client:
    return make_client(server.address, timeout=60)


def put(client: Client, data: bytes = b"body", queue: str = "q") -> int:
    """Put a job with a number, and return the number."""
    number = client.put(queue, data, number=True, headers={"task": "send"}).number
    assert number is not None
    return number


def test_the_settings_that_keep_ended_jobs_are_told_and_changed(client: Client) -> None:
    with pytest.raises(QueueNotFound):
        client.queue_config("q")
    told = client.queue_config("q", retain=3600, retain_max=10, retain_bytes=5_000, backoff=(2, 600))
    assert {name: told[name] for name in ("retain", "retain_max", "retain_bytes", "backoff")} == {
        "retain": "3600", "retain_max": "10", "retain_bytes": "5000", "backoff": "2 600"}
    client.queue_create("r", error_bytes=0, dedup_max=3)
    told = client.queue_config("r")
    assert (told["error_bytes"], told["dedup_max"], told["retain"], told["backoff"]) == ("0", "3", "0", "OFF")
    assert client.queue_config("q", backoff=(0, 0))["backoff"] == "OFF"
    for wrong in ((3, 2), (0, 5), (1, 100_000), 7):
        with pytest.raises((BadArguments, TypeError)):
            client.queue_config("q", backoff=wrong)         # type: ignore[arg-type]


def test_a_result_is_read_as_long_as_the_ended_job_is_kept(server: RealServer, client: Client) -> None:
    client.queue_config("q", retain=60)
    number = put(client)
    with pytest.raises(JobNotFound):
        client.job_result(number)               # it has not ended
    job = client.get("q", expire=30)
    assert job is not None
    assert not job.done(result=b"\x00 any bytes\r\n").dropped
    assert client.job_result(number) == b"\x00 any bytes\r\n"
    assert client.job_result(Number(number)) == b"\x00 any bytes\r\n"
    plain = put(client)
    job = client.get("q", expire=30)
    assert job is not None
    client.done(job)
    assert client.job_result(plain) == b""
    server.pass_time(61)
    for one in (number, plain):
        with pytest.raises(JobNotFound):
            client.job_result(one)


def test_ended_shows_a_job_before_and_after_its_end(client: Client) -> None:
    client.queue_config("q", retain=60)
    number = put(client)
    assert client.ended(number + 1) is None
    before = client.ended(number, headers=True)
    assert before is not None
    assert (before.state, before.data, before.headers, before.ended) == ("ready", b"body", {"task": "send"}, None)
    job = client.get("q", expire=30)
    assert job is not None
    assert job.touch(progress=40) is not None
    running = client.ended(Number(number))
    assert running is not None
    assert (running.state, running.progress, running.headers) == ("running", 40, None)
    job.done()
    after = client.ended(number, headers=True)
    assert after is not None
    assert (after.state, after.data, after.number, after.attempt) == ("done", b"body", number, 1)
    assert after.headers == {"task": "send"}
    assert after.ended is not None
    assert after.progress is None


def test_the_ended_jobs_of_a_queue_come_newest_first(client: Client) -> None:
    client.queue_config("q", retain=60)
    first, second, third = (put(client, b"%d" % number) for number in range(3))
    client.delete(Number(third))
    for job in client.get_many(2, "q", expire=30):
        job.done()
    assert [(job.number, job.state) for job in client.ended_jobs("q", 10)] == [
        (second, "done"), (first, "done"), (third, "cancelled")]
    (newest,) = client.ended_jobs("q", headers=True)
    assert (newest.data, newest.headers) == (b"1", {"task": "send"})
    assert client.ended_jobs("nothing", 5) == []


def test_an_ended_job_is_tried_again_as_it_was_put(client: Client) -> None:
    client.queue_config("q", retain=60)
    number = put(client)
    job = client.get("q", expire=30)
    assert job is not None
    job.done(result=b"first")
    assert client.retry_ended(number) == 1
    with pytest.raises(JobNotFound):
        client.retry_ended(Number(number))      # it has not ended any more
    job = client.get("q", expire=30, meta=True, headers=True)
    assert job is not None
    assert (job.data, job.number, job.attempt, job.headers) == (b"body", number, 1, {"task": "send"})
    job.done(result=b"second")
    assert client.job_result(number) == b"second"


def test_the_life_of_a_job_is_told_in_every_state(client: Client) -> None:
    client.queue_config("q", retain=60, tries=1, dead="d")
    number = put(client)
    waiting = client.ended(number, life=True, headers=True)
    assert waiting is not None
    assert waiting.headers == {"task": "send"}
    life = waiting.life
    assert life is not None
    assert (life.first, life.started, life.taken, life.died_in) == (None, None, 0, None)
    assert client.get("q", expire=30).bury() is not None        # type: ignore[union-attr]
    dead = client.ended(number, life=True)
    assert dead is not None
    assert dead.life == life._replace(first=dead.life.first, started=dead.life.first, taken=1, died_in="q")  # type: ignore[union-attr]
    client.delete(Number(number))
    assert client.ended(number) is None         # the queue in which it died keeps none
    client.put("q", b"plain", key="k")
    assert client.get("q", expire=30, meta=True) is not None


def test_what_is_kept_of_a_job_is_removed(client: Client) -> None:
    client.queue_config("q", retain=60)
    for _ in range(3):
        put(client)
    for job in client.get_many(3, "q", expire=30):
        job.done()
    number = client.ended_jobs("q")[0].number
    assert number is not None
    client.delete_ended(number)
    with pytest.raises(JobNotFound):
        client.delete_ended(number)
    assert len(client.ended_jobs("q", 5)) == 2
    assert client.queue_purge("q", "ended") == 2
    assert client.ended_jobs("q", 5) == []
    assert client.config(retained_bytes=12345)["retained_bytes"] == "12345"
    for wrong in (-1, "5", 1.5):
        with pytest.raises((BadArguments, TypeError)):
            client.config(retained_bytes=wrong)     # type: ignore[arg-type]


def test_the_error_of_a_cancelled_job_is_read_by_its_number(client: Client) -> None:
    client.queue_config("q", retain=60)
    number = put(client)
    job = client.get("q", expire=30)
    assert job is not None
    job.later(error="it broke", reason="Broken")
    client.delete(Number(number))
    assert client.job_error(Number(number)) == "it broke"
    ended = client.ended(number)
    assert ended is not None
    assert (ended.state, ended.reason) == ("cancelled", "Broken")
    with pytest.raises(JobNotFound):
        client.job_error(Number(number + 1))


def test_progress_and_the_removal_of_a_running_job_are_told(server: RealServer, client: Client) -> None:
    number = put(client)
    job = client.get("q", expire=30)
    assert job is not None
    with Client(server.address) as other, other.events(["PROGRESS", "CANCEL"], "q") as events:
        events.open()
        client.touch(job, progress=40)
        client.touch(job, progress=40)          # no news
        client.touch(job, progress=100)
        other.delete(Number(number))
        heard = [next(events) for _ in range(3)]
    assert [(event.type, event.name, event.id, event.words) for event in heard] == [
        ("PROGRESS", "q", job.id, ("q", str(job.id), "40")),
        ("PROGRESS", "q", job.id, ("q", str(job.id), "100")),
        ("CANCEL", "q", job.id, ("q", str(job.id))),
    ]
    for wrong in (-1, 101, 1.5):
        with pytest.raises((BadArguments, TypeError)):
            client.touch(1, progress=wrong)     # type: ignore[arg-type]
