"""The jobs that loads put."""

from __future__ import annotations

import re
from collections import Counter

from bench.load_generator.jobs import Jobs, put_ns

PUT = re.compile(rb"PUT (\S+) (\d+) (\d+)\r\n", re.DOTALL)


def put(jobs: Jobs) -> tuple[str, int, int, bytes]:
    """Queue, priority, announced length, and the data."""
    command = jobs.put()
    head = PUT.match(command)
    assert head
    return head[1].decode(), int(head[2]), int(head[3]), command[head.end():]


def test_queues_priorities_and_lengths_are_spread() -> None:
    jobs = Jobs(["a", "b"], 20, 40, priorities=5)
    made = [put(jobs) for _ in range(1000)]
    assert all(len(data) == length for _, _, length, data in made)
    assert {length for _, _, length, _ in made} == set(range(20, 41))
    assert {priority for _, priority, _, _ in made} == set(range(5))
    assert min(Counter(queue for queue, *_ in made).values()) > 400


def test_each_run_has_the_same_jobs() -> None:
    one, other = (Jobs(["a", "b"], 0, 9, priorities=5) for _ in range(2))
    assert [one.put() for _ in range(100)] == [other.put() for _ in range(100)]


def test_a_stamped_job_has_room_for_its_stamp() -> None:
    *_, length, data = put(Jobs(["a"], 3, stamped=True))
    assert length == len(data) == 8
    assert put_ns(data) > 0
    *_, data = put(Jobs(["a"], 30, stamped=True))
    assert len(data) == 30


def test_many_at_once_are_the_same_jobs() -> None:
    jobs, other = Jobs(["a", "b"], 5), Jobs(["a", "b"], 5)
    head, _, rest = jobs.puts(3).partition(b"\r\n")
    assert head == b"PUTS 3"
    assert rest == b"".join(other.put().removeprefix(b"PUT ") for _ in range(3))


def test_large_jobs_do_not_fill_the_memory() -> None:
    jobs = Jobs(["a"], 8 << 20)
    assert sum(map(len, jobs.bodies)) <= 128 << 20
    assert len(put(jobs)[3]) == 8 << 20
