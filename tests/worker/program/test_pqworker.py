"""The real program: kinds of pools, failures, time limits, every way of ending, HUP, --exec."""

from __future__ import annotations

import os
import signal
import socket
import time
from itertools import pairwise
from pathlib import Path

import pytest
from sockpq import Client
from sockpq.worker import App, TaskFailed

from tests.pqctl.running import ask
from tests.worker.program.conftest import Start
from tests.worker.program.running import all_gone

APP = '''
@app.task("q", name="work", tries=2, backoff=(0.05, 0.1))
def work(number, sleep=0, error=False):
    time.sleep(sleep)
    record("work", number, os.getpid())
    if error:
        raise ValueError("no " + str(number))
    return number + 1

@app.task("q", name="awork", tries=2, backoff=(0.05, 0.1))
async def awork(number, sleep=0, error=False):
    await asyncio.sleep(sleep)
    record("awork", number, current_job().queue)
    if error:
        raise KeyError(number)
    return number + 1

@app.handler("raw")
def raw(job):
    record("raw", job.text, job.meta.attempt)
    with app.client.transaction() as t:
        t.put("out", job.data)
        t.done(job)
'''
HELD = '''
@app.handler("q")
def hold(job):
    record("begin", job.text, os.getpid())
    time.sleep(float(job.meta.key or 60) if (job.meta.key or "x").isdigit() else 60)
'''


def address_of(client: Client) -> tuple[str, int]:
    """Return where the server is."""
    host, port = str(client._router.addresses[0]).split(":")
    return host, int(port)


def put(client: Client, task: str, *args: object, **kwargs: object) -> None:
    client.put("q", json={"task": task, "args": list(args), "kwargs": kwargs})


@pytest.mark.parametrize("kind", ["processes", "threads", "asyncio"])
def test_tasks_of_both_kinds_run_in_each_kind_of_pool(start: Start, client: Client, kind: str) -> None:
    worker = start(APP, "-c", "2", "--pool", kind)
    for number in range(10):
        put(client, "work", number)
        put(client, "awork", number)
    client.put("raw", "body")
    worker.until(lambda: len(worker.record) == 21)
    assert sorted(line.split()[:2] for line in worker.record)[:3] == [["awork", "0"], ["awork", "1"], ["awork", "2"]]
    assert "raw body 1" in worker.record
    worker.until(lambda: not client.running() and client.total("raw").jobs == 0)
    out = client.get("out")
    assert out
    assert out.data == b"body"
    assert worker.end(signal.SIGTERM) == 0


@pytest.mark.parametrize("kind", ["processes", "threads", "asyncio"])
def test_what_a_task_prints_is_seen_while_it_runs(start: Start, client: Client, kind: str) -> None:
    worker = start("""
@app.task("q", name="talk")
def talk():
    print("it begins")
    time.sleep(600)
""", "-c", "1", "--pool", kind)
    put(client, "talk")
    worker.until(lambda: "it begins\n" in worker.text)


@pytest.mark.parametrize("kind", ["processes", "threads", "asyncio"])
def test_a_failure_is_tried_again_then_dead_and_logged_once_for_each_attempt(
    start: Start, client: Client, kind: str
) -> None:
    worker = start(APP, "-c", "1", "--pool", kind)
    put(client, "work", 7, error=True)
    worker.until(lambda: client.queue_stat("q")["dead"] == 1)
    told = [line for line in worker.log if line["message"] == "a job failed"]
    assert [(line["queue"], line["attempt"], line["outcome"], line["error"]) for line in told] == [
        ("q", 1, "later", "ValueError"), ("q", 2, "dead", "ValueError"),
    ]
    assert told[0]["traceback"].count("ValueError: no 7") == 1
    assert "tested_app.py" in told[0]["traceback"]
    assert isinstance(told[0]["id"], int)
    assert told[0]["key"] is None
    put(client, "awork", 8, error=True)
    worker.until(lambda: client.queue_stat("q")["dead"] == 2)
    assert worker.end(signal.SIGTERM) == 0


