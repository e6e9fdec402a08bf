"""Pipelined batches: fast when all is well, exact about every job when it is not."""

from __future__ import annotations

import pytest
from sockpq import BatchFailed, Client, DataTooLarge, JobNotFound, NotServing, OutcomeUnknown, Unavailable
from sockpq._engine.batch import WINDOW_COMMANDS_MAX, Batch
from sockpq._protocol.commands import batches, jobs
from sockpq._protocol.protocol import Answer
from sockpq.model import Handed

from tests.client.conftest import MakeClient
from tests.client.faults import Fault
from tests.client.memory_cluster import MemoryCluster


def bodies(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_many_jobs_are_put_in_order(cluster: MemoryCluster, client: Client) -> None:
    assert client.put_many("q", bodies(5000), priority=3, item="group") == 5000
    assert cluster.bodies("q") == bodies(5000)
    assert client.put_many("q", []) == 0


def test_large_bodies_pass(cluster: MemoryCluster, client: Client) -> None:
    large = [bytes([number]) * 700_000 for number in range(8)]
    client.put_many("q", large)
    assert cluster.bodies("q") == large


def test_a_batch_is_refused_before_sending_when_one_body_is_wrong(cluster: MemoryCluster, client: Client) -> None:
    with pytest.raises(TypeError):
        client.put_many("q", [b"good", 5])     # type: ignore[list-item]
    assert cluster.servers[0].received == []


def test_a_new_leader_gets_what_the_old_one_refused(cluster: MemoryCluster, client: Client) -> None:
    cluster.servers[0].fail("PUT", Fault.REFUSE, Fault.BUSY)
    client.put_many("q", bodies(100))
    assert sorted(cluster.bodies("q")) == sorted(bodies(100))


@pytest.mark.parametrize("fault", [Fault.EXECUTE_AND_CLOSE, Fault.CLOSE, Fault.RUBBISH, Fault.EXECUTE_AND_STALL])
def test_a_lost_connection_leaves_the_rest_of_the_window_unknown(
    cluster: MemoryCluster, old_client: Client, fault: Fault
) -> None:
    old_client.put_many("q", bodies(10))
    cluster.servers[0].fail("PUT", fault)
    with pytest.raises(BatchFailed) as failed:
        old_client.put_many("q", bodies(2 * WINDOW_COMMANDS_MAX))
    error = failed.value
    assert isinstance(error, OutcomeUnknown)
    assert error.unknown[0] == 0
    assert len(error.unknown) <= WINDOW_COMMANDS_MAX
    assert sorted(error.unknown + error.not_executed) == list(range(2 * WINDOW_COMMANDS_MAX))


def test_a_batch_says_what_is_acknowledged(cluster: MemoryCluster, old_client: Client) -> None:
    cluster.servers[0].fail("PUT", *[None] * 7, Fault.CLOSE)
    with pytest.raises(BatchFailed) as failed:
        old_client.put_many("q", bodies(20))
    assert failed.value.unknown == tuple(range(7, 20))
    assert failed.value.not_executed == ()
    assert cluster.bodies("q") == bodies(7)


def test_at_least_once_brings_every_job_of_a_batch(cluster: MemoryCluster, old_client: Client) -> None:
    cluster.servers[0].fail("PUT", *[None] * 7, Fault.EXECUTE_AND_CLOSE, *[None] * 5, Fault.CLOSE)
    old_client.put_many("q", bodies(20), retry_unknown=True)
    assert set(cluster.bodies("q")) == set(bodies(20))
    assert len(cluster.bodies("q")) == 21       # number 7 twice: executed, then sent again


@pytest.mark.parametrize("sessions", [True, False])
def test_what_is_unknown_stays_so_when_nobody_serves_any_more(
    cluster: MemoryCluster, make_client: MakeClient, sessions: bool
) -> None:
    only = cluster.servers[0]
    client = make_client([only.address], timeout=2, server_timeout=0.3, sessions=sessions)
    only.fail("PUT", None, Fault.CLOSE, *[Fault.REFUSE] * 1000)
    with pytest.raises(BatchFailed) as failed:
        client.put_many("q", bodies(5), retry_unknown=True)
    assert failed.value.unknown == (1, 2, 3, 4)
    only.fail("PUT", *[Fault.REFUSE] * 1000)
    with pytest.raises(Unavailable):            # nothing at all was executed: the plain error
        client.put_many("q", bodies(5))


def test_many_jobs_are_taken_and_done(cluster: MemoryCluster, client: Client) -> None:
    client.put_many("q", bodies(5))
    jobs = client.get_many(8, "q", expire=30)
    assert [job.data for job in jobs] == bodies(5)
    assert client.get_many(8, "q", expire=30) == []
    ends = client.done_many([jobs[0], 999, jobs[1].id, jobs[1]])
    assert [end is not None for end in ends] == [True, False, True, False]
    assert len(cluster.running) == 3


def test_jobs_that_came_before_the_connection_broke_are_kept(cluster: MemoryCluster, old_client: Client) -> None:
    old_client.put_many("q", bodies(5))
    cluster.servers[0].fail("GET", None, None, Fault.HALF_ANSWER)
    assert [job.data for job in old_client.get_many(5, "q", expire=30)] == bodies(2)
    cluster.servers[0].fail("GET", Fault.CLOSE)
    assert [job.data for job in old_client.get_many(5, "q", expire=30)] == bodies(5)[3:]


def test_a_window_is_refilled_when_half_of_it_is_answered() -> None:
    batch = Batch(batches.puts("q", bodies(3000)))
    assert len(batch.next()) == WINDOW_COMMANDS_MAX
    batch.answered([Answer(None)] * 400)
    assert batch.next() == []
    batch.answered([Answer(None)] * 100)
    assert len(batch.next()) == 500


def test_after_a_refusal_nothing_more_is_sent_to_that_server() -> None:
    batch = Batch(batches.puts("q", bodies(3000)))
    batch.next()
    batch.answered([Answer(None, NotServing("500 Offline Mode"))] * WINDOW_COMMANDS_MAX)
    assert batch.next() == []
    batch.again()
    assert batch.not_executed == tuple(range(3000))
    assert len(batch.next()) == WINDOW_COMMANDS_MAX


def test_the_timeout_of_a_batch_limits_the_time_without_progress(cluster: MemoryCluster, client: Client) -> None:
    cluster.servers[0].script.delay_s = 0.03
    client.put_many("q", bodies(100), timeout=2)
    assert len(cluster.bodies("q")) == 100


def test_a_final_refusal_of_one_job_does_not_stop_the_others() -> None:
    batch = Batch(batches.puts("q", bodies(3)))
    batch.next()
    batch.answered([Answer(None), Answer(None, DataTooLarge("413")), Answer(None)])
    assert not batch.in_flight
    assert batch.refusal is None
    assert [answer is not None and answer.error is None for answer in batch.answers] == [True, False, True]


def test_put_many_names_the_refused(cluster: MemoryCluster, client: Client) -> None:
    cluster.servers[0].fail("PUT", None, Fault.TOO_LARGE)
    with pytest.raises(BatchFailed) as failed:
        client.put_many("q", bodies(3))
    assert (failed.value.unknown, failed.value.not_executed) == ((), (1,))
    assert isinstance(failed.value.__cause__, DataTooLarge)


def test_done_many_of_jobs_nobody_has_is_no_error(client: Client) -> None:
    assert client.done_many([1, 2]) == [None, None]
    with pytest.raises(JobNotFound):
        client.done(1)


def test_no_more_jobs_are_asked_for_than_a_server_keeps_answers() -> None:
    """It cuts the connection of a client that does not read 64 MiB, and then hands out nothing."""
    def came(count: int, length: int) -> None:
        batch.answered([Answer(Handed(1, "q", 0, bytes(length), None))] * count)

    batch = Batch([jobs.get("q", expire=5)] * 1000, brings_jobs=True)
    batch.begin(None)
    assert len(batch.next()) == 4           # of whatever length they are
    came(4, 1000)
    assert len(batch.next()) == 1000 - 4
    came(1, 1_000_000)
    assert batch.lost()
    batch.again()
    assert len(batch.next()) == 4
    came(4, 1000)
    assert len(batch.next()) == 33          # the longest counts
