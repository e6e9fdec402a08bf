"""`pqctl queue`, `pqctl job` and `pqctl config`: settings, time, keys and dead jobs, against real nodes."""

from __future__ import annotations

import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from sockpq import Client, QueueNotFound

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, USAGE_ERROR
from tests.pqctl.running import Terminal, ask, execute, run


@pytest.fixture
def servers(nodes: LocalCluster) -> Iterator[list[str]]:
    yield nodes.servers
    with Client(nodes.servers) as client:
        for queue in client.queues():
            with suppress(QueueNotFound):
                client.queue_delete(queue.name, force=True)


def tell(capsys: pytest.CaptureFixture[str], servers: list[str], *arguments: str) -> Any:
    """Return the --json output of a command that must succeed."""
    code, told = ask(capsys, servers, *arguments)
    assert code == DONE, told
    return told


def test_topics_are_bound_and_shown(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    tell(capsys, servers, "topic", "bind", "news", "q1", "--pattern", "a.#")
    tell(capsys, servers, "topic", "bind", "news", "q2")
    assert tell(capsys, servers, "topic", "list", "news")["bindings"] == [
        {"topic": "news", "queue": "q1", "pattern": "a.#"}, {"topic": "news", "queue": "q2", "pattern": None}]
    assert "a.#" in run(capsys, "--servers", servers[0], "topic", "list")[1]
    assert tell(capsys, servers, "topic", "publish", "news", "hello", "--route", "a.b")["queues"] == 2
    assert tell(capsys, servers, "topic", "publish", "news", "hello")["queues"] == 1
    for queue in ("q1", "q2"):
        assert tell(capsys, servers, "queue", "purge", queue, "all", "--yes")
    tell(capsys, servers, "topic", "unbind", "news", "q2")
    assert ask(capsys, servers, "topic", "unbind", "news", "q2")[0] == REFUSED
    assert tell(capsys, servers, "topic", "delete", "news") == {"topic": "news"}


def test_pools_of_workers_are_shown_and_steered(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with Client(servers) as client:
        client.worker_beat("pool", 8, 3)
        told = tell(capsys, servers, "worker", "list")
        assert [(one["name"], one["slots"], one["busy"]) for one in told["workers"]] == [("pool", 8, 3)]
        assert "pool" in run(capsys, "--servers", servers[0], "worker", "list")[1]
        tell(capsys, servers, "worker", "set", "pool", "--max", "4", "--min", "1")
        assert tell(capsys, servers, "worker", "pause", "pool") == {"worker": "pool", "state": "pause"}
        assert [one["state"] for one in tell(capsys, servers, "worker", "list")["workers"]] == ["pause"]
        assert " paused" in run(capsys, "--servers", servers[0], "worker", "list")[1]
        assert client.worker_beat("pool", 8, 3) == (4, 1, "pause")
        tell(capsys, servers, "worker", "resume", "pool")
        tell(capsys, servers, "worker", "stop", "pool")
        assert client.worker_beat("pool", 8, 3) == (4, 1, "stop")
        assert ask(capsys, servers, "worker", "stop", "nobody")[0] == REFUSED
        for wrong, told in ((("--min", "5"), "give both"), ((), "give --max, --min"), (("--max", "0"), "range")):
            code, _, error = run(capsys, "--servers", servers[0], "worker", "set", "pool", *wrong)
            assert (code, told in error) == (USAGE_ERROR, True), error


def test_a_queue_from_its_making_to_its_end(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    told = tell(capsys, servers, "queue", "create", "q", "--limit", "1", "--tries", "3", "--dead", "d", "--keep", "5",
                "--ttl", "60", "--idle", "90", "--overflow", "drop_oldest")
    assert (told["queue"], told["settings"]["limit"], told["settings"]["tries"]) == ("q", "1", "3 DEAD d")
    code, told = ask(capsys, servers, "queue", "create", "q")
    assert (code, told["error"]) == (REFUSED, "refused")
    assert "pqctl queue config" in told["message"]
    told = tell(capsys, servers, "queue", "config", "q", "--item-limit", "2", "--limit", "0")
    assert (told["settings"]["item_limit"], told["settings"]["limit"]) == ("2", "0")
    _, out, _ = run(capsys, "--servers", servers[0], "queue", "config", "q")
    assert ["keep", "5", "s"] in [line.split() for line in out.splitlines()]
    assert tell(capsys, servers, "queue", "pause", "q", "in") == {"queue": "q", "paused": "in"}
    code, told = ask(capsys, servers, "job", "put", "q", "x")
    assert (code, told["message"]) == (REFUSED, "refused: 503 Queue Paused (`pqctl queue resume` ends it)")
    assert tell(capsys, servers, "queue", "resume", "q") == {"queue": "q", "paused": None}
    run(capsys, "--servers", servers[0], "job", "put", "q", "x", "--delay", "60")
    code, told = ask(capsys, servers, "queue", "delete", "q")
    assert (code, "409 Queue Not Empty" in told["message"]) == (REFUSED, True)
    assert tell(capsys, servers, "queue", "stat", "q")["counters"]["delayed"] == 1
    assert "1 delayed" in run(capsys, "--servers", servers[0], "queue", "stat", "q")[1]
    assert tell(capsys, servers, "queue", "purge", "q", "ready", "--yes") == {"queue": "q", "removed": 0}
    assert tell(capsys, servers, "queue", "purge", "q", "all", "--yes") == {"queue": "q", "removed": 1}
    assert tell(capsys, servers, "queue", "delete", "q") == {"queue": "q"}
    assert ask(capsys, servers, "queue", "pause", "q", "--timeout", "5")[0] == DONE     # it makes settings


def test_what_destroys_is_asked_about(servers: list[str]) -> None:
    execute(servers, "job", "put", "q", "x")
    for arguments in (("queue", "purge", "q", "all"), ("queue", "delete", "q", "--force")):
        assert execute(servers, *arguments).returncode == 64
        terminal = Terminal(servers, *arguments)
        terminal.wait_for("[y/N]")
        terminal.type("n\n")
        assert terminal.end() == REFUSED
    assert b'"ready": 1' in execute(servers, "queue", "stat", "q", "--json").stdout
    assert execute(servers, "queue", "purge", "q", "ready", "--yes").stdout == b"1 job removed from q\n"


def test_a_job_by_its_key(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    tell(capsys, servers, "job", "put", "q", "body", "--key", "k", "--at", "2100-01-01T00:00", "--item", "i")
    code, told = ask(capsys, servers, "job", "put", "q", "body", "--key", "k")
    assert (code, "409 Job Exists" in told["message"]) == (REFUSED, True)
    tell(capsys, servers, "job", "put", "q", "body", "--key", "k", "--on-duplicate", "ignore")
    job = tell(capsys, servers, "job", "peek", "q/k")["job"]
    assert (job["state"], job["item"], job["id"], b64decode(job["data_base64"])) == ("delayed", "i", None, b"body")
    assert job["at"] > time.time()
    peeked = execute(servers, "job", "peek", "q/k")
    assert peeked.stdout == b"body"
    assert peeked.stderr.startswith(b"delayed in q, priority 0, item i, key k, for 2100-01-01 00:00:00: 4 bytes")
    assert run(capsys, "--servers", servers[0], "job", "peek", "q/none") == (
        REFUSED, "", "there is no job none of q: `pqctl queue peek q` shows the first that are ready\n")
    tell(capsys, servers, "job", "change", "q/k", "--delay", "0", "--priority", "5", "--body", "other", "--no-item")
    _, out, _ = run(capsys, "--servers", servers[0], "queue", "peek", "q")
    assert out.splitlines()[1].split()[:5] == ["-", "5", "k", "-", "0"]
    assert run(capsys, "--servers", servers[0], "queue", "peek", "q", "--state", "dead")[1] == "no job is dead in q\n"
    told = tell(capsys, servers, "job", "delete", "q/k")
    assert told == {"job": {"queue": "q", "key": "k"}, "queue_done": True, "item_done": False}


def test_a_job_by_its_place(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for body in ("first", "second"):
        tell(capsys, servers, "job", "put", "q", body)
    _, out, _ = run(capsys, "--servers", servers[0], "queue", "peek", "q", "-n", "20")
    place = out.splitlines()[2].split()[5]
    assert place.startswith("q@1")
    shown = execute(servers, "job", "show", place)
    assert shown.stdout == b"second"
    assert shown.stderr.startswith(b"ready in q, priority 0: 6 bytes")
    tell(capsys, servers, "job", "change", place, "--priority", "5", "--body", "2nd")
    first, other = tell(capsys, servers, "queue", "peek", "q", "-n", "20")["jobs"]
    assert (b64decode(first["data_base64"]), first["priority"], f"q@{first['place']}") == (b"2nd", 5, place)
    seq = first["place"]
    assert tell(capsys, servers, "job", "delete", place) == {
        "job": {"queue": "q", "seq": seq}, "queue_done": False, "item_done": False}
    gone = run(capsys, "--servers", servers[0], "job", "show", place)
    assert gone == (
        REFUSED, "", f"there is no job at place {seq} of q: `pqctl queue peek q` shows the first that are ready\n")
    assert ask(capsys, servers, "job", "delete", place)[0] == REFUSED
    number = tell(capsys, servers, "job", "get", "q")["job"]["id"]
    (running,) = tell(capsys, servers, "queue", "peek", "q", "--state", "running")["jobs"]
    assert (running["id"], running["place"]) == (number, None)
    assert ask(capsys, servers, "job", "show", f"q@{other['place']}") == (REFUSED, {"job": None})


def test_a_job_by_its_number_and_buried(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    put = tell(capsys, servers, "job", "put", "tube/a", "x", "--number", "--lease", "60")
    job = f"number:{put['number']}"
    taken = str(tell(capsys, servers, "job", "get", "tube/a")["job"]["id"])
    assert tell(capsys, servers, "job", "bury", taken, "--here") == {"jobs": [{"id": int(taken), "buried": True}]}
    (listed,) = tell(capsys, servers, "queue", "list", "tube")["queues"]
    assert (listed["ready"], listed["buried"]) == (0, 1)
    (seen,) = tell(capsys, servers, "queue", "peek", "tube/a", "--state", "buried")["jobs"]
    assert (seen["state"], seen["number"]) == ("buried", put["number"])
    assert tell(capsys, servers, "job", "kick", "tube/a", "5", "--here") == {"queue": "tube/a", "moved": 1}
    figures = tell(capsys, servers, "job", "stat", job)
    assert [figures[word] for word in ("state", "lease", "reserves", "buries", "kicks")] == ["ready", 60, 1, 1, 1]
    assert execute(servers, "job", "show", job).stdout == b"x"
    assert tell(capsys, servers, "job", "delete", job)["queue_done"]
    assert run(capsys, "--servers", servers[0], "job", "stat", job)[0] == REFUSED
    tell(capsys, servers, "queue", "pause", "tube/a", "out", "--for", "5")
    assert tell(capsys, servers, "queue", "pause", "tube/a", "out", "--for", "0")["seconds"] == 0


def test_a_job_that_is_worked_on(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "--servers", servers[0], "job", "put", "q", "x", "--item", "i")
    assert ask(capsys, servers, "job", "get", "q", "--item", "other") == (REFUSED, {"job": None})
    number = str(tell(capsys, servers, "job", "get", "q", "--item", "i")["job"]["id"])
    ends = tell(capsys, servers, "job", "touch", number, "--expire", "600")["expires_at"]
    assert ends > time.time() + 500
    assert tell(capsys, servers, "job", "touch", number, "--expire", "0") == {"id": int(number), "expires_at": None}
    assert ask(capsys, servers, "job", "bury", number, "9999999", "--reason", "test") == (REFUSED, {"jobs": [
        {"id": int(number), "dead": True}, {"id": 9999999, "dead": False}]})
    assert tell(capsys, servers, "job", "kick", "q", "5") == {"queue": "q", "moved": 1}
    number = str(tell(capsys, servers, "job", "get", "q")["job"]["id"])
    tell(capsys, servers, "job", "later", number, "--delay", "60", "--priority", "3")
    (job,) = tell(capsys, servers, "queue", "peek", "q", "--state", "delayed")["jobs"]
    assert job["priority"] == 3


def test_the_settings_of_the_cluster(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert tell(capsys, servers, "config", "--fast-empty", "on")["settings"]["fast_empty"] == "ON"
    _, out, _ = run(capsys, "--servers", servers[0], "config", "--fast-empty", "off")
    assert ["fast_empty", "OFF"] in [line.split() for line in out.splitlines()]


def test_a_queue_that_is_not_there_is_an_error(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (("queue", "stat", "none"), ("queue", "config", "none")):
        code, told = ask(capsys, servers, *arguments)
        assert (code, told["error"]) == (REFUSED, "refused")
        assert "there is no queue none" in told["message"]
    tell(capsys, servers, "queue", "create", "none")
    told = tell(capsys, servers, "queue", "stat", "none")
    assert (told["queues"], told["waiting"], told["counters"]["oldest_s"]) == (1, 0, 0)


def test_what_has_happened_in_a_queue(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        tell(capsys, servers, "job", "put", "q", "x")
    number = str(tell(capsys, servers, "job", "get", "q")["job"]["id"])
    tell(capsys, servers, "job", "done", number)
    counters = tell(capsys, servers, "queue", "stat", "q")["counters"]
    assert [counters[f"total_{name}"] for name in ("put", "taken", "done", "later")] == [3, 1, 1, 0]
    _, out, _ = run(capsys, "--servers", servers[0], "queue", "stat", "q")
    assert out.endswith("; since it began 3 put, 1 taken, 1 done\n")
    tell(capsys, servers, "queue", "pause", "q")
    tell(capsys, servers, "queue", "resume", "q")
    assert run(capsys, "--servers", servers[0], "queue", "stat", "q")[1].endswith(", 1 done, 1 pause\n")
