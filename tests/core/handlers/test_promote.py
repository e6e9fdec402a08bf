"""The promotion of a replica: its mirror goes on as the state of its own cluster. And the fence at the origin."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sockpqd.core import (
    Accepted,
    Address,
    ConfigurePulse,
    ConfigureQueue,
    Dedup,
    Done,
    Elsewhere,
    Fence,
    Finished,
    Get,
    Handed,
    HoldItem,
    JobExists,
    JobIgnored,
    Lead,
    Machine,
    Mirrored,
    MirrorEntries,
    MirrorFrame,
    OpenSession,
    Operation,
    Promote,
    PulseChange,
    Put,
    PutWith,
    QueueChange,
    RaiseLevel,
    ReplicaRefused,
    ServiceFenced,
    SessionOpened,
    SetMap,
    SetUser,
    Stored,
    SwitchService,
    Then,
    Tick,
    User,
    encode_entry,
)
from tests.core.helpers.logs import MEMBERS, LogEntry, ask, data_of, lead, random_log, restored, snapshot_of
from tests.core.helpers.mirrors import REPLICA, Replica, begin_replica, frames_of, mirrored_state, promoted
from tests.core.helpers.session_logs import random_session_log
from tests.core.helpers.time_logs import random_time_log

BEYOND = 1 << 32
NOW_MS = 1_800_000_000_000


def copy_of(log: list[LogEntry], now_ms: int = 0) -> Replica:
    """Return a replica that has executed the log."""
    replica = Replica(Machine(), now_ms)
    for frame in frames_of(log):
        replica.take(frame)
    return replica


def origin_log(*operations: Operation, now_ms: int = NOW_MS) -> list[LogEntry]:
    """Return the log of a cluster that executed these operations in one entry."""
    return [LogEntry(now_ms, 0, [lead()]), LogEntry(now_ms, 7, list(operations))]


@pytest.mark.parametrize("made", [random_log, random_time_log, random_session_log])
@pytest.mark.parametrize("seed", range(3))
def test_a_promoted_copy_has_the_jobs_of_its_origin_and_its_own_cluster(
    made: Callable[[int, int], list[LogEntry]], seed: int,
) -> None:
    log = made(seed, 150)
    replica, origin = copy_of(log), Machine()
    for entry in log:
        origin.apply(origin.index + 1, *entry)
    id_before, members = replica.machine.cluster_id, replica.machine.membership
    machine = promoted(replica.machine)
    assert (machine.cluster_id, machine.membership, machine.mirrored, machine.promoted) == (
        id_before, members, None, True)
    assert machine.total(None) == origin.total(None)
    assert [(job.id, job.data) for job in machine.running()] == [(job.id, job.data) for job in origin.running()]
    assert [one.number for one in machine.sessions()] == [one.number for one in origin.sessions()]
    assert dict(machine.users) == dict(origin.users)
    assert machine.next_id == origin.next_id + BEYOND
    assert machine.event_seq == origin.event_seq + BEYOND
    again = restored(snapshot_of(machine))
    assert snapshot_of(again) == snapshot_of(machine)
    later = [Put("later", 1, b"job"), Get(("later",)), Tick()]
    assert ask(again, *later, now_ms=NOW_MS) == ask(machine, *later, now_ms=NOW_MS)
    assert snapshot_of(again) == snapshot_of(machine)


def test_numbers_lie_beyond_all_that_the_origin_may_have_given_out() -> None:
    log = origin_log(
        Put("q", 0, b"1"), Get(("q",)), OpenSession(7, 1000),
        ConfigurePulse("p", PulseChange(rate=1, per_ms=1000), create=True),
    )
    machine = promoted(copy_of(log, NOW_MS).machine, now_ms=NOW_MS)
    put, handed = ask(machine, PutWith(Put("q", 0, b"2"), number=True), Get(("q",)), now_ms=NOW_MS)
    assert isinstance(handed, Handed)
    assert handed.id == 2 + BEYOND
    assert machine.next_seq >> 10 >= NOW_MS + 10_000
    (session,) = ask(machine, OpenSession(7, 1000), now_ms=NOW_MS)
    assert isinstance(session, SessionOpened)
    assert max(one.number for one in machine.sessions()) == 2 + BEYOND
    assert machine.next_ticket == 1 + BEYOND
    assert not isinstance(put, ReplicaRefused)


@pytest.mark.parametrize("late_ms", [0, 5_000, 86_400_000])
def test_leases_holds_sessions_and_ttls_have_what_was_left_and_the_grace(late_ms: int) -> None:
    """However late a person promotes the copy, and whatever the clocks of the two clusters are."""
    log = origin_log(
        Put("q", 0, b"job"), Get(("q",), 3_000, Then.LATER), OpenSession(7, 4_000), HoldItem("item", 5_000),
        PutWith(Put("ttl", 0, b"old"), ttl_ms=6_000),
    )
    log.append(LogEntry(NOW_MS + 1_000, 0, [Tick()]))          # a second of each has passed
    replica = copy_of(log, NOW_MS + late_ms)
    machine = promoted(replica.machine, grace_ms=60_000, now_ms=NOW_MS + late_ms)
    begun = machine.clock_ms

    def left() -> tuple[int, int, int, int]:
        items = machine.item("item")
        return (
            machine.total("q").running, machine.session_count, 0 if items is None else 1,
            machine.total("ttl").jobs,
        )
    ends = [(2_000, 0), (3_000, 1), (4_000, 2), (5_000, 3)]
    for after_ms, which in ends:
        ask(machine, Tick(), now_ms=begun + 60_000 + after_ms - 1)
        assert left()[which] == 1, which
        ask(machine, Tick(), now_ms=begun + 60_000 + after_ms + 100)
        assert left()[which] == 0, which


def test_a_lease_that_ended_while_the_origin_was_away_gets_its_grace() -> None:
    log = origin_log(Put("q", 0, b"job"), Get(("q",), 1_000))
    machine = promoted(copy_of(log, NOW_MS).machine, grace_ms=5_000, now_ms=NOW_MS + 3_600_000)
    assert ask(machine, Done(1), now_ms=NOW_MS + 3_605_000) == [Finished(True, False)]


def test_what_was_over_while_the_origin_was_offline_has_the_grace() -> None:
    """Nothing ends while the service is offline, but its clock goes on."""
    half_hour_ms = 1_800_000
    log = origin_log(
        Put("q", 0, b"job"), Get(("q",), 60_000), OpenSession(7, 60_000), HoldItem("item", 60_000),
        PutWith(Put("ttl", 0, b"old"), ttl_ms=60_000),
        Put("long", 0, b"job"), Get(("long",), 3_600_000), PutWith(Put("late", 0, b"old"), ttl_ms=3_600_000),
    )
    log.append(LogEntry(NOW_MS, 0, [SwitchService(False)]))
    now_ms = NOW_MS + half_hour_ms
    log.append(LogEntry(now_ms, 0, [Fence("6964206f66207468")]))
    machine = promoted(copy_of(log, now_ms).machine, grace_ms=60_000, now_ms=now_ms)

    def left(it: Machine) -> tuple[int, int, int, int, int, int]:
        return (
            it.total("q").running, it.session_count, 0 if it.item("item") is None else 1, it.total("ttl").jobs,
            it.total("long").running, it.total("late").jobs,
        )
    for it in (machine, restored(snapshot_of(machine))):
        ask(it, Tick(), now_ms=now_ms + 60_000 - 1)
        assert left(it) == (1, 1, 1, 1, 1, 1)
        ask(it, Tick(), now_ms=now_ms + 60_000 + 100)
        assert left(it) == (0, 0, 0, 0, 1, 1)
        ask(it, Tick(), now_ms=now_ms + half_hour_ms + 60_000 - 1)
        assert left(it) == (0, 0, 0, 0, 1, 1)
        ask(it, Tick(), now_ms=now_ms + half_hour_ms + 60_000 + 100)
        assert left(it) == (0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("late_ms", [0, 5_000, 86_400_000])
def test_keys_of_puts_are_remembered_for_the_time_that_was_left_and_the_grace(late_ms: int) -> None:
    """A client repeats a PUT that was in doubt when the origin was lost, however long the promotion took."""
    again = PutWith(Put("q", 0, b"job"), dedup=Dedup("k", 3_000))
    kept = PutWith(Put("kept", 0, b"job"), key="key")
    short = PutWith(Put("q", 0, b"job"), dedup=Dedup("short", 500))
    log = origin_log(
        again, short, ConfigureQueue("kept", QueueChange(keep_ms=4_000)), kept, Get(("kept",)), Done(1),
    )
    log.append(LogEntry(NOW_MS + 1_000, 0, [Tick()]))
    machine = promoted(copy_of(log, NOW_MS + late_ms).machine, grace_ms=60_000, now_ms=NOW_MS + late_ms)
    begun = machine.clock_ms
    for it in (machine, restored(snapshot_of(machine))):
        assert ask(it, short) == [Stored()]
        assert ask(it, again, now_ms=begun + 62_000 - 1) == [JobIgnored()]
        assert ask(it, again, kept, now_ms=begun + 62_000) == [Stored(), JobExists()]
        assert ask(it, kept, now_ms=begun + 63_000) == [Stored()]


def test_jobs_with_a_ttl_are_still_found_and_handed_out() -> None:
    log = origin_log(*[PutWith(Put("q", number % 3, b"%d" % number), ttl_ms=1_000 + number) for number in range(50)])
    machine = promoted(copy_of(log, NOW_MS).machine, grace_ms=100_000, now_ms=NOW_MS)
    again = restored(snapshot_of(machine))
    handed = ask(machine, *[Get(("q",))] * 25, now_ms=NOW_MS)
    assert len(set(data_of(handed))) == 25
    assert ask(again, *[Get(("q",))] * 25, now_ms=NOW_MS) == handed
    ask(machine, *[Tick()] * 3, now_ms=NOW_MS + 200_000)
    assert machine.total("q").jobs == 0


def test_settings_and_users_are_the_origins() -> None:
    log = origin_log(ConfigureQueue("q", QueueChange(limit=1)), SetUser("ann", User("put", b"sixteen byte key")))
    machine = promoted(copy_of(log).machine)
    settings = machine.queue_settings("q")
    assert settings is not None
    assert settings.limit == 1
    assert list(machine.users) == ["ann"]


def test_what_is_incomplete_is_dropped() -> None:
    replica = copy_of(random_log(1, 20))
    reached = replica.reached
    before = mirrored_state(replica.machine)
    for step in replica.install(Machine(), 50):
        del step
        break
    assert replica.reached == reached
    assert promoted(replica.machine).total(None) == _read(before).total(None)


def _read(snapshot: bytes) -> Machine:
    machine = Machine()
    machine.restore([snapshot])
    return machine


def test_the_map_has_the_replica_in_the_origins_place() -> None:
    text = (
        f"CLUSTER a {b'sixteen '.hex()} h:1,h:2\nCLUSTER b 0000000000000001 g:1\nRULE to_b b\n"
    ).encode()
    replica = copy_of(origin_log(SetMap(5, text)))
    machine = replica.machine
    replica.log(Lead("n1", 2, MEMBERS, REPLICA, 0, addresses=_addresses()))
    promoted(machine)
    known = machine.cluster_map
    assert known is not None
    assert (known.version, known.own) == (6, "a")
    assert known.clusters[0].servers == ("c1:1", "c2:1", "c3:1")
    assert known.clusters[1].servers == ("g:1",)
    assert ask(machine, Put("mine", 0, b"job")) == [Stored()]


OF_ORIGIN, OF_REPLICA, OF_OTHER = b"sixteen ".hex(), REPLICA[:8].hex(), "0000000000000001"


def promoted_with_map(text: str, addresses: tuple[Address, ...]) -> Machine:
    """Return the promoted copy of an origin that had this map; a node that restores its snapshot must agree on it."""
    replica = copy_of(origin_log(SetMap(5, text.encode())))
    replica.log(Lead("n1", 2, MEMBERS, REPLICA, 0, addresses=addresses))
    machine = promoted(replica.machine)
    again, known = restored(snapshot_of(machine)).cluster_map, machine.cluster_map
    assert again is not None
    assert known is not None
    assert (again.own, again.version, again.text) == (known.own, known.version, known.text)
    return machine


def lines_of(machine: Machine) -> list[str]:
    """Return the lines of the machine's map."""
    assert machine.cluster_map is not None
    return machine.cluster_map.text.decode().splitlines()


