"""With a session a lost answer is no question: the call is executed exactly once, and gets its first answer."""

from __future__ import annotations

import threading

import pytest
from sockpq import BadArguments, Client, Finished, JobNotFound, NoOutput, OutcomeUnknown, Unavailable

from sockpqd.core import Done, Request
from tests.client.conftest import MakeClient
from tests.client.faults import Fault
from tests.client.memory_cluster import MemoryCluster
from tests.waiting import at_most, eventually, until

FAULTS = [
    Fault.EXECUTE_AND_CLOSE, Fault.HALF_ANSWER, Fault.EXECUTE_AND_STALL,
    Fault.CLOSE, Fault.STALL, Fault.RUBBISH, Fault.ENDLESS, Fault.REFUSE, Fault.BUSY,
]


def bodies(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_put_is_executed_once(cluster: MemoryCluster, client: Client, fault: Fault) -> None:
    cluster.servers[0].fail("PUT", fault)
    with at_most(4):
        assert client.put("q", b"x", new_item=True).item == "i1"
    assert cluster.bodies("q") == [b"x"]
    assert cluster.put("q") == 1


@pytest.mark.parametrize(("fault", "expire"), [*((fault, 30) for fault in FAULTS), (Fault.EXECUTE_AND_CLOSE, None)])
def test_a_get_brings_the_job_that_was_taken(
    cluster: MemoryCluster, client: Client, fault: Fault, expire: float | None
) -> None:
    client.put_many("q", [b"1", b"2"])
    cluster.servers[0].fail("GET", fault, fault if fault is Fault.EXECUTE_AND_CLOSE else None)
    with at_most(4):
        job = client.get("q", expire=expire)
    assert job is not None
    assert job.data == b"1"
    assert cluster.running == [job.id]


def test_a_get_whose_job_has_returned_meanwhile_takes_another(cluster: MemoryCluster, client: Client) -> None:
    client.put("q", b"1")
    cluster.servers[0].fail("GET", Fault.EXECUTE_AND_STALL)
    timer = threading.Timer(0.1, cluster.pass_time, [31])
    timer.start()
    job = client.get("q", expire=30)
    timer.join()
    assert job is not None
    assert cluster.running == [job.id] == [2]


@pytest.mark.parametrize("fault", FAULTS)
def test_the_end_of_a_queue_is_told_by_the_first_answer(cluster: MemoryCluster, client: Client, fault: Fault) -> None:
    client.put("q", b"1")
    job = client.get("q", expire=30)
    assert job is not None
    cluster.servers[0].fail("DONE", fault)
    assert job.done() == Finished(queue_done=True, item_done=False)
    with pytest.raises(JobNotFound):
        job.done()


def test_a_job_is_put_back_once(cluster: MemoryCluster, client: Client) -> None:
    client.put("q", b"1")
    job = client.get("q", expire=30)
    assert job is not None
    cluster.servers[0].fail("LATER", Fault.EXECUTE_AND_CLOSE)
    job.later()
    assert cluster.bodies("q") == [b"1"]


def test_a_blocked_get_follows_the_leader_and_takes_one_job(cluster: MemoryCluster, client: Client) -> None:
    cluster.servers[0].fail("GETB", Fault.HALF_ANSWER)
    timer = threading.Timer(0.2, client.put_many, ["q", [b"1", b"2"]])
    timer.start()
    job = client.get("q", block=True, expire=30)
    timer.join()
    assert job.data == b"1"
    assert cluster.running == [job.id]


@pytest.mark.parametrize("verb", ["PUT", "WAIT"])
@pytest.mark.parametrize("fault", [Fault.CLOSE, Fault.STALL, Fault.EXECUTE_AND_CLOSE])
def test_a_call_goes_on_waiting(cluster: MemoryCluster, client: Client, verb: str, fault: Fault) -> None:
    cluster.servers[0].fail(verb, fault, fault)

    def work() -> None:
        with client.get("in", block=True, expire=30) as job:
            client.put("out", job.data.upper(), item=job.item)

    worker = threading.Thread(target=work)
    worker.start()
    cluster.servers[0].fail("PING", *[Fault.CLOSE] * 3)      # the blocked are not reassured
    with client.call("in", b"hello", "out", expire=30, wait=10) as answer:
        assert answer.data == b"HELLO"
    worker.join()
    assert cluster.put("in") == 1


def test_a_call_follows_the_leader(cluster: MemoryCluster, client: Client) -> None:
    def fail() -> None:
        cluster.lead(cluster.servers[1])
        client.put("out", b"answer", item="mine")

    timer = threading.Timer(0.2, fail)
    timer.start()
    assert client.call("in", b"x", "out", item="mine", expire=30).data == b"answer"
    timer.join()
    assert cluster.bodies("in") == [b"x"]


def test_a_call_ends_with_its_wait_also_after_a_failover(cluster: MemoryCluster, client: Client) -> None:
    cluster.servers[0].fail("WAIT", Fault.CLOSE)
    with at_most(3), pytest.raises(NoOutput) as none:
        client.call("in", b"x", "out", wait=0.3)
    assert none.value.item == "i1"
    assert cluster.bodies("in") == [b"x"]


@pytest.mark.parametrize("fault", FAULTS)
def test_every_job_of_a_batch_is_there_once_and_in_order(cluster: MemoryCluster, client: Client, fault: Fault) -> None:
    cluster.servers[0].fail("PUT", *[None] * 7, fault, *[None] * 150, fault)
    with at_most(5):
        client.put_many("q", bodies(400))
    if fault in (Fault.REFUSE, Fault.BUSY):     # what is in flight behind a refusal is executed before its repetition
        assert sorted(cluster.bodies("q")) == sorted(bodies(400))
    else:
        assert cluster.bodies("q") == bodies(400)


def test_a_batch_of_gets_brings_all_that_were_taken(cluster: MemoryCluster, client: Client) -> None:
    client.put_many("q", bodies(100))
    cluster.servers[0].fail("GET", None, None, Fault.HALF_ANSWER, *[None] * 30, Fault.EXECUTE_AND_CLOSE)
    jobs = client.get_many(80, "q", expire=30)
    assert [job.data for job in jobs] == bodies(80)
    assert len(cluster.running) == 80
    cluster.servers[0].fail("DONE", *[None] * 7, Fault.EXECUTE_AND_CLOSE)
    assert client.done_many(jobs) == [Finished(False, False)] * 80


def test_at_most_a_window_is_in_flight(cluster: MemoryCluster, client: Client) -> None:
    client.put_many("q", bodies(1000))
    (session,) = cluster.do(cluster.machine.sessions)
    assert session.newest == 1000


def test_what_a_silent_leader_has_executed_is_not_executed_again(cluster: MemoryCluster, client: Client) -> None:
    cluster.servers[0].fail("PUT", Fault.EXECUTE_AND_STALL)
    timer = threading.Timer(0.1, cluster.lead, [cluster.servers[1]])
    timer.start()
    client.put("q", b"x")
    timer.join()
    assert cluster.bodies("q") == [b"x"]
    assert "PUT q 0 1" in cluster.servers[1].received


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault is not Fault.BUSY])
def test_a_session_that_cannot_be_opened_is_opened_elsewhere_or_later(
    cluster: MemoryCluster, client: Client, fault: Fault
) -> None:
    cluster.servers[0].fail("SESSION", fault)
    cluster.servers[0].fail("PUT", None, Fault.EXECUTE_AND_CLOSE)
    with at_most(4):
        client.put("q", b"x")
        cluster.servers[0].fail("SESSION", fault)       # of the second PUT, whose connection is lost
        client.put("q", b"y")
    assert cluster.bodies("q") == [b"x", b"y"]


