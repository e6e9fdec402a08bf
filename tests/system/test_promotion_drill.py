"""Drills with real processes: a copy is promoted under load, and an origin that was fenced comes back as the copy.

Both clusters are on this machine, so the feed needs neither TLS nor users.
"""

from __future__ import annotations

from sockpq import Client

from devcluster.cluster import LocalCluster
from tests.system.load import ANSWER_S, Producer, drain
from tests.system.test_kill import wait_for_progress
from tests.waiting import until

PROMOTED = "200 OK "


def replica_of(origin: LocalCluster, nodes: int = 3) -> LocalCluster:
    """Return a cluster that is configured to follow this one, not started."""
    return LocalCluster(nodes, {"replica": {"of": ",".join(origin.servers)}})


def hash_of(cluster: LocalCluster, name: str) -> tuple[int, str] | None:
    """Return the index and the hash that this node reports; None without an answer."""
    words = (cluster.say(name, "CLUSTER HASH", ANSWER_S) or "").split()
    return (int(words[2]), words[3]) if words[:2] == ["200", "OK"] else None


def wait_until_equal(origin: LocalCluster, replica: LocalCluster) -> None:
    """Wait until all nodes of both clusters report one hash at one index."""
    def hashes() -> set[tuple[int, str] | None]:
        return {hash_of(cluster, name) for cluster in (origin, replica) for name in cluster.names}
    until(lambda: len(found := hashes()) == 1 and None not in found, lambda: f"{hashes()}")


def promote(replica: LocalCluster) -> int:
    """Promote the copy; returns the index of the origin's last entry in it."""
    answers: list[str] = []

    def done() -> bool:
        leader = replica.leader()
        answers.append("" if leader is None else replica.say(leader, "CLUSTER PROMOTE", ANSWER_S) or "")
        return answers[-1].startswith(PROMOTED)
    until(done, lambda: f"{answers[-5:]}")
    return int(answers[-1].removeprefix(PROMOTED))


def test_a_copy_that_is_promoted_under_load_is_an_exact_prefix() -> None:
    with LocalCluster(3) as origin, replica_of(origin) as replica:
        producer = Producer(origin.servers, "load")
        producer.start()
        wait_for_progress([producer])
        before = set(producer.acknowledged)
        newest = max(found[0] for name in origin.names if (found := hash_of(origin, name)) is not None)
        until(lambda: _reached(replica) >= newest, lambda: f"{_reached(replica)} of {newest} entries")
        promote(replica)
        wait_for_progress([producer])                   # the origin has not heard of it
        producer.finish()
        copied = drain(replica)
        assert before <= set(copied)                    # what was acknowledged before the copy's position
        assert len(copied) == len(set(copied))
        assert set(copied) <= set(producer.acknowledged + producer.unknown)
        numbers = [number_of(body) for body in copied]
        assert numbers == sorted(numbers)
        early = {body for body in producer.acknowledged if number_of(body) <= numbers[-1]}
        assert early <= set(copied)                     # nothing acknowledged before the last one is missing
        with Client(replica.servers, timeout=60.0) as client:       # programs are given the replica's addresses
            client.put("load", b"after")
            job = client.get("load", wait=10.0)
            assert job is not None
            assert job.id > 1 << 32
            job.done()


def number_of(body: bytes) -> int:
    return int(body.rpartition(b"-")[2])


def _reached(replica: LocalCluster) -> int:
    """Return how far the copy is at the node that leads it, 0 if none answers."""
    leader = replica.leader()
    found = None if leader is None else hash_of(replica, leader)
    return 0 if found is None else found[0]


def test_a_copy_that_begins_with_a_snapshot_equals_its_origin_and_answers_reads_only() -> None:
    with LocalCluster(1) as origin:
        with Client(origin.servers, timeout=60.0) as client:
            for number in range(300):
                client.put("q", b"%d" % number, priority=number % 3)
        for _ in range(2):                              # of the two snapshots that are kept the older one is cut behind
            assert (origin.say("n1", "CLUSTER SNAPSHOT", ANSWER_S) or "").startswith("200 OK")
            origin.say("n1", "QUEUE CONFIG q WEIGHT 2", ANSWER_S)
        with replica_of(origin, 1) as replica:
            wait_until_equal(origin, replica)
            assert replica.say("n1", "TOTAL q", ANSWER_S) == origin.say("n1", "TOTAL q", ANSWER_S)
            assert replica.say("n1", "GET q", ANSWER_S) == "500 Offline Mode"
            assert replica.say("n1", "CLUSTER ID", ANSWER_S) != origin.say("n1", "CLUSTER ID", ANSWER_S)
            replica.kill("n1")
            replica.restart("n1")
            origin.say("n1", "QUEUE CONFIG q WEIGHT 3", ANSWER_S)
            wait_until_equal(origin, replica)


def configure(cluster: LocalCluster, name: str, section: str) -> None:
    """Add a section to the configuration file of a node, which is started again by it."""
    cluster.terminate(name)
    with cluster.config_file(name).open("a") as file:
        file.write(section)
    cluster.restart(name)


def test_a_fenced_origin_serves_nobody_and_comes_back_as_the_copy() -> None:
    with LocalCluster(1) as origin, replica_of(origin, 1) as replica:
        with Client(origin.servers, timeout=60.0) as client:
            for number in range(20):
                client.put("q", b"%d" % number)
        wait_until_equal(origin, replica)
        own = (replica.say("n1", "CLUSTER ID", ANSWER_S) or "").split()[2]
        assert origin.say("n1", f"CLUSTER FENCED {own}", ANSWER_S) == "409 Unknown Replica"
        configure(origin, "n1", f'\n[feed]\nreplica = "{own}"\n')
        until(lambda: origin.say("n1", f"CLUSTER FENCED {own}", ANSWER_S) == "200 OK")
        origin.kill("n1")
        origin.restart("n1")
        until(lambda: origin.say("n1", "CLUSTER ONLINE", ANSWER_S) == f"409 Fenced {own}")
        assert origin.say("n1", "GET q", ANSWER_S) == "500 Offline Mode"
        wait_until_equal(origin, replica)               # its feed is answered as ever, so nothing is lost
        promote(replica)
        with Client(replica.servers, timeout=60.0) as client:
            assert len(client.get_many(100, "q", expire=600.0)) == 20
            client.put("q", b"after")
        origin.terminate("n1")
        origin.wipe("n1")
        configure(origin, "n1", f'\n[replica]\nof = "{replica.servers[0]}"\n')
        wait_until_equal(replica, origin)
        assert origin.say("n1", "TOTAL q", ANSWER_S) == replica.say("n1", "TOTAL q", ANSWER_S)
