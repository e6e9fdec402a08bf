"""Reserved jobs: their time, DEADLINE_SOON, and what happens to them when the connection ends."""

from __future__ import annotations

from tests.beanstalk.helpers.transcript import World

RESERVED = """
        a > put 0 0 {ttr} 0
        a >
        a < INSERTED 1
        a > reserve
        a < RESERVED 1 0
        a <
"""


def test_deadline_soon_in_the_last_second_whatever_the_timeout() -> None:
    World().play(RESERVED.format(ttr=2) + """
        a > reserve-with-timeout 0
        a < TIMED_OUT
        + 1.1
        a > reserve
        a < DEADLINE_SOON
        a > reserve-with-timeout 0
        a < DEADLINE_SOON
        a > touch 1
        a < TOUCHED
        a > reserve-with-timeout 0
        a < TIMED_OUT
        b > reserve-with-timeout 0
        b < TIMED_OUT
        a > delete 1
        a < DELETED
    """)


def test_deadline_soon_comes_to_who_waits() -> None:
    World().play(RESERVED.format(ttr=3) + """
        a > reserve-with-timeout 10
        + 1.8
        + 0.3
        a < DEADLINE_SOON
        a > reserve-with-timeout 10
        a < DEADLINE_SOON
        + 1.1
        a > reserve-with-timeout 0
        a < RESERVED 1 0
        a <
    """)


def test_no_deadline_soon_when_a_job_is_ready() -> None:
    World().play(RESERVED.format(ttr=1) + """
        a > put 0 0 9 0
        a >
        a < INSERTED 2
        a > reserve
        a < RESERVED 2 0
        a <
    """)


def test_after_its_time_the_job_is_not_the_holders_any_more() -> None:
    World().play(RESERVED.format(ttr=1) + """
        + 1.1
        a > release 1 0 0
        a < NOT_FOUND
        a > touch 1
        a < NOT_FOUND
        a > bury 1 0
        a < NOT_FOUND
        a > delete 1
        a < DELETED
    """)


def test_the_jobs_are_back_when_the_connection_has_ended() -> None:
    for end in ("a .", "a !", "a > quit"):
        world = World()
        world.play(RESERVED.format(ttr=60) + f"""
            {end}
            b > reserve-with-timeout 0
            b < RESERVED 1 0
            b <
        """)
        assert world.client("a").seat.left


def test_nobody_goes_on_before_they_are_back() -> None:
    world = World()
    world.play(RESERVED.format(ttr=60))
    held = []
    world.client("a").seat.execute = lambda call, done: held.append((call, done))
    world.play("""
        a .
        b > reserve-with-timeout 0
    """)
    (call, done), = held
    world.queue.give_back(call)
    done(None)
    world.play("b < RESERVED 1 0\nb <")


def test_connections_that_end_together_do_not_wait_for_each_other() -> None:
    World().play(RESERVED.format(ttr=60) + """
        b > put 0 0 60 0
        b >
        b < INSERTED 2
        b > reserve
        b < RESERVED 2 0
        b <
        c > put 0 0 60 0\\r\\n
        c < INSERTED 3
        b .
        a .
        b x
        a x
        c > reserve
        c < RESERVED 1 0
        c <
    """)


def test_a_half_closed_connection_waits_no_more() -> None:
    World().play("""
        a > reserve
        a .
        a < TIMED_OUT
        a x
        b > reserve\\r\\nreserve
        b .
        b < TIMED_OUT
        b < TIMED_OUT
        b x
    """)


def test_what_was_sent_before_the_end_is_executed() -> None:
    World().play("""
        a > reserve\\r\\nput 0 0 60 0\\r\\n\\r\\nreserve
        a .
        a < TIMED_OUT
        a < INSERTED 1
        a < RESERVED 1 0
        a <
        a x
        b > reserve
        b < RESERVED 1 0
        b <
    """)


def test_a_gone_client_takes_no_job() -> None:
    World().play("""
        a > reserve
        a !
        b > put 0 0 60 0
        b >
        b < INSERTED 1
        b > reserve-with-timeout 0
        b < RESERVED 1 0
        b <
    """)


def test_a_job_just_handed_out_to_a_client_that_is_gone_counts_no_reserve() -> None:
    world = World()
    world.play("a > reserve")
    world.queue.slow = True
    world.play("""
        b > put 0 0 60 0
        b >
        b < INSERTED 1
        a !
        b > stats-job 1
    """)                                    # which waits, as the job is not back
    (done, result), = world.queue.handed_out
    done(result)
    assert b"state: ready\n" in world.client("b").got
    assert b"reserves: 0\n" in world.client("b").got


def test_a_job_just_handed_out_to_a_client_that_waits_no_more_is_told() -> None:
    world = World()
    world.play("a > reserve")
    world.queue.slow = True
    world.play("""
        b > put 0 0 60 0
        b >
        b < INSERTED 1
        a .
    """)
    (done, result), = world.queue.handed_out
    done(result)
    world.play("""
        a < RESERVED 1 0
        a <
        a x
    """)
    assert world.queue.jobs[1].state == "ready"


def test_who_does_not_read_gets_nothing_done() -> None:
    world = World()
    world.client("a").conversation.output_full()
    world.play("a > use t")
    world.client("a").conversation.output_taken()
    world.play("a < USING t")


def test_ten_thousand_reserved_jobs_go_back_in_one_call() -> None:
    world = World()
    conversation = world.client("a").conversation
    calls = []
    conversation.receive(b"put 0 0 100 0\r\n\r\n" * 10_000)
    assert len(world.queue.jobs) == 10_000
    world.client("a").got = b""
    for number in range(1, 10_001):
        job = world.queue.jobs[number]
        world.queue.take(job)
        conversation.held.add(number, job.handle, "default", 100, world.queue.time)
        assert conversation.held.soon(world.queue.time) == world.queue.time + 99
    seat = world.client("a").seat
    execute = seat.execute
    seat.execute = lambda call, done: (calls.append(call), execute(call, done))
    conversation.lost()
    assert len(calls) == 1
    assert all(job.state == "ready" for job in world.queue.jobs.values())


def test_a_reservation_is_forgotten_a_while_after_its_time() -> None:
    world = World()
    world.play(RESERVED.format(ttr=1))
    held = world.client("a").conversation.held
    held.pass_by(world.queue.time + 30)
    assert (len(held), held.timeouts) == (1, 1)
    held.pass_by(world.queue.time + 62)
    assert not held
