"""A replica of real processes: it has what its origin has, and becomes the service when it is promoted."""

from __future__ import annotations

from devcluster.cluster import LocalCluster
from tests.system.load import Producer, check, drain
from tests.system.test_promotion_drill import wait_until_equal
from tests.waiting import PATIENCE_S, until

JOBS = 200


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
