"""The law of costs: no command, however much there is, takes more than a few thousand steps of a turn.

A step is a line of Python that is executed, as the interpreter counts them; a turn is an iteration of the event loop.
So the figures are the same on every machine. What the interpreter's own loops copy or sort is one step.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from sockpqd.beanstalk import BeanstalkdConversation, BeanstalkdServer
from sockpqd.beanstalk.conversation import _DO as BEANSTALKD_VERBS
from sockpqd.core import (
    BeatWorker,
    BindQueue,
    ConfigurePulse,
    ConfigureQueue,
    Delete,
    Get,
    GetWith,
    OpenSession,
    Operation,
    Policy,
    PulseChange,
    Put,
    PutWith,
    QueueChange,
    Selector,
)
from sockpqd.gateway.beanstalkd.backend import NodeBackend
from sockpqd.gateway.beanstalkd.services import Principal
from sockpqd.gateway.beanstalkd.sessions import NodeSessions
from sockpqd.gateway.commands.catalog import LIST, LOOK, PLAIN, RECORD, VERBS
from sockpqd.gateway.limits import COMMANDS_PER_SLICE, PEEKED_BYTES_PER_COMMAND
from sockpqd.gateway.protocol.command import Row
from sockpqd.gateway.waiting.slots import IGNORED
from tests.gateway.helpers.memory import MemoryClient, MemoryGateway

QUEUES = GROUPS = 40_000     # twice STEPS_MAX: a step for each is too much
WORKERS = SESSIONS = BINDINGS = RUNNING = 10_000
PULSES = 1000
JOBS = 10_000               # of one queue, in 500 priorities

STEPS_MAX = 20_000          # of one turn: about a millisecond
# Of a turn with as many commands that only ask as it takes, of this many clients, each of which sends so many.
FULL_STEPS_MAX = 120_000
FLOODING, FLOOD = 20, 60
FLOODS = ("PING", "CLUSTER ID", "CAPS", "CLUSTER STATUS", "QUEUE CONFIG q1", "QUEUE STAT q1", "PULSE STAT p1")
TURNS_MAX = 20_000          # that any answer may take
SILENT_TURNS = 40           # after which nothing more comes
KEY = "ab" * 16

# A line for each row of the catalog, and more for some, said one after the other, each on a connection of its own.
# `{sid}`: that of the connection's session; `{id}`: a job that it runs; `{key}`: of a user.
LINES = (
    "PUT q1 0 1\r\nx", "PUT q1 0 1 NEW WAIT answers WITHIN 0.01\r\nx", "PUTS 2\r\nq1 0 1\r\nxq2 0 0",
    "GET q7", "GET *", "GET * BY FAIR", "GET * BY PRIORITY", "GET * BY RR", "GET * BY OLDEST", "GET * COUNT 10",
    "GET NUMBER 999", "GETB nowhere WITHIN 0.01", "GETBE nowhere WITHIN 0.01", "DONE {id}", "DONE {id} 2",
    "LATER {id}", "LATER {id} 2", "TOUCH {id}", "TOUCH {id} 2", "CHANGE {id} PRI 5", "DELETE {id}", "MOVE {id} q2",
    "BURY {id}", "KICK q1 1", "KICK JOB SEQ q1 1", "KICK JOB NUMBER 999", "PEEK {id}", "PEEK {id} ERROR",
    "PEEK many READY COUNT 10000",
    "JOB STAT NUMBER 999", "AWAIT NUMBER 999", "AWAIT KEY many k WITHIN 0.01",
    "PEEK NUMBER 999 ENDED", "PEEK NUMBER 999 RESULT", "PEEK ended ENDED COUNT 10000",
    "FIND *", "FIND * COUNT 1000", "FIND many COUNT 1000", "FIND * KEY none*",
    "POLICY RR", "BEGIN", "COMMIT", "ROLLBACK", "QUEUE CREATE made", "QUEUE CONFIG q1", "QUEUE CONFIG made WEIGHT 2",
    "QUEUE DELETE made", "QUEUE DELETE q3 FORCE", "QUEUE PURGE q4 ALL", "QUEUE PAUSE q5 ALL", "QUEUE RESUME q5",
    "QUEUE STAT q1", "QUEUE STAT many", "QUEUE LIST", "QUEUE LIST nothing*", "CONFIG", "CONFIG FASTEMPTY ON", "GET *",
    "CONFIG FASTEMPTY OFF", "PULSE CREATE made RATE 1 PER 1", "PULSE CONFIG made RATE 2", "PULSE DELETE made",
    "PULSE SET p1 1\r\nx", "PULSE WAIT p1 WITHIN 0.01", "PULSE RESULT 1 OK", "PULSE LIST", "PULSE STAT p1",
    "SCHED SHOW", "SCHED GROUP g1", "SCHED CONFIG", "SCHED CONFIG CAP 60", "TOTAL", "TOTAL q1", "RUNLIST",
    "RUNLIST DATA", "SNAPSHOT", "CLONE 1\r\nx", "SESSION", "SESSION {sid}", "SESSION CLOSE", "SESSION KEEP {sid}",
    "SESSION LIST", "SESSION END 1", "TAKEN", "PING", "SUBSCRIBE FINI", "NOTIFY nobody 1\r\nx", "UNSUBSCRIBE",
    "TOPIC BIND t1 q1", "TOPIC UNBIND t1 q1", "TOPIC DELETE t2", "TOPIC LIST", "TOPIC LIST nothing*", "WORKER w 1 0",
    "ITEM STAT x", "ITEM LIST", "ITEM RETRY x",
    "ITEM CANCEL x", "ITEM HOLD x", "ITEM RELEASE x", "QUEUE MOVE q6 moved", "GROUP LIST", "GROUP LIST nothing*",
    "GROUP CONFIG g1", "GROUP CONFIG g1 LIMIT 5", "GROUP PAUSE g1", "GROUP RESUME g1", "GROUP DELETE g1",
    "WORKER LIST", "WORKER SET w1 MAX 3", "AUTH nobody x", "AUTH nobody", "USER SET ann put:* {key}",
    "USER DELETE ann", "USER LIST", "INTERCONNECT", "CLUSTER STATUS", "CLUSTER LEADER", "CLUSTER HASH", "CLUSTER ID",
    "MAP", "MAP SET 1 34\r\nCLUSTER main 3031323334353637 h:1\n",
    "CLUSTER ADD n9 h 1 h 2", "CLUSTER REMOVE n9", "CLUSTER TRANSFER", "CLUSTER ONLINE", "CLUSTER OFFLINE",
    "CLUSTER ONLINE", "CLUSTER SNAPSHOT", "CLUSTER PROMOTE", "CLUSTER FENCED 0011223344556677",
    "CLUSTER REPLICA", "CLUSTER FEED 1", "CLUSTER FEED 999999999", "CLUSTER FEED SNAPSHOT",
    "SYNC GET q 1 1", "OFFLINE", "ONLINE", "SHUTDOWN", "CAPS",
    "HELP", "HELP QUEUE", "QUIT",
)


# The same of beanstalkd. `{id}`: a job that the connection has reserved.
BEANSTALKD_LINES = (
    "put 0 0 9 1\r\nx", "reserve-with-timeout 0", "reserve", "reserve-job {id}", "delete {id}", "release {id} 0 0",
    "bury {id} 0", "touch {id}", "kick 1", "kick-job {id}", "peek {id}", "peek-ready", "peek-delayed", "peek-buried",
    "use t", "watch t", "ignore t", "list-tubes", "list-tube-used", "list-tubes-watched", "pause-tube q1 0", "stats",
    "stats-job {id}", "stats-tube q1", "stats-tube many", "stats-tube default", "quit",
)
CONNECTIONS, WATCHED = 1000, 20


class Steps:
    """Counts the steps of each turn."""

    def __init__(self) -> None:
        self.longest = 0
        self._steps = 0

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count during the block, in all that this thread executes."""
        loop = asyncio.get_running_loop()
        self.longest = self._steps = 0
        ticking = True

        def tick() -> None:
            self.longest, self._steps = max(self.longest, self._steps), 0
            if ticking:
                loop.call_soon(tick)

        def trace(frame: object, event: str, argument: object) -> Callable[..., Any]:
            self._steps += 1
            return trace

        tick()
        sys.settrace(trace)
        try:
            yield
        finally:
            sys.settrace(None)
            ticking = False


