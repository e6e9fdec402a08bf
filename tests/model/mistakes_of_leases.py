"""Mistakes with the lease of a leader: see mistakes.py."""

from __future__ import annotations

from tests.model.leases import PROMISE, Follower, LeaseRules, Leases, nobody_else_is_elected
from tests.model.mistakes import Mistake


class TakeNothingOff(LeaseRules):
    """A leader relies on the whole of a promise, and its clock is slow."""

    lease = PROMISE


class CountFromTheAnswer(LeaseRules):
    """A leader counts from when an answer came, not from when it sent the message."""

    def counted(self, age: int) -> int:
        return self.lease


class ForgetThePromise(LeaseRules):
    """A node that was started again has forgotten its promise, and makes no other."""

    def restarted(self) -> int:
        return 0


class EndWithTheConnection(LeaseRules):
    """The end of its connection to the leader ends a node's promise."""

    def disconnected(self, promise: int) -> int:
        return 0


class KeepTheLeaseAfterAnOffer(LeaseRules):
    """A leader that has asked another node to take over keeps using its lease."""

    def until(self, state: Leases) -> int:
        return super().until(state._replace(offered=False))


class BreakThePromise(LeaseRules):
    """A node votes though it has promised not to."""

    def free(self, follower: Follower) -> bool:
        return True


class RelyOnOneAnswer(LeaseRules):
    """A leader of five nodes relies on the newest answer, not on the third-newest, its own included."""

    def until(self, state: Leases) -> int:
        return max(one.lease for one in state.followers) if state.leads and not state.offered else 0


class ClocksTooFarApart(LeaseRules):
    """The leader's clock runs by a fifth slower than another: no mistake, but what may not be (spec/cluster 1.3)."""

    slow = 8


class LeaseMistake(Mistake):
    """A mistake in the model of leases; `cluster` has the number of followers."""

    def start(self) -> Leases:
        return Leases((Follower(),) * self.cluster.get("followers", 2))


ONE = (nobody_else_is_elected,)

MISTAKES_OF_LEASES = (
    LeaseMistake(TakeNothingOff, "spec/cluster 1.3", invariants=ONE),
    LeaseMistake(CountFromTheAnswer, "spec/cluster 1.3", invariants=ONE),
    LeaseMistake(ForgetThePromise, "spec/cluster 1.3", invariants=ONE),
    LeaseMistake(EndWithTheConnection, "spec/cluster 1.3", invariants=ONE),
    LeaseMistake(KeepTheLeaseAfterAnOffer, "spec/cluster 1.3", invariants=ONE),
    LeaseMistake(BreakThePromise, "spec/cluster 4.1", invariants=ONE),
    LeaseMistake(RelyOnOneAnswer, "spec/cluster 1.3", {"followers": 4}, invariants=ONE),
    LeaseMistake(ClocksTooFarApart, "spec/cluster 1.3", invariants=ONE),
)
