"""The promise of a pulse over real nodes: never too many grants in any window, whichever node dies (spec/pulse 2.1).

A frozen leader is kept from granting by two things: what it proposes when it goes on is never committed, and what was
committed before it was frozen is not written without its lease. The second can be taken out unnoticed here, as a signal
would have to come in the instant between the commit and the write of one turn. The simulation freezes leaders right
there: with `write_without_a_lease` of tests/sim/gateway/cures.py it goes red, and so does the rule's own test in
tests/gateway/waiting/test_grant_waiters.py.
"""

from __future__ import annotations

import time

import pytest

from devcluster.cluster import LocalCluster
from tests.chaos.checker.grants import given_twice, too_many
from tests.chaos.workload.turns import TurnClients
from tests.waiting import PATIENCE_S, until

RATE, PER_S = 6, 1.0
CLIENTS = 200
FROZEN_S = 2.0              # longer than an election


@pytest.mark.timeout(300)
def test_no_window_has_more_grants_than_the_pulse_allows_while_leaders_die() -> None:
    with LocalCluster(3) as cluster:
        leader = cluster.wait_for_leader()
        assert cluster.say(leader, f"PULSE CREATE p RATE {RATE} PER {PER_S:g}", PATIENCE_S) == "200 OK"
        with TurnClients(cluster.servers, "p", CLIENTS) as clients:
            grants = clients.grants

            def go_on(periods: int) -> None:
                before = len(grants)
                until(lambda: len(grants) >= before + periods * RATE)

            for frozen in (False, True, False):
                name = cluster.wait_for_leader()
                go_on(2)                # right behind a group of grants, when they count most
                if frozen:              # it comes back and must not write what is old
                    cluster.pause(name)
                    time.sleep(FROZEN_S)
                    cluster.resume(name)
                else:
                    cluster.kill(name)
                go_on(2)
                if not frozen:
                    cluster.restart(name)
            go_on(1)
        assert clients.strange == []
        assert too_many(grants, RATE, PER_S) == []
        assert given_twice(grants) == []
