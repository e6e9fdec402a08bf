"""`pqctl region` between real clusters."""

from __future__ import annotations

import pytest
from sockpq import Client

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, UNREACHED
from tests.pqctl.running import ask, run
from tests.waiting import PATIENCE_S, until


def test_a_copy_is_compared_promoted_and_its_origin_fenced(capsys: pytest.CaptureFixture[str]) -> None:
    with (
        LocalCluster(1) as origin,
        LocalCluster(1, {"replica": {"of": ",".join(origin.servers)}}) as replica,
    ):
        there = ",".join(origin.servers)
        with Client(origin.servers) as client:
            for number in range(20):
                client.put("q", str(number))
            index = client.cluster_hash(origin.servers[0]).applied

        def come_to() -> bool:
            """Return whether `region status` says that the copy has come to the origin's position."""
            _, told = ask(capsys, replica.servers, "region", "status", there)
            return told["nodes"] == [{"name": "n1", "applied": told["origin"], "behind": 0}] and told["origin"] >= index

        until(come_to, "the copy does not come to the position of its origin")
        code, told = ask(capsys, replica.servers, "region", "diff", there, "--timeout", str(PATIENCE_S))
        assert (code, told["equal"]) == (DONE, True)

        promotion = ("region", "promote", "--yes", "--fence", there, "--timeout", str(PATIENCE_S))
        code, _, errors = run(capsys, "--servers", replica.servers[0], *promotion)
        assert code == REFUSED
        with Client(replica.servers) as client:
            replica_id = client.cluster_id().id
        assert f'replica = "{replica_id}"' in errors
        origin.terminate("n1")
        code, _, errors = run(capsys, "--servers", replica.servers[0], *promotion[:-1], "15")
        assert code == UNREACHED
        assert "nothing was promoted" in errors

        config = origin.config_file("n1")
        config.write_text(f'{config.read_text()}\n[feed]\nreplica = "{replica_id}"\n')
        origin.restart("n1")
        origin.wait_for_leader(PATIENCE_S)
        with Client(origin.servers, timeout=PATIENCE_S) as client:
            client.put("q", "last")
        code, told = ask(capsys, replica.servers, *promotion)
        assert (code, told["fenced"]) == (DONE, True)
        assert origin.say("n1", "PUT q 0 0", PATIENCE_S) == "500 Offline Mode"
        with Client(replica.servers, timeout=PATIENCE_S) as client:
            assert [job.text for job in client.get_many(100, "q", expire=3600)] == [*map(str, range(20)), "last"]
        code, _, errors = run(capsys, "--servers", replica.servers[0], "region", "promote", "--yes")
        assert (code, "No Replica" in errors) == (REFUSED, True)


def test_nothing_is_promoted_without_a_question(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, errors = run(capsys, "--servers", "127.0.0.1:1", "region", "promote")
    assert code == 64
    assert "--yes" in errors
