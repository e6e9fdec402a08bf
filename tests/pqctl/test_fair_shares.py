"""`pqctl sched`, and the output of groups and policies elsewhere, against real nodes."""

from __future__ import annotations

import pytest
from sockpq import Client

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED
from tests.pqctl.running import ask, run


@pytest.fixture
def servers(nodes: LocalCluster) -> list[str]:
    return nodes.servers


def test_levels_and_groups_are_shown(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    names = ",".join(servers)
    for group in ("eva", "eva", "max"):
        assert run(capsys, "--servers", names, "job", "put", "reports", "x", "--group", group)[0] == DONE
    assert run(capsys, "--servers", names, "job", "get", "reports", "--by", "fair")[0] == DONE
    with Client(servers) as client:
        (job,) = client.running()
        client.later(job, ran=2.5)
    code, out, _ = run(capsys, "--servers", names, "sched", "group", "eva")
    assert (code, out) == (DONE, "eva: level 1, 2.500 s used, 2 jobs waiting, 0 running\n")
    code, found = ask(capsys, servers, "sched", "group", "eva")
    assert (found["level"], found["used_us"], found["waiting"]) == (1, 2_500_000, 2)
    code, out, _ = run(capsys, "--servers", names, "sched", "show")
    assert out.splitlines()[0].split() == ["level", "scheduled", "s", "share", "groups", "waiting", "chosen"]
    assert [line.split() for line in out.splitlines()[1:3]] == [
        ["0", "1.000", "40.0%", "1", "1"], ["1", "1.500", "60.0%", "1", "0"]]
    code, told = ask(capsys, servers, "sched", "show")
    assert [level["level"] for level in told["levels"]] == [0, 1, 2, 3, 4]
    assert run(capsys, "--servers", names, "sched", "group", "nobody")[0] == REFUSED


def test_settings_are_shown_and_changed(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, told = ask(capsys, servers, "sched", "config")
    assert (code, told["settings"]["levels"]) == (DONE, "0|1|10|60|300")
    levels = ("--level", "0", "--level", "2", "--level", "7")
    code, told = ask(capsys, servers, "sched", "config", *levels, "--cap", "60", "--multiplier", "4")
    assert told["settings"] == {"levels": "0|2|7", "cap": "60", "multiplier": "4", "group_keep": "600"}
    code, out, _ = run(capsys, "--servers", ",".join(servers), "sched", "config")
    assert ["multiplier", "4"] in [line.split() for line in out.splitlines()]
    for wrong in (("5",), ("0", "5", "5"), ("0",), ("1", "2")):
        options = [word for level in wrong for word in ("--level", level)]
        code, _, errors = run(capsys, "--servers", ",".join(servers), "sched", "config", *options)
        assert code == 64
        assert "from 0 upwards" in errors
    assert ask(capsys, servers, "sched", "config")[1] == told


def test_a_queue_can_be_fair_and_weighed(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    _, told = ask(capsys, servers, "queue", "create", "weighed", "--sched", "fair", "--weight", "7")
    assert (told["settings"]["sched"], told["settings"]["weight"]) == ("FAIR", "7")
    _, told = ask(capsys, servers, "queue", "config", "weighed", "--sched", "fifo")
    assert told["settings"]["sched"] == "FIFO"
