"""The effects of the commands, shown in transcripts against a queue in memory."""

from __future__ import annotations

import pytest

from tests.beanstalk.helpers.transcript import World


def test_a_job_from_put_to_delete() -> None:
    World().play("""
        a > put 5 0 60 3
        a > abc
        a < INSERTED 1
        b > reserve
        b < RESERVED 1 3
        b < abc
        a > delete 1
        a < NOT_FOUND
        b > delete 1
        b < DELETED
        b > delete 1
        b < NOT_FOUND
    """)


def test_commands_in_one_packet_are_answered_in_order() -> None:
    World().play("""
        a > use t\\r\\nput 0 0 60 1\\r\\na\\r\\nwatch t\\r\\npeek-ready\\r\\nlist-tube-used
        a < USING t
        a < INSERTED 1
        a < WATCHING 2
        a < FOUND 1 1
        a < a
        a < USING t
    """)


def test_commands_behind_a_waiting_reserve_wait() -> None:
    World().play("""
        a > reserve\\r\\nlist-tube-used
        b > put 0 0 60 0
        b >
        b < INSERTED 1
        a < RESERVED 1 0
        a <
        a < USING default
    """)


@pytest.mark.parametrize("line", ["release 1 0 0", "bury 1 0", "touch 1"])
def test_only_who_has_reserved_a_job_may_say_that(line: str) -> None:
    World().play(f"""
        a > put 0 0 60 0
        a >
        a < INSERTED 1
        a > {line}
        a < NOT_FOUND
        b > reserve
        b < RESERVED 1 0
        b <
        a > {line}
        a < NOT_FOUND
    """)


def test_release_bury_kick_and_the_figures_of_the_job() -> None:
    World().play("""
        a > put 0 0 60 0
        a >
        a < INSERTED 1
        a > reserve
        a < RESERVED 1 0
        a <
        a > release 1 7 100
        a < RELEASED
        a > peek-delayed
        a < FOUND 1 0
        a <
        a > kick 10
        a < KICKED 1
        a > reserve
        a < RESERVED 1 0
        a <
        a > bury 1 9
        a < BURIED
        a > peek-buried
        a < FOUND 1 0
        a <
        + 3
        a > stats-job 1
        a < OK 149
        a < ---\\n\\
        a < id: 1\\n\\
        a < tube: "default"\\n\\
        a < state: buried\\n\\
        a < pri: 9\\n\\
        a < age: 3\\n\\
        a < delay: 100\\n\\
        a < ttr: 60\\n\\
        a < time-left: 0\\n\\
        a < file: 0\\n\\
        a < reserves: 2\\n\\
        a < timeouts: 0\\n\\
        a < releases: 1\\n\\
        a < buries: 1\\n\\
        a < kicks: 1\\n
        a > kick-job 1
        a < KICKED
        a > kick-job 1
        a < NOT_FOUND
    """)


def test_a_connection_watches_a_thousand_tubes_at_most() -> None:
    world = World()
    for number in range(999):
        world.play(f"a > watch t{number}\na < WATCHING {number + 2}")
    world.play("""
        a > watch more
        a < OUT_OF_MEMORY
        a > watch t5
        a < WATCHING 1000
        a > ignore t5
        a < WATCHING 999
        a > watch more
        a < WATCHING 1000
    """)


def test_use_watch_and_ignore() -> None:
    World().play("""
        a > use x
        a < USING x
        a > watch y
        a < WATCHING 2
        a > watch y
        a < WATCHING 2
        a > ignore default
        a < WATCHING 1
        a > ignore y
        a < NOT_IGNORED
        a > ignore z
        a < WATCHING 1
        a > list-tubes-watched
        a < OK 8
        a < ---\\n\\
        a < - y\\n
        b > list-tubes
        b < OK 22
        b < ---\\n\\
        b < - default\\n\\
        b < - x\\n\\
        b < - y\\n
        a !
        b > list-tubes
        b < OK 14
        b < ---\\n\\
        b < - default\\n
    """)


def test_a_tube_is_there_while_it_has_a_job() -> None:
    world = World()
    world.play("""
        b > stats-tube t
        b < NOT_FOUND
        b > pause-tube t 1
        b < NOT_FOUND
        a > use t
        a < USING t
        a > put 0 100 60 0
        a >
        a < INSERTED 1
        a !
        b > pause-tube t 1
        b < PAUSED
        b > stats-tube t
    """, unread="b")
    got = world.client("b").got
    assert got.startswith(b"OK ")
    assert b'---\nname: "t"\n' in got
    assert b"\ncurrent-jobs-delayed: 1\n" in got
    world.client("b").got = b""
    world.play("""
        b > delete 1
        b < DELETED
        b > stats-tube t
        b < NOT_FOUND
    """)


def test_drain_mode_refuses_put_only() -> None:
    world = World()
    world.play("""
        a > put 0 0 60 0
        a >
        a < INSERTED 1
    """)
    world.queue.draining = True
    world.play("""
        a > put 0 0 60 0
        a >
        a < DRAINING
        a > reserve
        a < RESERVED 1 0
        a <
    """)


def test_the_counters_of_the_server() -> None:
    world = World()
    world.play("""
        a > put 0 0 60 0
        a >
        a < INSERTED 1
        a > reserve-with-timeout 0
        a < RESERVED 1 0
        a <
        a > delete x
        a < BAD_FORMAT
        a > put 0 0 60 1
        a > abc
        a < EXPECTED_CRLF
        a < UNKNOWN_COMMAND
        b > reserve
        c > use t
        c < USING t
        c > stats
    """, unread="c")
    head, _, body = world.client("c").got.partition(b"\r\n")
    assert head == b"OK %d" % (len(body) - 2)
    figures = dict(line.split(": ", 1) for line in body.decode().splitlines()[1:] if line)
    assert {key: value for key, value in figures.items() if value not in ("0", "") and key.startswith("c")} == {
        "current-jobs-reserved": "1", "cmd-put": "2", "cmd-reserve": "1", "cmd-reserve-with-timeout": "1",
        "cmd-use": "1", "cmd-stats": "1", "current-tubes": "2", "current-connections": "3", "current-producers": "1",
        "current-workers": "2", "current-waiting": "1",
    }
    assert (figures["total-jobs"], figures["total-connections"], figures["version"]) == ("1", "3", '"1.13"')
    assert figures["max-job-size"] == "65535"
    assert figures["draining"] == "false"
