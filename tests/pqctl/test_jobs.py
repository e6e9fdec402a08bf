"""`pqctl job` and `pqctl queue` against real nodes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest
from sockpq import Client

from devcluster.cluster import LocalCluster
from sockpqd.core import Get, Put
from sockpqd.pqctl.actions.existence import NOT_RUNNING
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, UNKNOWN, UNREACHED
from tests.client.faults import Fault
from tests.client.memory_cluster import MemoryCluster
from tests.pqctl.running import PROGRAM, ask, execute, run

EVERY_BYTE = bytes(range(256)) + b"\r\n\0"


@pytest.fixture
def servers(nodes: LocalCluster) -> Iterator[list[str]]:
    """Yield one follower's address: the others are found. Afterwards all queues are emptied."""
    follower = next(name for name in nodes.names if name != nodes.wait_for_leader())
    yield [nodes.server(follower)]
    with Client(nodes.servers) as client:
        client.done_many([job.id for job in client.running()])
        while jobs := client.get_many(100, expire=30):
            client.done_many(jobs)


def test_every_byte_goes_in_by_file_and_stdin_and_comes_out_raw_and_as_json(
    servers: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "body"
    file.write_bytes(EVERY_BYTE)
    assert execute(servers, "job", "put", "bytes", "--file", str(file)).returncode == DONE
    assert execute(servers, "job", "put", "bytes", data=EVERY_BYTE).returncode == DONE
    assert execute(servers, "job", "put", "bytes", "--file", "-", data=EVERY_BYTE).returncode == DONE
    assert execute(servers, "job", "put", "bytes", data=b"").returncode == DONE
    taken = execute(servers, "job", "get", "bytes")
    assert (taken.returncode, taken.stdout) == (DONE, EVERY_BYTE)
    assert taken.stderr.endswith(b": 259 bytes\n")
    for expected in (EVERY_BYTE, EVERY_BYTE, b""):
        code, told = ask(capsys, servers, "job", "get", "bytes")
        assert (code, b64decode(told["job"]["data_base64"])) == (DONE, expected)


def test_the_bytes_of_an_argument_are_taken_as_they_were_typed(servers: list[str]) -> None:
    for body in (b"hello", b"\xff\xfe no utf-8 \n", "grüße".encode(), b"", b"--json"):
        put = execute(servers, "job", "put", "typed", "--", body)
        assert put.returncode == DONE, put.stderr
        got = execute(servers, "job", "get", "typed")
        assert (got.returncode, got.stdout) == (DONE, body), got.stderr


def test_priority_item_and_what_programs_read(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(capsys, servers, "job", "put", "work", "low", "--priority", "-7") == (
        DONE, {"queue": "work", "priority": -7, "item": None, "bytes": 3})
    assert ask(capsys, servers, "job", "put", "work", "high", "--priority", "7", "--item", "album:1") == (
        DONE, {"queue": "work", "priority": 7, "item": "album:1", "bytes": 4})
    code, told = ask(capsys, servers, "job", "get", "nothing", "work")
    assert (code, list(told), list(told["job"])) == (
        DONE, ["job"], ["id", "queue", "priority", "item", "expires_at", "data_base64"])
    assert [told["job"][key] for key in ("queue", "priority", "item")] == ["work", 7, "album:1"]
    number = str(told["job"]["id"])
    assert ask(capsys, servers, "job", "done", number) == (
        DONE, {"jobs": [{"id": int(number), "done": True, "queue_done": False, "item_done": True}]})
    _, told = ask(capsys, servers, "job", "put", "work", "x", "--new-item")
    assert told["item"].startswith("i")


def test_done_and_later_tell_of_each_id(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        run(capsys, "--servers", servers[0], "job", "put", "ends", "x")
    ids = [str(ask(capsys, servers, "job", "get")[1]["job"]["id"]) for _ in range(2)]
    code, out, _ = run(capsys, "--servers", servers[0], "job", "later", ids[0], "999999")
    assert (code, out) == (REFUSED, f"job {ids[0]} is back in its queue\njob 999999 {NOT_RUNNING}\n")
    code, out, _ = run(capsys, "--servers", servers[0], "job", "done", ids[1], ids[0])
    assert (code, out) == (REFUSED, f"job {ids[1]} is done\njob {ids[0]} {NOT_RUNNING}\n")
    last = str(ask(capsys, servers, "job", "get")[1]["job"]["id"])
    _, out, _ = run(capsys, "--servers", servers[0], "job", "done", last)
    assert out == f"job {last} is done, the last one of its queue\n"
    assert ask(capsys, servers, "job", "later", last) == (
        REFUSED, {"jobs": [{"id": int(last), "later": False}]})


def test_jobs_of_which_some_went_back_are_not_called_untouched(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.execute(Put("mail", 0, b"x"), Put("mail", 0, b"x"), Get(("mail",)), Get(("mail",)))
    cluster.servers[0].fail("LATER", None, *[Fault.BUSY] * 100)
    code, told = ask(capsys, cluster.addresses, "job", "later", "1", "2", "--timeout", "0.3")
    assert (code, told["error"], cluster.running) == (UNKNOWN, "unknown", [2])
    assert told["message"].startswith("only these are certainly back in their queues: 1; then: 503 Busy")


def test_no_job_is_told_on_the_standard_error_and_by_the_exit_code(
    servers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "--servers", servers[0], "job", "get", "empty") == (
        REFUSED, "", "there is no job; there is no queue empty (`pqctl queue list` shows all)\n")
    assert ask(capsys, servers, "job", "get", "empty", "--wait", "0.1") == (REFUSED, {"job": None})


def test_a_job_that_cannot_be_printed_goes_back(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "--servers", servers[0], "job", "put", "unread", "body")
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run([PROGRAM, "--servers", servers[0], "job", "get", "unread"], stdout=full,
                               stderr=subprocess.PIPE)
    assert ended.returncode == 74
    assert b"No space left on device" in ended.stderr
    _, told = ask(capsys, servers, "queue", "stat", "unread")
    assert (told["waiting"], told["running"]) == (1, 0)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_job_of_which_only_a_part_can_be_printed_goes_back(
    unbuffered: str, servers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    execute(servers, "job", "put", "partly", data=bytes(1 << 20))
    with subprocess.Popen([PROGRAM, "--servers", servers[0], "job", "get", "partly", "--expire", "0"],
                          stdout=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": unbuffered}) as getting:
        assert getting.stdout
        assert getting.stdout.read(1) == b"\0"      # more than a pipe holds is still to come
        getting.stdout.close()
    assert getting.returncode == 141
    _, told = ask(capsys, servers, "queue", "stat", "partly")
    assert (told["waiting"], told["running"]) == (1, 0)


def test_the_lease_is_a_minute_unless_it_is_said_otherwise(
    nodes: LocalCluster, servers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(3):
        run(capsys, "--servers", servers[0], "job", "put", "leases", "x")
    for option in ([], ["--expire", "3600"], ["--expire", "0"]):
        run(capsys, "--servers", servers[0], "job", "get", "leases", *option)
    _, told = ask(capsys, servers, "job", "running", "--queue", "leases")
    minute, hour, never = (job["expires_at"] for job in told["jobs"])
    assert 3500 < hour - minute < 3600
    assert never is None
    run(capsys, "--servers", servers[0], "job", "put", "short", "x")
    run(capsys, "--servers", servers[0], "job", "get", "short", "--expire", "0.01", "--then", "done")
    with Client(nodes.servers) as client:
        assert client.get("short", block="until_done", expire=30, wait=20) is None      # the lease has removed it


def test_it_says_how_long_a_job_is_yours(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        run(capsys, "--servers", servers[0], "job", "put", "yours", "x")
    told = run(capsys, "--servers", servers[0], "job", "get", "yours")[2]
    assert re.fullmatch(r"job \d+ of yours, priority 0, yours for 60 s, until 2\d+-\d+-\d+ [\d:]+: 1 byte\n", told)
    assert ", no lease: 1 byte" in run(capsys, "--servers", servers[0], "job", "get", "yours", "--expire", "0")[2]
    _, answer = ask(capsys, servers, "job", "get", "yours")
    _, running = ask(capsys, servers, "job", "running", "--queue", "yours")
    assert answer["job"]["expires_at"] == running["jobs"][-1]["expires_at"] is not None


def test_running_jobs(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--servers", servers[0], "job", "running") == (DONE, "no job is running\n", "")
    assert ask(capsys, servers, "job", "running") == (DONE, {"jobs": []})
    for queue in ("a", "b"):
        run(capsys, "--servers", servers[0], "job", "put", queue, "xyz")
        run(capsys, "--servers", servers[0], "job", "get", queue, "--expire", "0")
    _, told = ask(capsys, servers, "job", "running", "--data")
    assert [(job["queue"], b64decode(job["data_base64"])) for job in told["jobs"]] == [("a", b"xyz"), ("b", b"xyz")]
    assert list(told["jobs"][0]) == ["id", "queue", "priority", "expires_at", "data_base64"]
    _, told = ask(capsys, servers, "job", "running", "--queue", "b")
    assert [list(job) for job in told["jobs"]] == [["id", "queue", "priority", "expires_at"]]
    _, out, _ = run(capsys, "--servers", servers[0], "job", "running", "--data")
    head, first, _, mark = (line.split() for line in out.splitlines())
    assert head == ["id", "queue", "priority", "lease", "ends", "size"]
    assert first[1:] == ["a", "0", "no", "lease", "3", "B"]
    assert mark[:3] == ["no", "lease:", "it"]


def test_queues_are_listed_and_counted(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--servers", servers[0], "queue", "list") == (DONE, "there is no queue\n", "")
    for queue in ("seen", "seen", "hidden", "other"):
        run(capsys, "--servers", servers[0], "job", "put", queue, "x")
    run(capsys, "--servers", servers[0], "job", "get", "seen")
    assert ask(capsys, servers, "queue", "list") == (DONE, {"queues": [
        {"name": "hidden", "waiting": 1, "ready": 1, "delayed": 0, "running": 0, "dead": 0, "buried": 0},
        {"name": "other", "waiting": 1, "ready": 1, "delayed": 0, "running": 0, "dead": 0, "buried": 0},
        {"name": "seen", "waiting": 1, "ready": 1, "delayed": 0, "running": 1, "dead": 0, "buried": 0},
    ]})
    _, out, _ = run(capsys, "--servers", servers[0], "queue", "list", "se")
    assert [line.split() for line in out.splitlines()] == [
        ["queue", "waiting", "ready", "delayed", "running", "dead", "buried"],
        ["seen", "1", "1", "0", "1", "0", "0"]]
    assert run(capsys, "--servers", servers[0], "queue", "list", "mail") == (
        DONE, "there is no queue whose name begins with mail\n", "")
    assert ask(capsys, servers, "queue", "list", "mail") == (DONE, {"queues": []})
    assert ask(capsys, servers, "queue", "stat") == (DONE, {
        "queue": None, "queues": 3, "waiting": 3, "running": 1, "priorities": 3})
    code, out, err = run(capsys, "--servers", servers[0], "queue", "stat", "none")
    assert (code, out) == (REFUSED, "")
    assert err == "there is no queue none (`pqctl queue list` shows all)\n"
    assert run(capsys, "--servers", servers[0], "queue", "stat")[1] == (
        "all queues: 3 jobs waiting in 3 priorities, 1 running; 3 queues\n")
    sentence = run(capsys, "--servers", servers[0], "queue", "stat", "seen")[1]
    assert re.sub(r"; the oldest for \d+ s", "", sentence) == (     # on a busy machine it has waited for one by now
        "seen: 1 job waiting in 1 priority, 1 running; since it began 2 put, 1 taken\n")


def test_jobs_are_refused_at_once_while_the_service_is_switched_offline_and_reading_goes_on(
    nodes: LocalCluster, servers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    nodes.wait_for_leader()
    run(capsys, "--servers", servers[0], "job", "put", "waits", "x")
    assert run(capsys, "--servers", servers[0], "cluster", "offline")[0] == DONE
    try:
        for arguments in (["put", "waits", "x"], ["get", "waits"], ["done", "1"], ["later", "1"]):
            code, out, err = run(capsys, "--servers", servers[0], "job", *arguments)
            assert (code, out) == (UNREACHED, "")
            assert err == "the whole service is switched offline: `pqctl cluster online`\n"
        code, told = ask(capsys, servers, "queue", "stat", "waits")
        assert (code, told["waiting"]) == (DONE, 1)
        assert run(capsys, "--servers", servers[0], "job", "running")[0] == DONE
    finally:
        assert run(capsys, "--servers", servers[0], "cluster", "online")[0] == DONE
    nodes.wait_for_leader()


def test_what_a_server_does_not_take_is_refused_in_its_words(
    servers: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        os.ftruncate(file.fileno(), 8 * 2**20 + 1)
    code, told = ask(capsys, servers, "job", "put", "large", "--file", str(large))
    assert (code, told["error"]) == (REFUSED, "refused")
    with large.open("wb") as file:
        os.ftruncate(file.fileno(), 256 * 2**20 + 1)
    code, _, err = run(capsys, "--servers", servers[0], "job", "put", "large", "--file", str(large))
    assert (code, "has more than 268,435,456 bytes" in err) == (64, True)


def test_json_is_ascii(servers: list[str]) -> None:
    told = execute(servers, "job", "put", "ascii", "ü", "--json").stdout
    assert told.isascii()
    assert json.loads(told)["bytes"] == 2
