"""`pqctl top`: what it prints, and its screen, driven by textual's pilot, on real nodes one of which is killed."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Callable, Coroutine, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from sockpq import Client, NodeStatus, ReplicaStatus, WorkerInfo

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.connect import cluster_of
from sockpqd.pqctl.health import Health
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.live import top as view
from sockpqd.pqctl.live.sample import QueueLine, Sample, Sampler
from sockpqd.pqctl.output.exit_codes import DONE, USAGE_ERROR, Failure
from sockpqd.pqctl.replicas import RegionPart
from sockpqd.pqctl.settings import Options
from tests.pqctl.running import PATIENCE_S, Terminal, execute, start

NODE = NodeStatus(1, "n1", "127.0.0.1:1", "LEADER", True, 1, 9, 0, "1.0.0")
HEALTH = Health(NODE, [NODE], frozenset(), frozenset(), [], "c1")
SECRET = "key-of-the-mailer"


def row(name: str, ready: int = 0, running: int = 0, dead: int = 0, put: float = 0.0, oldest_s: int = 0) -> QueueLine:
    return QueueLine(name, ready, 0, running, dead, 0, put, 0.0, 0.0, 0.0, oldest_s)


def sample(*rows: QueueLine, workers: list[WorkerInfo] | None = None) -> Sample:
    return Sample(HEALTH, {"127.0.0.1:1": 0.0015}, list(rows), workers or [], ())


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(3) as started:
        started.wait_for_leader()
        started.wait_until_level()
        yield started


def lines(app: Any) -> list[str]:
    """Return the text on the screen."""
    return ["".join(piece.text for piece in strip).rstrip() for strip in app.screen._compositor.render_strips()]


def names(app: Any) -> list[str]:
    """Return the queues, in the order of the screen."""
    shown = lines(app)
    head = next(number for number, line in enumerate(shown) if line.split()[:2] == ["queue", "ready"])
    return [line.split()[0] for line in takewhile(str.strip, shown[head + 1:-1])]


async def until(pilot: Any, holds: Callable[[], bool]) -> None:
    """Wait until this holds on the screen."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, "\n".join(lines(pilot.app))
        await pilot.pause(0.02)


def on_screen(
    take: Callable[[], Sample], script: Callable[[Any, Any], Coroutine[Any, Any, None]], interval: float = 60.0
) -> None:
    """Run the script on a screen of 120 columns."""
    pytest.importorskip("textual", reason="textual is not installed")
    from sockpqd.pqctl.live.screen import TopScreen

    async def run() -> None:
        app = TopScreen(take, interval)
        async with app.run_test(size=(120, 30)) as pilot:
            await until(pilot, lambda: any("queue" in line and "ready" in line for line in lines(app)))
            await script(app, pilot)

    asyncio.run(run())


def test_the_screen_shows_what_there_is_in_words() -> None:
    taken = sample(row("mail", ready=1234, dead=7, oldest_s=400), row("bell\x1b[2J\x07", running=1, put=12.34),
                   workers=[WorkerInfo("pool", "10.0.0.1", 4, 3, 200)])

    async def script(app: Any, pilot: Any) -> None:
        expected = (
            "serving: n1, a single node", "2 queues: 1,234 ready, 1 running, 0 delayed, 7 dead, 12.3 put/s",
            "1.5 ms",                           # of PING
            "pool", "3 min ago",
            "bell\\x1b[2J\\x07",               # a name does nothing to the terminal
        )
        await until(pilot, lambda: all(words in "\n".join(lines(app)) for words in expected))
        assert [line.split() for line in lines(app) if line.startswith(" mail")] == [
            ["mail", "1,234", "0", "0", "7", "0", "0.0", "0.0", "0.0", "0.0", "7", "min"]]
        await pilot.press("w", "n")
        await until(pilot, lambda: not any("1.5 ms" in line or "3 min ago" in line for line in lines(app)))

    on_screen(lambda: taken, script)


@pytest.mark.parametrize(("part", "head"), [
    (RegionPart({"n1": ReplicaStatus("following", 7, "00112233", 9, 0.2, None, "")}),
     "A COPY, answers reads only: of the cluster 00112233; n1 follows its origin, 2 entries"),
    (RegionPart({}, "00112233"), "NOT SERVING: FENCED, switched off for good"),
])
def test_a_cluster_that_is_a_copy_or_fenced_is_not_said_to_serve(part: RegionPart, head: str) -> None:
    async def script(app: Any, pilot: Any) -> None:
        await until(pilot, lambda: any(head in line for line in lines(app)))
        assert not any("serving: n1" in line for line in lines(app))

    on_screen(lambda: sample(row("mail"))._replace(part=part), script)


def test_keys_sort_reverse_and_filter() -> None:
    taken = sample(row("b", ready=1, running=5), row("ab", ready=9), row("aa", ready=2, dead=1))

    async def script(app: Any, pilot: Any) -> None:
        await until(pilot, lambda: names(app) == ["ab", "b", "aa"])        # by jobs
        for keys, expected in ((["s"], ["aa", "ab", "b"]), (["r"], ["b", "ab", "aa"]), (["s"], ["ab", "aa", "b"]),
                               (["s"], ["b", "aa", "ab"]), (["slash", "a"], ["aa", "ab"]),
                               (["enter", "escape"], ["b", "aa", "ab"])):
            await pilot.press(*keys)
            await until(pilot, lambda expected=expected: names(app) == expected)
        assert "by running, every" in "\n".join(lines(app))

    on_screen(lambda: taken, script)


