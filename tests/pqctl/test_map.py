"""`pqctl map` against two real clusters. tests/pqctl/test_map_steps.py kills it at every step."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from sockpq import Client, Elsewhere
from sockpq.names import NAME_MAX

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, UNREACHED
from tests.pqctl.running import ask, execute, run
from tests.waiting import until


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[str, str]]:
    """Two clusters of one node each, used as one: a, which is home, and b."""
    with LocalCluster(1) as a, LocalCluster(1) as b:
        yield a.servers[0], b.servers[0]


def told(capsys: pytest.CaptureFixture[str], server: str, *arguments: str) -> str:
    """Return the output of a command that must succeed."""
    code, out, err = run(capsys, "--servers", server, *arguments)
    assert code == DONE, err
    return out


@pytest.fixture
def mapped(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    a, b = pair
    told(capsys, a, "map", "init", "a")
    told(capsys, a, "map", "add", "b", b)
    return pair


def test_without_a_map_it_is_said_how_to_make_one(capsys: pytest.CaptureFixture[str]) -> None:
    with LocalCluster(1) as cluster:
        server = cluster.servers[0]
        assert "`pqctl map init NAME` makes one" in told(capsys, server, "map", "show")
        code, _, err = run(capsys, "--servers", server, "map", "move", "video.", "b")
        assert (code, "`pqctl map init NAME` makes one" in err) == (REFUSED, True)
        told(capsys, server, "map", "init", "main")
        assert told(capsys, server, "map", "init", "main").startswith("main is home and owns all names;")
        code, _, err = run(capsys, "--servers", server, "map", "init", "other")
        assert (code, err) == (REFUSED, "there is a map already, with main as home: `pqctl map show`\n")


def test_names_are_assigned_and_shown(mapped: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    a, b = mapped
    assert told(capsys, b, "map", "assign", "film.", "b").startswith("b owns film.*, by version ")
    _, shown = ask(capsys, [a], "map", "show")
    assert (shown["home"], shown["rules"], list(shown["clusters"])) == ("a", {"film.": "b"}, ["a", "b"])
    lines = [line.split() for line in told(capsys, b, "map", "show").splitlines()]
    assert lines[0] == ["version", str(shown["version"])]
    assert lines[2] == ["a", shown["clusters"]["a"]["id"], a, "what", "no", "line", "below", "has"]
    assert lines[-1] == ["film.*", "b"]
    assert f"CLUSTER b {shown['clusters']['b']['id']} {b}\nRULE film. b\n" in told(capsys, a, "map", "show", "--text")
    with Client(a, follow_map=False) as client, pytest.raises(Elsewhere):
        client.put("film.in", b"1")
    with Client(b, follow_map=False) as client, pytest.raises(Elsewhere):
        client.put("mail", b"1")
    code, _, err = run(capsys, "--servers", a, "job", "put", "film.in", "x")
    assert (code, err) == (REFUSED, "refused: 409 Elsewhere b (b owns the name: `pqctl map show` has its servers, for "
                                    "--servers)\n")
    assert told(capsys, a, "map", "check").startswith("2 clusters with version ")
    told(capsys, a, "map", "assign", "film.", "a")
    assert ask(capsys, [b], "map", "show")[1]["rules"] == {}       # home owns it without a rule


def test_names_with_jobs_are_moved_and_not_assigned(
    mapped: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = mapped
    with Client(a, follow_map=False) as client:
        client.put("video.in", b"1")
        client.put("video.in", b"2", delay=3600, key="later")
        code, _, err = run(capsys, "--servers", a, "map", "assign", "video.", "b")
        assert (code, err) == (REFUSED, "a has 2 jobs (1 ready, 1 delayed): `pqctl map move video. b` has them worked "
                                        "off; nothing was changed\n")
        code, _, err = run(capsys, "--servers", a, "map", "move", "video.", "b", "--wait", "0")
        assert (code, err.splitlines()[-1]) == (
            REFUSED, "a has 2 jobs (1 ready, 1 delayed) after 0 s: run this again to wait on")
        code, found = ask(capsys, [b], "map", "check")
        assert (code, found["findings"]) == (
            REFUSED, ["video.* is moving from a to b: `pqctl map move video. b` waits for the last jobs"])
        with pytest.raises(Elsewhere):
            client.put("video.in", b"3")
        results = []
        waiting = threading.Thread(target=lambda: results.append(execute([a], "map", "move", "video.", "b")))
        waiting.start()
        client.get("video.in").done()
        client.delete(client.peek_queue("video.in", "delayed", places=True)[0].place)
        waiting.join()
        (moved,) = results
        assert moved.stdout.startswith(b"b owns video.*, by version "), moved.stderr
    assert ask(capsys, [a], "map", "show")[1]["rules"] == {"video.": "b"}
    told(capsys, a, "map", "move", "video.", "a")


def test_a_move_that_waits_hears_of_another_operator(
    mapped: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = mapped
    with Client(a, follow_map=False) as first, Client(b, follow_map=False) as second:
        first.put("crossed.in", b"1")
        results = []
        waiting = threading.Thread(target=lambda: results.append(execute([a], "map", "move", "crossed.", "b")))
        waiting.start()
        until(lambda: "crossed." in second.cluster_map().moving)
        known = second.cluster_map()
        rules, moving = {**known.rules, "crossed.": None}, {**known.moving}
        del moving["crossed."]
        for client in (first, second):      # as a pqctl that is killed before its second version
            client.set_cluster_map(known._replace(version=known.version + 1, rules=rules, moving=moving))
        waiting.join()
        (moved,) = results
        assert moved.returncode == REFUSED
        assert moved.stderr.decode().splitlines()[-1] == (
            f"the map was changed meanwhile, a has version {known.version + 1}: look at `pqctl map show`, and run this "
            "again if it is still to be done")
        first.get("crossed.in").done()
    assert told(capsys, a, "map", "move", "crossed.", "b").startswith("b owns crossed.*, by version ")
    told(capsys, a, "map", "move", "crossed.", "a")


def test_jobs_that_no_worker_ends_are_named(mapped: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    a, _ = mapped
    with Client(a, follow_map=False) as client:
        client.queue_create("cron.x", tries=1)
        client.put("cron.x", b"dead")
        client.get("cron.x", expire=60).later()
        client.put("cron.x", b"buried")
        client.bury(client.get("cron.x", expire=60), here=True)
        client.put("cron.x", b"periodic", every=3600, delay=3600)
        _, _, err = run(capsys, "--servers", a, "map", "move", "cron.", "b", "--wait", "0")
        for sentence in (
            f"  cron.x has 1 delayed job, of which those of EVERY never end: `pqctl job find cron.x --state delayed "
            f"--servers {a}` shows them, `pqctl queue purge cron.x delayed --servers {a}` removes them",
            f"  cron.x has 1 buried job: `pqctl job kick cron.x 1 --here --servers {a}` has them tried again, "
            f"`pqctl queue purge cron.x buried --servers {a}` removes them",
            f"  cron.x_dead has 1 dead job: `pqctl job kick cron.x 1 --servers {a}` has them tried again, "
            f"`pqctl queue purge cron.x_dead ready --servers {a}` removes them",
        ):
            assert sentence in err.splitlines()
        for words in (("cron.x", "delayed"), ("cron.x", "buried"), ("cron.x_dead", "ready")):
            told(capsys, a, "queue", "purge", *words, "--yes")
        told(capsys, a, "map", "move", "cron.", "b")
        told(capsys, a, "map", "move", "cron.", "a")


def test_a_queue_is_spread_and_gathered(mapped: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    a, b = mapped
    assert told(capsys, a, "map", "spread", "thumbs").startswith("thumbs is accepted by every cluster, by version ")
    with Client(a, follow_map=False) as home, Client(b, follow_map=False) as other:
        home.put("thumbs", b"1")
        other.put("thumbs", b"2")
        code, _, err = run(capsys, "--servers", a, "map", "remove", "b")
        assert (code, err) == (
            REFUSED, "b has 1 job (1 ready), in thumbs: `pqctl map spread thumbs --off` has them worked off\n")
        other.get("thumbs").bury()
        assert run(capsys, "--servers", a, "map", "remove", "b")[2] == (
            "b has 1 job (1 ready), in thumbs_dead: `pqctl map spread thumbs --off` has them worked off\n")
        other.kick("thumbs", 1)
        assert run(capsys, "--servers", a, "map", "spread", "thumbs", "--off", "--wait", "0")[0] == REFUSED
        with pytest.raises(Elsewhere):
            other.put("thumbs", b"3")
        assert [line.split() for line in told(capsys, a, "map", "show").splitlines()[-1:]] == [
            ["thumbs*", "a", "moving,", "jobs", "are", "left", "at", "b"]]
        other.get("thumbs").done()
        told(capsys, a, "map", "spread", "thumbs", "--off")
        home.get("thumbs").done()


def test_dead_letters_of_a_spread_queue_are_in_place(
    mapped: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Also under a name that is cut, for which the map has no line."""
    a, b = mapped
    for queue in ("thumbs", "t" * NAME_MAX):
        told(capsys, a, "map", "spread", queue)
        with Client(b, follow_map=False) as other:
            other.put(queue, b"1")
            other.get(queue).bury()
            assert told(capsys, a, "map", "check").startswith("2 clusters with version ")
            other.kick(queue, 1)
            other.get(queue).done()
        told(capsys, a, "map", "spread", queue, "--off")


