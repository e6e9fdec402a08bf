"""Long calls and long answers: no client waits for them, and the work of one turn is bounded for all connections."""

from __future__ import annotations

import asyncio

import pytest

from sockpqd.beanstalk import Call, CallFailure, Done, Result, calls
from sockpqd.beanstalk.conversation import COSTS, BeanstalkdConversation
from sockpqd.beanstalk.limits import BODY_BYTES_PER_COMMAND, PER_PIECE
from sockpqd.core import Kick
from sockpqd.gateway.beanstalkd.remote import encode
from sockpqd.gateway.beanstalkd.services import Principal
from sockpqd.gateway.beanstalkd.surveys import SurveyReader
from sockpqd.gateway.limits import LINES_PER_PIECE
from tests.beanstalk.helpers.memory import MemoryBackend
from tests.beanstalk.helpers.transcript import World
from tests.beanstalk.test_node_backend import NOTHING, Place, inner, put
from tests.gateway.helpers.memory import MemoryGateway, with_gateway

TUBES = 4 * PER_PIECE


class SlowBackend(MemoryBackend):
    """A backend whose long calls last until the test ends them."""

    done: Done | None = None
    cancelled = False

    def execute(self, call: Call, done: Done) -> None:
        if type(call) in (calls.KickTube, calls.ListTubes, calls.Totals):
            self.done = done
        else:
            super().execute(call, done)

    def cancel(self) -> None:
        super().cancel()
        if self.done is not None:
            self.cancelled = True
            self.end(None)

    def end(self, result: Result | CallFailure) -> None:
        assert self.done is not None
        done, self.done = self.done, None
        done(result)


def slow(world: World, name: str) -> SlowBackend:
    """Return the backend of a new client."""
    client = world.client(name)
    client.backend = backend = SlowBackend(world.queue)
    client.conversation.lost()
    client.conversation = BeanstalkdConversation(world.server, backend, client)
    client.closed = False
    return backend


def test_one_budget_holds_for_all_connections() -> None:
    world = World()
    one, other = world.client("a"), world.client("b")
    world.turns.budget = 10
    one.conversation.receive(b"use t\r\n" * 20)
    other.conversation.receive(b"use t\r\n")
    other.conversation.receive(b"reserve-with-timeout 0\r\n")
    assert (one.got, other.got) == (b"USING t\r\n" * 10, b"")
    world.turns.budget = 100
    one.take_turns()
    assert (one.got, other.got) == (b"USING t\r\n" * 20, b"USING t\r\nTIMED_OUT\r\n")
    assert world.turns.budget == 100 - 12


@pytest.mark.parametrize("verb", [b"stats", b"list-tubes", b"kick 1", b"list-tubes-watched"])
def test_what_may_take_longer_costs_more(verb: bytes) -> None:
    world = World()
    world.client("a").conversation.receive(verb + b"\r\n")
    assert world.turns.budget == 1_000_000 - COSTS[verb.split()[0].decode()]


def test_a_job_that_is_shown_costs_what_its_body_does() -> None:
    world = World(body_bytes_max=1 << 20)
    client = world.client("a")
    client.conversation.receive(b"put 0 0 60 %d\r\n%b\r\n" % (1 << 20, bytes(1 << 20)))
    before = world.turns.budget
    client.conversation.receive(b"peek-ready\r\n")
    assert before - world.turns.budget == 1 + (1 << 20) // BODY_BYTES_PER_COMMAND


def test_a_long_list_is_sent_in_pieces_as_the_client_reads() -> None:
    world = World()
    client = world.client("a")
    for number in range(TUBES):
        client.conversation.receive(b"use t%d\r\nput 0 0 9 0\r\n\r\n" % number)
        client.take_turns()
    client.got = b""
    client.conversation.receive(b"list-tubes\r\nlist-tube-used\r\n")
    pieces = 0
    while client.turns:
        pieces += 1
        if pieces == 10:
            client.conversation.output_full()
        before = client.got
        client.turns.pop(0)()
        assert len(client.got) - len(before) < 10 * PER_PIECE
        if pieces == 10:
            assert not client.turns
            client.conversation.output_taken()
    assert pieces > TUBES // PER_PIECE
    head, _, rest = client.got.partition(b"\r\n")
    length = int(head.split()[1])
    names = rest[:length].decode().splitlines()
    assert rest[length:] == b"\r\nUSING t%d\r\n" % (TUBES - 1)
    assert names[0] == "---"
    assert sorted(names[1:]) == sorted(["- default", *(f"- t{number}" for number in range(TUBES))])


def test_a_client_that_goes_amid_a_long_list_is_gone() -> None:
    world = World()
    client = world.client("a")
    for number in range(TUBES):
        client.conversation.receive(b"use t%d\r\nput 0 0 9 0\r\n\r\n" % number)
        client.take_turns()
    client.conversation.receive(b"list-tubes\r\n")
    client.turns.pop(0)()
    client.conversation.lost()
    client.take_turns()
    assert not world.server.connections


def test_stats_of_many_connections_are_counted_in_pieces() -> None:
    world = World()
    for number in range(2 * PER_PIECE):
        world.client(f"c{number}").conversation.receive(b"reserve\r\n")
    client = world.client("a")
    client.conversation.receive(b"stats\r\n")
    assert (client.got, len(client.turns)) == (b"", 1)
    client.take_turns()
    assert b"current-waiting: %d\n" % (2 * PER_PIECE) in client.got
    client.got = b""
    client.conversation.receive(b"stats-tube default\r\n")
    assert b"current-waiting: %d\n" % (2 * PER_PIECE) in client.got
    for number in range(2 * PER_PIECE):
        world.client(f"c{number}").conversation.lost()
    assert not world.server.tubes.waiting


