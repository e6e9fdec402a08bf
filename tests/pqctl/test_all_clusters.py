"""`pqctl .. --all`: a command for each cluster of the map."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sockpq import Client, ClusterMap, MappedCluster

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, UNREACHED, USAGE_ERROR
from tests.pqctl.running import ask, run

NOBODY = "127.0.0.1:2"


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[str, str]]:
    """Two clusters of one node each, with a map: a, which is home, owns mail, and b owns film."""
    with LocalCluster(1) as a, LocalCluster(1) as b:
        servers = {"a": a.servers[0], "b": b.servers[0]}
        clients = {name: Client(server, follow_map=False) for name, server in servers.items()}
        clusters = {name: MappedCluster(str(client.cluster_id().id), (servers[name],))
                    for name, client in clients.items()}
        for client in clients.values():
            client.set_cluster_map(ClusterMap(1, clusters, {"film.": "b"}))
        clients["a"].put("mail", b"1")
        clients["b"].put("film.x", b"1")
        clients["b"].put("film.x", b"2")
        for client in clients.values():
            client.close()
        yield servers["a"], servers["b"]


@pytest.mark.parametrize("given", [0, 1])
def test_lists_are_of_each_cluster(pair: tuple[str, str], given: int, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = ask(capsys, [pair[given]], "queue", "list", "--all")
    assert (code, told["version"], list(told["clusters"])) == (DONE, 1, ["a", "b"])
    found = {name: [(queue["name"], queue["waiting"]) for queue in one["queues"]]
             for name, one in told["clusters"].items()}
    assert found == {"a": [("mail", 1)], "b": [("film.x", 2)]}
    code, out, err = run(capsys, "--servers", pair[given], "queue", "list", "--all")
    lines = [line.split() for line in out.splitlines()]
    assert (code, err, lines[0], lines[2][:2], lines[3], lines[4], lines[6][:2]) == (
        DONE, "", ["cluster", "a", "(home)"], ["mail", "1"], [], ["cluster", "b"], ["film.x", "2"])


def test_totals_are_added_up(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    code, told = ask(capsys, pair[:1], "queue", "stat", "--all")
    assert (code, told["together"]) == (DONE, {"waiting": 3, "running": 0, "queues": 2})
    assert [one["waiting"] for one in told["clusters"].values()] == [1, 2]
    _, out, _ = run(capsys, "--servers", pair[0], "queue", "stat", "--all")
    assert out.splitlines()[-1] == "together: 3 jobs waiting, 0 running; 2 queues"


def test_one_queue_is_looked_for_in_each(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--servers", pair[0], "queue", "stat", "film.x", "--all")
    assert (code, err.startswith("a: ")) == (REFUSED, True)
    assert out.splitlines()[-1] == "together: 2 jobs waiting, 0 running; 1 queue"


def test_status_and_doctor_look_at_each(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    _, told = ask(capsys, pair[:1], "cluster", "status", "--all")
    assert [one["serving"] for one in told["clusters"].values()] == [True, True]
    assert len({one["cluster"] for one in told["clusters"].values()}) == 2
    _, told = ask(capsys, pair[:1], "doctor", "--all")
    assert [one["checks"][0]["state"] for one in told["clusters"].values()] == ["OK", "OK"]


def test_a_backup_has_a_file_for_each(
    pair: tuple[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for _ in range(2):          # --keep counts the files of each cluster
        code, told = ask(capsys, pair[:1], "backup", str(tmp_path), "--keep", "1", "--all")
        assert code == DONE
    files = [one["file"] for one in told["clusters"].values()]
    assert sorted(files) == sorted(str(path) for path in tmp_path.iterdir())
    assert len({one["cluster"] for one in told["clusters"].values()}) == 2
    for file in files:
        assert run(capsys, "verify", file)[0] == DONE


def test_every_list_can_be_of_each(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("topic list", "item list", "group list", "pulse list", "session list", "worker list", "job running",
                    "user list"):
        _, told = ask(capsys, pair[:1], *command.split(), "--all")
        assert list(told["clusters"]) == ["a", "b"], command
        assert all("error" not in one for one in told["clusters"].values()), (command, told)


@pytest.mark.parametrize("words", [
    ("cluster", "status", "--watch"), ("backup", ".", "--node", "n1"), ("doctor", "--data-dir", "."),
])
def test_what_is_for_one_cluster_is_refused(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--servers", NOBODY, *words, "--all")
    assert (code, out, "is for one cluster: leave out --all" in err) == (USAGE_ERROR, "", True)


def test_without_a_map_it_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with LocalCluster(1) as alone:
        code, _, err = run(capsys, "--servers", alone.servers[0], "queue", "list", "--all")
    assert (code, err) == (
        REFUSED, "there is no map of clusters, so leave out --all; `pqctl map init NAME` makes a map\n")


def test_a_cluster_that_is_down_does_not_hide_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    with LocalCluster(1) as up:
        server = up.servers[0]
        with Client(server, follow_map=False) as client:
            own = str(client.cluster_id().id)
            clusters = {"down": MappedCluster("0" * 16, (NOBODY,)), "up": MappedCluster(own, (server,)),
                        "wrong": MappedCluster("1" * 16, (server,)),
                        "twice": MappedCluster("2" * 16, (server, server.replace("127.0.0.1", "localhost")))}
            client.set_cluster_map(ClusterMap(1, clusters))
        code, out, err = run(capsys, "--servers", server, "queue", "list", "--all", "--json")
        found = json.loads(out)["clusters"]
        assert (code, found["down"]["error"], found["up"], found["wrong"]["error"]) == (
            UNREACHED, "unreached", {"queues": []}, "refused")
        assert err.splitlines()[-2:] == [
            f"wrong: {server} belongs to another cluster than the map says: `pqctl map add wrong SERVERS` corrects it",
            f"twice: {server}, {server.replace('127.0.0.1', 'localhost')} belong to another cluster than the map says: "
            "`pqctl map add twice SERVERS` corrects it",
        ]
        assert run(capsys, "--servers", server, "queue", "stat", "--all")[0] == UNREACHED
        _, told = ask(capsys, [server], "cluster", "status", "--all")
        assert [told["clusters"][name].get("serving") for name in clusters] == [False, True, None, None]
