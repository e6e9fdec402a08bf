"""`pqctl cluster add`, `remove`, `transfer`, `offline`, `online`, `snapshot` against servers in memory."""

from __future__ import annotations

import threading

import pytest
from sockpq import Client

from sockpqd.pqctl.commands import cluster as commands
from sockpqd.pqctl.connect import NO_LEADER
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, UNKNOWN, UNREACHED, USAGE_ERROR
from tests.client.faults import Fault
from tests.client.memory_cluster import MemoryCluster
from tests.pqctl.running import ask, run

ADD = ("add", "n4", "127.0.0.1:1", "[::1]:11361")
COMMANDS = [ADD, ("remove", "n2"), ("transfer",), ("transfer", "n2"), ("offline",), ("online",), ("snapshot",)]


def steer(
    capsys: pytest.CaptureFixture[str], servers: list[str], *arguments: str, timeout: float = 60,
) -> tuple[int, str, str]:
    """Return exit code, output, errors."""
    return run(capsys, "--servers", ",".join(servers), "cluster", *arguments, "--timeout", str(timeout))


@pytest.mark.parametrize(("arguments", "executed", "told"), [
    (ADD, "CLUSTER ADD n4 127.0.0.1 1 ::1 11361", "n4 was added with server id 5; it counts when it has caught up"),
    (("remove", "n1"), "CLUSTER REMOVE n1", "n1 was removed"),
    (("transfer",), "CLUSTER TRANSFER", "n3 leads"),
    (("transfer", "n1"), "CLUSTER TRANSFER n1", "n1 leads"),
    (("offline",), "CLUSTER OFFLINE", "the service is switched offline"),
    (("online",), "CLUSTER ONLINE", "the service is switched online"),
    (("snapshot",), "CLUSTER SNAPSHOT", "n2 wrote a snapshot, position 2 in the log"),
    (("snapshot", "n3"), "CLUSTER SNAPSHOT", "n3 wrote a snapshot, position 2 in the log"),
])
def test_one_server_is_enough_to_reach_the_right_one(
    arguments: tuple[str, ...], executed: str, told: str, cluster: MemoryCluster, capsys: pytest.CaptureFixture[str],
) -> None:
    cluster.lead(cluster.servers[1])
    code, out, err = steer(capsys, cluster.addresses[2:], *arguments)
    assert (code, out, err) == (DONE, f"{told}\n", "")
    assert cluster.executed == [executed]