class Link:
    """A connection of a beanstalkd client."""

    def __init__(self) -> None:
        self.got = b""

    def write(self, data: bytes) -> None:
        self.got += data

    def close(self) -> None:
        """Implement beanstalk.ClientLink."""

    def read_on(self) -> None:
        """Implement beanstalk.ClientLink."""

    def weigh(self) -> None:
        """Implement beanstalk.ClientLink."""

    def take(self) -> bytes:
        got, self.got = self.got, b""
        return got


def test_each_row_has_a_cost_and_a_right() -> None:
    for row in VERBS.rows:
        assert row.cost in (PLAIN, LOOK, RECORD, LIST), row.word
        assert callable(row.right), row.word


def test_what_is_looked_at_is_charged() -> None:
    async def run() -> None:
        gateway = MemoryGateway(Path("unused"))
        apply(gateway, (Put("many", number, b"") for number in range(64 * 50)))
        for line, cost in ((b"QUEUE STAT many\r\n", LOOK + 50), (b"QUEUE STAT none\r\n", LOOK), (b"PING\r\n", PLAIN)):
            await gateway.settle()
            before = gateway.hub.budget
            gateway.connect().send(line)
            assert before - gateway.hub.budget == cost, line
        await gateway.close()
    asyncio.run(run())


def test_a_job_that_is_shown_is_charged_by_its_bytes() -> None:
    async def run() -> None:
        gateway = MemoryGateway(Path("unused"))
        data = bytes(PEEKED_BYTES_PER_COMMAND * 100)
        (number,) = (await gateway.talk(b"PUT big 0 %d NUMBER\r\n%b" % (len(data), data))).split()[-1:]
        await gateway.settle()
        before = gateway.hub.budget
        client = gateway.connect()
        client.send(b"PEEK NUMBER %b\r\n" % number * COMMANDS_PER_SLICE)
        assert LOOK + 100 <= before - gateway.hub.budget <= COMMANDS_PER_SLICE + LOOK + 100     # not all in one slice
        assert len(client.take()) < 4 * len(data)
        await gateway.settle()
        await gateway.close()
    asyncio.run(run())


