"""`python -m tests.outbox.crash --rounds 500`: the crash test (`make frameworks-faults`).

In each round one role is killed at a random point: before or after a chunk of bytes that it sends or receives, to or
from the database or the cluster, or before or after a statement of SQLite. A share of the victims falls asleep instead
(`--stops`); another process does their work after their leases, then they wake up. At the end each committed order has
exactly one effect, and no other has any. `--naive` has to be found out. The exit code is 0 if nothing is wrong.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from sockpq import Client

from devcluster.cluster import LocalCluster
from tests.outbox.crash import naive, roles
from tests.outbox.crash.proxies import Proxies
from tests.outbox.crash.roles import LEASE_S, World, start
from tests.outbox.crash.shops import QUEUE, SHOPS, Direct, prepare
from tests.outbox.crash.trap import Trap
from tests.outbox.servers import DatabaseServer, Maria, Postgres

ROLES: dict[str, Callable[[World], None]] = {"producer": roles.produce, "relay": roles.relay, "worker": roles.work}
SHARE = {"producer": 1, "relay": 2, "worker": 2}       # of the rounds
POINTS_FIRST = 40               # a guess, until a role has run to its end
SLEEP_S = 1.5 * LEASE_S         # of a victim that is stopped, at least
POLL_S = 0.02
KILLS_EVERY = 10                # rounds between two kills of the leader


class Cluster(LocalCluster):
    """Nodes that clients reach through the proxies only."""

    def __init__(self, nodes: int, proxies: Proxies) -> None:
        super().__init__(nodes, {"raft": {"failover_grace_ms": 0}})
        self._proxies = proxies

    def client_address(self, name: str, address: str) -> str:
        """Return the address of a proxy, which the nodes report to clients as well."""
        return self._proxies.before(address, "cluster")


class Campaign:
    """The rounds, and what they have met."""

    def __init__(self, world: World, cluster: LocalCluster, seed: int, stops: float) -> None:
        self._world = world
        self._cluster = cluster
        self._random = random.Random(seed)
        self._stops = stops
        self._points = dict.fromkeys(ROLES, POINTS_FIRST)
        self._woken: list[int] = []
        self.hits: Counter[str] = Counter()
        self.zombies = 0
        self.failures: list[str] = []

    def round(self) -> None:
        """Let one role be a victim, after orders that a healthy producer has written."""
        self._finish(start(roles.produce, self._world), "producer")
        (role,) = self._random.choices(list(SHARE), weights=list(SHARE.values()))
        if role == "worker":
            self._finish(start(roles.relay, self._world), "relay")
        self._finish_sleepers()
        stops = self._random.random() < self._stops
        at, after = self._random.randint(1, self._points[role]), self._random.random() < 0.5
        victim = self._start_victim(role, at, after, stops)
        trap = self._world.trap
        while trap.fired is None and not _has_ended(victim):
            time.sleep(POLL_S)
        fired, count = trap.fired, trap.count
        trap.disarm()
        if fired is None:
            self._points[role] = max(count, 4)
            self._finish(victim, role)
            return
        self._points[role] = max(self._points[role], count + 4)
        self.hits[f"{role} {'stopped' if stops else 'killed'} {fired}"] += 1
        if not stops:
            os.waitpid(victim, 0)
            return
        self.zombies += 1
        self._outrun(victim, role)

    def end(self) -> None:
        """Let healthy processes finish everything."""
        self._finish_sleepers()
        for _ in range(2):          # a worker may have put something back meanwhile
            self._finish(start(roles.relay, self._world), "relay")
            self._finish(start(roles.work, self._world), "worker")

    def replace_leader(self) -> None:
        """Kill the leader, and start it again."""
        name = self._cluster.wait_for_leader()
        self._cluster.kill(name)
        self._cluster.restart(name)

    def _start_victim(self, role: str, at: int, after: bool, stops: bool) -> int:
        trap = self._world.trap
        ready, go = os.pipe()

        def armed(world: World) -> None:
            os.close(go)
            os.read(ready, 1)           # until it is armed
            ROLES[role](world)

        victim = start(armed, self._world, quiet=True)
        os.close(ready)
        trap.arm(victim, at, after=after, stops=stops)
        os.close(go)
        return victim

    def _outrun(self, victim: int, role: str) -> None:
        """Do the victim's work while it sleeps, then wake it up."""
        time.sleep(SLEEP_S)
        successor = start(ROLES[role], self._world) if role != "producer" else 0
        until = time.monotonic() + 4 * LEASE_S      # what it has locked in SQLite stays locked
        while successor and time.monotonic() < until and not _has_ended(successor):
            time.sleep(POLL_S)
        os.kill(victim, signal.SIGCONT)
        if successor:
            self._finish(successor, role)
        self._woken.append(victim)

    def _finish_sleepers(self) -> None:
        """Wait for victims that were woken up; whatever ended them, they must have done no harm."""
        for victim in self._woken:
            until = time.monotonic() + roles.PATIENCE_S
            while not _has_ended(victim) and time.monotonic() < until:
                time.sleep(POLL_S)
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
            os.waitpid(victim, 0)
        self._woken.clear()

    def _finish(self, pid: int, role: str) -> None:
        """Wait for a healthy process."""
        _, status = os.waitpid(pid, 0)
        if status:
            self.failures.append(f"a healthy {role} ended with {os.waitstatus_to_exitcode(status)}")


