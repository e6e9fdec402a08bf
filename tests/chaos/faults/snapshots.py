"""Lets nodes come back when the others have removed the entries they need."""

from __future__ import annotations

from devcluster.cluster import say
from tests.chaos.faults.fault import Fault, called
from tests.chaos.faults.partitions import How, Partition
from tests.chaos.faults.processes import Kill
from tests.chaos.faults.roles import Role
from tests.chaos.machines.alterable import AlterableCluster
from tests.waiting import eventually

SNAPSHOT_S = 30.0
PROGRESS_S = 10.0
GIVEN_UP_S = 10.0
TAKEN = "state taken over from"


class LeftBehind(Fault):
    """A minority of nodes is cut off or (`how` None) killed, and comes back when the others' journals no longer reach
    back to its last entry, so that it needs a snapshot.

    With the leader and a silent network this is the worst case: it returns with a tail of uncommitted entries, and its
    last messages arrive late. `end` makes the others compact their journals, so it takes some seconds; it needs a
    client that keeps putting jobs.
    """

    def __init__(self, role: Role, how: How | None) -> None:
        super().__init__()
        self._role = role
        self._how = how
        self._away: Fault | None = None

    def __repr__(self) -> str:
        return f"LeftBehind {called(self._role)} {called(self._how) if self._how else 'killed'}"

    def _begin(self, cluster: AlterableCluster) -> None:
        self.names = self._role(cluster)
        names = list(self.names)                # the same nodes, whichever leads when the other fault begins
        self._away = Partition(lambda _: names, self._how) if self._how else Kill(lambda _: names)
        self._away.begin(cluster)

    def _end(self, cluster: AlterableCluster) -> None:
        if self._away is None:
            return
        try:
            rest = [name for name in cluster.names if name not in self.names]
            # As long as a connection stands, TCP brings all that was sent when the network is well again.
            self._wait_to_see(lambda: all(self._logged(cluster, name, f"connection to {away} lost")
                                          for name in rest for away in self.names), "the others gave it up", GIVEN_UP_S)
            for _ in range(2):                  # a journal reaches back to the older of two snapshots
                self._wait_to_see(lambda: self._progress(cluster, rest), "the others went on", PROGRESS_S)
                for name in rest:
                    answer = say(cluster.direct(name), "CLUSTER SNAPSHOT", SNAPSHOT_S) or "no answer"
                    self._saw(answer.startswith("200"), f"{name} wrote a snapshot: {answer}")
        finally:
            self._away.end()
        self.cuts += self._away.cuts
        self.evidence += self._away.evidence
        self.missing += self._away.missing
        for name in self.names:
            self._wait_to_see(lambda name=name: self._logged(cluster, name, TAKEN), f"{name} got a snapshot",
                              SNAPSHOT_S)

    def _progress(self, cluster: AlterableCluster, rest: list[str]) -> bool:
        """Return whether each of them applies further entries."""
        def applied() -> list[int]:
            return [position(cluster, name) for name in rest]

        before = applied()
        return eventually(lambda: all(now > then >= 0 for now, then in zip(applied(), before, strict=True)), 1.0)


def position(cluster: AlterableCluster, name: str) -> int:
    """Return the position up to which a node has executed the log; -1 when it does not answer."""
    answer = say(cluster.direct(name), "CLUSTER HASH", 1.0)
    words = answer.split() if answer else []
    return int(words[2]) if words[:2] == ["200", "OK"] else -1