@pytest.mark.parametrize("addresses", [(), (Address("n1", "p1:1", "no address"),)])
def test_without_addresses_the_origins_line_gets_the_id_alone(addresses: tuple[Address, ...]) -> None:
    machine = promoted_with_map(f"CLUSTER a {OF_ORIGIN} h:1\n", addresses)
    assert lines_of(machine) == [f"CLUSTER a {OF_REPLICA} h:1"]
    for it in (machine, restored(snapshot_of(machine))):
        assert ask(it, Put("mine", 0, b"job")) == [Stored()]


def test_a_line_that_has_the_replicas_id_already_stays() -> None:
    """As when an operator has put the id there before the promotion."""
    text = f"CLUSTER a {OF_REPLICA} h:9\n"
    machine = promoted_with_map(text, _addresses())
    assert machine.cluster_map is not None
    assert (machine.cluster_map.version, machine.cluster_map.text) == (5, text.encode())
    for it in (machine, restored(snapshot_of(machine))):
        assert ask(it, Put("mine", 0, b"job")) == [Stored()]


def test_a_map_without_the_origin_is_seen_by_the_replica() -> None:
    machine = promoted_with_map(f"CLUSTER b {OF_OTHER} g:1\n", _addresses())
    assert lines_of(machine) == [f"CLUSTER b {OF_OTHER} g:1"]
    for it in (machine, restored(snapshot_of(machine))):
        assert ask(it, Put("mine", 0, b"job")) == [Elsewhere("b")]


