"""Subscribers of one node: those that come back, those that are slow, and a state that is replaced."""

from __future__ import annotations

import asyncio

import pytest

from sockpqd.core import Event, Machine, Put
from sockpqd.gateway.events import history
from sockpqd.gateway.events import subscriptions as of_subscriptions
from sockpqd.gateway.events.filters import Filter
from sockpqd.gateway.events.subscriptions import Subscription, Subscriptions
from sockpqd.gateway.limits import (
    EVENT_BACKLOG_BYTES,
    EVENT_PIECE_BYTES,
    EVENT_SLICE_STEPS_MAX,
    EVENT_WRITE_STEPS,
)
from tests.gateway.helpers.fake_cluster import FakeCluster

ALL_PUTS = Filter(("PUT",))


class Listener:
    """The part of the hub that events go through."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.subscriptions = Subscriptions(cluster)

    def effects(self, effects: object) -> None:
        pass

    def serving_changed(self, serving: bool) -> None:
        pass

    def events(self, events: list) -> None:     # type: ignore[type-arg]
        self.subscriptions.events(events)

    def recording(self, types: frozenset[str]) -> None:
        self.subscriptions.recording(types)

    def notice(self, channel: str, data: bytes) -> None:
        """Implement ClusterListener."""

    def notices_lost(self) -> None:
        """Implement ClusterListener."""

    def state_replaced(self) -> None:
        self.subscriptions.replaced()

    def turn_ended(self) -> None:
        self.subscriptions.turn_ended()


class Hearer:
    """A subscriber that takes its lines when it is asked to."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.unsent = self.writes = 0
        self.reads = True
        self.stays = True
        self.ended: str | None = None

    def tell(self, lines: list[bytes]) -> None:
        assert self.ended is None
        self.writes += 1
        self.lines += [line.rstrip() for line in lines]
        if not self.reads:
            self.unsent += sum(map(len, lines))

    def unsent_bytes(self) -> int:
        return self.unsent

    def may_hear(self, event_type: str, name: str) -> bool:
        return not name.startswith("secret")

    def may_stay(self) -> bool:
        return self.stays

    def cut(self, why: str) -> None:
        self.ended = why


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster(automatic=False)


@pytest.fixture
def node(cluster: FakeCluster) -> Subscriptions:
    listener = Listener(cluster)
    cluster.start(listener)
    return listener.subscriptions


def put(cluster: FakeCluster, queue: str, count: int = 1) -> None:
    """Put this many jobs in one entry."""
    cluster._apply([Put(queue, 0, b"")] * count)
    cluster.pass_time(0)


def subscribe(node: Subscriptions, hearer: Hearer, wish: Filter, after: int | None) -> Subscription:
    """Subscribe, and begin at once."""
    subscription = node.add(hearer, wish, after)
    node.begin(subscription)
    return subscription


def numbers(hearer: Hearer) -> list[int]:
    return [int(line.split()[1]) for line in hearer.lines]


def test_each_hears_what_it_asked_for_and_may_know(cluster: FakeCluster, node: Subscriptions) -> None:
    every, named, prefixed, both, deaf = (Hearer() for _ in range(5))
    subscribe(node, every, ALL_PUTS, None)
    subscribe(node, named, Filter(("PUT", "FINQ"), ("a", "b")), None)
    subscribe(node, prefixed, Filter(("PUT",), (), ("a",)), None)
    subscribe(node, both, Filter(("PUT",), ("a1",), ("a",)), None)
    subscribe(node, deaf, Filter(("FINQ",)), None)
    for queue in ("a", "a1", "c", "secret"):
        put(cluster, queue)
    assert [line.split()[3] for line in every.lines] == [b"a", b"a1", b"c"]
    assert [line.split()[3] for line in named.lines] == [b"a"]
    assert [line.split()[3] for line in prefixed.lines] == [b"a", b"a1"]
    assert [line.split()[3] for line in both.lines] == [b"a", b"a1"]        # once
    assert deaf.lines == []


def test_who_leaves_hears_nothing_more(cluster: FakeCluster, node: Subscriptions) -> None:
    hearer = Hearer()
    subscription = subscribe(node, hearer, ALL_PUTS, None)
    node.events([Event(7, "PUT", "q", (0,))])       # in the same turn
    node.remove(subscription)
    node.remove(subscription)
    put(cluster, "q")
    assert hearer.lines == []
    assert len(node) == 0
    assert cluster.recorded == frozenset()


