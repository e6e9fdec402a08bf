"""`pqctl doctor` and `pqctl job running` on jobs that run without a lease."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sockpq import Client, FoundJob, Meta

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.doctor import lease_checks
from sockpqd.pqctl.doctor.check import WARN
from sockpqd.pqctl.doctor.lease_checks import unleased
from tests.pqctl.running import ask, run

META = Meta(key=None, attempt=1, at=None, expires_at=None)


@pytest.fixture
def client(nodes: LocalCluster) -> Iterator[Client]:
    with Client(nodes.servers) as client:
        yield client
        for job in client.running():
            client.done(job.id)


def jobs(*numbers: int) -> dict[int, FoundJob]:
    return {number: FoundJob(number, "q", 0, 1, "running", None, META, None) for number in numbers}


def test_what_ran_both_times_and_is_of_no_session_counts() -> None:
    assert unleased(jobs(1, 2), jobs(3), 0) is None
    assert unleased(jobs(1, 2, 3), jobs(1, 2, 3, 4), 3) is None
    found = unleased(jobs(1, 2, 3), jobs(2, 3, 4), 1)
    assert found is not None
    assert (found.state, found.found) == (WARN, "1 job, put over an hour ago, runs without a lease")


def test_doctor_names_an_old_job_that_only_a_client_can_end(
    nodes: LocalCluster, client: Client, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client.put_many("q", [b"1", b"2"])
    leased = client.get("q", expire=600)
    code, told = ask(capsys, nodes.servers, "doctor")
    assert [check for check in told["checks"] if check["name"] == "leases"] == []
    kept = client.get("q")
    assert leased is not None
    assert kept is not None
    code, told = ask(capsys, nodes.servers, "doctor")
    assert [check for check in told["checks"] if check["name"] == "leases"] == []       # it may be at work
    monkeypatch.setattr(lease_checks, "OLD_S", -60.0)
    code, told = ask(capsys, nodes.servers, "doctor")
    (check,) = (check for check in told["checks"] if check["name"] == "leases")
    assert check["found"] == f"1 job, put over an hour ago, runs without a lease ({kept.id} of q)"
    assert (code, check["state"]) == (1, WARN)


def test_job_running_marks_it(nodes: LocalCluster, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    client.put_many("q", [b"1", b"2"])
    client.get("q", expire=600)
    assert "no lease" not in run(capsys, "--servers", nodes.servers[0], "job", "running")[1]
    client.get("q")
    out = run(capsys, "--servers", nodes.servers[0], "job", "running")[1]
    assert [line.split()[-2:] for line in out.splitlines()[1:3]][1] == ["no", "lease"]
    assert out.endswith("`pqctl job later ID` puts it back\n")
