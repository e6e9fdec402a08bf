"""Wrong wall clocks of real processes: no job comes before its time, and no lease ends early."""

from __future__ import annotations

import time

import pytest
from sockpq import Client

from tests.chaos.machines import clocks
from tests.chaos.machines.cluster import ProxiedCluster

pytestmark = pytest.mark.usefixtures("toxiproxy_server")

LEASE_S = 4.0
BLUR_S = 0.2                    # messages between the nodes wait that long, on a machine with other work
SHORT_S = 1.0                   # what is promised
PATIENCE_S = 60.0


@pytest.mark.parametrize("ahead_s", [60.0, -60.0, 3600.0, -3600.0])
def test_a_leader_whose_clock_is_wrong_is_neither_early_nor_short(ahead_s: float) -> None:
    if clocks.library() is None:
        pytest.skip("no libfaketime")
    with ProxiedCluster(fake_clocks=True) as cluster, Client(cluster.servers) as client:
        cluster.set_clock("n2", ahead_s)
        while cluster.wait_for_leader() != "n2":
            client.cluster_transfer("n2")
        client.put("leased", b"x")
        asked = time.monotonic()
        assert client.get("leased", expire=LEASE_S)
        at = time.time() + LEASE_S      # two of the three nodes see the same clock
        client.put("at", b"y", at=at)
        for jump_s in (0, -ahead_s, ahead_s):
            cluster.set_clock("n2", jump_s)
            for _ in range(50):
                client.put("other", b"z")
        client.cluster_transfer()
        assert client.get("at", block=True, wait=PATIENCE_S)
        assert time.time() > at - BLUR_S
        assert client.get("leased", block=True, wait=PATIENCE_S)
        assert time.monotonic() - asked > LEASE_S - SHORT_S
