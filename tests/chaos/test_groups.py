"""Limits, rates, pauses and the order of groups on real nodes whose leader is killed, frozen or cut off."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from sockpq import Client

from tests.chaos.faults.fault import Fault, during
from tests.chaos.faults.partitions import Partition, cut
from tests.chaos.faults.processes import Kill, Pause
from tests.chaos.faults.roles import leader
from tests.chaos.machines.cluster import ProxiedCluster
from tests.chaos.pools.tenant_laws import given_in_a_pause, overtaken, too_fast, too_many_at_a_time
from tests.chaos.pools.tenants import Run, Tenants
from tests.waiting import PATIENCE_S, eventually

WORKERS = 8
GROUPS = ("anna", "bert", "carl")
PAUSED = "carl"
LIMIT, RATE, PER_S = 2, 6, 0.5
JOBS = 400                      # of each group in each queue, more than are worked off
FAULT_S = 2.5                   # longer than an election
GIVEN_MIN = 60                  # before, and again after the fault

FAULTS: dict[str, Callable[[], Fault]] = {
    "leader killed": lambda: Kill(leader), "leader paused": lambda: Pause(leader),
    "leader cut off": lambda: Partition(leader, cut),
}


@pytest.mark.usefixtures("toxiproxy_server")
@pytest.mark.parametrize("fault", FAULTS)
def test_groups_are_held_through_the_loss_of_a_leader(fault: str) -> None:
    with ProxiedCluster(3) as cluster:
        cluster.wait_for_leader()
        servers = [cluster.direct(name) for name in cluster.names]
        with Client(servers, timeout=30) as client:
            client.queue_create(
                "work", sched="groups", group_limit=LIMIT, group_rate=RATE, group_per=PER_S, numbered=True,
            )
            client.queue_create("order", sched="fair", group_order=True, numbered=True)
            for queue in ("work", "order"):
                for group in GROUPS:
                    client.put_many(queue, [b"%d" % index for index in range(JOBS)], group=group)
            with Tenants(servers, ("work", "order"), WORKERS) as tenants:
                runs = tenants.runs
                assert eventually(lambda: len(runs) >= GIVEN_MIN, PATIENCE_S), tenants.strange
                client.group_pause(PAUSED)
                paused = time.monotonic()
                with during(cluster, FAULTS[fault]()) as (one,):
                    time.sleep(FAULT_S)
                before = len(runs)
                assert eventually(lambda: len(runs) >= before + GIVEN_MIN, PATIENCE_S)
                resumed = time.monotonic()
                client.group_resume(PAUSED)
                assert eventually(lambda: runs[-1].group == PAUSED, PATIENCE_S)
    assert one.fired, one.report()
    assert tenants.strange == []
    assert list(too_many_at_a_time(runs, "work", LIMIT)) == []
    assert list(too_fast(runs, "work", RATE, round(1000 * PER_S))) == []
    assert list(given_in_a_pause(runs, PAUSED, paused, resumed)) == []
    assert list(overtaken(runs, "order")) == []


# ---- the judge

RUN = Run("work", "anna", 0, 1000, asked=1.0, got=1.1, runs_until=2.0)


def again(index: int, at: float, lasts: float = 0.9) -> Run:
    """Put a later job of the same group."""
    return replace(
        RUN, index=index, started_ms=round(1000 * at), asked=at, got=at + 0.1, runs_until=at + 0.1 + lasts)


def test_only_jobs_that_ran_together_for_sure_are_too_many() -> None:
    assert not list(too_many_at_a_time([RUN, again(1, 1.5), again(2, 1.95)], "work", 2))
    assert list(too_many_at_a_time([RUN, again(1, 1.5), again(2, 1.6)], "work", 2))
    assert not list(too_many_at_a_time([RUN, again(1, 1.5), replace(again(2, 1.6), group="bert")], "work", 2))


def test_a_rate_is_judged_by_the_clusters_time() -> None:
    runs = [RUN, again(1, 1.2), again(2, 1.5)]
    assert not list(too_fast(runs, "work", 2, 500))
    assert list(too_fast(runs, "work", 2, 501))


def test_what_was_asked_for_before_a_pause_may_come_in_it() -> None:
    assert list(given_in_a_pause([RUN], "anna", 0.9, 1.2)) == [RUN]
    for paused, resumed in ((1.05, 1.2), (0.9, 1.05)):
        assert not list(given_in_a_pause([RUN], "anna", paused, resumed))


def test_a_job_is_overtaken_only_while_it_runs() -> None:
    assert list(overtaken([RUN, again(1, 1.5)], "work")) == [(RUN, again(1, 1.5))]
    assert not list(overtaken([RUN, again(1, 2.0)], "work"))
    assert not list(overtaken([again(1, 1.0), replace(again(0, 1.5))], "work"))
