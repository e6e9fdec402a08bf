"""A replica of real processes: it has what its origin has, and becomes the service when it is promoted."""

from __future__ import annotations

from sockpq import Client, survey

from devcluster.cluster import LocalCluster
from tests.system.load import ANSWER_S, Producer, check, drain
from tests.system.test_promotion_drill import wait_until_equal
from tests.waiting import PATIENCE_S, until

JOBS = 200
LOGGED = 50             # entries of the replica's log after which some pieces of a snapshot are in it; there are 300
LARGE_JOBS, LARGE_BYTES = 400, 200_000      # 80 MB: more than two segments of the journal, so the first can be deleted


def acknowledged(producer: Producer) -> int:
    return len(producer.acknowledged)


def progress(producer: Producer, more: int = JOBS) -> None:
    target = acknowledged(producer) + more
    until(lambda: acknowledged(producer) >= target, "no progress")


def feeding(origin: LocalCluster, replica: LocalCluster) -> str | None:
    """The node of the origin from which the replica reads now, as the replica logged last."""
    lines = [line for name in replica.names for line in replica.logs(name).splitlines() if "follows its origin" in line]
    last = max(lines, default="")           # each begins with its time
    return next((name for name in origin.names if f"{origin.direct(name)} from" in last), None)


def phase(replica: LocalCluster, name: str) -> str:
    """Return what this node of the replica does, "" without an answer."""
    words = (replica.say(name, "CLUSTER REPLICA", ANSWER_S) or "").split()
    return words[2] if words[:2] == ["200", "OK"] else ""


def applied(cluster: LocalCluster, name: str) -> int:
    """Return how many entries of its own log this node has executed, as far as it answers."""
    (view,) = survey([cluster.direct(name)], ANSWER_S)
    return max((node.applied or 0 for node in view.nodes if node.name == name), default=0)


def forget(origin: LocalCluster) -> None:
    """Let no node of the origin have the first entry of the log any more."""
    for name in origin.names:
        def gone(name: str = name) -> bool:
            leader = origin.wait_for_leader(PATIENCE_S)
            origin.say(leader, "QUEUE CONFIG other WEIGHT 2", PATIENCE_S)   # an entry for the next snapshot to cover
            origin.say(name, "CLUSTER SNAPSHOT", PATIENCE_S)
            return origin.say(name, "CLUSTER FEED 1", PATIENCE_S) == "409 Too Old"
        until(gone, f"{name} keeps the whole log")


def promoted(replica: LocalCluster) -> bool:
    """Promote the replica; returns whether it is promoted, now or by an attempt whose answer was lost."""
    answer = replica.say(replica.wait_for_leader(PATIENCE_S), "CLUSTER PROMOTE", PATIENCE_S) or ""
    return answer.startswith("200 OK ") or answer == "409 No Replica"


def test_a_replica_follows_whatever_fails_and_has_all_when_it_is_promoted() -> None:
    with (
        LocalCluster(3, {"feed": {"keep_bytes": 1 << 28}}) as origin,
        LocalCluster(3, {"replica": {"of": ",".join(origin.servers)}}) as replica,
    ):
        producer = Producer(origin.servers, "p")
        producer.start()
        progress(producer)
        until(lambda: feeding(origin, replica) is not None, "the replica follows nobody")
        fed = feeding(origin, replica) or ""
        origin.kill(fed)
        progress(producer)
        leader = replica.wait_for_leader(PATIENCE_S)
        replica.kill(leader)
        progress(producer)
        replica.restart(leader)
        origin.restart(fed)
        progress(producer)
        producer.finish()
        wait_until_equal(origin, replica)
        assert replica.say(leader, "GET load", PATIENCE_S) == "500 Offline Mode"
        until(lambda: promoted(replica), "the replica is not promoted")
        check([producer], drain(replica))
        for cluster in (origin, replica):
            for name in cluster.names:
                assert "Traceback" not in cluster.logs(name), cluster.logs(name)


def test_a_copy_begins_with_a_snapshot_whose_first_receiver_is_killed() -> None:
    with LocalCluster(3, {"feed": {"keep_bytes": 1 << 20}}) as origin:
        with Client(origin.servers, timeout=PATIENCE_S) as client:
            for _ in range(LARGE_JOBS):
                client.put("large", bytes(LARGE_BYTES))
        forget(origin)
        with LocalCluster(3, {"replica": {"of": ",".join(origin.servers)}}) as replica:
            producer = Producer(origin.servers, "p")
            producer.start()
            leader = replica.wait_for_leader(PATIENCE_S)
            until(lambda: applied(replica, leader) > LOGGED or phase(replica, leader) == "following", "nothing comes")
            replica.kill(leader)
            progress(producer)
            replica.restart(leader)
            producer.finish()
            wait_until_equal(origin, replica)
            begun = [line for name in replica.names for line in replica.logs(name).splitlines()
                     if "begins with the state of" in line]
            assert begun, "it did not begin with a snapshot"
            until(lambda: promoted(replica), "the replica is not promoted")
            with Client(replica.servers, timeout=PATIENCE_S) as client:
                assert client.total("large").jobs == LARGE_JOBS
            check([producer], drain(replica))
            for name in replica.names:
                assert "Traceback" not in replica.logs(name), replica.logs(name)