def test_what_lies_elsewhere_is_found(mapped: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    a, b = mapped
    told(capsys, a, "map", "spread", "lost")
    with Client(a, follow_map=False) as home, Client(b, follow_map=False) as other:
        other.put("lost", b"1", item="album")
        home.put("lost", b"2", item="album")
        known = home.cluster_map()
        without = known._replace(version=known.version + 1, spread=frozenset())
        home.set_cluster_map(without)
        code, found = ask(capsys, [a], "map", "check")
        assert (code, found["findings"]) == (REFUSED, [
            f"b has version {known.version} of the map, home {without.version}: `pqctl map add b {b}` brings it there",
            f"b has jobs in lost, which a owns: `pqctl map move lost a` has them worked off, `pqctl queue stat lost "
            f"--servers {b}` counts them",
            "1 item has jobs in several clusters, and ends in each: album (a, b)",
        ])
        told(capsys, a, "map", "add", "b", b)
        assert other.cluster_map() == without
        other.get("lost").done()
        home.get("lost").done()
    assert told(capsys, a, "map", "check").startswith("2 clusters with version ")


def test_a_cluster_is_removed_and_comes_back(mapped: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    a, b = mapped
    told(capsys, a, "map", "assign", "film.", "b")
    for name, reason in (
        ("a", "a is home, which owns all names that no rule has: it stays in the map"),
        ("b", "b owns film.* by the map: `pqctl map move film. CLUSTER` gives names to another"),
    ):
        assert run(capsys, "--servers", a, "map", "remove", name)[::2] == (REFUSED, f"{reason}\n")
    told(capsys, a, "map", "assign", "film.", "a")
    assert told(capsys, a, "map", "remove", "b").startswith("b is removed from the map, version ")
    assert told(capsys, a, "map", "remove", "b").startswith("b is not in the map, version ")
    with Client(b, follow_map=False) as client, pytest.raises(Elsewhere):
        client.put("film.in", b"1")
    told(capsys, a, "map", "add", "b", b)


def test_a_cluster_that_is_down_is_not_forgotten(mapped: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    a, _ = mapped
    with LocalCluster(1) as c:
        told(capsys, a, "map", "add", "c", c.servers[0])
        told(capsys, a, "map", "assign", "gone.", "c")
    code, _, err = run(capsys, "--servers", a, "map", "assign", "film.", "b", "--timeout", "0.5")
    assert (code, err.startswith("the cluster c does not answer: ")) == (UNREACHED, True)
    code, found = ask(capsys, [a], "map", "check", "--timeout", "0.5")
    assert (code, [finding[:31] for finding in found["findings"]]) == (REFUSED, ["the cluster c does not answer: "])
    told(capsys, a, "map", "remove", "c", "--it-is-gone", "--yes")
    with Client(a, follow_map=False) as client:
        until(lambda: client.cluster_id().name == "a")
        client.put("gone.in", b"1")
        client.get("gone.in").done()


def test_the_wrong_cluster_is_not_added(mapped: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    a, b = mapped
    for name, server, reason in (
        ("c", b, "the map has this cluster already, as b"), ("b", a, f"{a} belongs to the cluster "),
    ):
        code, _, err = run(capsys, "--servers", a, "map", "add", name, server)
        assert (code, err.startswith(reason)) == (REFUSED, True), err
    with LocalCluster(1) as other:
        told(capsys, other.servers[0], "map", "init", "x")
        code, _, err = run(capsys, "--servers", a, "map", "add", "c", other.servers[0])
        assert (code, err) == (
            REFUSED, f"{other.servers[0]} belongs to another map, with the cluster x as home\n")
