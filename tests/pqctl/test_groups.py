"""`pqctl group`, and the settings of queues that choose by groups, against real nodes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sockpq import Client, GroupConfig

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED
from tests.pqctl.running import ask, run


@pytest.fixture
def servers(nodes: LocalCluster) -> Iterator[list[str]]:
    yield nodes.servers
    with Client(nodes.servers) as client:
        client.queue_delete("reports", force=True)
        for group in client.groups():
            client.group_delete(group.name)


def told(capsys: pytest.CaptureFixture[str], servers: list[str], *arguments: str) -> str:
    """Return the output of a command that must succeed."""
    code, out, err = run(capsys, "--servers", ",".join(servers), *arguments)
    assert code == DONE, err
    return out


def test_a_group_is_limited_shown_and_paused(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    settings = ("--sched", "groups", "--group-limit", "5", "--group-rate", "100", "--group-per", "60")
    _, made = ask(capsys, servers, "queue", "create", "reports", *settings)
    assert {name: made["settings"][name] for name in ("sched", "group_limit", "group_rate")} == {
        "sched": "GROUPS", "group_limit": "5", "group_rate": "100 PER 60"}
    for group in ("anna", "anna", "bert"):
        told(capsys, servers, "job", "put", "reports", "x", "--group", group)
    change = ("--limit", "1", "--rate", "100", "--per", "0.5")
    assert ask(capsys, servers, "group", "config", "anna", *change)[1] == {
        "group": "anna",
        "settings": {"limit": 1, "rate": 100, "per": 0.5, "weight": 1, "paused": False, "pause_left": 0}}
    told(capsys, servers, "job", "get", "reports")
    assert told(capsys, servers, "group", "show", "anna") == (
        "anna: 1 job waiting, 1 running, 0.000 s used; limit 1, rate 100 per 0.5 s, weight 1; its limit is reached\n")
    assert told(capsys, servers, "group", "pause", "anna", "--for", "600") == "anna gets no jobs for 10 min\n"
    shown = told(capsys, servers, "group", "show", "anna")
    assert shown.endswith("; it is paused, 10 min more; its limit is reached\n")
    assert [line.split() for line in told(capsys, servers, "group", "list").splitlines()] == [
        ["group", "ready", "delayed", "running", "weight", "limit", "rate", "paused"],
        ["anna", "1", "0", "1", "1", "1", "100", "per", "0.5", "s", "10", "min"],
        ["bert", "1", "0", "0", "1", "-", "-", "-"],
    ]
    (listed,) = ask(capsys, servers, "group", "list", "an")[1]["groups"]
    assert (listed["name"], listed["running"], listed["rate"], listed["per"], listed["paused"]) == (
        "anna", 1, 100, 0.5, True)
    assert told(capsys, servers, "group", "resume", "anna") == "anna gets jobs\n"
    assert told(capsys, servers, "group", "pause", "anna") == "anna gets no jobs until `pqctl group resume anna`\n"
    shown = told(capsys, servers, "group", "config", "anna", "--limit", "0", "--rate", "0")
    assert [line.split() for line in shown.splitlines()[1:]] == [
        ["limit", "-"], ["rate", "-"], ["weight", "1"], ["paused", "yes"]]
    assert told(capsys, servers, "group", "delete", "anna") == "anna has no settings any more\n"
    assert told(capsys, servers, "group", "list", "nosuch") == "there is no group whose name begins with nosuch\n"
    with Client(servers) as client:
        assert client.group_config("anna") == GroupConfig(0, 0, 0, 1, False)


def test_a_group_that_nothing_holds_back_says_no_more(servers: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, servers, "queue", "create", "reports", "--sched", "fair")
    told(capsys, servers, "group", "pause", "dora")
    assert told(capsys, servers, "group", "show", "dora") == "dora: no limit, no rate, weight 1; it is paused\n"
    code, found = ask(capsys, servers, "group", "show", "dora")
    assert (code, found["paused"], found["waiting"], found["used_us"]) == (DONE, True, None, None)
    told(capsys, servers, "job", "put", "reports", "x", "--group", "carl")
    assert ask(capsys, servers, "group", "config", "dora", "--weight", "3")[1]["settings"]["weight"] == 3
    for by, shown in (("header:shop", "HEAD shop"), ("user", "USER"), ("off", None)):
        _, changed = ask(capsys, servers, "queue", "config", "reports", "--group-by", by)
        assert changed["settings"].get("group_by") == shown
    assert told(capsys, servers, "group", "show", "carl").endswith("; no limit, no rate, weight 1\n")
    code, _, err = run(capsys, "--servers", ",".join(servers), "group", "resume", "carl")
    assert code == REFUSED
    assert err == "group carl is neither paused nor asleep (`pqctl group list` shows those that are paused)\n"
