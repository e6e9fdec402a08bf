"""`pqctl cluster hash`."""

from __future__ import annotations

import pytest
from sockpq import Client, StateHash, Unavailable

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.actions.hashes import Comparison
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, UNREACHED
from tests.client.faults import Fault
from tests.client.memory_cluster import MemoryCluster
from tests.pqctl.running import ask, run


def test_real_nodes_are_equal(nodes: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = ask(capsys, nodes.servers[:1], "cluster", "hash")
    assert (code, told["equal"]) == (DONE, True)
    assert [node["name"] for node in told["nodes"]] == ["n1", "n2", "n3"]
    assert len({(node["applied"], node["hash"]) for node in told["nodes"]}) == 1
    _, out, _ = run(capsys, "--servers", nodes.servers[0], "cluster", "hash")
    assert out.startswith("equal at position ")


def test_a_node_that_is_missing_is_not_called_equal(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(client: Client, server: str, *, timeout: float) -> StateHash:
        if server == cluster.addresses[2]:
            raise Unavailable("no")
        return StateHash(7, "aa")

    monkeypatch.setattr(Client, "cluster_hash", answer)
    code, told = ask(capsys, cluster.addresses, "cluster", "hash")
    assert (code, told["equal"], len(told["nodes"])) == (UNREACHED, None, 2)
    _, out, _ = run(capsys, "--servers", cluster.addresses[0], "cluster", "hash")
    assert out.startswith("not all compared: n3 did not answer\n")


def test_nodes_that_differ_are_told_even_if_one_is_missing(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.servers[2].stop()
    answers = dict(zip(cluster.addresses, [StateHash(7, "aa"), StateHash(7, "bb")], strict=False))
    monkeypatch.setattr(Client, "cluster_hash", lambda client, server, *, timeout: answers[server])
    code, told = ask(capsys, cluster.addresses, "cluster", "hash")
    assert (code, told["equal"]) == (REFUSED, False)
    assert [node["hash"] for node in told["nodes"]] == ["aa", "bb"]
    _, out, _ = run(capsys, "--servers", cluster.addresses[0], "cluster", "hash")
    assert out.startswith("DIFFERENT at position 7\n")


def test_positions_that_never_meet_are_not_called_equal(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Client, "cluster_hash", lambda client, server, *, timeout: StateHash(
        cluster.addresses.index(server), "aa"))
    code, told = ask(capsys, cluster.addresses, "cluster", "hash", "--timeout", "0.2")
    assert (code, told["equal"]) == (UNREACHED, None)


def test_rubbish_and_silence_are_missing_answers(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.servers[0].fail("CLUSTER", None, *[Fault.RUBBISH] * 50)
    cluster.servers[1].fail("CLUSTER", None, *[Fault.STALL] * 50)
    code, told = ask(capsys, cluster.addresses, "cluster", "hash", "--timeout", "0.3")
    assert (code, told["equal"], [node["name"] for node in told["nodes"]]) == (UNREACHED, None, ["n3"])


def test_answers_of_different_moments_are_compared_at_the_same_position() -> None:
    comparison = Comparison()
    comparison.add("n1", 1, "a")
    comparison.add("n2", 2, "b")
    assert comparison.common(["n1", "n2"]) is None
    comparison.add("n1", 2, "b")
    comparison.add("n2", 3, "c")
    assert comparison.common(["n1", "n2"]) == 2
    assert comparison.different is None
    assert comparison.rows(2) == [("n1", 2, "b"), ("n2", 2, "b")]
    comparison.add("n1", 3, "x")
    assert comparison.different == 3