def _has_ended(pid: int) -> bool:
    """Return whether a child has ended; it stays to be waited for."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def verdict(url: str) -> tuple[list[str], int]:
    """Return what is wrong with the effects, and the number of orders."""
    with Direct(url) as direct:
        orders = {name for (name,) in direct.execute("SELECT name FROM orders")}
        effects = Counter(name for (name,) in direct.execute("SELECT name FROM effects"))
        left = direct.execute("SELECT COUNT(*) FROM sockpq_outbox")[0][0]
    wrong = [
        (sum(1 for name in orders if name not in effects), "orders without an effect"),
        (sum(1 for name in effects if name not in orders), "effects of orders that were rolled back"),
        (sum(1 for number in effects.values() if number > 1), "effects that happened twice"),
        (left, "rows left in the outbox"),
    ]
    return [f"{number} {text}" for number, text in wrong if number], len(orders)


def number_jobs(cluster: LocalCluster) -> None:
    """Let each job have a number, which is its identity: so one that was put twice has two effects."""
    pid = os.fork()
    if not pid:
        with Client(cluster.servers) as client:
            client.queue_create(QUEUE, numbered=True)
        os._exit(0)
    os.waitpid(pid, 0)


@contextmanager
def database(kind: str) -> Iterator[tuple[str, DatabaseServer | None]]:
    """Yield the URL of an empty database, and its server if it has one."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="sockpq-crash-") as folder:
            yield f"sqlite:///{Path(folder) / 'shop.db'}", None
        return
    with (Postgres() if kind == "postgresql" else Maria()) as server:
        server.create("shop")
        yield server.url("shop"), server


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.outbox.crash", description=__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stops", type=float, default=0.2, help="the share of victims that sleep")
    parser.add_argument("--nodes", type=int, default=1, choices=(1, 3), help="with 3 the leader is killed as well")
    parser.add_argument("--database", default="postgresql", choices=("postgresql", "mariadb", "sqlite"))
    parser.add_argument("--library", choices=tuple(SHOPS), help="of the shop")
    parser.add_argument("--exact", action="store_true", help="marks of the inbox go with the DONE")
    parser.add_argument("--naive", choices=(*naive.RELAYS, *naive.WORKERS), help="a mistake that has to be found")
    return parser.parse_args()


LIBRARIES = {"postgresql": "psycopg", "mariadb": "pymysql", "sqlite": "sqlite3"}


def main() -> int:
    """Run the campaign; returns the exit code."""
    chosen = options()
    trap = Trap()
    proxies = Proxies(trap)
    with ExitStack() as stack:
        direct, server = stack.enter_context(database(chosen.database))
        prepare(direct)
        through = direct
        if server:
            port = proxies.before(f"127.0.0.1:{server.port}", "database").rpartition(":")[2]
            through = server.url("shop", int(port))
        cluster = stack.enter_context(Cluster(chosen.nodes, proxies))
        stack.callback(proxies.stop)        # first of all, as it has inherited the pipe of the cluster's guardian
        proxies.start()
        world = World(
            through, direct, ",".join(cluster.servers), chosen.library or LIBRARIES[chosen.database], trap,
            chosen.exact, naive.RELAYS.get(chosen.naive), naive.WORKERS.get(chosen.naive),
        )
        number_jobs(cluster)
        campaign = Campaign(world, cluster, chosen.seed, chosen.stops)
        for number in range(1, chosen.rounds + 1):
            campaign.round()
            if chosen.nodes > 1 and number % KILLS_EVERY == 0:
                campaign.replace_leader()
        campaign.end()
        wrong, orders = verdict(direct)
    wrong += campaign.failures
    print(f"{chosen.rounds} rounds, {campaign.hits.total()} hits at {len(campaign.hits)} kinds of points, "
          f"{campaign.zombies} sleepers; {orders} orders")
    print("\n".join(wrong) or "each has one effect")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