def test_a_slow_reader_is_cut_when_the_next_line_is_due(cluster: FakeCluster, node: Subscriptions) -> None:
    slow, quick = Hearer(), Hearer()
    subscribe(node, slow, ALL_PUTS, None)
    subscribe(node, quick, ALL_PUTS, None)
    slow.unsent = EVENT_BACKLOG_BYTES - 1
    put(cluster, "q")
    assert slow.ended is None
    slow.unsent = EVENT_BACKLOG_BYTES
    assert slow.ended is None
    put(cluster, "q")
    assert slow.ended is not None
    put(cluster, "q")
    assert numbers(slow) == numbers(quick)[:1]
    assert len(quick.lines) == 3


def test_who_comes_back_reads_the_past_in_pieces_and_then_goes_on(cluster: FakeCluster, node: Subscriptions) -> None:
    subscribe(node, Hearer(), ALL_PUTS, None)
    begun = cluster.machine.event_seq
    for _ in range(10):
        put(cluster, "q", 1000)
    hearer = Hearer()
    hearer.reads = False
    assert node.may_begin(ALL_PUTS, begun)
    subscribe(node, hearer, ALL_PUTS, begun)
    for _ in range(9):                          # each turn has its slice of it
        node.turn_ended()
    first = len(hearer.lines)
    assert EVENT_PIECE_BYTES <= hearer.unsent < 2 * EVENT_PIECE_BYTES
    put(cluster, "q")                           # it does not hear this before the rest
    assert len(hearer.lines) == first
    while len(hearer.lines) < 10_001:
        hearer.unsent = 0
        put(cluster, "other")
        assert numbers(hearer) == list(range(begun + 1, begun + 1 + len(hearer.lines)))
    assert hearer.ended is None


def test_who_reads_the_past_too_slowly_is_cut(
    cluster: FakeCluster, node: Subscriptions, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history, "EVENT_HISTORY_MAX", 5000)
    subscribe(node, Hearer(), ALL_PUTS, None)
    begun = cluster.machine.event_seq
    put(cluster, "q" * 100, 5000)
    hearer = Hearer()
    hearer.reads = False
    subscribe(node, hearer, ALL_PUTS, begun)
    node.turn_ended()
    for _ in range(5):
        put(cluster, "q", 1000)
    assert hearer.ended is None                 # nothing is held for it
    hearer.unsent = 0
    node.turn_ended()
    assert hearer.ended is not None


def test_what_is_forgotten_or_was_not_recorded_is_too_old(
    cluster: FakeCluster, node: Subscriptions, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history, "EVENT_HISTORY_MAX", 10)
    put(cluster, "q")
    assert not node.may_begin(ALL_PUTS, cluster.machine.event_seq - 1)
    assert node.may_begin(ALL_PUTS, cluster.machine.event_seq)
    subscribe(node, Hearer(), ALL_PUTS, None)
    begun = cluster.machine.event_seq
    put(cluster, "q", 10)
    assert node.may_begin(ALL_PUTS, begun)
    put(cluster, "q", 1)
    assert not node.may_begin(ALL_PUTS, begun)
    assert node.may_begin(ALL_PUTS, begun + 1)
    assert not node.may_begin(Filter(("PUT", "TAKE")), begun + 1)
    assert node.may_begin(Filter(("PUT", "MSG")), begun + 1)
    assert not node.may_begin(ALL_PUTS, begun + 12)
    cluster.follow("n2")
    assert node.may_begin(ALL_PUTS, begun + 99)


def test_a_snapshot_of_another_node_is_told_as_a_gap(cluster: FakeCluster, node: Subscriptions) -> None:
    hearer, ahead = Hearer(), Hearer()
    subscribe(node, hearer, ALL_PUTS, None)
    put(cluster, "q")
    before = cluster.machine.event_seq
    other = Machine()
    other.restore(cluster.machine.snapshot())
    other.apply(other.index + 1, 0, 0, [Put("q", 0, b"")] * 5)
    cluster.follow("n2")
    before = cluster.machine.event_seq
    subscribe(node, ahead, ALL_PUTS, before + 100)
    snapshot = b"".join(other.snapshot())
    other.apply(other.index + 1, 0, 0, [Put("q", 0, b"")] * 5)
    cluster.machine.restore([snapshot])
    cluster._index = cluster.machine.index
    node.replaced()
    node.turn_ended()
    newest = cluster.machine.event_seq
    assert newest == before - 1 + 5             # the leader's change was only in this node's history
    assert hearer.lines[1:] == [b"250 %d GAP %d %d" % (newest, before + 1, newest)]
    assert ahead.lines == []
    assert not node.may_begin(ALL_PUTS, before)
    put(cluster, "q")
    assert numbers(hearer)[-1] == newest + 1


def take_over(cluster: FakeCluster, node: Subscriptions, *, puts: int) -> None:
    """Install the snapshot of another node that has executed this many more."""
    other = Machine()
    other.restore(cluster.machine.snapshot())
    other.apply(other.index + 1, 0, 0, [Put("q", 0, b"")] * puts)
    cluster.machine.restore(other.snapshot())
    cluster._index = cluster.machine.index
    node.replaced()
    node.turn_ended()


