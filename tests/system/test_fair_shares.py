"""Fair shares and weights on three real nodes, through the death of a leader (spec/fair 3)."""

from __future__ import annotations

from collections import Counter

from sockpq import Client

from devcluster.cluster import LocalCluster

WEIGHTS = {"a": 1, "b": 2, "c": 7}
GETS = 10_000
AT_ONCE = 1000


def test_a_charge_after_the_death_of_the_leader_is_the_same_on_all_nodes() -> None:
    with LocalCluster(3) as cluster, Client(cluster.servers, timeout=30) as client:
        leader = cluster.wait_for_leader()
        for group in ("eva", "eva", "max"):
            client.put("q", b"x", group=group)
        first = client.get("q", expire=600, policy="fair")
        other = client.get("q", expire=600, policy="fair")
        assert first is not None
        assert other is not None
        cluster.kill(leader)
        client.done(first, ran=12.5)
        client.done(other)                      # by the replicated time since its hand-out
        cluster.restart(leader)
        cluster.wait_until_level()
        seen = {
            (str(client.sched_levels(server)), str(client.sched_group("eva", server=server)),
             str(client.sched_group("max", server=server)))
            for server in cluster.servers
        }
        assert len(seen) == 1
        eva, other_group = client.sched_group("eva"), client.sched_group("max")
        assert (eva.used_us, eva.level, eva.waiting) == (12_500_000, 2, 1)
        assert 0 < other_group.used_us < 60_000_000
        last = client.get("q", expire=600, policy="fair")
        assert last is not None
        assert [level.selected for level in client.sched_levels()] == [2, 0, 1, 0, 0]


def test_weights_of_1_2_and_7_give_these_shares_at_the_socket() -> None:
    with LocalCluster(3) as cluster, Client(cluster.servers, timeout=30) as client:
        cluster.wait_for_leader()
        for queue, weight in WEIGHTS.items():
            client.queue_create(queue, weight=weight)
            client.put_many(queue, [b"x"] * AT_ONCE)
        counts: Counter[str] = Counter()
        for _ in range(GETS // AT_ONCE):
            jobs = client.get_many(AT_ONCE, tuple(WEIGHTS), expire=600, policy="weight")
            counts.update(job.queue for job in jobs)
            client.done_many(jobs)
            for queue, count in Counter(job.queue for job in jobs).items():
                client.put_many(queue, [b"x"] * count)
        assert counts.total() == GETS
        for queue, weight in WEIGHTS.items():
            assert abs(100 * counts[queue] / GETS - 10 * weight) < 2