def test_the_service_can_be_switched_on_while_it_is_off(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in [("offline",), ADD, ("snapshot",), ("online",)]:
        assert steer(capsys, cluster.addresses, *arguments)[0] == DONE
    with Client(cluster.addresses) as client:
        client.put("mail", b"x")


@pytest.mark.parametrize(("arguments", "told"), [
    (("add", "n2", "a:1", "a:2"), "refused: 409 Node Exists (a member has this name: `pqctl cluster status`)"),
    (("remove", "n9"), "there is no node 'n9'; there are: n1, n2, n3"),
    (("transfer", "n9"), "there is no node 'n9'; there are: n1, n2, n3"),
])
def test_a_refusal_has_the_servers_words_or_names_the_node(
    arguments: tuple[str, ...], told: str, cluster: MemoryCluster, capsys: pytest.CaptureFixture[str],
) -> None:
    assert steer(capsys, cluster.addresses, *arguments) == (REFUSED, "", f"{told}\n")


def test_a_node_is_not_added_with_its_addresses_swapped(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commands, "PROBE_S", 60.0)      # on a busy machine the new node may be slow to answer
    with MemoryCluster(1) as new:
        swapped = "add", "n4", new.addresses[0], "127.0.0.1:1"
        code, out, err = steer(capsys, cluster.addresses, *swapped)
    assert (code, out) == (USAGE_ERROR, "")
    assert f"{new.addresses[0]} is a port for clients: the address for the other nodes comes first" in err
    assert not any(line.startswith("CLUSTER ADD") for server in cluster.servers for line in server.received)


def test_a_disk_without_room_refuses_the_snapshot(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.servers[0].fail("CLUSTER", None, Fault.BUSY)        # CLUSTER STATUS comes first
    code, out, err = steer(capsys, cluster.addresses, "snapshot")
    assert (code, out, err.startswith("refused: 503 Busy (")) == (REFUSED, "", True)


@pytest.mark.parametrize("arguments", COMMANDS)
def test_nobody_answers(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = steer(capsys, ["127.0.0.1:1"], *arguments)
    assert (code, out) == (UNREACHED, "")
    assert "127.0.0.1:1" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(("lines", "reason"), [
    ([], "reports no nodes"), (["1 n1 127.0.0.1 1 OBSERVER ONLINE 1 1 0 0.1.0"], ""),
])
def test_a_server_that_is_of_no_use_is_named(
    lines: list[str], reason: str, cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    for server in cluster.servers[:2]:
        server.show_status(lines)
    servers = cluster.addresses[:2]
    for command in (("queue", "stat"), ("cluster", "status"), ("doctor",)):
        _, out, err = run(capsys, "--servers", ",".join(servers), *command, "--timeout", "2")
        for server in servers:
            assert f"{server}: {reason}" in " ".join((out + err).split())


@pytest.mark.parametrize("arguments", COMMANDS)
def test_nobody_leads(
    arguments: tuple[str, ...], cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.lead(None)
    code, out, err = steer(capsys, cluster.addresses, *arguments, timeout=3)
    assert (code, out, err, cluster.executed) == (UNREACHED, "", f"{NO_LEADER}\n", [])
    changes = [line for server in cluster.servers for line in server.received if line.startswith("CLUSTER ")]
    assert set(changes) == {"CLUSTER STATUS"}       # nothing was sent whose outcome nobody could know


def test_a_leader_that_is_elected_meanwhile_is_found(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.lead(None)
    timer = threading.Timer(0.3, cluster.lead, [cluster.servers[2]])
    timer.start()
    assert steer(capsys, cluster.addresses, "remove", "n1") == (DONE, "n1 was removed\n", "")
    timer.join()


def test_of_two_that_claim_to_lead_the_newer_one_is_meant(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.lead(cluster.servers[1])
    old = [line.replace("FOLLOWER ONLINE 2", "LEADER ONLINE 1") for line in cluster.status_lines()]
    cluster.servers[0].show_status([line.replace("ONLINE 2", "ONLINE 1") for line in old])
    assert steer(capsys, cluster.addresses, "snapshot")[1].startswith("n2 wrote")


def test_an_answer_that_is_lost_is_said_to_be_so(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.servers[0].fail("CLUSTER", None, Fault.EXECUTE_AND_CLOSE)
    code, out, err = steer(capsys, cluster.addresses, "remove", "n2")
    assert (code, out, cluster.executed) == (UNKNOWN, "", ["CLUSTER REMOVE n2"])
    assert err.startswith("it is unknown whether it was done: ")


def test_another_cluster_in_the_list_is_left_alone(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    with MemoryCluster(1) as other:
        cluster.lead(None)
        code, _, _ = steer(capsys, [*cluster.addresses, *other.addresses], *ADD, timeout=3)
        assert (code, other.executed) == (USAGE_ERROR, [])
        for one in (cluster, other):            # they are too old to say it
            one.say_id(None)
        code, _, _ = steer(capsys, [*cluster.addresses, *other.addresses], *ADD, timeout=3)
        assert (code, other.executed) == (UNREACHED, [])


def test_a_node_that_does_not_answer_writes_no_snapshot(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.servers[2].stop()
    assert steer(capsys, cluster.addresses, "snapshot", "n3") == (UNREACHED, "", "n3 does not answer\n")
    assert cluster.executed == []


def test_a_node_nobody_knows_is_refused(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = steer(capsys, cluster.addresses, "snapshot", "n9")
    assert (code, out, err) == (REFUSED, "", "there is no node 'n9'; there are: n1, n2, n3\n")


@pytest.mark.parametrize(("arguments", "told"), [
    (ADD, {"name": "n4", "id": 4}),
    (("remove", "n3"), {"name": "n3"}),
    (("offline",), {"online": False}),
    (("online",), {"online": True}),
    (("snapshot", "n2"), {"name": "n2", "applied": 1}),
])
def test_what_programs_read(
    arguments: tuple[str, ...], told: dict[str, object], cluster: MemoryCluster, capsys: pytest.CaptureFixture[str],
) -> None:
    assert ask(capsys, cluster.addresses, "cluster", *arguments) == (DONE, told)


def test_the_new_leader_for_programs(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    told = {"id": 2, "name": "n2", "client": cluster.addresses[1]}
    assert ask(capsys, cluster.addresses, "cluster", "transfer", "n2") == (DONE, told)
    assert ask(capsys, cluster.addresses, "cluster", "leader") == (DONE, {**told, "serving": True})


@pytest.mark.parametrize(("arguments", "code", "told"), [
    (("remove", "n9"), REFUSED, {"error": "refused", "message": "there is no node 'n9'; there are: n1, n2, n3"}),
    (("snapshot", "n9"), REFUSED, {"error": "refused", "message": "there is no node 'n9'; there are: n1, n2, n3"}),
])
def test_a_refusal_for_programs(
    arguments: tuple[str, ...], code: int, told: dict[str, str], cluster: MemoryCluster,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ask(capsys, cluster.addresses, "cluster", *arguments) == (code, told)


def test_nobody_answers_and_an_answer_is_lost_for_programs(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.servers[0].fail("CLUSTER", None, Fault.EXECUTE_AND_CLOSE)
    code, told = ask(capsys, cluster.addresses, "cluster", "remove", "n2")
    assert (code, told["error"]) == (UNKNOWN, "unknown")
    code, told = ask(capsys, ["127.0.0.1:1"], "cluster", "remove", "n2")
    assert (code, told["error"]) == (UNREACHED, "unreached")


def test_who_leads_and_whether_he_serves(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    first = cluster.addresses[0]
    assert steer(capsys, cluster.addresses[1:], "leader") == (DONE, f"n1  {first}\n", "")
    cluster.switch(online=False)
    assert steer(capsys, cluster.addresses, "leader") == (REFUSED, f"n1  {first}  (it is switched offline)\n", "")
    cluster.lead(None)
    assert steer(capsys, cluster.addresses, "leader") == (UNREACHED, "", f"{NO_LEADER}\n")


def test_a_leader_elected_to_follow_a_dead_one_is_shown(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.servers[0].stop()
    cluster.lead(cluster.servers[2])
    assert steer(capsys, cluster.addresses, "leader")[:2] == (DONE, f"n3  {cluster.addresses[2]}\n")
