"""On a terminal of 80 columns: everything is readable, --watch stays in place."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from itertools import pairwise

import pytest
from sockpq import Client

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import INTERRUPTED
from sockpqd.pqctl.output.table import FOLDED_ROWS_MAX, Column, print_rows
from sockpqd.pqctl.settings import Options
from tests.client.memory_cluster import MemoryCluster
from tests.pqctl.running import Terminal, start

CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")



def shown(servers: list[str], *arguments: str, columns: int = 80) -> list[str]:
    """Return the lines on the screen, without colours."""
    terminal = Terminal(servers, *arguments, columns=columns)
    terminal.end()
    return [line.rstrip() for line in CONTROLS.sub("", terminal.text).splitlines()]


def test_a_usual_cluster_needs_a_line_for_each_node(nodes: LocalCluster) -> None:
    lines = shown(nodes.servers, "cluster", "status")
    assert len(lines) == 6          # a verdict before them, a line for the columns, and the cluster
    assert all(len(line) <= 80 for line in lines)
    assert lines[1].split() == ["node", "role", "id", "client", "online", "term", "applied", "lag", "version", "level"]


def test_long_names_and_addresses_fold_and_no_figure_is_lost(cluster: MemoryCluster) -> None:
    cluster.servers[0].show_status([
        f"{2**31 - 2} {'N' * 64} 127.0.0.1 {cluster.servers[0].port} FOLLOWER OFFLINE 123456 1234567890 12345 10.20.30",
        f"{2**31 - 1} n2 eeee:eeee:eeee:eeee:eeee:eeee:eeee:eeee 65535 DOWN - - - - -",
    ])
    lines = shown(cluster.addresses[:1], "cluster", "status")
    text = "\n".join(lines)
    table = "\n".join(line for line in lines if "note:" not in line)
    assert all(len(line) <= 80 for line in lines), text
    assert "…" not in text
    assert (table.count("N"), table.count("e:")) >= (64, 7), text
    for figure in ("2147483646", "1234567890", "123456", "12345", "10.20.30", "FOLLOWER"):
        assert f" {figure}" in text


@pytest.mark.parametrize("columns", [80, 50, 20])
def test_doctor_uses_the_room_there_is(columns: int, cluster: MemoryCluster) -> None:
    cluster.servers[2].stop()
    lines = shown(cluster.addresses, "doctor", columns=columns)
    folded = [line for line in lines if line.startswith(" " * 20)]
    assert folded
    room = max(columns - 20, 20)
    for line, following in pairwise(lines):
        if following.startswith(" " * 20):          # its first word had no room in the line before
            assert len(line[20:]) + 1 + len(following.split()[0]) > room, (line, following)


@pytest.mark.parametrize("arguments", [
    ("job", "running"), ("job", "running", "--data"), ("queue", "list"), ("bench", "--seconds", "0.1"), ("doctor",),
    ("cluster", "hash"),
], ids=" ".join)
def test_tables_fit_80_columns(arguments: tuple[str, ...], nodes: LocalCluster) -> None:
    name = "Q" * 255
    with Client(nodes.servers) as client:
        client.put(name, b"x" * 1234567, priority=-(2**63))
        job = client.get(name, expire=3600)
        assert job is not None
        lines = shown(nodes.servers, *arguments)
        job.done()
    text = "\n".join(lines)
    assert all(len(line) <= 80 for line in lines), text
    assert "…" not in text
    if arguments[0] in ("job", "queue"):
        assert text.count("Q") == 255
    if "--data" in arguments:
        assert str(-(2**63)) in text
        assert "1.2 MiB" in text


def test_a_very_long_table_has_the_same_form_and_comes_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    columns = [Column("id", figures=True), Column("queue", folds=True)]
    call = Call(Options(), as_json=False, timeout=1)
    rows = [[str(number), f"queue{number % 7}"] for number in range(20_000)]
    print_rows(call, columns, rows[:FOLDED_ROWS_MAX])
    short = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    begun = time.process_time()
    print_rows(call, columns, rows)
    assert time.process_time() - begun < 3          # rich needs nine seconds
    long = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert (len(short), len(long)) == (FOLDED_ROWS_MAX + 1, 20_001)
    assert [line.split() for line in long[:len(short)]] == [line.split() for line in short]
    assert long[0] == "   id  queue"
    assert long[20_000] == "19999  queue0"


def test_help_is_readable(cluster: MemoryCluster) -> None:
    assert all(len(line) <= 80 for line in shown(cluster.addresses, "job", "put", "--help"))


def test_watch_stays_in_place_and_shows_what_changes(cluster: MemoryCluster) -> None:
    terminal = Terminal(cluster.addresses, "cluster", "status", "--watch", "--interval", "0.1")
    terminal.wait_for("3 of 3 nodes up")
    cluster.servers[2].stop()
    terminal.wait_for("2 of 3 nodes up")
    assert "\x1b[1A" in terminal.text            # the cursor goes up, over what was there
    terminal.signal(signal.SIGINT)
    assert terminal.end() == INTERRUPTED
    assert "Traceback" not in terminal.text


def watching(cluster: MemoryCluster, *options: str) -> subprocess.Popen[str]:
    """A process that watches, without a terminal."""
    return start("--servers", cluster.addresses[0], "cluster", "status", "--watch", "--interval", "0.1", *options)


def test_watch_for_programs_is_an_object_a_line(cluster: MemoryCluster) -> None:
    with watching(cluster, "--json") as process:
        assert process.stdout
        assert [json.loads(process.stdout.readline())["leader"] for _ in range(3)] == ["n1"] * 3
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert (process.returncode, errors.strip()) == (INTERRUPTED, "")


def test_watch_into_a_pipe_is_one_after_the_other_and_ends_with_its_reader(cluster: MemoryCluster) -> None:
    with watching(cluster) as process:
        assert process.stdout
        assert process.stderr
        heads = [process.stdout.readline() for _ in range(14)][::7]
        assert heads == ["serving: n1 leads; 3 of 3 nodes up, can lose 1 more node\n"] * 2
        process.stdout.close()
        assert process.wait(30) == 141
        assert process.stderr.read() == ""
