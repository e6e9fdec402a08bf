"""Each hazard of pysyncobj that is cured here, as a minimal case that goes red when the cure is taken out.

All tests run in the steady lane and without it. Some run once more, with the cure removed by a patch of the test; that
run must show the damage, which proves that the others could fail. Numbers as in docs/ARCHITECTURE.md.
"""

from __future__ import annotations

import errno
import importlib.metadata
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pysyncobj.pickle
import pytest

from sockpqd.cluster import driver, limits
from sockpqd.cluster.errors import ApplyFailed, FailStop, LibraryMismatch, OutOfMemory, RaftViolated
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.leader import leadership, proposer
from sockpqd.cluster.raft import elections, pysyncobj_adapter
from sockpqd.cluster.raft.append_entries import Receiver, Sender
from sockpqd.cluster.raft.steady_lane import SteadyLane
from sockpqd.cluster.syncing import Syncing
from sockpqd.cluster.wire.messages import Ack, Append, Heartbeat, Info, Message, RequestVote, SnapshotChunk
from sockpqd.core import (
    FIRST_LEVEL,
    OPERATION_BYTES_MAX,
    Batch,
    Due,
    Get,
    Put,
    PutWith,
    Results,
    Stored,
    cost,
    encode_entry,
)
from sockpqd.core.handlers.cost import small
from sockpqd.core.handlers.dispatch import COSTS
from tests.cluster.helpers.small_cluster import Outcome, SmallCluster, SmallNode


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test in both lanes; without its cure only in the library's, which has to do the damage."""
    lanes = ["steady-lane", "library"]
    if "cured" in metafunc.fixturenames:
        metafunc.parametrize("cured", [*lanes, "cure-removed"], indirect=True)
    else:
        metafunc.parametrize("lane", lanes, indirect=True)


