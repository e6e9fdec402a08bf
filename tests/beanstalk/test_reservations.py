"""Reserved jobs: their time, DEADLINE_SOON, and what happens to them when the connection ends."""

from __future__ import annotations

from sockpqd.beanstalk import calls
from sockpqd.beanstalk.conversation import COSTS
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
        assert world.client("a").backend.left


def test_nobody_goes_on_before_they_are_back() -> None:
    world = World()
    world.play(RESERVED.format(ttr=60))
    held = []
    world.client("a").backend.execute = lambda call, done: held.append((call, done))
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


def without_results(world: World, name: str) -> None:
    """Let no call of this client end."""
    world.client(name).backend.execute = lambda call, done: None


def test_a_half_closed_connection_that_has_commands_left_holds_nobody_up() -> None:
    world = World()
    without_results(world, "a")
    world.play("""
        a > peek 1\\r\\npeek 1
        a .
        b > use t
        b < USING t
    """)


def test_a_half_closed_connection_that_is_not_read_holds_nobody_up() -> None:
    world = World()
    world.play(RESERVED.format(ttr=60))
    world.client("a").conversation.output_full()
    world.play("""
        a > use t
        a .
        b > reserve-with-timeout 0
        b < TIMED_OUT
    """)
    world.client("a").conversation.output_taken()
    world.play("""
        a < USING t
        a x
        b > reserve-with-timeout 0
        b < RESERVED 1 0
        b <
    """)


def test_nor_if_that_turns_out_after_its_end() -> None:
    world = World()
    without_results(world, "a")
    world.play("""
        a > peek 1
        a .
        b > use t
    """)
    world.client("a").conversation.output_full()
    world.play("b < USING t")


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


def test_answers_do_not_pile_up() -> None:
    world = World()
    client = world.client("a")
    for number in range(100):
        world.play(f"a > watch {number:0200}\na < WATCHING {number + 2}")
    sizes = []

    def write(data: bytes) -> None:
        sizes.append(len(data))
        client.conversation.output_full()

    client.write = write
    client.conversation.receive(b"list-tubes-watched\r\n" * 1000)
    client.take_turns()
    assert len(sizes) == 1
    assert sizes[0] < 100_000
    client.conversation.output_taken()
    assert len(sizes) == 2


def test_others_have_their_turn_between_many_commands() -> None:
    client = World().client("a")
    client.conversation.receive(b"use t\r\n" * 1000)
    assert client.got == b"USING t\r\n" * 64
    client.conversation.receive(b"list-tube-used\r\n")
    assert len(client.turns) == 1
    client.take_turns()
    assert client.got == b"USING t\r\n" * 1001
    client.got = b""
    client.conversation.receive(b"stats\r\n" * 10 + b"quit\r\n")
    assert client.got.count(b"OK ") == 64 // COSTS["stats"]
    client.take_turns()
    assert client.got.count(b"OK ") == 10
    assert client.closed


def test_a_client_that_goes_between_two_turns_is_gone() -> None:
    world = World()
    client = world.client("a")
    client.conversation.receive(b"put 0 0 60 0\r\n\r\n" * 100)
    client.conversation.lost()
    client.take_turns()
    assert len(world.queue.jobs) == 64
    assert not world.server.connections


def test_deadlines_that_are_not_true_any_more_are_forgotten() -> None:
    held = World().client("a").conversation.held
    held.add(1, 1, "t", 100, 0)
    for number in range(2, 2000):
        held.add(number, number, "t", 1000, number)
        held.drop(number, number)
        held.touched(1, 0)
    assert held.soon(0) == 99
    assert len(held._ends) < 200


def test_a_thousand_reserved_jobs_go_back_in_one_call() -> None:
    world = World()
    conversation = world.client("a").conversation
    executed = []
    for number in range(1, 1001):
        world.queue.put(calls.PutJob("default", 0, 0, 100, b""))
        job = world.queue.jobs[number]
        world.queue.take(job)
        conversation.held.add(number, job.handle, "default", 100, world.queue.time)
        assert conversation.held.soon(world.queue.time) == world.queue.time + 99
    backend = world.client("a").backend
    execute = backend.execute
    backend.execute = lambda call, done: (executed.append(call), execute(call, done))
    conversation.lost()
    assert len(executed) == 1
    assert all(job.state == "ready" for job in world.queue.jobs.values())


def test_a_reservation_is_forgotten_a_while_after_its_time() -> None:
    world = World()
    world.play(RESERVED.format(ttr=1))
    held = world.client("a").conversation.held
    held.pass_by(world.queue.time + 30)
    assert (len(held), held.timeouts) == (1, 1)
    held.pass_by(world.queue.time + 62)
    assert not held
