"""`pqctl job show`, `find`, `retry`, `cancel` and what is kept of jobs that have ended, against real nodes."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest
from sockpq import Client, NotSupported, Number

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, USAGE_ERROR
from tests.pqctl.running import PATIENCE_S, ask, execute, run, start

NASTY = "\x1b[31mred\x07\u202e"         # what a terminal must never see


@pytest.fixture
def servers(nodes: LocalCluster) -> Iterator[list[str]]:
    """Yield one follower's address. Afterwards the queue is removed."""
    follower = next(name for name in nodes.names if name != nodes.wait_for_leader())
    with Client(nodes.servers, timeout=60) as client:
        client.queue_config("kept", retain=3600, dead="kept_dead", tries=9)
        yield [nodes.server(follower)]
        for queue in client.queues():
            client.queue_delete(queue.name, force=True)


@pytest.fixture
def client(nodes: LocalCluster) -> Iterator[Client]:
    with Client(nodes.servers, timeout=60) as client:
        yield client


def put(capsys: pytest.CaptureFixture[str], servers: list[str], *more: str) -> str:
    """Put a job with a number; returns the words that name it."""
    code, told = ask(capsys, servers, "job", "put", "kept", "body", "--number", *more)
    assert code == DONE
    return f"number:{told['number']}"


