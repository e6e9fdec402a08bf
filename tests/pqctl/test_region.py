"""`pqctl region` between real clusters."""

from __future__ import annotations

import socket
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sockpq import (
    AuthError,
    Client,
    ForbiddenError,
    OutcomeUnknown,
    Refused,
    ReplicaStatus,
    ServerView,
    SockpqError,
    Unavailable,
    Untrusted,
)

from devcluster.cluster import LocalCluster
from sockpqd.gateway.limits import FEEDS_MAX
from sockpqd.pqctl import connect, replicas
from sockpqd.pqctl.access import ClusterAccess
from sockpqd.pqctl.actions.regions import compare, drill_node, following
from sockpqd.pqctl.actions.regions import promote as promotion
from sockpqd.pqctl.actions.regions.origin import OriginAccess, origin_of
from sockpqd.pqctl.doctor.check import FAIL, OK, SKIP, WARN, Check
from sockpqd.pqctl.doctor.region_checks import judge
from sockpqd.pqctl.health import Health
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import (
    DONE,
    FILE_ERROR,
    NOT_ALLOWED,
    REFUSED,
    UNKNOWN,
    UNREACHED,
    USAGE_ERROR,
    Failure,
)
from sockpqd.pqctl.report import headline
from sockpqd.pqctl.settings import Options
from tests.pqctl.running import ask, run
from tests.system.load import Producer
from tests.waiting import PATIENCE_S, until


def test_a_copy_is_compared_promoted_and_its_origin_fenced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
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
            level = told["nodes"] == [{"name": "n1", "applied": told["origin"], "behind": 0}]
            return level and told["origin"] >= index and told["phase"] == "following" and told["problem"] is None

        until(come_to, "the copy does not come to the position of its origin")
        code, told = ask(capsys, replica.servers, "region", "diff", there, "--timeout", str(PATIENCE_S))
        assert (code, told["equal"]) == (DONE, True)

        def says_so() -> bool:
            """Return whether `cluster status` says of which cluster it is a copy, and that it follows."""
            code, told = ask(capsys, replica.servers, "cluster", "status", *PATIENT)
            _, out, _ = run(capsys, "--servers", replica.servers[0], "cluster", "status", *PATIENT)
            assert told["serving"] is False
            assert out.startswith(f"A COPY, answers reads only: of the cluster {told['copy']['of']}; n1 ")
            return (code, told["copy"]["follows"]) == (DONE, True) and "; n1 follows " in out

        until(says_so, "the copy is not said to follow")
        for line in (("diff", there), ("status", there), ("promote", "--yes", "--fence", there)):
            code, _, errors = run(capsys, "--servers", there, "region", *line, *PATIENT)
            assert (code != DONE, "no copy of another one" in errors) == (True, True), errors
            code, _, errors = run(
                capsys, "--servers", replica.servers[0], "region", *line[:-1], replica.servers[0], *PATIENT)
            assert (code != DONE, "both are the same cluster" in errors) == (True, True), errors
        code, told = ask(capsys, origin.servers, "backup", str(tmp_path), *PATIENT)
        assert code == DONE
        code, _, errors = run(capsys, "--servers", replica.servers[0], "restore", told["file"], "--yes", *PATIENT)
        assert (code, "this cluster is a copy of the cluster " in errors) == (UNREACHED, True)

        promotion = ("region", "promote", "--yes", "--fence", there, "--timeout", str(PATIENCE_S))
        code, _, errors = run(capsys, "--servers", replica.servers[0], *promotion)
        assert code == REFUSED
        with Client(replica.servers) as client:
            replica_id = client.cluster_id().id
        assert f'replica = "{replica_id}"' in errors
        assert "each node must have been restarted" in errors
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
        assert (code, "it was promoted" in errors) == (REFUSED, True)
        code, _, errors = run(capsys, "--servers", replica.servers[0], *promotion)
        assert (code, "it was promoted" in errors) == (REFUSED, True)
        for command, expected in (("status", REFUSED), ("diff", UNREACHED)):
            code, _, errors = run(capsys, "--servers", replica.servers[0], "region", command, there)
            assert (code, "each cluster has a log of its own" in errors) == (expected, True)

        for line in (("job", "put", "q", "data"), ("cluster", "online"), ("region", "follow")):
            code, _, errors = run(capsys, "--servers", there, *line)
            assert (code != DONE, f"the cluster {replica_id}, takes its place" in errors) == (True, True), errors
        code, told = ask(capsys, origin.servers, "cluster", "status", *PATIENT)
        assert (code, told["fenced_for"]) == (2, replica_id)
        _, out, _ = run(capsys, "--servers", there, "cluster", "status", *PATIENT)
        assert out.startswith("NOT SERVING: FENCED, ")

        config = replica.config_file("n1")      # a promoted node needs the files of [replica] no longer
        text = config.read_text()
        assert text.count("[replica]\n") == 1
        config.write_text(text.replace("[replica]\n", '[replica]\nuser = "copy"\nsecret_file = "/gone"\n'))
        replica.terminate("n1")
        replica.restart("n1")
        replica.wait_for_leader(PATIENCE_S)
        with Client(replica.servers, timeout=PATIENCE_S) as client:
            client.put("q", "still served")


