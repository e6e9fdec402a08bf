"""The drill of docs/REGIONS.md on six hosts: a copy takes over under load, and the old origin comes back as its copy.

Each cluster has an authority and users of its own, as two regions have.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pytest
from sockpq import BadArguments, Client, OutcomeUnknown, SockpqError

from sockpqd.pqctl.doctor.check import OK

if TYPE_CHECKING:
    from tests.deploy.cluster import Cluster

pytestmark = pytest.mark.timeout(3000)

SECRET, COPY_SECRET = "secret-of-the-tests", "secret-of-the-other-region"
USERS = {
    "worker": {"rights": ["put", "get"], "secret": SECRET}, "copy": {"rights": ["admin"], "secret": COPY_SECRET},
}
VARIABLES: dict[str, Any] = {"sockpqd_users": USERS, "sockpqd_feed": {"keep_bytes": 1 << 28}}
QUEUE = "load"
WAIT_S = 300.0
CALL_S = 5.0
JOBS = 300              # before and after the promotion
PAUSE_S = 0.005


class Regions(NamedTuple):
    """Both clusters: n1 to n3, and their copy r1 to r3."""

    origin: Cluster
    copy: Cluster


@pytest.fixture(scope="module")
def regions() -> Iterator[Regions]:
    """Both clusters, installed; the copy follows."""
    from tests.deploy.cluster import Cluster  # needs what is not there where the tests are skipped

    with Cluster(VARIABLES) as origin:
        origin.playbook("site.yml")
        copy = origin.another(["r1", "r2", "r3"], {**VARIABLES, **following(origin)})
        copy.playbook("site.yml")
        yield Regions(origin, copy)


def following(origin: Cluster) -> dict[str, Any]:
    """Return the variables of a copy of this cluster."""
    return {
        "sockpqd_replica_of": origin.servers().split(","), "sockpqd_replica_user": "copy",
        "sockpqd_replica_secret": COPY_SECRET, "sockpqd_replica_ca": str(origin.secrets / "ca.crt"),
    }


def client_of(cluster: Cluster, **options: Any) -> Client:
    """Return a client that puts and takes jobs there."""
    return Client(cluster.servers(), tls=str(cluster.secrets / "ca.crt"), user="worker", secret=SECRET, **options)


def pqctl(cluster: Cluster, line: str) -> dict[str, Any]:
    """Run pqctl with --json on the first host of the cluster, as its operator."""
    told = cluster.ssh(cluster.names[0], f"pqctl {line} --json", check=False)
    return dict(json.loads(told)) if told else {}


def at(origin: Cluster) -> str:
    """Return how the hosts of a copy name and reach this origin: by the files that the role brought."""
    files = "--origin-ca /etc/sockpqd/origin-ca.crt --origin-user copy --origin-secret-file /etc/sockpqd/origin.secret"
    return f"{origin.servers()} {files}"


def until(condition: Callable[[], bool], what: Callable[[], object]) -> None:
    """Wait until the condition holds; after WAIT_S fail with what `what()` returns."""
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, what()
        time.sleep(0.5)


def well(copy: Cluster) -> bool:
    """Return whether `pqctl doctor` finds that the copy follows."""
    checks = pqctl(copy, "doctor").get("checks", [])
    return any(check["name"] == "region" and check["state"] == OK for check in checks)


class Program:
    """Puts numbered jobs, one after the other, at the cluster whose addresses it is given last."""

    def __init__(self, client: Client) -> None:
        self.acknowledged: list[bytes] = []
        self.unknown: list[bytes] = []
        self.first_at: float | None = None          # when the present cluster acknowledged a job first
        self._client = client
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()

    def give(self, client: Client) -> None:
        """Let it use these addresses from its next call on."""
        self._client, self.first_at = client, None

    def _run(self) -> None:
        number = 0
        while not self._stopping.wait(PAUSE_S):
            number += 1
            body, client = b"%d" % number, self._client
            try:
                client.put(QUEUE, body)
            except BadArguments:
                raise
            except OutcomeUnknown:
                self.unknown.append(body)
            except SockpqError:                     # not executed; the cluster may be fenced already
                continue
            else:
                self.acknowledged.append(body)
                if client is self._client and self.first_at is None:
                    self.first_at = time.monotonic()

    def progress(self) -> None:
        """Wait until some more jobs were acknowledged."""
        target = len(self.acknowledged) + JOBS
        until(lambda: len(self.acknowledged) >= target, lambda: f"{len(self.acknowledged)} jobs of {target}")


def test_a_copy_takes_over_under_load_and_the_old_origin_comes_back_as_its_copy(regions: Regions) -> None:
    origin, copy = regions
    until(lambda: well(copy), lambda: pqctl(copy, "doctor"))
    checks = pqctl(copy, f"region follow {at(origin)} --timeout 20")["checks"]
    assert {check["name"]: check["state"] for check in checks} == dict.fromkeys(
        ("origin", "feed", "level", "replica"), OK), checks
    assert copy.ssh("r2", "stat --format %U:%a /etc/sockpqd/origin.secret").split() == ["sockpqd:600"]
    assert COPY_SECRET not in copy.ssh("r1", "journalctl -u sockpqd --no-pager -o cat; cat /etc/sockpqd/sockpqd.toml")

    name = copy.status("r1")["cluster"]          # its id
    origin.vary(sockpqd_feed={"keep_bytes": 1 << 28, "replica": name})
    origin.playbook("site.yml")                     # one node at a time: the copy follows another one meanwhile
    until(lambda: well(copy), lambda: pqctl(copy, "doctor"))

    with client_of(origin, timeout=CALL_S) as before, client_of(copy, timeout=CALL_S) as after:
        with Program(before) as program:
            program.progress()
            begun = time.monotonic()
            promotion = pqctl(copy, f"region promote --yes --timeout 120 --fence {at(origin)}")
            ended = time.monotonic()
            assert promotion.get("fenced") is True, promotion
            program.give(after)
            program.progress()
            assert program.first_at is not None
            print(f"region promote --fence: {ended - begun:.2f} s; the first job {program.first_at - ended:.2f} s "
                  f"later; {len(program.unknown)} calls in doubt, {len(program.acknowledged)} acknowledged")
        taken: Counter[bytes] = Counter()
        with client_of(copy, timeout=WAIT_S) as worker:
            while jobs := worker.get_many(500, QUEUE, expire=3600.0):
                taken.update(job.data for job in jobs)
                for job in jobs:
                    job.done()
        assert set(program.acknowledged) <= set(taken)      # nothing acknowledged is lost,
        assert max(taken.values()) == 1                     # or there twice,
        assert set(taken) <= {*program.acknowledged, *program.unknown}

        with pytest.raises(SockpqError):                    # the old origin serves nobody,
            before.put(QUEUE, b"for the old one")
        fenced = [check for check in pqctl(origin, "doctor")["checks"] if check["name"] == "region"]
        assert name in fenced[0]["found"]                   # and says why

    for host in origin.names:
        origin.ssh(host, "systemctl stop sockpqd && rm -rf /var/lib/sockpqd/*")
    copy.vary(**dict.fromkeys(following(origin)))
    origin.vary(sockpqd_feed=None, **following(copy))
    origin.playbook("site.yml")
    until(lambda: well(origin), lambda: pqctl(origin, "doctor"))
    with client_of(copy, timeout=WAIT_S) as client:
        client.put(QUEUE, b"of the new origin")
    until(lambda: pqctl(origin, f"region diff {at(copy)} --timeout 20").get("equal") is True,
          lambda: pqctl(origin, f"region status {at(copy)}"))
    copy.playbook("site.yml")                       # the section [replica] goes, and it serves as before
    with client_of(copy, timeout=WAIT_S) as client:
        assert client.get(QUEUE, expire=60.0).data == b"of the new origin"


def test_a_drill_with_the_live_cluster_leaves_nothing(regions: Regions) -> None:
    """After the test above: the cluster of r1 to r3 serves, n1 to n3 follow it."""
    new = regions.copy
    told = pqctl(regions.origin, (
        f"--servers {new.servers()} --ca /etc/sockpqd/origin-ca.crt --user copy "
        "--secret-file /etc/sockpqd/origin.secret region drill --timeout 300"))
    assert told.get("first_answer_s") is not None, told
    print(f"region drill: {told}")
    assert regions.origin.ssh("n1", "ls -d /tmp/sockpqd-drill-*", check=False) == ""
    assert well(regions.origin)