def test_a_line_of_the_replicas_own_becomes_part_of_the_origins() -> None:
    machine = promoted_with_map("\n".join([
        f"CLUSTER r {OF_REPLICA} h:9", f"CLUSTER b {OF_OTHER} g:1", f"CLUSTER a {OF_ORIGIN} h:1",
        "RULE x r", "RULE y b", "RULE z -", "RULE m b", "MOVING m a r", "MOVING n r b", "SPREAD r", "",
    ]), _addresses())
    assert lines_of(machine) == [
        f"CLUSTER a {OF_REPLICA} c1:1,c2:1,c3:1", f"CLUSTER b {OF_OTHER} g:1",
        "RULE x a", "RULE y b", "RULE z -", "RULE m a", "MOVING n a b", "SPREAD r",
    ]
    for it in (machine, restored(snapshot_of(machine))):
        mine = [Put(name, 0, b"job") for name in ("other", "x1", "m1", "r")]
        assert ask(it, *mine) == [Stored()] * 4


def _addresses() -> tuple[Address, ...]:
    return tuple(Address(name, f"p{number}:1", f"c{number}:1") for number, name in enumerate(MEMBERS, 1))


def test_only_a_replica_can_be_promoted_and_only_once() -> None:
    machine = Machine()
    begin_replica(machine)
    assert ask(machine, Promote(0)) == [ReplicaRefused("no mirror")]
    machine = promoted(copy_of(random_log(1, 5)).machine)
    assert ask(machine, Promote(0)) == [ReplicaRefused("no mirror")]
    assert ask(machine, MirrorEntries(0, ())) == [ReplicaRefused("promoted")]
    assert ask(restored(snapshot_of(machine)), MirrorEntries(0, ())) == [ReplicaRefused("promoted")]


