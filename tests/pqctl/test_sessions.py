"""`pqctl session list` and `close`, against real nodes."""

from __future__ import annotations

import pytest
from sockpq import Client

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.access import SESSION_SPARE_S, ClusterAccess
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED
from tests.pqctl.running import ask, execute, run
from tests.waiting import until


def test_sessions_are_listed_and_ended(nodes: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    with Client(nodes.servers, session_ttl=100) as client:
        client.put("q", b"x")
        code, told = ask(capsys, nodes.servers, "session", "list")
        assert code == DONE
        (session,) = [one for one in told["sessions"] if one["ttl"] == 100]
        assert (session["user"], session["address"], session["bound"]) == (None, "127.0.0.1", 0)
        assert 0 <= session["idle"] < 100
        number = str(session["number"])
        _, out, _ = run(capsys, "--servers", nodes.servers[0], "session", "list")
        assert [number, "-", "127.0.0.1", "100", "s"] in [line.split()[:5] for line in out.splitlines()]
        # Any server tells of them; only the leader ends one, and pqctl finds it.
        follower = next(name for name in ("n1", "n2", "n3") if name != nodes.leader())
        with Client(nodes.server(follower)) as alone:
            until(lambda: session["number"] in [one.number for one in alone.sessions(server=nodes.server(follower))],
                  "the follower never had the session")
        assert run(capsys, "--servers", nodes.server(follower), "session", "close", number) == (
            DONE, f"session {number} has ended\n", "",
        )
        assert run(capsys, "--servers", nodes.servers[0], "session", "close", number) == (
            REFUSED, "", f"there is no session {number} (`pqctl session list` shows all)\n",
        )
        assert ask(capsys, nodes.servers, "session", "close", number) == (
            REFUSED, {"number": int(number), "ended": False},
        )
        client.put("q", b"y")           # it has got another one
        assert client.total("q").jobs == 2
        client.queue_delete("q", force=True)
    assert run(capsys, "--servers", nodes.servers[0], "session", "close", "0")[0] == 64


def test_pqctl_leaves_no_session_and_a_killed_one_not_for_long(
    nodes: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    def sessions() -> dict[int, int]:
        return {one["number"]: one["ttl"] for one in ask(capsys, nodes.servers, "session", "list")[1]["sessions"]}

    before = sessions()
    for command in ("job put q x", "queue list", "job running", "job find q", "queue purge q all --yes", "config"):
        assert execute(nodes.servers, *command.split()).returncode in {DONE, REFUSED}, command
    until(lambda: sessions().keys() <= before.keys())       # the servers hear of the end when pqctl has gone
    with ClusterAccess().client(nodes.servers, timeout=20) as client:
        client.put("q", b"x")
        (ttl,) = (ttl for number, ttl in sessions().items() if number not in before)
        client.queue_delete("q", force=True)
    assert ttl == 20 + SESSION_SPARE_S