# ---- the end of a connection

def test_nobody_waits_for_the_kick_of_a_connection_that_has_ended() -> None:
    world = World()
    kicking, other = slow(world, "k"), world.client("o")
    world.client("k").conversation.receive(b"kick 150000\r\n")
    world.client("k").conversation.lost()
    other.conversation.receive(b"put 0 0 9 0\r\n\r\n")
    assert other.got == b"INSERTED 1\r\n"
    assert not kicking.cancelled, "it goes on: beanstalkd would have done it before it saw the end"
    kicking.end(calls.NumberResult(150_000))
    assert kicking.left


def test_a_kick_before_jobs_that_others_wait_for_is_cancelled() -> None:
    world = World()
    kicking, other = slow(world, "k"), world.client("o")
    other.conversation.receive(b"put 0 0 9 0\r\n\r\n")
    world.client("k").conversation.receive(b"reserve\r\n")
    world.client("k").conversation.receive(b"kick 150000\r\n")
    world.client("k").conversation.lost()
    assert kicking.cancelled
    assert kicking.left
    other.conversation.receive(b"reserve-with-timeout 0\r\n")
    assert other.got == b"INSERTED 1\r\nRESERVED 1 0\r\n\r\n"


@pytest.mark.parametrize("verb", [b"stats", b"list-tubes"])
def test_what_only_reads_is_cancelled_when_its_connection_ends(verb: bytes) -> None:
    world = World()
    reading, other = slow(world, "k"), world.client("o")
    world.client("k").conversation.receive(verb + b"\r\n")
    world.client("k").conversation.lost()
    assert reading.cancelled
    assert reading.left
    other.conversation.receive(b"put 0 0 9 0\r\n\r\n")
    assert other.got == b"INSERTED 1\r\n"


def test_a_half_closed_connection_gets_its_long_answer_and_holds_up_nobody() -> None:
    world = World()
    kicking, other = slow(world, "k"), world.client("o")
    client = world.client("k")
    client.conversation.receive(b"put 0 0 9 0\r\n\r\nreserve\r\n")
    client.conversation.receive(b"kick 150000\r\n")
    client.conversation.end()
    other.conversation.receive(b"reserve-with-timeout 0\r\n")
    assert other.got == b"TIMED_OUT\r\n"
    kicking.end(calls.NumberResult(150_000))
    assert client.got.endswith(b"KICKED 150000\r\n")
    assert client.closed
    other.conversation.receive(b"reserve-with-timeout 0\r\n")
    assert other.got == b"TIMED_OUT\r\nRESERVED 1 0\r\n\r\n"


def test_a_cancelled_kick_ends_with_a_portion() -> None:
    async def test(gateway: MemoryGateway) -> None:
        place = Place(gateway)
        for _ in range(2500):
            place.do(calls.PutJob("q", 0, 1000, 60, b""))
        place.call(calls.KickTube("q", 2500))
        place.backend.cancel()
        gateway.cluster.commit()
        assert place.result is None
        kicks = [inner(operation) for entry in gateway.cluster.log for operation in entry]
        assert len([one for one in kicks if isinstance(one, Kick)]) == 1
        counts = gateway.cluster.machine.counts("q")
        assert counts is not None
        assert counts.ready == 1000
    with_gateway(test, automatic=False)


# ---- reading at the node

def test_a_follower_reads_its_own_state_at_the_leaders_index() -> None:
    async def test(gateway: MemoryGateway) -> None:
        place, leader = Place(gateway), Place(gateway)
        leader.do(put("a"))
        index = gateway.cluster.machine.index
        gateway.cluster.serving = False
        gateway.cluster.forward_call = lambda user, address, data, told: told(_index(index + 1)) or 1
        place.call(calls.ListTubes())
        assert place.result is NOTHING, "it waits for what it has not applied yet"
        gateway.cluster.serving = True
        leader.do(put("b"))
        await gateway.settle()
        for _ in range(100):
            if place.result is NOTHING:
                await asyncio.sleep(0.005)
        assert place.result == calls.Names(("a", "b"))
    with_gateway(test, automatic=False)


def _index(index: int) -> bytes:
    return encode(calls.NumberResult(index))


def test_sums_are_what_counting_finds_for_any_user() -> None:
    async def test(gateway: MemoryGateway) -> None:
        place = Place(gateway)
        for number in range(6):
            place.do(calls.PutJob(f"m{number % 3}", 2000 * (number % 2), 100 * (number // 4), 60, b""))
        place.do(calls.Reserve(("m1",), 0))
        found = place.do(calls.Totals(("m1", "other")))
        assert found == calls.Sums(2, 3, 1, 2, 0, 4)
    with_gateway(test, automatic=False)


def test_many_tubes_are_read_in_pieces() -> None:
    async def test(gateway: MemoryGateway) -> None:
        client = gateway.connect()
        for number in range(2 * LINES_PER_PIECE):
            client.send(b"PUT q%d 0 0\r\n" % number)
        await gateway.settle()
        pieces: list[object] = []
        results: list[object] = []
        gateway.hub.do_piece = lambda piece, lines=0: pieces.append(piece)      # type: ignore[method-assign]
        SurveyReader(gateway.hub, Principal(None, ""), calls.ListTubes(), results.append).begin(0)
        while pieces:
            assert not results
            pieces.pop()()                                          # type: ignore[operator]
        assert isinstance(results[0], calls.Names)
        assert len(results[0].names) == 2 * LINES_PER_PIECE
    with_gateway(test)