def test_where_there_is_no_session_to_have_calls_go_on_without(
    cluster: MemoryCluster, client: Client, monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster.say("SESSION", b"503 Busy\r\n")
    client.put("q", b"1")
    client.put_many("q", [b"2", b"3"])
    assert cluster.servers[0].received.count("SESSION TTL 900") == 1       # it is not asked for again and again
    assert set(cluster.servers[0].script.numbers) == {0}
    job = client.get("q", expire=30)
    assert job is not None
    monkeypatch.setattr("sockpq._engine.leader_connections.SESSIONLESS_S", 0.0)
    cluster.servers[0].fail("DONE", Fault.EXECUTE_AND_CLOSE)
    with pytest.raises(OutcomeUnknown):         # the promise is that of a client without sessions
        job.done()
    client.put("q", b"4")
    cluster.say("SESSION", None)
    cluster.servers[0].fail("PUT", Fault.EXECUTE_AND_CLOSE)
    client.put("q", b"5")                       # now there is one
    assert cluster.bodies("q") == [b"2", b"3", b"4", b"5"]


@pytest.mark.parametrize("fault", [Fault.CLOSE, Fault.STALL])
def test_a_server_that_is_busy_and_closes_the_connection_has_not_got_the_command(
    cluster: MemoryCluster, client: Client, fault: Fault,
) -> None:
    cluster.servers[0].fail("SESSION", Fault.BUSY)
    cluster.servers[0].fail("PING", fault)
    with at_most(4):
        client.put("q", b"x")
    assert cluster.bodies("q") == [b"x"]
    assert [line for line in cluster.servers[0].received if line.startswith("PUT")] == ["PUT q 0 1"]
    assert cluster.sessions == 1


def test_a_session_that_ended_meanwhile_is_replaced_without_a_word(cluster: MemoryCluster, client: Client) -> None:
    client.put("q", b"1")
    cluster.end_sessions()
    client.put("q", b"2")                               # on the connection that spoke for it
    cluster.end_sessions()
    cluster.servers[0].fail("PING", Fault.CLOSE)
    client.ping()                                       # on another connection
    client.put("q", b"3")
    cluster.end_sessions()
    client.put_many("q", [b"4", b"5"])
    assert cluster.bodies("q") == bodies(6)[1:]
    assert cluster.sessions == 1


def test_when_the_session_is_lost_with_the_answer_nobody_knows(cluster: MemoryCluster, client: Client) -> None:
    cluster.servers[0].fail("PUT", Fault.FORGET)
    with pytest.raises(OutcomeUnknown):
        client.put("q", b"x")
    assert cluster.bodies("q") == [b"x"]
    client.put("q", b"next")
    job = client.get("q", expire=30)
    assert job is not None
    cluster.servers[0].fail("DONE", Fault.FORGET)
    with pytest.raises(OutcomeUnknown):
        job.done()


def test_a_call_that_lost_its_session_is_not_put_again(cluster: MemoryCluster, client: Client) -> None:
    cluster.servers[0].fail("WAIT", Fault.FORGET)
    with pytest.raises(NoOutput) as none:
        client.call("in", b"x", "out")
    assert none.value.item == "i1"
    assert cluster.bodies("in") == [b"x"]


def test_a_lost_session_does_not_hinder_what_may_be_repeated(cluster: MemoryCluster, client: Client) -> None:
    client.put_many("q", [b"1", b"2"])
    cluster.servers[0].fail("GET", Fault.FORGET)
    job = client.get("q", expire=30)
    assert job is not None
    assert job.data == b"2"                             # the first one comes back when its lease ends
    cluster.servers[0].fail("PUT", Fault.FORGET)
    client.put("r", b"x", retry_unknown=True)
    assert cluster.bodies("r") == [b"x", b"x"]


def test_a_batch_that_lost_its_session_names_the_unknown(cluster: MemoryCluster, client: Client) -> None:
    cluster.servers[0].fail("PUT", *[None] * 7, Fault.FORGET)
    with pytest.raises(OutcomeUnknown) as failed:
        client.put_many("q", bodies(20))
    assert failed.value.unknown == tuple(range(7, 20))              # type: ignore[attr-defined]
    assert cluster.bodies("q") == bodies(8)


def test_an_answer_that_belongs_to_another_request_is_never_taken(cluster: MemoryCluster, client: Client) -> None:
    client.put("q", b"1")
    (session,) = cluster.do(cluster.machine.sessions)
    cluster.execute(Request(session.number, 2, bytes(16), 0, False, Done((7,))))      # as if another client used it
    client.put("q", b"2")
    assert cluster.bodies("q") == [b"1", b"2"]
    assert cluster.sessions_so_far == 2


def test_a_lost_put_is_unknown_when_the_deadline_comes_before_the_answer(
    cluster: MemoryCluster, client: Client
) -> None:
    def fail_over() -> None:
        if eventually(lambda: cluster.bodies("q") == [b"1", b"2"]):
            cluster.lead(None)

    client.put("q", b"1")               # is connected, and has a session
    cluster.servers[0].fail("PUT", Fault.EXECUTE_AND_STALL)
    failing_over = threading.Thread(target=fail_over)
    failing_over.start()
    with at_most(30), pytest.raises(OutcomeUnknown):
        client.put("q", b"2", timeout=2)
    failing_over.join()
    with pytest.raises(Unavailable):
        client.put("q", b"x", timeout=0.2)


def test_a_refused_repetition_says_nothing_about_the_first_try(cluster: MemoryCluster, client: Client) -> None:
    cluster.servers[0].fail("PUT", Fault.EXECUTE_AND_CLOSE, Fault.TOO_LARGE)
    with pytest.raises(OutcomeUnknown):
        client.put("q", b"x")


def test_servers_without_sessions_are_used_without(make_client: MakeClient) -> None:
    with MemoryCluster(features=("delay",)) as cluster:
        client = make_client(cluster.addresses, timeout=30, server_timeout=0.3)
        client.put("q", b"1")
        client.put_many("q", [b"2", b"3"])
        assert cluster.servers[0].received.count("SESSION TTL 900") == 1        # asked once for each connection
        cluster.servers[0].fail("PUT", Fault.EXECUTE_AND_CLOSE)
        with pytest.raises(OutcomeUnknown):
            client.put("q", b"4")
        client.put("q", b"5")
        assert cluster.bodies("q") == bodies(6)[1:]


def test_a_failover_to_a_server_without_sessions_loses_them(cluster: MemoryCluster, client: Client) -> None:
    def downgrade() -> None:
        until(lambda: cluster.bodies("q") == [b"1"])
        cluster.be_old("delay")

    cluster.servers[0].fail("PUT", Fault.EXECUTE_AND_STALL)
    thread = threading.Thread(target=downgrade)
    thread.start()
    with pytest.raises(OutcomeUnknown):
        client.put("q", b"1")
    thread.join()
    client.put("q", b"2")
    assert cluster.bodies("q") == [b"1", b"2"]


def test_a_client_without_sessions_asks_for_none(cluster: MemoryCluster, old_client: Client) -> None:
    old_client.put("q", b"1")
    assert cluster.sessions_so_far == 0
    assert set(cluster.servers[0].script.numbers) == {0}


def test_reading_needs_no_session(cluster: MemoryCluster, client: Client) -> None:
    client.total()
    client.cluster_status()
    assert cluster.sessions_so_far == 0


def test_the_life_of_a_session_is_chosen_by_the_client(cluster: MemoryCluster, make_client: MakeClient) -> None:
    make_client(cluster.addresses, session_ttl=12.5).put("q", b"1")
    assert "SESSION TTL 12.500" in cluster.servers[0].received
    for wrong in (0.5, 86_401, float("nan")):
        with pytest.raises(BadArguments):
            make_client(cluster.addresses, session_ttl=wrong)


def test_a_closed_client_ends_its_sessions(cluster: MemoryCluster, client: Client) -> None:
    threads = [threading.Thread(target=client.put, args=["q", b"x"]) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cluster.sessions
    client.close()
    until(lambda: not cluster.sessions)


def test_what_is_not_kept_idle_ends_its_session(cluster: MemoryCluster, make_client: MakeClient) -> None:
    client = make_client(cluster.addresses, idle_connections_max=0)
    for _ in range(3):
        client.put("q", b"x")
    until(lambda: not cluster.sessions)
    assert cluster.sessions_so_far == 3
