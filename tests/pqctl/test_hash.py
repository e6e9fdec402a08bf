"""`pqctl cluster hash`, and the one-line question it asks."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sockpq import ProtocolError, SockpqError, Unavailable

from bench.cluster import LocalCluster
from pqctl.exits import DONE, REFUSED, UNREACHED
from pqctl.hashes import Comparison
from pqctl.wire import cluster_hash
from tests.client.fake_server import FakeCluster
from tests.pqctl.running import ask, run


def test_real_nodes_are_equal(nodes: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = ask(capsys, nodes.servers[:1], "cluster", "hash")
    assert (code, told["equal"]) == (DONE, True)
    assert [node["name"] for node in told["nodes"]] == ["n1", "n2", "n3"]
    assert len({(node["applied"], node["hash"]) for node in told["nodes"]}) == 1
    _, out, _ = run(capsys, "--servers", nodes.servers[0], "cluster", "hash")
    assert out.startswith("equal at position ")


def test_a_node_that_is_missing_is_not_called_equal(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(server: str, timeout: float) -> tuple[int, str]:
        if server == cluster.addresses[2]:
            raise Unavailable("no")
        return 7, "aa"

    monkeypatch.setattr("pqctl.hashes.cluster_hash", answer)
    code, told = ask(capsys, cluster.addresses, "cluster", "hash")
    assert (code, told["equal"], len(told["nodes"])) == (UNREACHED, None, 2)
    _, out, _ = run(capsys, "--servers", cluster.addresses[0], "cluster", "hash")
    assert out.startswith("not all compared: n3 did not answer\n")


def test_nodes_that_differ_are_told_even_if_one_is_missing(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.servers[2].stop()
    answers = dict(zip(cluster.addresses, [(7, "aa"), (7, "bb")], strict=False))
    monkeypatch.setattr("pqctl.hashes.cluster_hash", lambda server, timeout: answers[server])
    code, told = ask(capsys, cluster.addresses, "cluster", "hash")
    assert (code, told["equal"]) == (REFUSED, False)
    assert [node["hash"] for node in told["nodes"]] == ["aa", "bb"]
    _, out, _ = run(capsys, "--servers", cluster.addresses[0], "cluster", "hash")
    assert out.startswith("DIFFERENT at position 7\n")


def test_positions_that_never_meet_are_not_called_equal(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "pqctl.hashes.cluster_hash", lambda server, timeout: (cluster.addresses.index(server), "aa"))
    code, told = ask(capsys, cluster.addresses, "cluster", "hash", "--timeout", "0.2")
    assert (code, told["equal"]) == (UNREACHED, None)


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


@contextmanager
def answering(data: bytes) -> Iterator[str]:
    """A server that gives every connection these bytes and closes it; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(100)
                connection.sendall(data)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def test_an_answer() -> None:
    with answering(b"200 OK 12 00ff\r\n") as server:
        assert cluster_hash(server, 5) == (12, "00ff")


@pytest.mark.parametrize(("data", "error"), [
    (b"", Unavailable), (b"200 OK 1", Unavailable), (b"200 OK x 00\r\n", ProtocolError), (b"200 OK\r\n", ProtocolError),
    (b"\xff\r\n", ProtocolError), (b"200 OK 1 2\n", ProtocolError), (b"400 Bad Command\r\n", SockpqError),
    (b"2" * 70_000, ProtocolError),
])
def test_what_is_no_answer(data: bytes, error: type[Exception]) -> None:
    with answering(data) as server, pytest.raises(error):
        cluster_hash(server, 5)


def test_a_server_that_is_silent_or_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(Unavailable, match="no answer within"):
            cluster_hash(server, 0.1)
    with pytest.raises(Unavailable):
        cluster_hash(server, 5)