def test_call_waits_for_the_result(start: Start, client: Client, one_server: object) -> None:
    worker = start(APP, "-c", "1")
    app = App(one_server.address)       # type: ignore[attr-defined]

    @app.task("q", name="work")
    def work(number: int, error: bool = False) -> int:
        return 0

    assert work.options(wait=20).call(41) == 42
    with pytest.raises(TaskFailed, match="ValueError: no 1"):
        work.options(wait=20).call(1, error=True)
    app.close()
    assert client.total("q.results").jobs == 0
    assert worker.end(signal.SIGTERM) == 0


def test_term_finishes_what_runs_and_gives_back_the_rest(start: Start, client: Client) -> None:
    worker = start(HELD, "-c", "2", "--prefetch", "3").ready(2)
    client.put_many("q", [b"%d" % one for one in range(6)], keys=["1", "01", "a", "b", "c", "d"])
    worker.until(lambda: len(worker.record) == 2)
    children = worker.children()
    begun = time.monotonic()
    assert worker.end(signal.SIGTERM) == 0
    assert time.monotonic() - begun < 40
    assert all_gone(children)
    assert client.running() == []
    back = client.get_many(10, "q", expire=60, meta=True)
    assert [(job.data, job.meta.attempt) for job in back if job.meta] == [(b"%d" % one, 1) for one in range(2, 6)]


@pytest.mark.parametrize("signals", [(signal.SIGTERM, signal.SIGINT), (signal.SIGQUIT,)], ids=["twice", "quit"])
@pytest.mark.parametrize("kind", ["processes", "threads", "asyncio"])
def test_twice_or_quit_stops_at_once_and_jobs_go_back(
    start: Start, client: Client, signals: tuple[signal.Signals, ...], kind: str
) -> None:
    worker = start(HELD, "-c", "2", "--prefetch", "3", "--pool", kind)
    client.put_many("q", [b"%d" % one for one in range(6)])
    worker.until(lambda: len(worker.record) == 2)
    children = worker.children()
    begun = time.monotonic()
    assert worker.end(*signals) == 0
    assert time.monotonic() - begun < 40
    assert all_gone(children)
    assert client.running() == []
    assert sorted(job.data for job in client.get_many(10, "q", expire=60)) == [b"%d" % one for one in range(6)]


def test_a_pool_that_is_killed_takes_its_children_along_and_its_jobs_come_back(start: Start, client: Client) -> None:
    app = HELD.replace('"q")', '"q", expire=1)', 1)
    worker = start(app, "-c", "2", "--prefetch", "2")
    client.put_many("q", [b"1", b"2", b"3"])
    worker.until(lambda: len(worker.record) == 2)
    children = worker.children()
    assert len(children) == 2
    worker.process.kill()
    worker.process.wait(60)
    assert all_gone(children)
    end = time.monotonic() + 60
    while client.total("q").jobs < 3 and time.monotonic() < end:
        time.sleep(0.05)
    assert client.total("q").jobs == 3
    assert client.running() == []


def test_a_killed_child_is_replaced_and_its_job_done_by_another(start: Start, client: Client) -> None:
    app = '''
@app.handler("q")
def once(job):
    record("begin", job.text, job.meta.attempt)
    if job.meta.attempt == 1:
        record("pid", os.getpid())
        time.sleep(60)
'''
    worker = start(app, "-c", "2").ready(2)
    client.put("q", "x")
    worker.until(lambda: len(worker.record) == 2)
    pid = int(worker.record[1].split()[1])
    os.kill(pid, signal.SIGKILL)
    worker.until(lambda: "begin x 2" in worker.record)
    worker.until(lambda: len(worker.children()) == 2)
    assert pid not in worker.children()             # no zombie is left of it
    worker.until(lambda: not client.running() and client.total("q").jobs == 0)
    assert worker.end(signal.SIGTERM) == 0


def test_a_child_that_is_silent_for_long_after_its_start_is_replaced(start: Start, client: Client) -> None:
    app = '''
@app.on_child_start
def hang():
    if not os.path.exists("hung"):
        open("hung", "w").close()
        record("hung", os.getpid())
        time.sleep(3600)

@app.handler("q")
def work(job):
    record("done", job.text)
'''
    worker = start(app, "-c", "1", "--start-limit", "6")
    client.put("q", "x")
    worker.until(lambda: len(worker.record) == 2)
    hung, done = (line.split() for line in worker.record)
    assert (hung[0], done[0]) == ("hung", "done")
    assert "it did not report within 6 s of its start" in worker.text
    assert all_gone([int(hung[1])])
    assert worker.end(signal.SIGTERM) == 0