PATIENT = ("--timeout", str(PATIENCE_S))


def found(told: dict[str, Any]) -> dict[str, str]:
    """Return the state of each check."""
    return {check["name"]: check["state"] for check in told["checks"]}


def test_a_copy_is_stopped_and_follows_again(capsys: pytest.CaptureFixture[str]) -> None:
    with (
        LocalCluster(1) as origin,
        LocalCluster(1, {"replica": {"of": ",".join(origin.servers)}}) as replica,
        Client(origin.servers, timeout=PATIENCE_S) as client,
    ):
        there = ",".join(origin.servers)

        def follows() -> bool:
            """Return whether all is well with the copy."""
            _, told = ask(capsys, replica.servers, "doctor", *PATIENT)
            return found(told).get("region") == OK

        until(follows, "the copy does not follow")
        code, told = ask(capsys, replica.servers, "region", "follow", there, *PATIENT)
        assert (code, found(told)) == (DONE, dict.fromkeys(("origin", "feed", "level", "replica"), OK))

        code, told = ask(capsys, replica.servers, "region", "stop", "--yes", *PATIENT)
        assert code == DONE
        with Client(replica.servers, timeout=PATIENCE_S) as copy:
            until(lambda: (now := copy.cluster_replica(replica.servers[0])) is not None and now.server is None,
                  "it still follows")
            stopped_at = copy.cluster_hash(replica.servers[0]).applied
        client.put("q", "later")
        replica.kill("n1")
        replica.restart("n1")
        replica.wait_until(
            lambda views: any(node.role == "LEADER" for view in views for node in view.nodes), "a leader")
        with Client(replica.servers, timeout=PATIENCE_S) as copy:
            assert copy.cluster_hash(replica.servers[0]).applied == stopped_at
        code, told = ask(capsys, replica.servers, "doctor", *PATIENT)
        assert code == 1                        # a warning: somebody wanted it so
        assert {name: state for name, state in found(told).items() if state != OK} == {
            "leader": SKIP, "online": SKIP, "region": WARN, "this machine": SKIP, "clocks": SKIP}
        code, told = ask(capsys, replica.servers, "region", "status", *PATIENT)
        assert (code, told["phase"]) == (REFUSED, "stopped")
        code, _, errors = run(
            capsys, "--servers", replica.servers[0], "region", "promote", "--fence", there, "--yes", *PATIENT)
        assert (code, "`pqctl region follow` lets it follow" in errors) == (REFUSED, True)
        client.put("q", "the origin was not fenced")

        code, _ = ask(capsys, replica.servers, "region", "follow", *PATIENT)
        assert code == DONE
        until(follows, "the copy does not follow again")
        with Client(replica.servers, timeout=PATIENCE_S) as copy:
            until(lambda: copy.cluster_hash(replica.servers[0]).applied > stopped_at, "nothing more comes")

        origin.terminate("n1")
        code, told = ask(capsys, replica.servers, "region", "follow", there, *PATIENT)
        assert (code, found(told)) == (REFUSED, {"origin": FAIL})

        def complains() -> bool:
            """Return whether doctor reports that the origin cannot be reached."""
            code, told = ask(capsys, replica.servers, "doctor", *PATIENT)
            return code == 2 and found(told)["region"] == FAIL
        until(complains, "nobody says that the origin cannot be reached")