def test_a_failure_is_shown_and_the_picture_stays() -> None:
    answers: list[Sample | Exception] = [sample(row("mail", ready=1)), OSError("the network\x1b is down")]

    def take() -> Sample:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def script(app: Any, pilot: Any) -> None:
        await until(pilot, lambda: "the network\\x1b is down" in lines(app)[0])
        assert names(app) == ["mail"]
        answers[:] = [sample(row("post", ready=1))]
        await until(pilot, lambda: names(app) == ["post"])
        await pilot.press("space")
        await until(pilot, lambda: any("held" in line for line in lines(app)))
        answers[:] = [sample(row("gone", ready=1))]
        await pilot.pause(0.1)
        assert names(app) == ["post"]
        await pilot.press("space")
        await until(pilot, lambda: names(app) == ["gone"])

    on_screen(take, script, interval=0.02)


def test_of_very_many_queues_the_first_are_shown_and_all_are_summed() -> None:
    taken = sample(*(row(f"q{number:04}", ready=number) for number in range(601)))

    async def script(app: Any, pilot: Any) -> None:
        await until(pilot, lambda: any("601 queues: 180,300 ready" in line for line in lines(app)))
        assert any("by jobs, the first 500, every" in line for line in lines(app))
        assert names(app)[0] == "q0600"
        assert app.query_one("#queues").row_count == 500

    on_screen(lambda: taken, script)


def test_plus_and_minus_change_the_interval() -> None:
    async def script(app: Any, pilot: Any) -> None:
        for key, said in (("minus", "every 30 s"), ("minus", "every 10 s"), ("plus", "every 30 s")):
            await pilot.press(key)
            await until(pilot, lambda said=said: any(said in line for line in lines(app)))

    on_screen(lambda: sample(row("mail", ready=1)), script)


def test_it_survives_a_failover_as_a_user_who_may_only_put(cluster: LocalCluster, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    secret.write_text(SECRET)
    call = Call(Options(",".join(cluster.servers), None, None, "mailer", str(secret)), False, 5.0)
    with Client(cluster.servers) as admin:
        admin.set_user("mailer", ["put:mail*"], SECRET)
        admin.put("mail", b"1")

        async def script(app: Any, pilot: Any) -> None:
            await until(pilot, lambda: "mail" in names(app))
            killed = cluster.wait_for_leader()
            cluster.kill(killed)
            admin.put("later", b"1")
            await until(pilot, lambda: "later" in names(app) and "2 of 3 nodes up" in lines(app)[0])
            shown = {line.split()[0]: line.split()[1] for line in lines(app) if line.startswith(" n")}
            assert shown[killed] == "DOWN"
            assert "LEADER" in shown.values()
            cluster.restart(killed)

        try:
            with cluster_of(call) as (client, _):
                on_screen(Sampler(call, client, "").take, script, interval=0.2)
        finally:
            cluster.wait_until_level()
            admin.delete_user("mailer")
            for queue in ("mail", "later"):
                admin.queue_purge(queue, "all")


def test_without_textual_it_says_which_command_installs_it(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Screen:
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(view, "find_spec", lambda name: None)
    monkeypatch.setattr(view.sys, "stdout", Screen())
    monkeypatch.setattr(view.sys, "stdin", Screen())
    call = Call(Options(",".join(cluster.servers), None, None, None, None), False, 5.0)
    with pytest.raises(Failure, match="-m pip install textual") as failed:
        view.show(call, "", 1.0, None)
    assert failed.value.code == USAGE_ERROR


def test_top_shows_queues_and_rates(cluster: LocalCluster) -> None:
    with Client(cluster.servers) as client:
        for _ in range(3):
            client.put("busy", b"")
        told = execute(cluster.servers, "top", "bus", "--count", "1", "--json")
        assert told.returncode == DONE
        (queue,) = json.loads(told.stdout)["queues"]
        assert {key: queue[key] for key in ("name", "ready", "running", "put_per_s")} == {
            "name": "busy", "ready": 3, "running": 0, "put_per_s": 0.0}
        program = start("--servers", ",".join(cluster.servers), "top", "busy", "--json")
        assert program.stdout is not None
        for _ in range(10):
            for _ in range(5):
                client.put("busy", b"")
                time.sleep(0.05)
            if json.loads(program.stdout.readline())["queues"][0]["put_per_s"] > 0:
                break
        else:
            raise AssertionError("no rate was told")
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=PATIENCE_S)
        plain = execute(cluster.servers, "top", "busy", "--count", "1")
        assert b"put/s" in plain.stdout
        assert b"busy" in plain.stdout


def test_q_leaves_the_screen(cluster: LocalCluster) -> None:
    pytest.importorskip("textual", reason="textual is not installed")
    with Client(cluster.servers) as client:
        client.put("busy", b"")
    terminal = Terminal(cluster.servers, "top")
    terminal.wait_for("busy")
    terminal.type("q")
    assert terminal.end() == DONE