@pytest.fixture
def cured(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether the cure is in place in this run."""
    monkeypatch.setattr(SteadyLane, "open", request.param == "steady-lane")
    return str(request.param) != "cure-removed"


@pytest.fixture(autouse=True)
def lane(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Open or close the steady lane in a test without `cured`."""
    if hasattr(request, "param"):
        monkeypatch.setattr(SteadyLane, "open", request.param == "steady-lane")


def append_from(world: SmallCluster, leader: SmallNode, to: SmallNode, prev: int, count: int) -> None:
    """Let the follower receive a re-sent piece of the leader's log."""
    journal = leader.up.journal
    entries = [journal.entry(index) for index in range(prev + 1, prev + 1 + count)]
    message = Append(
        leader.up.replica.term, leader.up.peers[to.name].epoch, world.now,
        leader.up.replica.commit_index, prev, journal.term_at(prev) or 0, entries,
    )
    to.up.inbox.append((leader.name, message))
    world.turn(to.name)


def give_raw(self: Receiver, peer: Any, message: Append) -> None:
    """Handle AppendEntries as the library would by itself."""
    self._context.deliver(peer.node, {
        "type": "append_entries", "term": message.term, "commit_index": message.commit, "entries": message.entries,
        "prevLogIdx": message.prev_index, "prevLogTerm": message.prev_term,
    })


def test_h1_a_resent_piece_of_the_log_does_not_cut_what_follows(cured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    world = SmallCluster(3)
    for _ in range(5):
        world.put_now()
    world.run_until(world.settled)
    leader, follower = world.leader(), world.followers()[0]
    last = follower.up.journal.last_index
    world.filter = lambda source, target, message: False
    if not cured:
        monkeypatch.setattr(Receiver, "_append", give_raw)
    append_from(world, leader, follower, last - 4, 2)
    assert (follower.up.journal.last_index < last) is not cured


def test_h1_committed_entries_are_never_cut() -> None:
    world = SmallCluster(3)
    for _ in range(5):
        world.put_now()
    world.run_until(world.settled)
    leader, follower = world.leader(), world.followers()[0]
    last = follower.up.journal.last_index
    liar = Append(leader.up.replica.term, 1, world.now, last, last - 2, follower.up.journal.term_at(last - 2) or 0, [
        (b"\1", last - 1, leader.up.replica.term + 5),
    ])
    follower.up.inbox.append((leader.name, liar))
    world.turn(follower.name)
    assert isinstance(follower.failure, RaftViolated)
    assert follower.driver is None


def test_h2_an_answer_of_an_earlier_leadership_is_not_counted(cured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    world = SmallCluster(3)
    world.put_now()
    leader, follower = world.leader(), world.followers()[0]
    world.filter = lambda source, target, message: False
    outcome = leader.propose(Put("q", 0, b"held by nobody else"))
    world.turn(leader.name)
    if not cured:
        real = Sender.acknowledged

        def believe(self: Sender, peer: Any, ack: Ack) -> None:
            term = self._context.replica.term
            real(self, peer, Ack(term, peer.epoch, ack.sent, ack.next_index, ack.reset, ack.success))
        # the parts of the guard keep bound methods, so the table is patched as well
        leader.up.transport._receive[Ack] = lambda peer, ack: believe(leader.up.transport._sender, peer, ack)
    stale = Ack(leader.up.replica.term - 1, 1, world.now, leader.up.journal.last_index + 1, False, True)
    leader.up.inbox.append((follower.name, stale))
    world.turn(leader.name)
    world.run(0.02)
    assert (outcome.state == "applied") is not cured


def test_h3_every_entry_is_sent_once_to_each_follower(cured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not cured:
        send, acknowledged = Sender._send_new, Sender.acknowledged

        def forgetful(self: Sender, peer: Any, message: dict[str, Any]) -> None:
            peer.sent_up_to = None
            send(self, peer, message)

        def tell_the_library(self: Sender, peer: Any, ack: Ack) -> None:
            acknowledged(self, peer, ack)
            self._context.deliver(peer.node, {
                "type": "next_node_idx", "next_node_idx": ack.next_index, "reset": ack.reset, "success": ack.success,
            })
        monkeypatch.setattr(Sender, "_send_new", forgetful)
        monkeypatch.setattr(Sender, "acknowledged", tell_the_library)
    monkeypatch.setattr(limits, "ENTRIES_IN_FLIGHT_MAX", 20)
    monkeypatch.setattr(limits, "ENTRY_OPERATIONS_MAX", 1)
    world = SmallCluster(3)
    leader = world.leader()
    world.sent.clear()
    outcomes = []
    for _ in range(20):
        outcomes += [leader.propose(Put("q", 0, b"x")) for _ in range(5)]
        world.run(0.0007)
    world.run_until(lambda: all(outcome.state == "applied" for outcome in outcomes))
    sent = sum(len(m.entries) for _, target, m in world.sent if isinstance(m, Append))
    assert (sent > 1.2 * 2 * 100) is not cured


def diverged(world: SmallCluster) -> tuple[SmallNode, SmallNode]:
    """Return a former leader with a tail nobody else has, and the new leader, whose log is several frames longer."""
    old = world.leader()
    world.filter = lambda source, target, message: source != old.name or not isinstance(message, Append)
    for _ in range(12):
        for _ in range(3):
            old.propose(Put("q", 0, b"tail"))
        world.turn(old.name)
    world.filter = lambda source, target, message: True
    world.cut(old.name, " ".join(node.name for node in world if node is not old))
    world.run_until(lambda: any(node is not old and node.up.leadership.serving for node in world), 5)
    new = next(node for node in world if node is not old and node.up.leadership.serving)
    return old, new


def put_on(world: SmallCluster, node: SmallNode, data: bytes) -> None:
    outcome = node.propose(Put("q", 0, data))
    world.run_until(lambda: outcome.state == "applied")


def test_h3b_a_diverged_tail_is_repaired_in_few_rounds(cured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ENTRY_OPERATIONS_MAX", 1)
    monkeypatch.setattr(limits, "ENTRIES_IN_FLIGHT_MAX", 40)
    if not cured:
        def one_by_one(self: Receiver, peer: Any, message: Append, index: int) -> None:
            self.contact(peer, message.term, message.commit)
            self.answer(peer, index, reset=True)
        monkeypatch.setattr(Receiver, "_step_back", one_by_one)
    world = SmallCluster(3)
    world.put_now()
    old, new = diverged(world)
    tail = old.up.journal.last_index
    world.heal()
    world.filter = lambda source, target, message: old.name not in (source, target) or isinstance(message, Info)
    for k in range(tail - 10):      # the new leader believes that it has sent all this to the old one
        put_on(world, new, b"%d" % k)
    world.filter = lambda source, target, message: True
    world.flap(old.name, new.name)
    world.sent.clear()
    world.run_until(lambda: old.up.journal.last_term == new.up.journal.last_term and world.settled(), 20)
    resets = sum(1 for source, _, m in world.sent if isinstance(m, Ack) and m.reset and source == old.name)
    assert tail > 20
    assert (resets > 5) is not cured
    assert len(world.states()) == 1


def test_h5a_an_exception_in_apply_stops_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    world = SmallCluster(3)
    follower = world.followers()[0]
    world.put_now()

    def boom(*_: Any) -> Any:
        raise ZeroDivisionError
    monkeypatch.setattr(follower.machine, "apply", boom, raising=True)
    world.put_now()
    world.run(0.5)
    assert isinstance(follower.failure, FailStop)


@pytest.mark.parametrize("where", ["apply", "listener"])
def test_a_node_without_memory_can_be_started_again(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = SmallCluster(3)
    node = world.followers()[0] if where == "apply" else world.leader()

    def nothing_left(*_: Any) -> Any:
        raise MemoryError
    with monkeypatch.context() as patch:
        if where == "apply":
            patch.setattr(node.machine, "apply", nothing_left)
        else:
            patch.setattr(Outcome, "applied", nothing_left)
        world.put()
        world.run(0.5)
    assert isinstance(node.failure, OutOfMemory)
    assert not isinstance(node.failure, ApplyFailed)
    world.start(node.name)
    world.put_now()
    world.run_until(lambda: node.machine.total("q").jobs == 2)


def test_a_disk_that_fails_a_command_is_named_as_the_reason(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:
    """CLONE writes the pages of its jobs while it is executed: an operator should look at the disk, not for a bug."""
    world = SmallCluster(3)
    node = world.followers()[0]

    def broken(*_: Any) -> Any:
        raise OSError(errno.EIO, "Input/output error", "/data/pages")
    with monkeypatch.context() as patch:
        patch.setattr(node.machine, "apply", broken)
        world.put()
        world.run(0.5)
    assert isinstance(node.failure, OSError)
    assert str(node.failure) == "[Errno 5] Input/output error: '/data/pages'"
    assert "cannot be applied" not in caplog.text
    world.start(node.name)
    world.put_now()
    world.run_until(lambda: node.machine.total("q").jobs == 2)


def test_h5b_a_raising_callback_does_not_apply_the_entry_twice(cured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Rude(Outcome):
        def applied(self, reply: Any) -> None:
            raise RuntimeError("rude")

    world = SmallCluster(1)
    node = world.leader()
    if not cured:
        monkeypatch.setattr(proposer.Proposer, "_landed", proposer.Proposer._settle)
        node.up.replica._apply = lambda index, data: node.machine.apply(
            node.machine.index + 1, 0, 0, [Put("q", 0, b"again")])
    node.up.proposer.propose(Put("q", 0, b"once"), Rude())
    failures = []
    for _ in range(5):
        try:
            node.up.turn()
        except Exception as error:
            failures.append(error)
    assert failures
    assert (node.machine.total("q").jobs > 1) is not cured


@pytest.mark.parametrize("kind", [b"\2", b"\3", b"\x7f", b""], ids=["membership", "version", "unknown", "nothing"])
def test_h5c_h10d_other_kinds_of_entries_are_never_taken_in(kind: bytes) -> None:
    world = SmallCluster(3)
    world.put_now()
    leader, follower = world.leader(), world.followers()[0]
    world.run_until(world.settled)
    last, term = follower.up.journal.last_index, leader.up.replica.term
    message = Append(term, 1, world.now, last, last, term, [(kind + b"x" * bool(kind), last + 1, term)])
    follower.up.inbox.append((leader.name, message))
    world.turn(follower.name)
    assert isinstance(follower.failure, RaftViolated)
    world.start(follower.name)
    assert follower.up.journal.last_index == last


def test_h6_a_node_that_was_cut_off_does_not_depose_the_leader(cured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not cured:
        def rush(self: elections.Elections) -> None:
            if not self._context.leads() and self._context.now >= (self._deadline or 0):
                self._restart_timer()
                self._granted_by = {peer.name for peer in self._quorum.peers}
                replica = self._context.replica
                self._context.deliver(replica.leader_node, {"type": "timeout_now", "term": replica.term})
        def gullible(self: elections.Elections, peer: Any, message: RequestVote) -> None:
            self._pre_votes_granted.add(peer.name)
            real(self, peer, message)
        real = elections.Elections.vote_requested
        monkeypatch.setattr(elections.Elections, "tick", rush)
        monkeypatch.setattr(elections.Elections, "vote_requested", gullible)
    world = SmallCluster(3)
    term = world.leader().up.replica.term
    follower = world.followers()[0].name
    for _ in range(3):
        world.cut(follower, " ".join(name for name in world.nodes if name != follower))
        world.run(3)
        world.heal()
        world.run(2)
    assert (world.leader().up.replica.term > term) is not cured


@dataclass
class Exploit:
    """Writes a file when it is unpickled."""

    path: Path

    def __reduce__(self) -> Any:
        return (Path.write_text, (self.path, "executed"))


def test_h7_the_library_can_no_longer_unpickle(tmp_path: Path) -> None:
    payload = pickle.dumps(Exploit(tmp_path / "effect"))
    for loads in (pysyncobj.pickle.loads, pysyncobj.syncobj.pickle.loads, pysyncobj.serializer.pickle.loads):
        with pytest.raises(ValueError, match=r".*"):
            loads(payload)
    with pytest.raises(RuntimeError):
        pysyncobj.syncobj.pickle.load(None)
    assert not (tmp_path / "effect").exists()
    pickle.loads(payload)
    assert (tmp_path / "effect").exists(), "the payload is a real one"


def test_h8_a_fresh_leader_serves_only_after_its_own_lead_entry(cured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HOUSEKEEPING_S", 0.0)        # judged in every turn: no gap is passed over by good luck
    if not cured:
        monkeypatch.setattr(leadership.Leadership, "announced", property(lambda self: True))
    world = SmallCluster(3, start=False)
    for node in list(world):
        node.known_level = FIRST_LEVEL      # without the cure it would be raised among members that are not known yet
        world.start(node.name)
    for k in range(10):
        world.put_now(b"%d" % k)
    for name in world.nodes:
        world.kill(name)
    known: list[int] = []       # jobs that a node knew of when it began to serve

    def note(self: SmallNode, serving: bool) -> None:
        if serving:
            known.append(self.machine.total("q").jobs)
    monkeypatch.setattr(SmallNode, "serving_changed", note)
    with monkeypatch.context() as forgetful:    # the commit index was not written: nothing of the log is applied
        forgetful.setattr(Journal, "getRaftCommitIndex", lambda self: 1)
        for name in world.nodes:
            world.start(name)
    world.run_until(lambda: known)
    assert (known[0] == 10) is cured


def snapshot_everywhere(world: SmallCluster, names: list[str]) -> None:
    """Let these nodes compact their logs, twice, because the journal reaches back to the older of two snapshots."""
    serving = next(node for node in world if node.driver is not None and node.up.leadership.serving)
    before = {name: world[name].up.journal.first_index for name in names}
    for _ in range(2):
        put_on(world, serving, b"between")
        world.run(0.2)
        for name in names:
            world[name].up.replica.compact()
        world.run(0.2)
    for name in names:
        assert world[name].up.journal.first_index > before[name] + 1


def test_h9a_a_snapshot_transfer_never_commits_an_unverified_tail(
    cured: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = SmallCluster(3)
    world.put_now()
    old, new = diverged(world)
    lost = old.propose(Put("q", 0, b"not executed"))
    for k in range(50):
        put_on(world, new, b"%d" % k)
    snapshot_everywhere(world, [node.name for node in world if node is not old])
    if not cured:
        real = Receiver.contact

        def trusting(self: Receiver, peer: Any, term: int, commit: int, known: int | None = None) -> None:
            real(self, peer, term, commit, 1 << 60)
        monkeypatch.setattr(Receiver, "contact", trusting)
    seen: list[set[bytes]] = []
    real_turn = driver.Driver.turn

    def watch(self: driver.Driver) -> None:
        real_turn(self)
        if self is old.driver:
            seen.append(set(world.bodies(old.name)))
    monkeypatch.setattr(driver.Driver, "turn", watch)
    world.heal()
    world.run(2)
    assert lost.state != "applied"
    assert any(b"tail" in bodies for bodies in seen) is not cured
    if cured:
        world.run_until(world.settled)
        assert len(world.states()) == 1


def lagging(world: SmallCluster) -> SmallNode:
    """Return a follower that needs a snapshot, still down."""
    away = world.followers()[0]
    world.kill(away.name)
    for k in range(20):
        world.put_now(b"%d" % k * 1000)
    snapshot_everywhere(world, [node.name for node in world if node is not away])
    world.put_now(b"after")
    return away


def test_a_follower_behind_the_journal_gets_a_snapshot_while_the_cluster_serves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "SNAPSHOT_CHUNK_BYTES", 500)
    world = SmallCluster(3)
    away = lagging(world)
    world.sent.clear()
    world.start(away.name)
    for _ in range(5):
        world.put_now()
    world.run_until(world.settled)
    assert sum(1 for _, _, m in world.sent if isinstance(m, SnapshotChunk)) > 10
    assert len(world.states()) == 1


def test_h9c_a_transfer_that_is_interrupted_starts_again_and_harms_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SNAPSHOT_CHUNK_BYTES", 500)
    world = SmallCluster(3)
    away = lagging(world)
    count = 0

    def break_it(source: str, target: str, message: Message) -> bool:
        nonlocal count
        if isinstance(message, SnapshotChunk):
            count += 1
            if count in (3, 20, 21):
                world.flap(source, target)
                return False
            return count != 30      # one piece is lost without the connection breaking
        return True
    world.filter = break_it
    world.start(away.name)
    world.run_until(world.settled, 40)
    assert count > 30
    assert len(world.states()) == 1
    world.kill(away.name)
    world.start(away.name)
    world.run_until(world.settled)
    assert len(world.states()) == 1


def test_h9d_a_snapshot_that_cannot_be_used_is_not_acknowledged() -> None:
    world = SmallCluster(3)
    away = lagging(world)

    def flip(source: str, target: str, message: Message) -> bool:
        if isinstance(message, SnapshotChunk) and message.data:
            data = bytearray(message.data)
            data[len(data) // 2] ^= 1
            bad = SnapshotChunk(message.term, message.epoch, message.sent, message.commit, message.transfer,
                                message.offset, bytes(data), message.last)
            world.deliver(source, target, bad)
            return False
        return True
    world.filter = flip
    world.start(away.name)
    world.run(3)
    match = world.leader().up.peers[away.name].match
    assert match <= away.up.journal.last_index < world.leader().up.journal.first_index
    world.filter = lambda source, target, message: True
    world.run_until(world.settled, 40)
    assert len(world.states()) == 1


def test_h9e_h9f_a_slow_transfer_neither_floods_nor_starves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SNAPSHOT_CHUNK_BYTES", 300)
    monkeypatch.setattr(limits, "SNAPSHOT_WINDOW_BYTES", 1)    # one piece in each turn
    world = SmallCluster(3)
    away = lagging(world)
    term = world.leader().up.replica.term
    world.start(away.name)
    world.sent.clear()
    start = world.now
    world.run_until(world.settled)
    assert world.now - start > 0.1, "the transfer was to be a long one"
    to_it = sum(1 for _, target, _ in world.sent if target == away.name)
    assert to_it / (world.now - start) < 3000, "messages per second; pysyncobj sends 27,000 in one tick"
    assert world.leader().up.replica.term == term


def test_h11_every_proposal_gets_an_outcome_also_when_the_library_never_calls_back(
    cured: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not cured:
        monkeypatch.setattr(proposer.Proposer, "expire", lambda self, now: None)
    world = SmallCluster(3)
    world.put_now()
    old = world.leader()
    world.filter = lambda source, target, message: old.name not in (source, target)
    outcomes = [old.propose(Put("q", 0, b"?")) for _ in range(5)]
    world.run(5)
    assert all(outcome.state == "unknown" for outcome in outcomes) is cured


def test_h11d_the_largest_entry_is_replicated_whole() -> None:
    world = SmallCluster(3)
    body = bytes(8 << 20)
    outcome = world.put(body)
    world.run_until(lambda: outcome.state != "open")
    assert outcome.reply == Stored()
    world.run_until(world.settled)
    assert len(world.states()) == 1
    assert len(body) + (1 << 20) < limits.BATCH_BYTES_MAX


def test_h11d_so_is_the_largest_batch() -> None:
    world = SmallCluster(3)
    world.put_now()
    put = PutWith(Put("q" * 255, -(1 << 63), bytes(1024), "i" * 255), Due(at_ms=1 << 45), key="k" * 128)
    count = OPERATION_BYTES_MAX // cost(put)[0]
    batch = Batch((put,) * count, atomic=False)
    outcome = world.leader().propose(batch)
    world.run_until(lambda: outcome.state != "open")
    assert isinstance(outcome.reply, Results)
    world.run_until(world.settled)
    assert len(world.states()) == 1
    size = len(encode_entry(0, 0, [batch]))
    assert size <= cost(batch)[0] <= OPERATION_BYTES_MAX
    assert size > OPERATION_BYTES_MAX * 9 // 10


def test_h11d_no_number_of_long_commands_makes_an_entry_too_large(
    cured: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """64 clients that pipeline GETs of 256 names send them."""
    world = SmallCluster(3)
    leader = world.leader()
    if not cured:
        monkeypatch.setitem(COSTS, Get, small)
    get = Get(tuple(f"{number:0254}" for number in range(256)))
    outcomes = [leader.propose(get) for _ in range(64 * 10)]
    world.run(2.0)
    assert (leader.failure is None) is cured
    assert ({outcome.state for outcome in outcomes} == {"applied"}) is cured


def test_the_installed_library_is_the_pinned_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pysyncobj_adapter.check_version()
    assert importlib.metadata.version("pysyncobj") == pysyncobj_adapter.VERSION
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.3.18")
    with pytest.raises(LibraryMismatch, match=r"0\.3\.18"):
        pysyncobj_adapter.check_version()


def test_nothing_that_vouches_leaves_before_the_journal_is_synced(
    cured: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = SmallCluster(3)
    world.put_now()
    early: list[str] = []

    def watch(source: str, target: str, message: Message) -> bool:
        if world[source].up.journal.unsynced and not isinstance(message, Append | Heartbeat | SnapshotChunk | Info):
            early.append(type(message).__name__)
        return True
    world.filter = watch
    if not cured:
        sync = Syncing.sync

        def flush_and_sync(self: Syncing, now: float, *, leads: bool) -> None:
            self._network.flush()
            sync(self, now, leads=leads)
        monkeypatch.setattr(Syncing, "sync", flush_and_sync)
    for _ in range(10):
        world.put_now()
    world.kill(world.leader().name)
    world.put_now()
    assert bool(early) is not cured