def test_an_ended_job_is_shown_with_everything(
    servers: list[str], client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    named = put(capsys, servers, "--header", "task=send mail", "--header", "empty=", "--item", "order.1")
    job = client.get("kept", expire=60)
    assert job is not None
    job.later(reason="Broken", error=f"Traceback\n  {NASTY}\nBroken: it")
    job = client.get("kept", expire=60)
    assert job is not None
    job.done(result=f"sent\x1b[2J {'x' * 300}".encode())
    shown = execute(servers, "job", "show", named)
    assert (shown.returncode, shown.stdout) == (DONE, b"body"), shown.stderr
    lines = shown.stderr.decode().splitlines()
    assert lines[0].startswith("done in kept, priority 0, item order.1, number ")
    assert ", reason: Broken, ended 20" in lines[0]
    assert re.match(r"put 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(\.\d\d\d)?, first taken ", lines[1])
    assert lines[1].endswith(", taken 2 times")
    assert lines[2:4] == ["header task: send mail", "header empty: "]
    assert lines[4:8] == ["error:", "    Traceback", "      \\x1b[31mred\\x07\\u202e", "    Broken: it"]
    assert lines[8].startswith("result, 309 bytes: sent\\x1b[2J xxx")
    assert lines[8].endswith("x.. (--result writes all of it)")
    assert len(lines) == 9
    code, told = ask(capsys, servers, "job", "show", named)
    assert code == DONE
    job_told = told["job"]
    assert (job_told["state"], job_told["headers"]) == ("done", {"task": "send mail", "empty": ""})
    assert job_told["error"] == f"Traceback\n  {NASTY}\nBroken: it"
    assert b64decode(job_told["result_base64"]).startswith(b"sent\x1b[2J xxx")
    assert (job_told["life"]["taken"], job_told["life"]["died_in"]) == (2, None)
    assert job_told["life"]["created"] <= job_told["life"]["first"] <= job_told["life"]["started"]
    result = execute(servers, "job", "show", named, "--result")
    assert (result.returncode, len(result.stdout)) == (DONE, 309)
    error = execute(servers, "job", "show", named, "--error")
    assert (error.returncode, error.stdout) == (DONE, f"Traceback\n  {NASTY}\nBroken: it".encode())


def test_a_job_without_error_or_result_says_so(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    named = put(capsys, servers)
    for part in ("error", "result"):
        assert run(capsys, "--servers", servers[0], "job", "show", named, f"--{part}") == (
            REFUSED, "", f"it has no {part}\n")
    code, told = ask(capsys, servers, "job", "show", named)
    assert (code, told["job"]["state"], told["job"]["error"], told["job"]["result_base64"]) == (
        DONE, "ready", None, None)
    assert ask(capsys, servers, "job", "show", "number:17") == (REFUSED, {"job": None})


def test_old_servers_show_a_job_as_before(
    servers: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    named = put(capsys, servers)
    peek = Client.peek

    def refuse(*_: object, **__: object) -> None:
        raise NotSupported("400 Bad Command")

    def old_peek(client: Client, job: Number, *, headers: bool = False, server: str | None = None) -> object:
        return refuse() if headers else peek(client, job, server=server)

    monkeypatch.setattr(Client, "peek", old_peek)
    for call in ("ended", "job_error", "job_result"):
        monkeypatch.setattr(Client, call, refuse)
    code, told = ask(capsys, servers, "job", "show", named)
    assert (code, told["job"]["state"], told["job"]["headers"], told["job"]["life"]) == (DONE, "ready", None, None)


def test_the_last_ended_jobs_of_a_queue_are_peeked_at(
    servers: list[str], client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = [put(capsys, servers) for _ in range(4)]
    assert run(capsys, "--servers", servers[0], "job", "cancel", numbers[1])[0] == DONE
    for _ in range(2):
        job = client.get("kept", expire=60)
        assert job is not None
        job.done()
    for state, expected in (
        ("ended", [numbers[2], numbers[0], numbers[1]]), ("done", [numbers[2], numbers[0]]),
        ("cancelled", numbers[1:2]), ("expired", []),
    ):
        code, told = ask(capsys, servers, "queue", "peek", "kept", "--state", state)
        assert code == DONE
        assert [f"number:{job['number']}" for job in told["jobs"]] == expected
        assert all(job["ended"] for job in told["jobs"])
    code, out, _ = run(capsys, "--servers", servers[0], "queue", "peek", "kept", "--state", "done", "-n", "1")
    assert code == DONE
    assert numbers[2] in out
    assert numbers[0] not in out
    assert ask(capsys, servers, "job", "delete", numbers[0], "--ended")[0] == DONE
    assert ask(capsys, servers, "job", "show", numbers[0]) == (REFUSED, {"job": None})
    assert run(capsys, "--servers", servers[0], "job", "delete", numbers[0], "--ended")[0] == REFUSED
    assert run(capsys, "--servers", servers[0], "job", "delete", "17", "--ended")[0] == USAGE_ERROR
    assert ask(capsys, servers, "queue", "purge", "kept", "ended", "--yes") == (DONE, {"queue": "kept", "removed": 2})


def test_jobs_are_found_by_what_they_are(
    servers: list[str], client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    first = put(capsys, servers, "--header", "task=a b", "--key", "order.1")
    put(capsys, servers, "--header", "task=c", "--key", "order.2", "--delay", "1000")
    for words, count in (
        (("--header", "task=a b"), 1), (("--key", "order."), 2), (("--state", "delayed"), 1),
        (("--state", "delayed", "--state", "ready"), 2), (("kept", "--since", "1000"), 2), (("--until", "1000"), 0),
        (("kept_dead",), 0),
    ):
        code, told = ask(capsys, servers, "job", "find", *words)
        assert (code, len(told["jobs"]), told["more"]) == (DONE if count else REFUSED, count, False), words
    code, told = ask(capsys, servers, "job", "find", "-n", "1")
    assert (code, len(told["jobs"]), told["more"]) == (DONE, 1, True)
    code, out, err = run(capsys, "--servers", servers[0], "job", "find", "--header", "task=a b")
    assert (code, err) == (DONE, "")
    assert out.splitlines()[0].split() == ["queue", "state", "job", "key", "item", "attempt", "times", "size"]
    assert out.splitlines()[1].split()[:4] == ["kept", "ready", first, "order.1"]
    assert run(capsys, "--servers", servers[0], "job", "find", "nowhere")[1:] == (
        "", "no job matches; there is no queue nowhere (`pqctl queue list` shows all)\n")
    assert run(capsys, "--servers", servers[0], "job", "find", "kept", "--state", "dead")[2].startswith(
        "no job matches; a dead job is found in its dead-letter queue (`pqctl queue peek QUEUE --state dead`")
    assert run(capsys, "--servers", servers[0], "job", "find", "--header", "task")[0] == USAGE_ERROR


def test_a_job_is_retried_whatever_became_of_it(
    servers: list[str], client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    def end(state: str, number: str) -> None:
        if state == "cancelled":
            assert ask(capsys, servers, "job", "cancel", number)[0] == DONE
            return
        job = client.get("kept", expire=60)
        assert job is not None
        match state:
            case "done":
                job.done(result=b"r")
            case "dead":
                job.bury(reason="Bad", error="bad")
            case "buried":
                job.bury(here=True)
            case "delayed":
                job.later(delay=1000)

    number = put(capsys, servers, "--header", "task=t")
    for state in ("done", "cancelled", "dead", "buried", "delayed"):
        end(state, number)
        assert ask(capsys, servers, "job", "retry", number) == (
            DONE, {"number": int(number.partition(":")[2]), "queue": "kept", "was": state})
        code, told = ask(capsys, servers, "job", "show", number)
        assert (code, told["job"]["state"], told["job"]["queue"], told["job"]["headers"]) == (
            DONE, "ready", "kept", {"task": "t"}), state
    code, told = ask(capsys, servers, "job", "retry", number)
    assert (code, told["message"]) == (REFUSED, f"the job with number {number.partition(':')[2]} is ready: "
                                                "there is nothing to retry")
    assert run(capsys, "--servers", servers[0], "job", "retry", "number:17")[0] == REFUSED
    assert run(capsys, "--servers", servers[0], "job", "retry", "17")[0] == USAGE_ERROR


def test_a_job_without_a_number_is_retried_and_moved_by_its_place(
    servers: list[str], client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    client.put("plain", "a")
    job = client.get("plain", expire=60)
    assert job is not None
    job.bury()
    (dead,) = client.find("plain_dead")
    assert dead.place is not None
    named = f"plain_dead@{dead.place.seq}"
    assert ask(capsys, servers, "job", "retry", named) == (DONE, {"queue": "plain_dead", "place": dead.place.seq})
    assert run(capsys, "--servers", servers[0], "job", "retry", named)[0] == REFUSED
    (back,) = client.find("plain")
    assert back.place is not None
    assert run(capsys, "--servers", servers[0], "job", "retry", f"plain@{back.place.seq}") == (
        REFUSED, "", f"job at place {back.place.seq} of plain is neither dead nor delayed: there is nothing to retry\n")
    moved = ask(capsys, servers, "queue", "move", "plain", "other", "--seq", str(back.place.seq))
    assert moved == (DONE, {"from": "plain", "to": "other", "moved": 1, "refusal": None})
    code, _, err = run(capsys, "--servers", servers[0], "queue", "move", "other", "plain", "--seq", "7")
    assert code == REFUSED
    assert err.startswith("there is no job at place 7 of other: ")
    words = "queue", "move", "other", "plain", "--seq", "7", "--count", "2"
    assert run(capsys, "--servers", servers[0], *words)[0] == USAGE_ERROR


def test_a_running_job_is_cancelled_unless_it_should_be_untaken(
    servers: list[str], client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    number = put(capsys, servers, "--key", "k")
    assert client.get("kept", expire=60) is not None
    for named in (number, "kept/k"):
        code, told = ask(capsys, servers, "job", "cancel", named, "--untaken")
        assert (code, told["error"]) == (REFUSED, "refused")
        assert told["message"].startswith("refused: 409 Job Running")
    assert ask(capsys, servers, "job", "cancel", "kept/k") == (
        DONE, {"job": {"queue": "kept", "key": "k"}, "was_running": True})
    assert ask(capsys, servers, "job", "show", number)[1]["job"]["state"] == "cancelled"
    again = put(capsys, servers)
    job = client.get("kept", expire=60)
    assert job is not None
    assert ask(capsys, servers, "job", "cancel", str(job.id)) == (DONE, {"job": job.id, "was_running": True})
    assert ask(capsys, servers, "job", "cancel", again)[0] == REFUSED
    assert run(capsys, "--servers", servers[0], "job", "cancel", "17", "--untaken")[0] == USAGE_ERROR


def test_the_end_of_a_job_is_awaited_and_its_result_written(
    servers: list[str], client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    named = put(capsys, servers, "--key", "k")
    assert ask(capsys, servers, "job", "await", named, "--wait", "0.1") == (
        REFUSED, {"state": None, "data_base64": None})
    assert run(capsys, "--servers", servers[0], "job", "await", "kept/k", "--wait", "0.1")[1:] == (
        "", "job k of kept has not ended yet\n")
    job = client.get("kept", expire=60)
    assert job is not None
    with start("--servers", servers[0], "job", "await", "kept/k", "--json") as waiting:
        job.done(result=b"\x00\x1b[2J")
        out, err = waiting.communicate(timeout=PATIENCE_S)
    if waiting.returncode == REFUSED:           # it began when the job had ended: a key is that of an unfinished job
        assert "there is no job k of kept" in err
    else:
        assert (waiting.returncode, json.loads(out)) == (DONE, {"state": "done", "data_base64": "ABtbMko="})
    done = execute(servers, "job", "await", named)
    assert (done.returncode, done.stdout) == (DONE, b"\x00\x1b[2J")
    assert run(capsys, "--servers", servers[0], "job", "await", "number:17")[0] == REFUSED
    assert run(capsys, "--servers", servers[0], "job", "await", "17")[0] == USAGE_ERROR


def test_the_error_of_a_job_that_is_given_up_is_printed_harmlessly(
    servers: list[str], client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    named = put(capsys, servers)
    job = client.get("kept", expire=60)
    assert job is not None
    job.bury(error=f"bad\n{NASTY}")
    number = named.partition(":")[2]
    assert run(capsys, "--servers", servers[0], "job", "await", named) == (
        REFUSED, "", f"job with number {number} is dead:\n    bad\n    \\x1b[31mred\\x07\\u202e\n")
    shown = execute(servers, "job", "show", named).stderr.decode()
    assert shown.startswith("dead in kept_dead, ")
    assert ", died in kept\n" in shown
    assert ask(capsys, servers, "job", "retry", named)[0] == DONE
    assert ask(capsys, servers, "job", "cancel", named)[0] == DONE
    assert run(capsys, "--servers", servers[0], "job", "await", named) == (
        REFUSED, "", f"job with number {number} is cancelled\n")


def test_settings_of_what_is_kept_are_changed(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, told = ask(
        capsys, servers, "queue", "config", "kept", "--retain", "60", "--retain-max", "5", "--retain-bytes", "100",
        "--backoff", "2", "600", "--error-bytes", "10", "--dedup-max", "7",
        "--numbered",
    )
    names = ("retain", "retain_max", "retain_bytes", "backoff", "error_bytes", "dedup_max", "numbered")
    assert (code, [told["settings"][name] for name in names]) == (DONE, ["60", "5", "100", "2 600", "10", "7", "1"])
    told = ask(capsys, servers, "queue", "config", "kept", "--not-numbered")[1]
    assert told["settings"]["numbered"] == "0"
    assert ask(capsys, servers, "queue", "config", "kept", "--backoff", "0", "0")[1]["settings"]["backoff"] == "OFF"
    code, told = ask(capsys, servers, "config", "--retained-bytes", "1000000")
    assert (code, told["settings"]["retained_bytes"]) == (DONE, "1000000")
    ask(capsys, servers, "config", "--retained-bytes", "1073741824")
    assert run(capsys, "--servers", servers[0], "queue", "config", "kept", "--backoff", "3", "2")[0] == USAGE_ERROR


def test_a_job_is_put_once_in_a_while(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for sentence in ("1 byte queued in kept\n", "1 byte was queued before in kept\n"):
        code, out, _ = run(capsys, "--servers", servers[0], "job", "put", "kept", "x", "--dedup", "a1", "60")
        assert (code, out) == (DONE, sentence)


def test_results_and_errors_are_given_by_hand(
    servers: list[str], client: Client, capsys: pytest.CaptureFixture[str], tmp_path: Path,
) -> None:
    def taken() -> str:
        job = client.get("kept", expire=600)
        assert job is not None
        return str(job.id)

    named = put(capsys, servers)
    number = Number(int(named.removeprefix("number:")))
    assert ask(capsys, servers, "job", "later", taken(), "--error", "not yet")[0] == DONE
    assert client.job_error(number) == "not yet"
    assert ask(capsys, servers, "job", "bury", taken(), "--here", "--error", "never")[0] == DONE
    assert client.job_error(number) == "never"
    assert client.kick("kept", 1, here=True) == 1
    (tmp_path / "result").write_bytes(b"\x00sent")
    held = taken()
    words = ("--result", str(tmp_path / "result"))
    assert ask(capsys, servers, "job", "done", held, *words) == (DONE, {"jobs": [
        {"id": int(held), "done": True, "queue_done": True, "item_done": False}]})
    assert client.job_result(number) == b"\x00sent"
    assert ask(capsys, servers, "job", "done", held, *words)[0] == REFUSED
    assert run(capsys, "--servers", servers[0], "job", "done", "1", "2", *words)[0] == USAGE_ERROR


def test_output_for_programs_is_one_object(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for words in (("job", "find", "--state", "expired"), ("job", "retry", "number:1"), ("job", "cancel", "number:1")):
        code, out, _ = run(capsys, "--servers", servers[0], *words, "--json")
        assert (code, type(json.loads(out))) == (REFUSED, dict)
