"""Feature levels in a cluster of nodes that know different ones: what is refused, and when the level rises.

`Touch` stands for an operation that came with level 2.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sockpqd.cluster.errors import EntryTooNew
from sockpqd.cluster.exit_codes import restart_cures
from sockpqd.cluster.leader import proposer
from sockpqd.cluster.leader.feature_level import FeatureLevel
from sockpqd.cluster.wire.messages import WIRE_FORMAT, Hello, Info, encode, incompatible
from sockpqd.core import Accepted, ChangeMember, MemberChange, NotFound, NotYet, Put, RaiseLevel, Stored, Touch
from sockpqd.core.handlers import dispatch
from sockpqd.core.levels import FIELD_LEVELS
from sockpqd.core.ops import entry
from tests.cluster.helpers.small_cluster import Outcome, SmallCluster, SmallNode

LEVELS: dict[Any, int] = dispatch.LEVELS


@pytest.fixture(autouse=True)
def touch_came_with_level_2(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let older programs not know Touch from here on."""
    monkeypatch.setitem(LEVELS, Touch, 2)


def cluster(*known: int, spares: int = 0, **capped: int) -> SmallCluster:
    """Return a serving cluster of nodes that know this many levels; `capped`: nodes with a feature_level_max."""
    world = SmallCluster(len(known) - spares, start=False, spares=spares)
    for node, level in zip(world, known, strict=True):
        node.known_level, node.feature_level_max = level, capped.get(node.name, 0)
    for node in list(world)[:len(known) - spares]:
        world.start(node.name)
    world.run_until(world.serving)
    return world


def ask(world: SmallCluster) -> object:
    """Return the answer to an operation of level 2."""
    outcome = world.leader().propose(Touch(1, 1000))
    world.run_until(lambda: outcome.state != "open")
    assert outcome.state == "applied"
    return outcome.reply


def levels(world: SmallCluster) -> set[int]:
    """Return the level of the cluster, on all nodes that run."""
    return {node.machine.level for node in world if node.driver is not None}


def upgrade(world: SmallCluster, name: str, known_level: int = 2) -> SmallNode:
    """Restart the node with a program that knows this feature level."""
    world.kill(name)
    world[name].known_level = known_level
    return world.start(name)


def test_the_level_is_raised_when_all_members_know_more() -> None:
    world = cluster(2, 2, 2)
    world.run_until(lambda: levels(world) == {2})
    assert ask(world) == NotFound()


def test_it_is_raised_to_what_all_know() -> None:
    world = cluster(4, 3, 5)
    world.run_until(lambda: levels(world) == {3})
    world.run(2)
    assert levels(world) == {3}


def test_below_its_level_an_operation_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    world = cluster(2, 1, 2)
    world.run(3)
    assert levels(world) == {1}
    before = world.leader().up.journal.last_index
    assert ask(world) == NotYet()
    assert ask(world) == NotYet()
    assert world.leader().up.journal.last_index == before
    assert [record.getMessage() for record in caplog.records if "refused" in record.getMessage()] == [
        "commands of feature level 2 are refused, the cluster has level 1. Nodes that do not allow more, by their "
        "version or raft.feature_level_max: n2 (1)",
    ]
    world.put_now(b"what came with level 1")


def test_a_rolling_upgrade_raises_the_level_with_its_last_node_and_no_node_stops() -> None:
    world = cluster(1, 1, 1)
    for name in ("n1", "n2", "n3"):
        assert levels(world) == {1}
        upgrade(world, name)
        world.run_until(lambda: world.serving() is not None and world.settled())
    world.run_until(lambda: levels(world) == {2})
    assert ask(world) == NotFound()
    assert all(node.failure is None for node in world)


def test_the_way_back_is_open_while_one_node_holds_the_level_back() -> None:
    world = cluster(2, 2, 2, n3=1)
    world.run(3)
    assert levels(world) == {1}
    assert ask(world) == NotYet()
    for name in ("n1", "n2", "n3"):
        upgrade(world, name, known_level=1)
        world.run_until(lambda: world.serving() is not None and world.settled())
    assert all(node.failure is None for node in world)


def test_a_node_that_is_away_holds_the_level_back() -> None:
    world = cluster(1, 2, 2)
    assert world.leader() is world["n3"]
    world.kill("n2")
    upgrade(world, "n1")
    world.run(3)
    assert levels(world) == {1}
    world.start("n2")
    world.run_until(lambda: levels(world) == {2})


def test_what_was_told_before_the_connection_was_lost_does_not_count() -> None:
    world = cluster(1, 2, 2)
    assert world.leader() is world["n3"]
    world.run(1)
    world.kill("n2")                # it told that it knows level 2
    upgrade(world, "n1")
    world.run(1)
    world["n2"].known_level = 1     # and goes back
    world.start("n2")
    world.run(2)
    assert levels(world) == {1}
    assert all(node.failure is None for node in world)


def test_a_learner_counts() -> None:
    world = cluster(1, 2, 2, 1, spares=1)
    outcome = Outcome()
    world.leader().up.leadership.propose_alone(
        ChangeMember("n4", MemberChange.JOIN, peer="127.0.0.1:4", client="127.0.0.1:104"), outcome,
    )
    world.run_until(lambda: outcome.state == "applied")
    upgrade(world, "n1")
    world.run(2)
    assert levels(world) == {1}
    world.start("n4")
    world.run(2)
    assert levels(world) == {1}
    upgrade(world, "n4")
    world.run_until(lambda: levels(world) == {2})