def test_what_is_no_copy_is_not_stopped_and_cannot_become_one_with_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    replica_id = "0011223344556677"
    with (
        LocalCluster(1, {"feed": {"replica": replica_id}}) as origin, LocalCluster(1) as other,
        Client(origin.servers, timeout=PATIENCE_S) as client, Client(other.servers, timeout=PATIENCE_S) as there,
    ):
        code, _, errors = run(capsys, "--servers", origin.servers[0], "region", "stop", "--yes", *PATIENT)
        assert (code, "no copy" in errors) == (REFUSED, True)
        code, _, errors = run(capsys, "--servers", origin.servers[0], "region", "follow", *PATIENT)
        assert (code, "no copy" in errors) == (REFUSED, True)
        client.put("q", "served as before")

        code, told = ask(capsys, other.servers, "region", "follow", origin.servers[0], *PATIENT)
        assert (code, found(told)["replica"]) == (DONE, WARN)
        assert f'[replica]\nof = "{origin.servers[0]}"' in told["checks"][-1]["advice"]
        code, out, _ = run(capsys, "--servers", other.servers[0], "region", "follow", origin.servers[0], *PATIENT)
        section = tomllib.loads(out[out.index("    [replica]\n"):])["replica"]     # as printed, on lines of its own
        assert (code, section) == (DONE, {"of": origin.servers[0]})
        there.put("q", "of its own")
        code, told = ask(capsys, other.servers, "region", "follow", origin.servers[0], *PATIENT)
        assert (code, found(told)["replica"]) == (REFUSED, FAIL)
        code, told = ask(capsys, origin.servers, "region", "follow", origin.servers[0], *PATIENT)
        assert (code, found(told)["replica"]) == (REFUSED, FAIL)
        code, told = ask(capsys, ["127.0.0.1:1"], "region", "follow", origin.servers[0], *PATIENT)
        assert (code, found(told)["replica"]) == (DONE, SKIP)

        client.cluster_fence(replica_id)
        code, told = ask(capsys, origin.servers, "doctor", *PATIENT)
        assert (code, found(told)["region"]) == (2, FAIL)
        assert replica_id in told["checks"][-2]["found"]
        code, told = ask(capsys, other.servers, "region", "follow", origin.servers[0], *PATIENT)
        assert (code, found(told)["feed"]) == (REFUSED, FAIL)
        config = origin.config_file("n1")           # it is to become a copy, with the data that it has
        config.write_text(f'{config.read_text()}\n[replica]\nof = "{other.servers[0]}"\n')
        origin.terminate("n1")
        origin.restart("n1")
        origin.wait_until(
            lambda views: any(node.role == "LEADER" for view in views for node in view.nodes), "a leader")

        def is_refused() -> bool:
            """Return whether the fenced node is no copy: once it has executed its log."""
            code, told = ask(capsys, origin.servers, "region", "follow", other.servers[0], *PATIENT)
            return code == REFUSED and "with empty data directories" in told["checks"][-1]["found"]

        until(is_refused, "a fenced cluster with its data is taken for a copy")
        code, _, errors = run(capsys, "--servers", origin.servers[0], "region", "status", *PATIENT)
        assert (code, "with empty data directories" in errors) == (REFUSED, True)


def test_nothing_is_stopped_while_no_node_says_whether_it_is_a_copy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    with LocalCluster(1) as cluster, Client(cluster.servers, timeout=PATIENCE_S) as client:
        monkeypatch.setattr(replicas, "ask", lambda *_: {})
        code, _, errors = run(capsys, "--servers", cluster.servers[0], "region", "stop", "--yes", *PATIENT)
        assert (code, "no node says" in errors) == (UNREACHED, True)
        client.put("q", "served as before")


def status(phase: str, lag: float | None = 0.2, problem: str = "", position: int = 90) -> ReplicaStatus:
    return ReplicaStatus(phase, position, "0011223344556677", 100, lag, "10.0.0.1:11361", problem)