def test_a_replica_that_has_nothing_yet_is_not_promoted() -> None:
    replica, origin = Replica(Machine()), Machine()
    for entry in random_log(1, 20):
        origin.apply(origin.index + 1, *entry)
    replica.take(*frames_of(random_log(1, 9))[5:], after=5)         # behind a gap
    assert replica.log(Promote(0)) == [ReplicaRefused("no mirror")]
    for _ in replica.install(origin, 300):
        assert replica.log(Promote(0)) == [ReplicaRefused("no mirror")]
    assert not replica.machine.promoted
    assert promoted(replica.machine).total(None) == origin.total(None)


def test_the_copy_of_a_replica_is_not_promoted_before_that_one_is() -> None:
    """The log of a promoted origin begins with what it took in itself: until its promotion its own state is empty."""
    jobs = tuple(frames_of(origin_log(Put("q", 0, b"job"))))
    frames = frames_of([
        LogEntry(0, 0, [lead()]), LogEntry(0, 0, [RaiseLevel(2, MEMBERS)]), LogEntry(0, 0, [MirrorEntries(0, jobs)]),
        LogEntry(0, 0, [Promote(0)]),
    ])
    replica = Replica(Machine())
    replica.take(*frames[:3])
    assert replica.log(Promote(0)) == [ReplicaRefused("no mirror")]
    replica.take(*frames[3:])
    assert promoted(replica.machine).total("q").jobs == 1