def test_a_turn_full_of_a_command_that_asks_is_no_longer_than_one_of_others() -> None:
    async def run() -> list[str]:
        gateway, steps, wrong = MemoryGateway(Path("unused")), Steps(), []
        await gateway.talk(b"QUEUE CREATE q1 LIMIT 5\r\nPULSE CREATE p1 RATE 5 PER 1\r\n")
        for line in FLOODS:
            clients = [gateway.connect(str(number)) for number in range(FLOODING)]
            with steps.counting():
                for client in clients:
                    client.send(b"%b\r\n" % line.encode() * FLOOD)
                await gateway.settle()
            if steps.longest > FULL_STEPS_MAX:
                wrong.append(f"{line}: {steps.longest}")
            for client in clients:
                assert client.take().count(b"200 OK") == FLOOD, line
                client.vanish()
        await gateway.close()
        return wrong
    assert asyncio.run(run()) == []


def test_no_command_takes_long_in_a_turn() -> None:
    async def run() -> list[str]:
        gateway = MemoryGateway(Path("unused"))
        gateway.cluster.export_snapshot = _refuse       # type: ignore[method-assign]  # a process of its own does it
        gateway.cluster.impossible = "UNSAFE"           # CLUSTER TRANSFER, behind which are the steps of an election
        fill(gateway)
        wrong = [*await beanstalkd(gateway), *await native(gateway)]
        await gateway.close()
        return wrong
    assert asyncio.run(run()) == []


async def _refuse(path: Path, *, users: bool = False) -> None:
    raise OSError


async def native(gateway: MemoryGateway) -> list[str]:
    """Return the lines that take too many steps; all rows must be asked for."""
    steps, asked, wrong = Steps(), set(), []
    for line in LINES:
        if line == "OFFLINE":               # said to a follower: the steps behind it are those of an election otherwise
            gateway.cluster.follow("n2")
        client = gateway.connect()
        client.send(b"SESSION\r\nGET q9\r\n")
        await gateway.settle()
        words = client.take().split() or [b""]
        sid, number = (words[3].decode(), words[words.index(b"q9") + 1].decode()) if b"q9" in words else ("1_1", "1")
        said = line.format(sid=sid, id=number, key=KEY).encode() + b"\r\n"
        asked.add(row_of(said))
        with steps.counting():
            client.send(said)
            await answered(gateway, client)
        if steps.longest > STEPS_MAX:
            wrong.append(f"{line}: {steps.longest}")
        client.vanish()
    assert not [row.word for row in VERBS.rows if row not in asked]
    return wrong


