"""`queue drain`, `queue move`, and messages about queues that do not exist; against real nodes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from sockpq import Client, Key, QueuePaused

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED
from tests.pqctl.running import ask, execute, run


@pytest.fixture
def client(nodes: LocalCluster) -> Iterator[Client]:
    with Client(nodes.servers) as client:
        yield client
        for queue in client.queues():
            client.queue_delete(queue.name, force=True)


def test_a_drained_queue_has_no_unfinished_job_and_takes_none(
    nodes: LocalCluster, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    client.put_many("mail", [b"1", b"2", b"3"])
    client.put("mail", b"4", delay=0.5)

    def work() -> None:
        time.sleep(0.3)
        for _ in client.consume("mail", expire=30, until_done=True):
            pass

    worker = threading.Thread(target=work)
    worker.start()
    code, told = ask(capsys, nodes.servers, "queue", "drain", "mail", "--timeout", "30")
    worker.join()
    assert (code, told) == (DONE, {"queue": "mail"})
    assert (client.total("mail").jobs, client.total("mail").running) == (0, 0)
    with pytest.raises(QueuePaused):
        client.put("mail", b"5")


def test_what_is_left_is_told_when_the_time_is_over(
    nodes: LocalCluster, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    client.put_many("mail", [b"1", b"2"])
    client.get("mail", expire=30)
    code, _, err = run(capsys, "--servers", ",".join(nodes.servers), "queue", "drain", "mail", "--timeout", "0.5")
    assert code == REFUSED
    assert "1 ready, 1 running" in err


def test_waiting_jobs_move_in_order_and_the_others_stay(
    nodes: LocalCluster, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    client.put_many("old", [b"%d" % number for number in range(1200)])
    client.put("old", b"first", priority=9, item="i", key="k")
    client.put("old", b"later", delay=600)
    assert ask(capsys, nodes.servers, "queue", "move", "old", "new", "--count", "3") == (
        DONE, {"from": "old", "to": "new", "moved": 3, "refusal": None})
    assert [job.data for job in client.peek_queue("new", "ready", 10)] == [b"first", b"0", b"1"]
    assert ask(capsys, nodes.servers, "queue", "move", "old", "new")[1]["moved"] == 1198
    job = client.peek(Key("new", "k"))
    assert job is not None
    assert (job.priority, job.item, job.attempt) == (9, "i", 0)
    assert [one.data for one in client.peek_queue("new", "ready", 2000)] == [
        b"first", *(b"%d" % number for number in range(1200))]
    assert [one.data for one in client.peek_queue("old", "delayed", 10)] == [b"later"]


def test_a_job_whose_key_is_taken_stays_and_those_behind_it(
    nodes: LocalCluster, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    client.put_many("old", [b"a", b"b", b"c"], keys=["a", "b", "c"])
    client.put("new", b"b", key="b")
    code, told = ask(capsys, nodes.servers, "queue", "move", "old", "new")
    assert (code, told["moved"], told["refusal"]) == (REFUSED, 1, "409 Job Exists")
    assert [job.data for job in client.peek_queue("old", "ready", 10)] == [b"b", b"c"]


def test_a_full_target_keeps_what_it_has_no_room_for_where_it_was(
    nodes: LocalCluster, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    client.put_many("old", [b"1", b"2", b"3"])
    client.queue_create("new", capacity=2)
    code, out, _ = run(capsys, "--servers", ",".join(nodes.servers), "queue", "move", "old", "new")
    assert code == REFUSED
    assert out == "2 jobs moved from old to new; the next one stayed: 503 Queue Full\n"
    assert [job.data for job in client.peek_queue("old", "ready", 10)] == [b"3"]


def test_dead_jobs_move_to_where_they_are_looked_at(
    nodes: LocalCluster, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    for queue in "a", "b":
        client.queue_create(queue, tries=1, dead="dead")
        client.put(queue, queue.encode())
        job = client.get(queue)
        assert job is not None
        job.bury(error="because")
    assert ask(capsys, nodes.servers, "queue", "move", "dead", "look", "--died", "b")[1]["moved"] == 1
    assert [job.data for job in client.peek_queue("look", "ready", 10)] == [b"b"]


def test_running_jobs_are_purged_and_dead_ones_left(
    nodes: LocalCluster, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    client.put_many("q", [b"dead", b"running", b"ready", b"late"])
    dead, running = client.get("q"), client.get("q")
    assert dead is not None
    assert running is not None
    dead.bury()
    assert ask(capsys, nodes.servers, "queue", "purge", "q", "running", "--yes") == (DONE, {"queue": "q", "removed": 1})
    client.get("q")
    assert ask(capsys, nodes.servers, "queue", "purge", "q", "own", "--yes") == (DONE, {"queue": "q", "removed": 2})
    client.put("q", b"x")
    assert ask(capsys, nodes.servers, "queue", "delete", "q", "--force", "--leave", "--yes") == (DONE, {"queue": "q"})
    assert [job.data for job in client.peek_queue("q_dead", "ready", 10)] == [b"dead"]
    assert client.kick("q", 1) == 0


@pytest.mark.parametrize("arguments", [
    ("queue", "peek", "mial"), ("queue", "stat", "mial"), ("queue", "drain", "mial"), ("queue", "move", "mial", "x"),
    ("job", "running", "--queue", "mial"), ("job", "kick", "mial", "1"),
])
def test_a_misspelt_queue_is_an_error(
    nodes: LocalCluster, client: Client, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    client.put("mail", b"")
    code, out, err = run(capsys, "--servers", ",".join(nodes.servers), *arguments)
    assert (code, out) == (REFUSED, "")
    assert err == "there is no queue mial (did you mean mail?)\n"


def test_who_waits_for_a_job_of_a_misspelt_queue_is_told(
    nodes: LocalCluster, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    client.put("mail", b"")
    code, out, err = run(capsys, "--servers", ",".join(nodes.servers), "job", "get", "mial")
    assert (code, out, err) == (REFUSED, "", "there is no job; there is no queue mial (did you mean mail?)\n")
    assert ask(capsys, nodes.servers, "job", "get", "mial") == (REFUSED, {"job": None})


def test_bodies_are_shown_in_part_whole_and_raw(
    nodes: LocalCluster, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    client.put("q", "grün\x1b[31m" + "x" * 100)
    servers = ",".join(nodes.servers)
    _, out, _ = run(capsys, "--servers", servers, "queue", "peek", "q")
    shown = "".join(out.split())
    assert r"grün\x1b[31m" in shown
    assert "x" * 49 not in shown
    _, out, _ = run(capsys, "--servers", servers, "queue", "peek", "q", "-n", "1", "--body")
    assert "x" * 100 in "".join(out.split())
    raw = execute(nodes.servers, "queue", "peek", "q", "--raw")
    assert raw.stdout == "grün\x1b[31m".encode() + b"x" * 100 + b"\n"


def test_waiting_means_the_same_in_both_tables(
    nodes: LocalCluster, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    client.put("q", b"")
    client.put("q", b"", delay=600)
    (listed,) = ask(capsys, nodes.servers, "queue", "list")[1]["queues"]
    counted = ask(capsys, nodes.servers, "queue", "stat", "q")[1]
    assert (listed["waiting"], listed["ready"], listed["delayed"], counted["waiting"]) == (2, 1, 1, 2)
