"""The interface of a fault: something that goes wrong with a cluster for a while, and knows whether it really did.

    with during(cluster, Partition(leader, silent)) as (partition,):
        time.sleep(3)
    assert partition.fired, partition.report()

The other modules of this package have them.
"""

from __future__ import annotations

import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator

from tests.chaos.machines.alterable import AlterableCluster
from tests.chaos.machines.cluster import ProxiedCluster
from tests.chaos.proxies.proxies import Link
from tests.chaos.workload.history import Cut, Record
from tests.waiting import eventually

SEEN_S = 5.0            # how long a fault waits to see that it had its first effect


class Fault(ABC):
    """One fault, to be used once: `begin`, some time, `end`.

    `evidence` is what was seen to happen, `missing` what should have been seen and was not. `names`: the affected
    nodes. `cuts`: the times in which a node certainly could not reach a majority (clock: time.monotonic_ns). `late`:
    the times in which a node's output may have reached its clients with a delay. `records`: commands that the fault
    itself sent, as a client.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.evidence: list[str] = []
        self.missing: list[str] = []
        self.cuts: list[Cut] = []
        self.late: list[Cut] = []
        self.records: list[Record] = []
        self._cluster: AlterableCluster | None = None
        self._log_sizes: dict[str, int] = {}

    def begin(self, cluster: AlterableCluster) -> None:
        """Let it happen; returns when it has. When this raises, `end` is still to be called."""
        self._cluster = cluster
        self._log_sizes = {name: len(cluster.logs(name)) for name in cluster.names}
        self._begin(cluster)

    def end(self) -> None:
        """Heal it; returns when all is repaired that the fault broke. The second time, and without a beginning, it does
        nothing."""
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            self._end(cluster)

    @property
    def fired(self) -> bool:
        """True if it happened, as far as can be seen from outside."""
        return bool(self.evidence) and not self.missing

    def report(self) -> str:
        """Return the report in one line."""
        missing = f"; MISSING: {', '.join(self.missing)}" if self.missing else ""
        return f"{self!r} on {' '.join(self.names) or 'nobody'}: {', '.join(self.evidence) or 'nothing'}{missing}"

    def __repr__(self) -> str:
        return type(self).__name__

    # for the faults

    @abstractmethod
    def _begin(self, cluster: AlterableCluster) -> None: ...

    @abstractmethod
    def _end(self, cluster: AlterableCluster) -> None: ...

    def _saw(self, seen: bool, what: str) -> None:
        (self.evidence if seen else self.missing).append(what)

    def _wait_to_see(self, condition: Callable[[], bool], what: str, timeout: float = SEEN_S) -> bool:
        seen = eventually(condition, timeout)
        self._saw(seen, what)
        return seen

    def _logged(self, cluster: AlterableCluster, name: str, text: str) -> bool:
        """Return whether this node has logged this since the fault began."""
        return text in cluster.logs(name)[self._log_sizes[name]:]


class LinkedFault(Fault):
    """A fault of some links. When it ends they are as they were when it began: another one that began before and ends
    later may be on the same links. Only the same toxic (proxies/proxies.py) cannot be there twice."""

    def __init__(self) -> None:
        super().__init__()
        self._conditions: dict[Link, frozenset[str]] = {}

    @property
    def _links(self) -> list[Link]:
        return list(self._conditions)

    def _take(self, links: Iterable[Link]) -> None:
        self._conditions = {link: link.condition for link in links}

    def _heal_links(self, cluster: AlterableCluster) -> None:
        assert isinstance(cluster, ProxiedCluster)
        cluster.together(self._links, lambda link: link.heal(self._conditions[link]))


def called(function: Callable[..., object]) -> str:
    """Return the name of a function, or of the one that made it."""
    return function.__qualname__.partition(".")[0]


@contextlib.contextmanager
def during(cluster: AlterableCluster, *faults: Fault) -> Iterator[tuple[Fault, ...]]:
    """Apply all these faults during this block. They begin in this order and end in the reverse one, also when
    something fails."""
    with contextlib.ExitStack() as begun:
        for fault in faults:
            begun.callback(fault.end)
            fault.begin(cluster)
        yield faults


class Background:
    """A thread for what a fault does all the time; `finish` stops it and raises what it raised."""

    def __init__(self, work: Callable[[threading.Event], None]) -> None:
        """`work` gets an event that is set when it should stop."""
        self._stopping = threading.Event()
        self._error: BaseException | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run, name="fault", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._work(self._stopping)
        except BaseException as error:
            self._error = error

    def finish(self) -> None:
        """Ask it to stop, and wait until it has."""
        self._stopping.set()
        self.wait()

    def wait(self) -> None:
        """Wait until the work ends by itself."""
        self._thread.join()
        if self._error is not None:
            raise self._error
