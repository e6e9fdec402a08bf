"""Two hundred clients wait for the turns of one pulse while its leaders are cut off."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from sockpq import Client

from sockpqd.cluster.leader.clock import SLEW
from tests.chaos.checker.grants import given_twice, too_many
from tests.chaos.faults.fault import Fault, during
from tests.chaos.faults.partitions import Partition, cut, silent
from tests.chaos.faults.processes import Kill
from tests.chaos.faults.roles import leader
from tests.chaos.machines.cluster import ProxiedCluster
from tests.chaos.workload.turns import TurnClients
from tests.waiting import PATIENCE_S, eventually

CLIENTS = 200
RATE, PER_S = 30, 2.0           # a leader is replaced within a period
WARM_S = 3.0
FAULT_S = 2.5                   # longer than an election
AFTER_S = 3.0
SLEEP_S = 5.0
# The cluster's time may run faster and counts milliseconds, and a machine corrects its time of day by some of them.
SHORTEST_S = SLEEP_S * (1 - SLEW) - 0.02

# Killed and frozen ones are in tests/system/test_pulse.py.
FAULTS: dict[str, Callable[[], Fault]] = {
    "leader cut off": lambda: Partition(leader, cut),
    "leader silent": lambda: Partition(leader, silent),
}


def nodes_of(cluster: ProxiedCluster) -> list[str]:
    """Return the nodes' own addresses: no proxy stands between a byte that is written and its reader."""
    return [cluster.direct(name) for name in cluster.names]


@pytest.mark.usefixtures("toxiproxy_server")
@pytest.mark.parametrize("fault", FAULTS)
def test_no_window_has_more_grants_than_the_pulse_allows(fault: str) -> None:
    with ProxiedCluster(3) as cluster:
        serving = cluster.wait_for_leader()
        assert cluster.say(serving, f"PULSE CREATE p RATE {RATE} PER {PER_S:g}", 60) == "200 OK"
        with TurnClients(nodes_of(cluster), "p", CLIENTS) as clients:
            grants = clients.grants
            assert eventually(lambda: len(grants) >= RATE, PATIENCE_S)
            time.sleep(WARM_S)
            clients.vanish(CLIENTS // 2)            # their turns go to the others
            before = len(grants)
            # Right behind a group of grants, when most of them are in the window.
            assert eventually(lambda: len(grants) >= before + 2 * RATE, PATIENCE_S)
            with during(cluster, FAULTS[fault]()) as (one,):
                time.sleep(FAULT_S)
            before = len(grants)
            assert eventually(lambda: len(grants) >= before + RATE, PATIENCE_S)
            time.sleep(AFTER_S)
        assert one.fired, one.report()
        assert clients.strange == []
        assert too_many(grants, RATE, PER_S) == []
        assert given_twice(grants) == []


@pytest.mark.usefixtures("toxiproxy_server")
def test_who_sleeps_sleeps_over_a_failover() -> None:
    with ProxiedCluster(3) as cluster:
        serving = cluster.wait_for_leader()
        assert cluster.say(serving, f"PULSE CREATE p RATE {RATE} PER 0.5", 60) == "200 OK"
        with TurnClients(nodes_of(cluster), "p", CLIENTS) as clients:
            grants = clients.grants
            assert eventually(lambda: len(grants) >= 2 * RATE, PATIENCE_S)
            clients.sleep_next = SLEEP_S
            assert eventually(lambda: clients.slept is not None and clients.slept[1] > 0, PATIENCE_S)
            with Client(cluster.direct(serving)) as client:
                granted = client.pulse_stat("p")["granted"]
            assert granted is not None
            with during(cluster, Kill(leader)) as (killed,):
                assert clients.slept is not None
                said, _ = clients.slept
                time.sleep(SLEEP_S)
            assert eventually(lambda: any(one.after > said + SLEEP_S for one in grants), PATIENCE_S)
        assert killed.fired, killed.report()
        assert clients.strange == []
        # Tickets are numbered in the order of the log. Grants before the SLEEP in it may be written behind its answer.
        asleep = [one for one in grants if one.ticket > granted and one.before < said + SHORTEST_S]
        assert [(one.ticket - granted, said + SHORTEST_S - one.before) for one in asleep] == []
        assert too_many(grants, RATE, 0.5) == []


@pytest.mark.usefixtures("toxiproxy_server")
def test_the_turns_of_clients_that_vanish_go_to_the_next() -> None:
    with ProxiedCluster(3) as cluster:
        serving = cluster.wait_for_leader()
        assert cluster.say(serving, "PULSE CREATE p RATE 50 PER 1", 60) == "200 OK"
        with TurnClients(nodes_of(cluster), "p", CLIENTS) as clients:
            assert eventually(lambda: len(clients.grants) >= 100, PATIENCE_S)
            first, until = len(clients.grants), time.monotonic() + PATIENCE_S
            while len(clients.grants) < first + 250:
                clients.vanish(5)
                time.sleep(0.02)
                assert time.monotonic() < until
        with Client(nodes_of(cluster)) as client:
            granted = client.pulse_stat("p")["granted"]
        # As many vanish as there are turns. If they took their turns with them there would be as many again.
        assert granted is not None
        assert granted <= len(clients.grants) * 1.2
        assert too_many(clients.grants, 50, 1.0) == []
        assert given_twice(clients.grants) == []