def test_who_knows_less_than_the_cluster_has_is_refused_with_a_sentence() -> None:
    world = cluster(2, 2, 2)
    world.run_until(lambda: levels(world) == {2})
    follower = next(node for node in world if node is not world.leader())
    world.kill(follower.name)
    world.wipe(follower.name)
    follower.known_level = 1
    world.start(follower.name)
    world.run(1)
    assert set(world.refusals) == {
        f"{follower.name} knows feature levels up to 1, and the cluster has level 2: start a newer version of sockpqd "
        f"on {follower.name}",
    }
    world.put_now(b"the others work")
    upgrade(world, follower.name)
    world.run_until(world.settled)


def test_a_node_that_finds_a_level_on_its_disk_that_it_does_not_know_stops_and_says_why() -> None:
    world = cluster(2, 2, 2)
    world.run_until(lambda: levels(world) == {2})
    for body in (b"one", b"two"):       # with which it writes down what is committed
        world.put_now(body)
    world.run_until(world.settled)
    follower = next(node for node in world if node is not world.leader())
    with pytest.raises(EntryTooNew) as raised:
        upgrade(world, follower.name, known_level=1)
    assert str(raised.value).endswith(
        "raises the cluster to feature level 2, this version of sockpqd knows levels up to 1: start a newer one on "
        "this node")
    assert not restart_cures(raised.value)


def test_an_entry_that_counts_other_members_is_proposed_again() -> None:
    world = cluster(2, 2, 2, n1=1, n2=1, n3=1)
    outcome = Outcome()
    world.leader().up.leadership.propose_alone(RaiseLevel(2, ("n1", "n2")), outcome)
    world.run_until(lambda: outcome.state == "applied")
    assert outcome.reply != Accepted()
    assert levels(world) == {1}


def test_a_leader_that_asks_nobody_stops_the_older_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FeatureLevel, "_allowed_by", lambda self, name: self.raise_to)
    world = cluster(1, 2, 2)
    world.run(3)
    assert isinstance(world["n1"].failure, EntryTooNew)


def test_a_feature_level_max_below_the_level_is_told_to_do_nothing(caplog: pytest.LogCaptureFixture) -> None:
    world = cluster(2, 2, 2)
    world.run_until(lambda: levels(world) == {2})
    caplog.clear()
    world["n1"].feature_level_max = 1
    upgrade(world, "n1")
    world.run(1)
    assert "raft.feature_level_max = 1 does nothing" in caplog.text
    assert levels(world) == {2}


# ---- between programs with and without levels

def hello(**fields: Any) -> Hello:
    """Return a greeting of n1."""
    return Hello(**{"format": WIRE_FORMAT, "sender": "n1", "receiver": "n2", **fields})


def test_a_greeting_and_an_info_without_levels_have_the_first() -> None:
    for message in (hello(), Info("LEADER", 1, 1, 0, True, True, False, False, 0, "", 0, b"")):
        told = msgspec.msgpack.decode(encode(message))
        for key in ("level", "raise_to", "cluster_level"):
            assert told.pop(key) == 1
        kind = type(message)
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(told), type=kind) == message


@pytest.mark.parametrize(("knows", "has", "refused"), [(1, 1, ""), (2, 1, ""), (1, 2, "n1"), (2, 2, "")])
def test_both_sides_say_the_same(knows: int, has: int, refused: str) -> None:
    mine, theirs = hello(level=knows), hello(sender="n2", receiver="n1", level=3, cluster_level=has)
    assert incompatible(mine, theirs) == incompatible(theirs, mine)
    assert incompatible(mine, theirs).startswith(refused)
    assert bool(incompatible(mine, theirs)) is bool(refused)


def test_jobs_are_put_whatever_the_level() -> None:
    world = cluster(2, 1, 2)
    outcome = world.leader().propose(Put("q", 0, b"x"))
    world.run_until(lambda: outcome.state == "applied")


def test_an_option_of_the_next_level_is_left_out_until_all_know_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "FEATURE_LEVEL", 2)
    monkeypatch.setitem(FIELD_LEVELS, ("Put", "new_item"), 2)
    written: list[bytes] = []

    def encode_entry(*arguments: Any) -> bytes:
        written.append(entry.encode_entry(*arguments))
        return written[-1]
    monkeypatch.setattr(proposer, "encode_entry", encode_entry)

    def put(operation: Put) -> object:
        outcome = world.leader().propose(operation)
        world.run_until(lambda: outcome.state != "open")
        return outcome.reply
    world = cluster(2, 2, 2, n3=1)
    old, new = Put("q", 0, b"old"), Put("q", 0, b"new", None, True)
    assert put(old) == Stored()
    assert put(new) == NotYet()
    assert any(b"old" in data for data in written)
    assert not any(msgspec.msgpack.encode(old) in data or b"new" in data for data in written)
    world["n3"].feature_level_max = 0
    upgrade(world, "n3")
    world.run_until(lambda: levels(world) == {2})
    world.run(2)
    assert isinstance(put(new), Stored)
    assert any(msgspec.msgpack.encode(new) in data for data in written)


def test_what_is_let_through_is_written_whole_also_before_the_next_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The level is known with the entry that raises it; a field above the level written last would be left out."""
    monkeypatch.setattr(entry, "FEATURE_LEVEL", 2)
    monkeypatch.setitem(FIELD_LEVELS, ("Put", "new_item"), 2)
    written: list[bytes] = []
    level = 1
    proposing = proposer.Proposer(
        lambda data, callback: written.append(data), lambda: 7, lambda effects: None, lambda: 0.0,
        level=lambda: level)
    proposing.accepting, new = True, Put("q", 0, b"new", None, True)
    proposing.propose(new, Outcome())
    level = 2
    proposing.flush(0.0)
    assert [msgspec.msgpack.encode(new) in data for data in written] == [True]