class Stopping:
    """A copy in memory, as `pqctl region stop` sees it; `answers`: what its nodes say, one time after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: dict[str, ReplicaStatus] | None) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        monkeypatch.setattr(following, "cluster_of", self.cluster_of)
        monkeypatch.setattr(replicas, "ask", lambda *_: self.answers.pop(0))
        monkeypatch.setattr(following, "confirm", lambda question, yes: self.asked.append("confirm"))

    @contextmanager
    def cluster_of(self, call: Call, *, leading: bool = False) -> Iterator[tuple[Any, Any]]:
        """Stand for connect.cluster_of."""
        yield self, SimpleNamespace(named=list)

    def cluster_offline(self) -> None:
        """Stand for Client."""
        self.asked.append("offline")

    def cluster_online(self) -> None:
        """Stand for Client, whose servers have no leader."""
        raise Unavailable("no leader")


def test_a_copy_that_is_promoted_while_the_question_is_open_is_not_stopped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    copy = Stopping(monkeypatch, {"n1": status("following")}, None)
    code, _, errors = run(capsys, "--servers", "here", "region", "stop")
    assert (code, copy.asked) == (REFUSED, ["confirm"])
    assert "nothing was stopped" in errors


def test_a_copy_that_cannot_be_let_follow_again_is_not_reported_to_follow(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    Stopping(monkeypatch, {"n1": status("stopped")})
    monkeypatch.setattr(following, "checks", lambda *_: iter([Check(OK, "replica", "it was stopped")]))
    code, _, errors = run(capsys, "--servers", "here", "region", "follow", "there")
    assert (code, "no leader" in errors) == (UNREACHED, True)


def test_how_a_copy_follows_is_not_guessed_for_who_may_not_ask(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise ForbiddenError("403 Forbidden")
    Stopping(monkeypatch)
    monkeypatch.setattr(compare, "cluster_of", following.cluster_of)
    monkeypatch.setattr(compare, "hashes", lambda *_: iter([("n1", 7, "ab")]))
    monkeypatch.setattr(replicas, "ask", refuse)
    code, text, _ = run(capsys, "--servers", "here", "region", "status")
    assert (code, "do not say to this user" in text) == (NOT_ALLOWED, True)


@pytest.mark.parametrize(("after", "code", "words"), [
    ({"n1": status("stopped")}, DONE, "stopped at position 90 of"),
    ({}, DONE, "stopped at position 90 or shortly after of"),
    (None, REFUSED, "promoted while it was being stopped"),
])
def test_a_copy_that_was_stopped_is_reported_as_stopped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, after: dict[str, ReplicaStatus] | None,
    code: int, words: str,
) -> None:
    before = {"n1": status("following"), "n2": status("idle")}
    copy = Stopping(monkeypatch, before, before, after)
    ended, printed, errors = run(capsys, "--servers", "here", "region", "stop")
    assert (ended, copy.asked) == (code, ["confirm", "offline"])
    assert words in printed + errors


def test_an_origin_that_feeds_as_many_copies_as_it_may_cannot_be_followed(capsys: pytest.CaptureFixture[str]) -> None:
    with LocalCluster(1) as origin, ExitStack() as feeds:
        host, port = origin.servers[0].split(":")
        for _ in range(FEEDS_MAX):
            feed = feeds.enter_context(socket.create_connection((host, int(port)), PATIENCE_S))
            feed.sendall(b"CLUSTER FEED 1\r\n")
            assert feeds.enter_context(feed.makefile("rb")).readline() == b"200 OK 1\r\n"
        code, told = ask(capsys, ["127.0.0.1:1"], "region", "follow", origin.servers[0], *PATIENT)
        assert (code, found(told)["feed"]) == (REFUSED, FAIL)
        assert told["checks"][1]["found"] == f"{origin.servers[0]} already feeds as many copies as it may"


@pytest.mark.parametrize(("serving", "part", "error"), [
    (True, replicas.RegionPart({}, "00112233"), Failure), (True, None, Unavailable),
    (False, replicas.RegionPart({}, "00112233"), Unavailable),
])
def test_a_command_on_jobs_that_was_not_executed_says_what_the_cluster_is(
    monkeypatch: pytest.MonkeyPatch, serving: bool, part: replicas.RegionPart | None, error: type[Exception],
) -> None:
    servers = SimpleNamespace(leader=None, addresses=["127.0.0.1:1"], named=list)
    monkeypatch.setattr(connect, "find", lambda _: servers)
    monkeypatch.setattr(connect, "part_of", lambda *_: part)
    call = Call(Options("127.0.0.1:1", None, None, None, None), False, 1.0)
    with pytest.raises(error), connect.cluster_of(call, serving=serving):
        raise Unavailable("500 Offline Mode")


def test_the_authority_of_the_origin_is_asked_for_when_it_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    call = Call(Options("127.0.0.1:1", None, None, None, None), False, 1.0)
    for error, words in (
        (Untrusted("its certificate"), "--origin-ca FILE"), (Unavailable("no answer"), "the network"),
        (AuthError("401 Auth Required"), "--origin-secret-file"),
    ):
        view = ServerView("10.1.0.1:11361", None, None, [], error)
        monkeypatch.setattr(following, "ask", lambda *_, view=view: ([view], 1))
        (check,) = following.checks(call, call)
        assert (check.state, check.name) == (FAIL, "origin")
        assert words in (check.advice or "")


def test_the_section_of_a_copy_has_a_user_of_its_own(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("word\n")
    secret.chmod(0o600)
    replica = Call(Options("here", None, None, "operator", str(secret)), False, 1.0)
    own = [SimpleNamespace(nodes=[SimpleNamespace(client="10.1.0.1:11361"), SimpleNamespace(client="10.1.0.2:11361")])]

    def section(origin: OriginAccess) -> dict[str, str]:
        return dict(tomllib.loads(following._section(replica, origin_of(replica, origin), cast("Any", own)))["replica"])
    of = "10.1.0.1:11361,10.1.0.2:11361"
    assert section(OriginAccess("there")) == {"of": of, "user": "copy", "secret_file": "/etc/sockpqd/copy.secret"}
    assert section(OriginAccess("there", user="reader"))["user"] == "reader"


@pytest.mark.parametrize(("told", "state", "words"), [
    ([status("following"), status("idle")], OK, "10 entries and 0.2 s behind"),
    ([status("following", 61.0)], WARN, "61.0 s behind"),
    ([status("following"), status("idle", problem="no replica.of")], WARN, "n2 could not follow: no replica.of"),
    ([status("snapshot", None)], WARN, "fetches a snapshot"),
    ([status("connecting")], WARN, "connecting"),
    ([status("connecting", problem="refused")], FAIL, "refused"),
    ([status("idle"), status("idle", problem="level 9")], FAIL, "level 9"),
    ([status("idle")], WARN, "no node that answers follows"),
    ([status("stopped"), status("stopped")], WARN, "stopped at position 90"),
])
def test_doctor_judges_how_a_copy_follows(told: list[ReplicaStatus], state: str, words: str) -> None:
    check = judge({f"n{number}": one for number, one in enumerate(told, start=1)})
    assert check.state == state
    assert words in check.found
    assert check.advice is not None or state == OK


@pytest.mark.parametrize(("position", "fetched", "advice"), [
    (0, "the state with which the copy begins", "wait for it; until then it cannot be promoted"),
    (90, "a snapshot", "wait for it"),
])
def test_only_a_copy_that_has_nothing_yet_cannot_be_promoted(position: int, fetched: str, advice: str) -> None:
    check = judge({"n1": status("snapshot", None, position=position)})
    assert check.found == f"n1 fetches {fetched}, from 10.0.0.1:11361"
    assert (check.state, check.advice) == (WARN, advice)


def test_nodes_that_do_not_answer_are_not_said_to_follow_nobody() -> None:
    assert replicas.in_words({}) == "no node says whether it follows"


def test_a_drill_says_why_its_copy_does_not_follow_and_ends_when_it_never_will(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = [status("connecting", problem=problem) for problem in ("refused", "refused", "no route", "refused")]
    answers = [status("idle"), *answers]        # the first is asked whether the cluster itself is fenced
    answers += [status("idle"), status("idle", problem="its hash differs at 7")]
    monkeypatch.setattr(Client, "cluster_replica", lambda *_, **__: answers.pop(0))
    with LocalCluster(1) as cluster:
        code, _, errors = run(
            capsys, "--servers", cluster.servers[0], "region", "drill", "--folder", str(tmp_path), *PATIENT)
    assert (code, answers) == (REFUSED, [])
    assert [line.rpartition(": ")[2] for line in errors.splitlines()] == [
        "refused", "no route", "refused", "its hash differs at 7"]
    assert list(tmp_path.iterdir()) == []


def test_a_drill_promotes_another_copy_and_leaves_the_cluster_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    with LocalCluster(3) as cluster, Client(cluster.servers, timeout=PATIENCE_S) as client:
        for number in range(20):
            client.put("q", str(number))
        client.put("other", "more")
        producer = Producer(cluster.servers, "load")
        producer.start()
        until(lambda: producer.acknowledged, "nothing is put")
        before = client.cluster_hash(cluster.servers[0]).applied
        code, told = ask(
            capsys, cluster.servers, "region", "drill", "--folder", str(tmp_path), "--hot-bytes", "67108864",
            "--timeout", str(PATIENCE_S))
        assert code == DONE, told
        acknowledged = len(producer.acknowledged)
        until(lambda: len(producer.acknowledged) > acknowledged, "the cluster serves no longer")
        producer.finish()
        assert told["position"] >= told["equal_at"] >= before
        assert told["queues"] == 3
        assert 21 < told["jobs"] <= 21 + len(producer.acknowledged) + len(producer.unknown)
        assert told["disk_bytes"] > 0
        assert list(tmp_path.iterdir()) == []
        assert client.total("sockpqd_drill").jobs == 0


def test_a_drill_that_cannot_follow_says_why_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    with (
        LocalCluster(1) as origin, LocalCluster(1, {"replica": {"of": ",".join(origin.servers)}}) as replica,
    ):
        drill = ("region", "drill", "--folder", str(tmp_path))
        code, _, errors = run(capsys, "--servers", replica.servers[0], *drill)
        assert (code, "is a copy of another cluster itself" in errors) == (REFUSED, True)
        monkeypatch.setattr(drill_node, "program", lambda: "/bin/false")
        code, _, errors = run(capsys, "--servers", origin.servers[0], *drill)
        assert (code, "the node of the drill has ended" in errors) == (FILE_ERROR, True)
        monkeypatch.setattr(drill_node, "program", lambda: None)
        code, _, errors = run(capsys, "--servers", origin.servers[0], *drill)
        assert (code, "no program sockpqd" in errors) == (USAGE_ERROR, True)
        assert list(tmp_path.iterdir()) == []


def test_the_node_of_a_drill_serves_nobody_but_pqctl(tmp_path: Path) -> None:
    with (
        LocalCluster(1) as cluster,
        drill_node.DrillNode(cluster.servers, ClusterAccess(), str(tmp_path), None) as node,
        node.access.client([node.address], PATIENCE_S) as mine,
        Client(node.address, timeout=PATIENCE_S) as strange,
    ):
        def follows() -> bool:
            """Return whether the node has all data, as its user sees."""
            node.must_run()
            with suppress(SockpqError):
                status = mine.cluster_replica(node.address)
                return status is not None and status.position > 0
            return False
        until(follows, "the copy does not follow")
        for ask_it in (lambda: strange.total(server=node.address), lambda: strange.cluster_hash(node.address),
                       strange.cluster_promote):
            with pytest.raises(AuthError):
                ask_it()
        secret, text = node.access.secret, (node.folder / "users.toml").read_text()
        assert secret is not None
        assert secret not in repr(node.access)
        assert secret.encode().hex() in text
        assert node.folder.stat().st_mode & 0o777 == 0o700
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_a_drill_that_cannot_be_removed_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    with LocalCluster(1) as cluster:
        monkeypatch.setattr(drill_node, "rmtree", lambda *_, **__: None)
        code, printed, errors = run(
            capsys, "--servers", cluster.servers[0], "region", "drill", "--folder", str(tmp_path), *PATIENT)
    [left] = tmp_path.iterdir()
    assert code == FILE_ERROR, errors
    assert f"{left} cannot be removed" in errors
    assert f"{left} is left" in printed
    assert "is removed" not in printed


def test_a_node_of_a_drill_that_is_interrupted_at_its_start_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt
    monkeypatch.setattr(subprocess, "Popen", interrupt)
    with pytest.raises(KeyboardInterrupt):
        drill_node.DrillNode(["127.0.0.1:1"], ClusterAccess(), str(tmp_path), None).__enter__()
    assert list(tmp_path.iterdir()) == []


def test_the_node_of_a_drill_reaches_the_cluster_as_pqctl_does(tmp_path: Path) -> None:
    access = ClusterAccess("ca.crt", "copy", "secret-of-the-copy")
    node = drill_node.DrillNode(["10.1.0.1:11361", "10.1.0.2:11361"], access, None, None)
    node.folder, node.address = tmp_path, "127.0.0.1:1"
    settings = tomllib.loads(node._configuration("127.0.0.1:2"))
    secret, users = tmp_path / "secret", tmp_path / "users.toml"
    assert settings["replica"] == {
        "of": "10.1.0.1:11361,10.1.0.2:11361", "user": "copy", "secret_file": str(secret),
        "ca": str(Path("ca.crt").resolve()),
    }
    assert (secret.read_text(), secret.stat().st_mode & 0o777) == ("secret-of-the-copy", 0o600)
    assert (settings["auth"], users.stat().st_mode & 0o777) == ({"users_file": str(users)}, 0o600)
    assert all(address.startswith("127.0.0.1:") for address in settings["listen"].values())


def test_a_copy_that_does_not_know_its_origin_yet_is_still_a_copy() -> None:
    found = {"n1": ReplicaStatus("connecting", 0, None, None, None, None, "")}
    health = Health(None, [], frozenset(), frozenset(), [])
    assert headline(health, replicas.RegionPart(found)) == (
        "A COPY, answers reads only: n1 does not follow: it is connecting; 0 of 0 nodes up")


def test_nothing_is_promoted_without_a_question(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, errors = run(capsys, "--servers", "127.0.0.1:1", "region", "promote")
    assert code == 64
    assert "--yes" in errors


class Both:
    """A replica and its origin in memory, as `pqctl region promote` sees them."""

    def __init__(self) -> None:
        self.copy = 100                     # the position of the replica,
        self.there: int | None = 100        # and of its origin; None: no node says it
        self.asked: list[str] = []
        self.phases = ["following"]         # of the replica, as it says them one after the other; the last one stays
        self.of = "aa" * 8                  # the origin of the replica
        self.leader: str | None = "n1"
        self.value = "aa"                   # the hash of the replica
        self.outcome: SockpqError | None = None
        self.refusal: SockpqError | None = None     # of the promotion

    @contextmanager
    def cluster_of(self, call: Call, *, leading: bool = False) -> Iterator[tuple[Any, Any]]:
        """Stand for connect.cluster_of."""
        there = call.options.servers == "there"
        views = [SimpleNamespace(cluster=("aa" if there else "bb") * 8)]
        yield self, SimpleNamespace(leader=SimpleNamespace(name="n1"), origin=there, views=views,
                                    named=lambda: [("n1", "127.0.0.1:1")])

    def cluster_replica(self, server: str, timeout: float) -> ReplicaStatus:
        """Stand for Client."""
        phase = self.phases.pop(0) if len(self.phases) > 1 else self.phases[0]
        return ReplicaStatus(phase, self.copy, self.of, self.there, None, None, "")

    def hashes(self, call: Call, client: object, servers: Any) -> list[tuple[str, int, str]]:
        """Stand for compare.hashes."""
        if not servers.origin:
            return [("n1", self.copy, self.value)]
        return [] if self.there is None else [("n1", self.there, "aa")]

    def cluster_id(self) -> Any:
        """Stand for Client."""
        return SimpleNamespace(id="0011223344556677")

    def cluster_fence(self, replica: str) -> None:
        """Stand for Client: one more entry, which the copy does not get."""
        self.asked.append("fence")
        if self.outcome is not None:
            raise self.outcome
        self.there = None if self.leader is None else (self.there or 0) + 1

    def cluster_promote(self, grace: float | None) -> int:
        """Stand for Client."""
        self.asked.append("promote")
        if self.refusal is not None:
            raise self.refusal
        return self.copy


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Both:
    """Let promote.py see these two."""
    found = Both()
    monkeypatch.setattr(promotion, "cluster_of", found.cluster_of)
    monkeypatch.setattr(promotion, "hashes", found.hashes)
    return found


def test_a_copy_that_has_nothing_yet_is_not_promoted_and_says_why(
    both: Both, capsys: pytest.CaptureFixture[str],
) -> None:
    both.copy, both.phases, both.refusal = 0, ["connecting"], Refused("409 No Replica")
    code, _, errors = run(capsys, "--servers", "here", "region", "promote", "--yes")
    assert (code, both.asked) == (REFUSED, ["promote"])
    assert errors == ("this copy has nothing of its origin yet, and was not promoted (409 No Replica): "
                      "n1 does not follow: it is connecting\n")
    both.copy = 7                                   # it was promoted by somebody else meanwhile
    assert "nothing of its origin" not in run(capsys, "--servers", "here", "region", "promote", "--yes")[2]


@pytest.mark.parametrize(("phase", "words"), [
    ("connecting", "position; n1 does not follow: it is connecting"), ("following", "position; try again"),
])
def test_what_was_not_compared_says_why(
    both: Both, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, phase: str, words: str,
) -> None:
    monkeypatch.setattr(compare, "cluster_of", both.cluster_of)
    monkeypatch.setattr(compare, "hashes", both.hashes)
    both.copy, both.phases = 7, [phase]
    code, text, _ = run(capsys, "--servers", "here", "region", "diff", "there", "--timeout", "0.1")
    assert (code, text) == (UNREACHED, f"not compared: never seen at the same {words}\n")


def promoted(capsys: pytest.CaptureFixture[str], timeout: float = 0.2) -> tuple[int, str]:
    """Promote with `--fence`; returns the exit code and the message."""
    code, _, errors = run(
        capsys, "--servers", "here", "region", "promote", "--yes", "--fence", "there", "--timeout", str(timeout))
    return code, errors


@pytest.mark.parametrize(("copy", "there", "why"), [
    (7, 100, "93 entries behind"), (100, None, "no node of the origin says its position"),
])
def test_an_origin_is_not_fenced_for_a_copy_that_does_not_follow(
    both: Both, capsys: pytest.CaptureFixture[str], copy: int, there: int | None, why: str,
) -> None:
    both.copy, both.there = copy, there
    code, errors = promoted(capsys)
    assert code == UNREACHED
    assert why in errors
    assert both.asked == []


@pytest.mark.parametrize(("phase", "code", "why"), [
    ("stopped", REFUSED, "`pqctl region follow` lets it follow"), ("connecting", UNREACHED, "it is connecting"),
    ("idle", UNREACHED, "no node that answers follows"), ("snapshot", UNREACHED, "fetches a snapshot"),
])
def test_an_origin_is_not_fenced_for_a_copy_at_its_position_that_does_not_read_on(
    both: Both, capsys: pytest.CaptureFixture[str], phase: str, code: int, why: str,
) -> None:
    both.phases = [phase]
    assert promoted(capsys)[0] == code
    both.phases = ["following", phase]              # it was stopped, or lost its connection, after the first look
    found, errors = promoted(capsys)
    assert (found, both.asked) == (code, [])
    assert why in errors


def test_a_copy_that_connects_again_is_waited_for(both: Both, capsys: pytest.CaptureFixture[str]) -> None:
    both.phases = ["connecting", "connecting", "following"]
    both.value = "bb"                               # it goes on to compare both
    assert "differs from its origin" in promoted(capsys, PATIENCE_S)[1]


def test_an_origin_is_not_fenced_for_the_copy_of_another_one(both: Both, capsys: pytest.CaptureFixture[str]) -> None:
    both.of = "cc" * 8
    code, errors = promoted(capsys)
    assert (code, both.asked) == (REFUSED, [])
    assert f"ORIGIN is another cluster, {'aa' * 8}: this one is a copy of {'cc' * 8}" in errors


def test_an_origin_is_not_fenced_for_a_copy_of_something_else(both: Both, capsys: pytest.CaptureFixture[str]) -> None:
    both.value = "bb"
    code, errors = promoted(capsys)
    assert (code, both.asked) == (REFUSED, [])
    assert "differs from its origin at position 100" in errors


@pytest.mark.parametrize(("leader", "why"), [
    ("n1", "lacks 1 entries"), (None, "does not say its position"),
])
def test_a_copy_that_lacks_something_of_a_fenced_origin_is_not_promoted(
    both: Both, capsys: pytest.CaptureFixture[str], leader: str | None, why: str,
) -> None:
    both.leader = leader
    code, errors = promoted(capsys)
    assert code == UNREACHED
    assert "the origin is fenced, and nothing was promoted" in errors
    assert why in errors
    assert "--timeout" in errors
    assert both.asked == ["fence"]


def test_a_fence_whose_answer_was_lost_is_in_doubt(both: Both, capsys: pytest.CaptureFixture[str]) -> None:
    both.outcome = OutcomeUnknown("no answer")
    code, errors = promoted(capsys)
    assert (code, both.asked) == (UNKNOWN, ["fence"])
    assert "unknown whether the origin was fenced" in errors