def test_who_is_not_answered_yet_when_a_snapshot_comes_is_told_of_the_gap(
    cluster: FakeCluster, node: Subscriptions
) -> None:
    put(cluster, "q")
    cluster.follow("n2")
    now = cluster.machine.event_seq
    hearers = {after: Hearer() for after in (now - 1, now, now + 2, now + 9, None)}
    waiting = {after: node.add(hearer, ALL_PUTS, after) for after, hearer in hearers.items()}
    take_over(cluster, node, puts=5)
    newest = cluster.machine.event_seq
    assert newest == now + 5
    assert all(not hearer.lines for hearer in hearers.values())
    put(cluster, "q")
    waiting[None].seq = cluster.machine.event_seq       # as who asks from now on is answered
    for subscription in waiting.values():
        node.begin(subscription)
    put(cluster, "q")
    node.turn_ended()
    put_lines = [b"250 %d PUT q 0" % number for number in (newest + 1, newest + 2)]
    for after in (now - 1, now, now + 2):
        assert hearers[after].lines == [b"250 %d GAP %d %d" % (newest, after + 1, newest), *put_lines]
    assert hearers[None].lines == put_lines[1:]
    assert hearers[now + 9].lines == []


def test_messages_do_not_run_ahead_of_the_past_that_is_still_told(cluster: FakeCluster, node: Subscriptions) -> None:
    wish = Filter(("PUT", "MSG"))
    first, late = Hearer(), Hearer()
    subscribe(node, first, wish, None)
    put(cluster, "q", 2)
    node.turn_ended()
    begin = cluster.machine.event_seq - 2
    subscribe(node, late, wish, begin)
    node.notices_lost()
    node.notice("c", b"")
    node.turn_ended()
    node.notice("c", b"")
    node.turn_ended()
    assert late.lines == [
        b"250 %d GAP %d %d" % (begin, begin, begin), b"250 %d MSG c 0" % begin, b"250 %d PUT q 0" % (begin + 1),
        b"250 %d PUT q 0" % (begin + 2), b"250 %d MSG c 0" % (begin + 2),
    ]
    assert numbers(first)[2:] == [begin + 2] * 3


MANY = 1500


def crowd(node: Subscriptions, wish: Filter = ALL_PUTS) -> list[Hearer]:
    """Subscribe MANY receivers to these events, and return them."""
    hearers = [Hearer() for _ in range(MANY)]
    for hearer in hearers:
        subscribe(node, hearer, wish, None)
    return hearers


def told(hearers: list[Hearer]) -> int:
    """Return how many subscribers have been written to."""
    return sum(bool(hearer.lines) for hearer in hearers)


def test_one_turn_writes_to_some_of_many_and_all_hear_everything_in_order(
    cluster: FakeCluster, node: Subscriptions
) -> None:
    hearers = crowd(node)
    begun = cluster.machine.event_seq
    slice_of_one = EVENT_SLICE_STEPS_MAX // EVENT_WRITE_STEPS
    node.events([Event(begun + 1, "PUT", "q", (0,))])
    assert told(hearers) == 0                       # nothing is done while entries are applied
    node.turn_ended()
    assert 0 < told(hearers) <= slice_of_one < MANY
    for number in range(2, 22):
        node.events([Event(begun + number, "PUT", "q", (0,))])
    turns = 0
    while node.pending:
        before = sum(hearer.writes for hearer in hearers)
        node.turn_ended()
        turns += 1
        assert sum(hearer.writes for hearer in hearers) - before <= slice_of_one
    assert turns < 100
    assert all(numbers(hearer) == list(range(begun + 1, begun + 22)) for hearer in hearers)


def test_who_leaves_or_comes_while_an_event_is_told_misses_and_gets_nothing_of_others(
    cluster: FakeCluster, node: Subscriptions
) -> None:
    hearers = [Hearer() for _ in range(MANY)]
    subscriptions = [subscribe(node, hearer, ALL_PUTS, None) for hearer in hearers]
    begun = cluster.machine.event_seq
    put(cluster, "q")
    waiting = next(place for place, hearer in enumerate(hearers) if not hearer.lines)
    node.remove(subscriptions[waiting])
    late, back = Hearer(), Hearer()
    subscribe(node, late, ALL_PUTS, None)
    subscribe(node, back, ALL_PUTS, begun)
    last = next(place for place, hearer in enumerate(hearers) if not hearer.lines and place != waiting)
    node.flush(subscriptions[last])                 # as who subscribes to something else
    assert numbers(hearers[last]) == [begun + 1]
    put(cluster, "q")
    while node.pending:
        node.turn_ended()
    assert numbers(late) == [begun + 2]
    assert numbers(back) == [begun + 1, begun + 2]
    assert hearers.pop(waiting).lines == []
    assert all(numbers(hearer) == [begun + 1, begun + 2] for hearer in hearers)


