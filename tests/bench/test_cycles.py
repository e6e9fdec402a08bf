"""The closed loops of the load generators, without a server."""

from __future__ import annotations

from bench.load.rates import CYCLES
from bench.load_generator.closed_loop import Cycle, Shift
from bench.load_generator.figures import LoadFigures
from bench.load_generator.jobs import Jobs
from bench.load_generator.wire import Wire


class Transport:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def take(self) -> bytes:
        written, self.written = self.written, b""
        return written


class Worker:
    """Cycles of a workload on one connection."""

    def __init__(self, workload: str, cycles: int, times: int | None = None, stamped: bool = False) -> None:
        self.figures = LoadFigures()
        self.shift = Shift(times)
        self.wire = Wire()
        self.transport = Transport()
        self.wire.connection_made(self.transport)   # type: ignore[arg-type]  # a double with what a wire uses
        jobs = Jobs(["q"], 0, stamped=stamped)
        for _ in range(cycles):
            Cycle(self.wire, CYCLES[workload], jobs, self.figures, self.shift).start()

    def hear(self, data: bytes) -> bytes:
        """The server says this; what the client says to it."""
        self.wire.data_received(data)
        return self.transport.take()


GET = b"GET q EXPIRE 600\r\n"
PUT = b"PUT q 0 0\r\n"


def test_each_answer_lets_one_cycle_go_on() -> None:
    worker = Worker("getdone", 2)
    assert worker.transport.take() == GET * 2
    heard = b"".join(worker.hear(bytes([byte])) for byte in b"200 OK q 7 0 6\r\n\r\n200 ")     # like an answer
    assert heard == b"DONE 7\r\n"
    assert worker.hear(b"404 Queue Empty\r\n200 OK FINQ\r\n") == GET     # the empty one ends, the done one begins anew
    assert worker.figures.cycles == 1
    assert worker.figures.problems == {"GET: 404 Queue Empty": 1}


def test_who_puts_goes_on_when_others_were_faster() -> None:
    worker = Worker("mixed", 1)
    assert worker.hear(b"200 OK\r\n") == PUT + GET
    assert worker.hear(b"404 Queue Empty\r\n") == PUT
    assert not worker.shift.over.is_set()


def test_a_job_taken_is_done_also_at_the_end() -> None:
    worker = Worker("getdone", 1)
    worker.shift.stop()
    assert worker.hear(b"200 OK q 7 0 0\r\n") == GET + b"DONE 7\r\n"
    assert not worker.shift.over.is_set()
    assert worker.hear(b"200 OK\r\n") == b""
    assert worker.shift.over.is_set()


def test_no_more_cycles_begin_than_wished() -> None:
    worker = Worker("put", 3, times=4)
    assert worker.transport.take() == PUT * 3
    assert worker.hear(b"200 OK\r\n200 OK\r\n") == PUT
    assert worker.hear(b"200 OK\r\n") == b""
    assert not worker.shift.over.is_set()
    worker.hear(b"200 OK\r\n")
    assert worker.shift.over.is_set()
    assert worker.figures.cycles == 4


def test_a_lost_connection_is_a_problem_and_the_end() -> None:
    worker = Worker("put", 3)
    worker.hear(b"200 OK\r\n")
    worker.wire.connection_lost(None)
    assert worker.figures.problems == {"connection lost": 3}
    assert len(worker.figures.latencies_us["PUT"]) == 1
    assert worker.shift.over.is_set()


def test_nobody_goes_on_against_a_server_that_does_not_serve() -> None:
    worker = Worker("put", 1)
    worker.transport.take()
    assert worker.hear(b"500 Offline Mode\r\n") == b""
    assert worker.figures.problems == {"PUT: 500 Offline Mode": 1}
    assert worker.shift.over.is_set()


def test_a_stamped_job_tells_how_long_it_took() -> None:
    worker = Worker("mixed", 1, stamped=True)
    head, _, body = worker.transport.take().partition(b"\r\n")
    assert head == b"PUT q 0 8"
    worker.hear(b"200 OK\r\n")
    worker.hear(b"200 OK q 1 0 8\r\n" + body)
    (delivery_us,) = worker.figures.latencies_us["delivery"]
    assert delivery_us >= worker.figures.latencies_us["PUT"][0]


def test_the_lines_of_a_list_belong_to_its_answer() -> None:
    heard = []
    wire = Wire()
    wire.ask(b"PUTS 2\r\n", 2, heard.append)
    wire.ask(b"PING\r\n", 0, heard.append)
    for byte in b"200 OK 2\r\n200 OK\r\n409 Job Exists\r\n200 OK\r\n":
        wire.data_received(bytes([byte]))
    assert [(answer.line, answer.data) for answer in heard] == [
        (b"200 OK 2", b"200 OK\r\n409 Job Exists\r\n"), (b"200 OK", b""),
    ]


def test_who_closes_hears_no_more() -> None:
    worker = Worker("put", 2)
    worker.wire.close()
    worker.wire.connection_lost(None)
    assert worker.transport.closed
    assert not worker.figures.problems
