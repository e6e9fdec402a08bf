"""The programs of client/examples do what they say, against a real server."""

from __future__ import annotations

import gzip
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sockpq import Client
from sockpq.testing import Server

from devcluster.cluster import LocalCluster
from tests.waiting import until

EXAMPLES = Path(__file__).parents[2] / "client" / "examples"
TIMEOUT_S = 60


@pytest.fixture(scope="module")
def process() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def server(process: Server) -> str:
    process.empty()
    return process.address


def start(server: str, name: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", EXAMPLES / f"{name}.py", *arguments],
        env={**os.environ, "SOCKPQ_SERVERS": server}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )


def output(server: str, name: str, *arguments: str, stdin: str = "") -> str:
    with start(server, name, *arguments) as process:
        out, _ = process.communicate(stdin, TIMEOUT_S)
    assert process.returncode == 0
    return out


def test_no_example_is_forgotten() -> None:
    tested = Path(__file__).read_text("utf-8")
    assert [path.stem for path in EXAMPLES.glob("*.py") if f'"{path.stem}"' not in tested] == []


def test_files_are_put_and_compressed(server: str, tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.log" for number in range(5)]
    for number, path in enumerate(files):
        path.write_bytes(b"line\n" * number)
    lines = "".join(f"{path}\n" for path in files)
    assert output(server, "put_lines", "files", stdin=lines) == "5 jobs put, 5 waiting in files\n"
    with start(server, "compress_worker", "files") as worker:
        assert worker.stdout
        assert sorted(worker.stdout.readline() for _ in files) == [f"{path} compressed\n" for path in files]
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(TIMEOUT_S) == 0
    for number, path in enumerate(files):
        assert gzip.decompress(Path(f"{path}.gz").read_bytes()) == b"line\n" * number
    with Client(server) as client:
        assert client.total() == (0, 0, 0, 0)


def test_a_question_is_answered(server: str) -> None:
    with start(server, "remote_call", "serve") as process:
        try:
            assert output(server, "remote_call", "12345678901") == "857 14405693\n"
            assert output(server, "remote_call", "1001") == "7 11 13\n"
        finally:
            process.kill()


def test_words_are_counted(server: str) -> None:
    text = "one two two\n" * 2500 + "Three three\n" * 1000
    assert output(server, "count_words", stdin=text) == "5000 two\n2500 one\n2000 three\n"


def test_ports_are_probed(server: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_server(("127.0.0.1", 0)) as closed:
        listening = f"127.0.0.1:{listener.getsockname()[1]}"
        refusing = f"127.0.0.1:{closed.getsockname()[1]}"
        closed.close()
        lines = output(server, "probe_ports", listening, refusing).splitlines()
    assert sorted(lines) == sorted([f"{listening} open", f"{refusing} ConnectionRefusedError"])


def test_what_is_not_paid_in_time_is_released(server: str) -> None:
    out = output(server, "deferred", "0.6", "order_1", "order_2", "order_3", stdin="order_2\norder_9\n")
    assert sorted(out.splitlines()) == ["order_1 is released", "order_3 is released", "order_9 is paid too late"]


def test_a_peak_is_smoothed(server: str) -> None:
    assert output(server, "smooth_peak", "200") == "200 jobs done by 16 workers, 4 at a time\n"


def test_rate_limited_api(server: str, tmp_path: Path) -> None:
    picture = tmp_path / "picture.svg"
    lines = output(server, "rate_limited_api", "30", "1.5", str(picture)).splitlines()
    names = [line.partition(":")[0] for line in lines]
    assert names == ["normal", "slow", "normal again", "daily limit", "together"]
    assert 1 <= int(lines[0].split()[1]) <= 11      # one in 0.15 s
    assert int(lines[3].split()[2]) <= 2            # then it sleeps
    assert picture.read_text().startswith("<svg")


def test_more_workers_than_the_rate_allows(server: str) -> None:
    words = output(server, "analyse_answers", "30", "20", "0.5").split()
    assert words[:5] == ["30", "jobs", "by", "20", "workers,"]
    assert float(words[5]) <= 10                    # however many workers there are


def test_a_periodic_job_is_there_once(server: str) -> None:
    with start(server, "periodic", "0.3", "3") as other:
        out = output(server, "periodic", "0.3", "3")
        both = out + other.communicate(timeout=TIMEOUT_S)[0]
    assert other.returncode == 0
    assert "clean up 3\n" in both
    assert 3 <= both.count("clean up") <= 6         # whoever has had three takes the job from the other
    with Client(server) as client:
        assert client.total() == (0, 0, 0, 0)


def test_nobody_gets_a_mail_twice(server: str) -> None:
    out = output(server, "mail_once", "ann@example.org", "bob@example.org", "ann@example.org")
    assert sorted(out.splitlines()) == [
        "ann@example.org has it, or will have it", "mail to ann@example.org", "mail to bob@example.org"]
    assert output(server, "mail_once", "bob@example.org", "eve@example.org") == (
        "bob@example.org has it, or will have it\nmail to eve@example.org\n")


def test_events_about_one_thing_come_together(server: str) -> None:
    out = output(server, "group_by_time", *"abcabcaac")
    assert sorted(out.splitlines()) == ["a 4", "b 2", "c 3"]


def test_a_cascade_has_one_result_for_each_job_through_the_death_of_leaders() -> None:
    lines = [f"  The LINE number {number}  \n" for number in range(900)]
    with LocalCluster(3) as nodes, Client(nodes.servers) as client:
        nodes.wait_until_level()
        client.put("clean", b"held")
        held = client.get("clean", expire=3600)     # and so the program does not end before there were two deaths
        assert held is not None
        with start(",".join(nodes.servers), "cascade") as process:
            assert process.stdin
            process.stdin.write("".join(lines[:300]))
            process.stdin.close()
            process.stdin = None
            for there in (300, 600):
                wait_for_results(client, there - 250)
                leader = nodes.wait_for_leader()
                assert client.total("results").jobs < there         # it dies while there is work
                nodes.kill(leader)
                nodes.restart(leader)
                client.put_many("clean", [line.encode() for line in lines[there:there + 300]])
            held.later()
            out, _ = process.communicate(timeout=TIMEOUT_S)
            assert process.returncode == 0
            assert client.total() == (0, 0, 0, 0)
    found = sorted(out.splitlines())
    assert found == sorted(["1 words: held", *(f"4 words: the line number {number}" for number in range(900))])


def wait_for_results(client: Client, count: int) -> None:
    until(lambda: client.total("results").jobs >= count)


@pytest.mark.parametrize("name", [
    "compress_worker", "deferred", "group_by_time", "mail_once", "periodic", "probe_ports", "put_lines", "remote_call",
    "smooth_peak", "watch_orders",
])
def test_without_its_arguments_an_example_says_how_it_is_used(name: str) -> None:
    done = subprocess.run([sys.executable, "-W", "error", EXAMPLES / f"{name}.py"], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 1
    assert f"python {name}.py" in done.stderr
    assert "Traceback" not in done.stderr


LONG = [
    ("remote_call", "serve"), ("remote_call", "1001"), ("watch_orders", "order_1"), ("deferred", "600", "order_1"),
    ("periodic", "600", "3"), ("smooth_peak", "9999"), ("analyse_answers", "200", "3", "600"),
    ("rate_limited_api", "3", "600"),
]


def interrupted(server: str, name: str, *arguments: str) -> tuple[int, str]:
    """Return the exit code and output of a program that got Ctrl-C at work."""
    with Client(server) as client:
        before = len(client.sessions())
        process = subprocess.Popen(
            [sys.executable, EXAMPLES / f"{name}.py", *arguments], env={**os.environ, "SOCKPQ_SERVERS": server},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        try:
            if name == "watch_orders":          # which needs no session
                assert process.stdout is not None
                assert process.stdout.readline() == "watching\n"
            else:
                until(lambda: len(client.sessions()) > before, f"{name} is at work")
            process.send_signal(signal.SIGINT)
            _, said = process.communicate("", TIMEOUT_S)
        finally:
            process.kill()
            process.communicate()
    return process.returncode, said


@pytest.mark.parametrize("arguments", LONG, ids=" ".join)
def test_ctrl_c_ends_an_example_without_a_word(server: str, arguments: tuple[str, ...]) -> None:
    code, said = interrupted(server, *arguments)
    assert code == -signal.SIGINT
    assert [line for line in said.splitlines() if not line.endswith(" ..")] == []       # which says what it waits for


def test_ctrl_c_lets_a_worker_finish(server: str) -> None:
    assert interrupted(server, "compress_worker", "files") == (0, "")


def test_orders_are_watched_through_a_killed_leader() -> None:
    with LocalCluster(3) as cluster, Client(cluster.servers) as client:
        with start(",".join(cluster.servers), "watch_orders", "order_1", "order_2") as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "watching\n"
            heard = False

            def work(order: str) -> None:
                while not heard:        # it may not be subscribed yet
                    client.put("mail", b"", item=order)
                    job = client.get("mail", expire=60)
                    assert job is not None
                    job.done()
                    time.sleep(0.2)

            for number in (1, 2):
                heard = False
                worker = threading.Thread(target=work, args=(f"order_{number}",))
                worker.start()
                assert process.stdout.readline() == f"order_{number} is finished\n"
                heard = True
                worker.join()
                if number == 1:
                    cluster.kill(cluster.wait_for_leader())
            process.communicate("", TIMEOUT_S)
        assert process.returncode == 0