def test_messages_and_events_keep_their_order_while_there_is_too_much_for_a_turn(
    cluster: FakeCluster, node: Subscriptions
) -> None:
    hearers = crowd(node, Filter(("PUT", "MSG")))
    for number in range(5):
        put(cluster, f"q{number}")
        node.notice(f"c{number}", b"")
    while node.pending:
        node.turn_ended()
    expected = [word for number in range(5) for word in (b"q%d" % number, b"c%d" % number)]
    for hearer in hearers:
        assert [line.split()[3] for line in hearer.lines] == expected
        assert numbers(hearer) == sorted(numbers(hearer))


def test_who_makes_more_waits_while_much_is_due(
    cluster: FakeCluster, node: Subscriptions, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(of_subscriptions, "EVENT_DUE_HIGH", 100)

    async def main() -> None:
        hearers = crowd(node, Filter(("MSG",)))
        for _ in range(100):
            node.notice("c", b"")
        assert not node.crowded
        node.notice("c", b"")
        assert node.crowded
        waiting = asyncio.create_task(node.room())
        await asyncio.sleep(0)
        while not waiting.done():
            node.turn_ended()
            await asyncio.sleep(0)
        assert not node.crowded
        assert node.pending
        while node.pending:
            node.turn_ended()
        assert {len(hearer.lines) for hearer in hearers} == {101}

    asyncio.run(main())


@pytest.mark.parametrize("messages", [False, True])
def test_with_far_too_much_due_all_are_told_that_they_missed_it(
    cluster: FakeCluster, node: Subscriptions, monkeypatch: pytest.MonkeyPatch, messages: bool,
) -> None:
    monkeypatch.setattr(of_subscriptions, "EVENT_DUE_MAX", 100)
    hearers = crowd(node, Filter(("PUT", "MSG")))
    begun = cluster.machine.event_seq
    if messages:
        for _ in range(101):
            node.notice("c", b"")
    else:
        cluster._apply([Put("q", 0, b"")] * 101)
    newest = cluster.machine.event_seq
    while node.pending:
        node.turn_ended()
    for hearer in hearers:
        heard, (_, number, kind, first, last) = numbers(hearer)[:-1], hearer.lines[-1].split()
        assert (kind, int(number), int(last)) == (b"GAP", newest, newest)
        assert int(first) == (newest if messages else begun + 1 + len(heard))
        assert messages or heard == list(range(begun + 1, int(first)))
    put(cluster, "q")
    while node.pending:
        node.turn_ended()
    assert all(numbers(hearer)[-1] == newest + 1 for hearer in hearers)


def test_who_is_gone_leaves_the_index_in_slices(cluster: FakeCluster, node: Subscriptions) -> None:
    names = tuple(f"q{number}" for number in range(1000))
    subscriptions = [subscribe(node, Hearer(), Filter(("PUT",), names), None) for _ in range(100)]
    for subscription in subscriptions:
        node.remove(subscription)
    assert len(node) == 0
    turns = 0
    while node.pending:
        node.turn_ended()
        turns += 1
    assert turns >= 100 * 1000 // (EVENT_SLICE_STEPS_MAX + 1000)
    assert node._index.looks() == 0


def test_the_past_is_read_in_slices_of_all_who_read_it(cluster: FakeCluster, node: Subscriptions) -> None:
    subscribe(node, Hearer(), ALL_PUTS, None)
    begun = cluster.machine.event_seq
    for _ in range(10):
        put(cluster, "q", 1000)
    while node.pending:
        node.turn_ended()
    hearers = [Hearer() for _ in range(50)]
    for hearer in hearers:
        subscribe(node, hearer, ALL_PUTS, begun)
    before = 0
    while node.pending:
        node.turn_ended()
        heard = sum(len(hearer.lines) for hearer in hearers)
        assert heard - before <= EVENT_SLICE_STEPS_MAX + 1000
        before = heard
    assert all(numbers(hearer) == list(range(begun + 1, begun + 10_001)) for hearer in hearers)


def test_whose_user_is_gone_is_cut_before_it_is_told_more(cluster: FakeCluster, node: Subscriptions) -> None:
    hearer = Hearer()
    subscribe(node, hearer, ALL_PUTS, None)
    put(cluster, "q")
    hearer.stays = False
    put(cluster, "q")
    assert len(hearer.lines) == 1
    assert hearer.ended is not None
    assert len(node) == 0