@pytest.mark.parametrize("kind", ["processes", "asyncio"])
def test_time_limits(start: Start, client: Client, kind: str) -> None:
    app = '''
@app.task("q", name="soft", tries=1)
def soft():
    try:
        for _ in range(600): time.sleep(0.1)
    except SoftTimeLimit:
        record("cleaned up")
        raise

@app.task("q", name="asoft", tries=1)
async def asoft():
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        record("acleaned up")
        raise

@app.task("q", name="hard", tries=1)
async def hard():
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            record("will not")
'''
    worker = start(app, "-c", "1", "--pool", kind, "--soft-time-limit", "0.5", "--time-limit", "2")
    put(client, "asoft")
    worker.until(lambda: "acleaned up" in worker.record)
    if kind == "processes":
        put(client, "soft")
        worker.until(lambda: "cleaned up" in worker.record)
    put(client, "hard")
    worker.until(lambda: client.queue_stat("q")["dead"] == (3 if kind == "processes" else 2))
    errors = [line["error"] for line in worker.log if "error" in line]
    assert errors == ["SoftTimeLimit"] * (len(errors) - 1) + ["TimeLimit"]
    worker.end(signal.SIGTERM, signal.SIGTERM)


def test_delay_at_and_every_run_on_time(start: Start, client: Client) -> None:
    app = '''
@app.handler("q")
def tell(job):
    record(job.text, time.time())
'''
    worker = start(app, "-c", "2").ready(2)
    now = time.time()
    client.put("q", "delay", delay=1)
    client.put("q", "at", at=int(now) + 3)
    client.put("q", "every", every=1)
    worker.until(lambda: sum(line.startswith("every") for line in worker.record) >= 4)
    times: dict[str, list[float]] = {}
    for line in worker.record:
        word, at = line.split()
        times.setdefault(word, []).append(float(at))
    assert now + 0.9 < times["delay"][0] < now + 2.5
    assert int(now) + 2.9 < times["at"][0] < int(now) + 4.5
    gaps = [later - earlier for earlier, later in pairwise(times["every"])]
    assert all(0.8 < gap < 2.5 for gap in gaps), gaps
    assert len(times["delay"]) == len(times["at"]) == 1
    worker.end(signal.SIGTERM)


def test_the_pulse_of_a_queue_hears_of_sleep(start: Start, client: Client) -> None:
    app = '''
@app.handler("q", tries=1)
def tell(job):
    record(job.text, job.meta.attempt, time.time())
    if len(open(os.environ["RECORD"]).readlines()) == 1:
        raise Sleep(2)
'''
    with socket.create_connection(address_of(client)) as raw:
        raw.sendall(b"QUEUE CREATE q RATE 100 PER 1\r\n")
        assert raw.recv(100) == b"200 OK\r\n"
    worker = start(app, "-c", "1", "--prefetch", "1")
    client.put_many("q", [b"a", b"b"])
    worker.until(lambda: len(worker.record) == 3)
    words = [line.split() for line in worker.record]
    assert [float(line[2]) - float(words[0][2]) >= 1.9 for line in words] == [False, True, True]    # of b, too
    assert {line[1] for line in words} == {"1"}
    assert worker.end(signal.SIGTERM) == 0
    client.queue_delete("q", force=True)


