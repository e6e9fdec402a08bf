"""`pqctl pulse`, against real nodes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from sockpq import Client

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, USAGE_ERROR
from sockpqd.pqctl.parameters import local_time
from tests.pqctl.running import ask, run


def tell(capsys: pytest.CaptureFixture[str], servers: list[str], *arguments: str) -> Any:
    """Return the --json output of a command that must succeed."""
    code, told = ask(capsys, servers, *arguments)
    assert code == DONE, told
    return told


def test_a_pulse_from_its_making_to_its_end(
    nodes: LocalCluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    servers = nodes.servers
    assert tell(capsys, servers, "pulse", "create", "ga", "--rate", "5", "--per", "0.5", "--step", "0.25") == {
        "pulse": "ga",
    }
    code, told = ask(capsys, servers, "pulse", "create", "ga")
    assert (code, told["error"]) == (REFUSED, "refused")
    with Client(servers) as client, client.pulse("ga").turn() as turn:
        turn.slow()
    (told,) = tell(capsys, servers, "pulse", "list")["pulses"]
    assert (told["name"], told["rate"], told["per"], told["granted"], told["errors"]) == ("ga", 5, 0.5, 1, 1)
    tell(capsys, servers, "pulse", "config", "ga", "--rate", "7", "--max-run", "3")
    told = tell(capsys, servers, "pulse", "stat", "ga")
    assert (told["rate"], told["now"], told["maxrun"], told["step"]) == (7, 7, 3, 0.25)
    (tmp_path / "payload").write_bytes(b"pause")
    told = tell(capsys, servers, "pulse", "set", "ga", "--file", str(tmp_path / "payload"), "--deny")
    assert told == {"pulse": "ga", "bytes": 5, "deny": True}
    code, printed = run(capsys, "--servers", ",".join(servers), "pulse", "watch", "ga", "--lines", "2")[:2]
    assert code == DONE
    assert printed.count("now 7 of 7, pause 0 s, waiting 0, errors 1, denied") == 2
    code, printed = run(capsys, "--servers", ",".join(servers), "pulse", "list")[:2]
    assert re.search(r"7 per 0.5 s +denied ", printed), printed
    tell(capsys, servers, "queue", "config", "q", "--pulse", "ga")
    code, told = ask(capsys, servers, "pulse", "delete", "ga")
    assert (code, told["error"]) == (REFUSED, "refused")
    assert tell(capsys, servers, "queue", "config", "q", "--rate", "0", "--pulse", "")["settings"].get("pulse") is None
    told = tell(capsys, servers, "queue", "config", "q", "--rate", "3", "--per", "2")
    assert told["settings"]["rate"] == "3 PER 2"
    tell(capsys, servers, "queue", "delete", "q", "--force", "--yes")
    tell(capsys, servers, "pulse", "delete", "ga")
    assert tell(capsys, servers, "pulse", "list") == {"pulses": []}


def test_refusals_say_what_to_do_instead(nodes: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    servers = ",".join(nodes.servers)

    def refused(*arguments: str) -> tuple[int, str]:
        code, _, error = run(capsys, "--servers", servers, *arguments)
        return code, error
    for arguments in (["pulse", "create", "ga"], ["queue", "config", "q", "--pulse", "ga"],
                      ["queue", "config", "r", "--rate", "5", "--per", "1"]):
        assert run(capsys, "--servers", servers, *arguments)[0] == DONE
    for command in ("create", "config"):
        code, error = refused("pulse", command, "ga", "--max-wait", "3")
        assert (code, "--max-wait is for a pulse with --together" in error) == (USAGE_ERROR, True), error
    code, error = refused("pulse", "config", "queue:r", "--rate", "3")
    assert (code, "`pqctl queue config r --rate N --per SECONDS`" in error) == (USAGE_ERROR, True), error
    code, error = refused("pulse", "delete", "queue:r")
    assert (code, "`pqctl queue config r --rate 0`" in error) == (REFUSED, True), error
    code, error = refused("pulse", "delete", "ga")
    assert (code, "`pqctl queue config QUEUE --pulse ''`" in error) == (REFUSED, True), error
    assert run(capsys, "--servers", servers, "queue", "delete", "q", "--yes")[0] == DONE
    assert run(capsys, "--servers", servers, "queue", "delete", "r", "--yes")[0] == DONE
    assert run(capsys, "--servers", servers, "pulse", "delete", "ga")[0] == DONE


def test_a_sleeping_pulse_says_until_when(nodes: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    servers = ",".join(nodes.servers)
    with Client(nodes.servers) as client:
        client.pulse_create("ga")
        awake = run(capsys, "--servers", servers, "pulse", "stat", "ga")[1]
        shown = dict(re.split("  +", line.strip(), maxsplit=1) for line in awake.splitlines())
        assert (shown["rate"], shown["asleep until"], shown["denied"]) == ("10 per 1 s", "-", "no")
        assert (shown["longest pause"], shown["result within"]) == ("300 s", "7 s")
        with client.pulse("ga").turn() as turn:
            turn.sleep(3600)
        until = local_time(int(client.pulse_stat("ga")["sleepuntil"] or 0))
        for arguments in (["stat", "ga"], ["list"], ["watch", "ga", "--lines", "1"]):
            assert until in run(capsys, "--servers", servers, "pulse", *arguments)[1]
        printed = run(capsys, "--servers", servers, "pulse", "watch", "ga", "--lines", "2", "--json")[1]
        assert [json.loads(line)["errors"] for line in printed.splitlines()] == [1, 1]
        client.pulse_delete("ga")
