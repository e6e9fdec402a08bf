"""`pqctl pulse`, against real nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sockpq import Client

from devcluster.cluster import LocalCluster
from pqctl.output.exit_codes import DONE, REFUSED
from tests.pqctl.running import ask, run


def tell(capsys: pytest.CaptureFixture[str], servers: list[str], *arguments: str) -> Any:
    """What --json tells of a command that does what it should."""
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
    assert printed.count("now 7 of 7, pause 0 s, waiting 0, errors 1") == 2
    code, printed = run(capsys, "--servers", ",".join(servers), "pulse", "list")[:2]
    assert "7 per 0.5 s" in printed
    tell(capsys, servers, "queue", "config", "q", "--pulse", "ga")
    code, told = ask(capsys, servers, "pulse", "delete", "ga")
    assert (code, told["error"]) == (REFUSED, "refused")
    assert tell(capsys, servers, "queue", "config", "q", "--rate", "0", "--pulse", "")["settings"].get("pulse") is None
    told = tell(capsys, servers, "queue", "config", "q", "--rate", "3", "--per", "2")
    assert told["settings"]["rate"] == "3 PER 2"
    tell(capsys, servers, "queue", "delete", "q", "--force", "--yes")
    tell(capsys, servers, "pulse", "delete", "ga")
    assert tell(capsys, servers, "pulse", "list") == {"pulses": []}