def test_a_cluster_that_was_used_does_not_become_a_replica() -> None:
    machine = Machine()
    begin_replica(machine)
    ask(machine, Put("q", 0, b"job"))
    before = snapshot_of(machine)
    assert ask(machine, MirrorEntries(0, tuple(frames_of(random_log(1, 3))))) == [ReplicaRefused("not empty")]
    assert machine.mirrored is None
    assert len(snapshot_of(machine)) == len(before)


def test_entries_behind_a_gap_are_not_executed() -> None:
    replica, frames = Replica(Machine()), frames_of(random_log(1, 9))
    assert replica.take(*frames[:3]) == 3
    assert replica.take(*frames[5:], after=5) == 3
    assert replica.take(*frames[1:5], after=1) == 5
    assert replica.take(*frames, after=0) == 9


def test_a_fenced_service_stays_off_for_good() -> None:
    machine = Machine()
    begin_replica(machine)
    assert machine.online
    assert ask(machine, Fence("0011223344556677")) == [Accepted()]
    for it in (machine, restored(snapshot_of(machine))):
        assert not it.online
        assert ask(it, SwitchService(True, 1000)) == [ServiceFenced("0011223344556677")]
        assert ask(it, SwitchService(False)) == [Accepted()]
        assert (it.online, it.fenced) == (False, "0011223344556677")


def test_a_replica_cannot_be_fenced() -> None:
    """It would be promoted to a service that is off for good."""
    replica = copy_of(random_log(1, 5))
    assert replica.log(Fence("0011223344556677")) == [ReplicaRefused("replica")]
    assert replica.machine.fenced is None
    assert promoted(replica.machine).online
    assert replica.log(Fence("0011223344556677")) == [Accepted()]


def test_a_fenced_cluster_does_not_become_a_replica() -> None:
    machine = Machine()
    begin_replica(machine)
    ask(machine, Fence("0011223344556677"))
    assert ask(machine, MirrorEntries(0, tuple(frames_of(random_log(1, 3))))) == [ReplicaRefused("not empty")]


def test_a_copy_of_a_fenced_origin_is_not_fenced_itself() -> None:
    machine = promoted(copy_of(origin_log(Put("q", 0, b"job"), Fence("6964206f66207468"))).machine)
    assert machine.online
    assert machine.fenced is None
    assert isinstance(ask(machine, Get(("q",)))[0], Handed)


def test_events_go_on_beyond_those_of_the_origin() -> None:
    replica = copy_of(origin_log(Put("q", 0, b"1")))
    machine = replica.machine
    machine.record({"PUT"})
    seq = machine.event_seq
    frame = MirrorFrame(3, encode_entry(NOW_MS, 0, [Put("q", 0, b"2")]))
    applied = machine.apply(machine.index + 1, 0, 0, [MirrorEntries(2, (frame,))])
    assert [(event.seq, event.type) for event in applied.events] == [(seq + 1, "PUT")]
    assert machine.apply(machine.index + 1, 0, 0, [Lead("n2", 2, MEMBERS, REPLICA, 0)]).events == []
    replaced = machine.replaced
    assert machine.apply(machine.index + 1, 0, 0, [Promote(0)]).events == []
    assert machine.replaced == replaced + 1
    (event,) = machine.apply(machine.index + 1, 0, 0, [Put("q", 0, b"3")]).events
    assert (event.seq, event.type) == (seq + 2 + BEYOND, "PUT")


def test_the_reply_names_the_origins_last_entry() -> None:
    replica = copy_of(random_log(3, 12))
    assert replica.log(Promote(0)) == [Mirrored(12)]


def test_a_copy_that_was_stopped_serves_when_it_is_promoted() -> None:
    replica = copy_of(random_log(1, 5))
    assert replica.log(SwitchService(False)) == [Accepted()]
    assert not replica.machine.online
    assert promoted(replica.machine).online