async def beanstalkd(gateway: MemoryGateway) -> list[str]:
    """Return the same of the beanstalkd listener, among many connections that watch many tubes and wait."""
    loop = asyncio.get_running_loop()
    server, sessions = BeanstalkdServer("i", now=loop.time, turns=gateway.hub), NodeSessions()

    def connect() -> tuple[BeanstalkdConversation, Link]:
        link = Link()
        return BeanstalkdConversation(server, NodeBackend(gateway.hub, sessions, Principal(None, "h:1")), link), link

    crowd = [connect()[0] for _ in range(CONNECTIONS)]
    for number, conversation in enumerate(crowd):
        for tube in range(WATCHED):
            conversation.receive(b"watch w%d\r\n" % (number * WATCHED + tube))
        conversation.receive(b"reserve\r\n")
        await gateway.settle()
    steps, asked, wrong = Steps(), set(), []
    for line in BEANSTALKD_LINES:
        conversation, link = connect()
        conversation.receive(b"put 0 0 9 1\r\nx\r\nuse mine\r\nwatch mine\r\nignore default\r\n")
        conversation.receive(b"put 0 0 9 1\r\nx\r\nreserve\r\n")
        await answered(gateway, link)
        number = conversation.held.handles() and next(iter(conversation.held._held))
        asked.add(line.split()[0])
        with steps.counting():
            conversation.receive(line.format(id=number).encode() + b"\r\n")
            await answered(gateway, link)
        if steps.longest > STEPS_MAX:
            wrong.append(f"{line}: {steps.longest}")
        conversation.lost()
    assert asked == {*BEANSTALKD_VERBS}
    for conversation in crowd:
        conversation.lost()
    await gateway.settle()
    return wrong


def row_of(said: bytes) -> Row:
    command = VERBS.read(said.partition(b"\r\n")[0].split())
    assert command is not None, said
    return command.row


async def answered(gateway: MemoryGateway, client: MemoryClient | Link) -> None:
    """Wait until all of the answer has arrived."""
    silent = 0
    for _ in range(TURNS_MAX):
        await asyncio.sleep(0)
        silent = 0 if client.take() or gateway.hub._pieces else silent + 1
        if silent > SILENT_TURNS:
            return
    raise AssertionError("it never ends")


def fill(gateway: MemoryGateway) -> None:
    """Make as many as possible of everything: queues are called q0, q1 .., groups g0 .., workers w0 .. and so on."""
    apply(gateway, (PutWith(Put(f"q{number}", 0, b"x"), group=f"g{number}") for number in range(QUEUES)))
    apply(gateway, (PutWith(Put("q9", 0, b"x"), number=True) for _ in range(1000)))
    apply(gateway, (Put("many", number % 500, b"x") for number in range(JOBS)))
    apply(gateway, (ConfigureQueue("ended", QueueChange(retain_ms=86_400_000)),))
    apply(gateway, (PutWith(Put("ended", 0, b"x"), number=True, key=f"k{number}") for number in range(JOBS)))
    apply(gateway, (Delete(Selector(0, "ended", f"k{number}")) for number in range(JOBS)))
    apply(gateway, (Get((f"q{number}",)) for number in range(QUEUES // 2, QUEUES // 2 + RUNNING)))
    apply(gateway, (OpenSession(number, 86_400_000, "", f"h{number}") for number in range(SESSIONS)))
    apply(gateway, (BeatWorker(f"w{number}", 1, 0, "h:1", number + 1) for number in range(WORKERS)))
    apply(gateway, (BindQueue(f"t{number}", f"q{number}") for number in range(BINDINGS)))
    apply(gateway, (ConfigurePulse(f"p{number}", PulseChange(rate=1), create=True) for number in range(PULSES)))
    for _ in range(QUEUES // 500):          # the first of these begins an index, which grows with each entry
        apply(gateway, (GetWith(Get(None), policy=Policy.OLDEST),))


def apply(gateway: MemoryGateway, operations: Iterable[Operation]) -> None:
    left = iter(operations)
    while portion := list(islice(left, 1000)):
        for operation in portion:
            gateway.cluster.propose(operation, IGNORED)
        gateway.cluster.commit()