def test_a_worker_is_seen_and_steered_from_anywhere(
    start: Start, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = ["{}:{}".format(*address_of(client))]
    worker = start(APP, "--autoscale", "4,1", "--name", "steered").ready(1)

    def told() -> list[tuple[str, int, int]]:
        return [(one.name, one.slots, one.busy) for one in client.workers()]

    worker.until(lambda: told() == [("steered", 1, 0)])          # children there are
    assert ask(capsys, servers, "worker", "list")[1]["workers"][0]["name"] == "steered"
    assert ask(capsys, servers, "worker", "set", "steered", "--max", "6", "--min", "3")[0] == 0
    worker.until(lambda: len(worker.children()) == 3)
    worker.until(lambda: told() == [("steered", 3, 0)])
    assert ask(capsys, servers, "worker", "pause", "steered")[0] == 0
    worker.until(lambda: "an operator says pause" in worker.text)
    put(client, "work", 1)
    time.sleep(0.5)
    assert client.total("q").jobs == 1
    assert ask(capsys, servers, "worker", "resume", "steered")[0] == 0
    worker.until(lambda: len(worker.record) == 1)
    assert ask(capsys, servers, "worker", "stop", "steered")[0] == 0
    assert worker.process.wait(60) == 0
    assert client.running() == []
    assert ask(capsys, servers, "worker", "pause", "nobody")[0] == 1


def test_a_reason_is_kept_with_the_job(start: Start, client: Client) -> None:
    worker = start(APP, "-c", "1")
    put(client, "work", 7, error=True)
    worker.until(lambda: client.queue_stat("q")["dead"] == 1)
    (dead,) = client.peek_queue("q", "dead")
    assert dead.reason == "ValueError"
    assert worker.end(signal.SIGTERM) == 0


def test_hup_reads_the_configuration_again(start: Start, client: Client, tmp_path: Path) -> None:
    config = tmp_path / "worker.toml"
    config.write_text("concurrency = 1\n")
    worker = start(HELD, "--config", str(config)).ready(1)
    client.put_many("q", [b"%d" % one for one in range(9)])
    worker.until(lambda: len(worker.record) == 1)
    config.write_text("concurrency = 3\nprefetch = 2\n")
    worker.process.send_signal(signal.SIGHUP)
    worker.until(lambda: len(worker.children()) == 3 and len(worker.record) == 3)
    config.write_text("concurrency = 0\n")
    worker.process.send_signal(signal.SIGHUP)
    worker.until(lambda: "changes nothing" in worker.text)
    assert len(worker.children()) == 3
    worker.end(signal.SIGQUIT)


def test_a_program_is_run_for_each_job(start: Start, client: Client, tmp_path: Path) -> None:
    line = "sh -c 'test \"$2\" != bad || { echo broken >&2; exit 3; }; cat > \"out-$2\"' sh %q %k"
    worker = start("", "--exec", line, "--queues", "thumbs", "-c", "2", "--tries", "2", "--backoff", "0.05,0.1")
    client.put("thumbs", b"\x00\xffimage", key="pic.png")
    client.put("thumbs", b"x", key="bad")
    worker.until(lambda: client.queue_stat("thumbs")["dead"] == 1)
    worker.until(lambda: (tmp_path / "out-pic.png").exists())
    assert (tmp_path / "out-pic.png").read_bytes() == b"\x00\xffimage"
    assert [line["error_message"] for line in worker.log if "error" in line] == ["exit code 3: broken"] * 2
    assert worker.end(signal.SIGTERM) == 0
    assert client.running() == []


def test_a_program_that_cannot_be_started_is_a_failure_in_one_sentence(
    start: Start, client: Client, tmp_path: Path
) -> None:
    worker = start("", "--exec", "%k", "--queues", "thumbs", "-c", "1", "--tries", "1")
    client.put("thumbs", b"x", key="no-such-program")
    worker.until(lambda: client.queue_stat("thumbs")["dead"] == 1)
    (told,) = [line for line in worker.log if "error" in line]
    assert told["error_message"] == "no-such-program cannot be started: No such file or directory"
    assert told["error"] == "ProgramFailed"
    assert worker.end(signal.SIGTERM) == 0


def test_a_program_that_runs_ends_with_its_pool(start: Start, client: Client) -> None:
    worker = start("", "--exec", "sh -c 'echo pid $$ >> record; sleep 60; true'", "--queues", "q", "-c", "1")
    client.put("q", b"")
    worker.until(lambda: len(worker.record) == 1)
    pid = int(worker.record[0].split()[1])
    assert worker.end(signal.SIGQUIT) == 0
    assert all_gone([pid])


@pytest.mark.parametrize("arguments", [("--prefetch", "x"), ("--exec", "cat"), ("--no-such-option",)])
def test_misuse_is_told_in_one_line(start: Start, arguments: tuple[str, ...]) -> None:
    worker = start(APP, *arguments)
    assert worker.process.wait(60) == 64
    assert len(worker.text.splitlines()) == 1
    assert "Traceback" not in worker.text
    assert "pqworker" in worker.text
